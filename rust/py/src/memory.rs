//! A store and the memories in it, as Python holds them.

use crate::convert::{Analysed, NewTurn, token_vectors};
use crate::{detached, raise};
use ebbtide_core::config::Config;
use ebbtide_core::engine::{Engine, MemoryOptions, Overruled, RecallOptions, SharedStore};
use ebbtide_core::error::{Code, Error, Result};
use ebbtide_core::retrieve::{Query, QueryFrame};
use ebbtide_core::score::vector::quantise;
use ebbtide_core::store::{OpenOptions, Store};
use ebbtide_core::types::Relation;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    pythonize(py, value).map_err(Into::into)
}

fn from_json<T: DeserializeOwned>(py: Python<'_>, what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|e| {
        raise(
            py,
            &Error::new(Code::InputField, format!("unusable {what}: {e}")),
        )
    })
}

/// An open store file. It closes when it and its memories are closed.
#[pyclass(frozen, name = "StoreHandle")]
pub struct StoreHandle {
    store: Mutex<Option<SharedStore>>,
}

#[pymethods]
impl StoreHandle {
    /// Opens a file, or a store in memory where no path is given.
    #[new]
    #[pyo3(signature = (path, *, read_only, holder, synchronous_full))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        read_only: bool,
        holder: String,
        synchronous_full: bool,
    ) -> PyResult<Self> {
        let options = OpenOptions {
            read_only,
            holder,
            synchronous_full,
        };
        let store = detached(py, || match path {
            Some(path) => Store::open(&path, &options),
            None => Store::in_memory(),
        })?;
        Ok(Self {
            store: Mutex::new(Some(Arc::new(Mutex::new(store)))),
        })
    }

    fn namespaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        detached(py, || lock(&*self.get()?).namespaces())
    }

    /// Fingerprint and token counter a namespace was made with, if it exists.
    fn made_with(&self, py: Python<'_>, name: &str) -> PyResult<Option<(String, String)>> {
        let found = detached(py, || lock(&*self.get()?).find_namespace(name))?;
        Ok(found.map(|n| (n.analyser, n.token_counter)))
    }

    /// Erases a namespace and its name.
    fn delete(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        detached(py, || {
            let shared = self.get()?;
            let mut store = lock(&shared);
            let found = store.find_namespace(name)?.ok_or_else(|| {
                Error::new(
                    Code::NotFoundNamespace,
                    format!("the store has no namespace {name:?}"),
                )
            })?;
            store.transaction(|s| s.erase_namespace(&found))?;
            store.scrub()
        })
    }

    fn vacuum(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || lock(&*self.get()?).vacuum())
    }

    fn close(&self) {
        lock(&self.store).take();
    }
}

impl StoreHandle {
    fn get(&self) -> Result<SharedStore> {
        lock(&self.store)
            .clone()
            .ok_or_else(|| Error::new(Code::StoreClosed, "this store was closed; open it again"))
    }
}

/// One memory in a store.
#[pyclass(frozen, name = "MemoryHandle")]
pub struct MemoryHandle {
    // Emptied by `close`, so that the store's lock is freed at once.
    engine: Mutex<Option<Engine>>,
    keep_tokens: bool,
}

impl MemoryHandle {
    /// Runs `work` on the engine, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Engine) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || match lock(&self.engine).as_mut() {
            Some(engine) => work(engine),
            None => Err(Error::new(
                Code::StoreClosed,
                "this memory was closed; open it again",
            )),
        })
    }
}

#[pymethods]
impl MemoryHandle {
    #[new]
    #[pyo3(signature = (store, namespace, *, config, presets, analyser, reindexing))]
    fn new(
        py: Python<'_>,
        store: &StoreHandle,
        namespace: String,
        config: &str,
        presets: BTreeMap<String, String>,
        analyser: String,
        reindexing: bool,
    ) -> PyResult<Self> {
        let config: Config = from_json(py, "configuration", config)?;
        let mut by_name = BTreeMap::new();
        for (name, json) in &presets {
            by_name.insert(name.clone(), from_json(py, "configuration", json)?);
        }
        let keep_tokens = config.store.token_vectors;
        let options = MemoryOptions {
            namespace,
            config,
            presets: by_name,
            analyser,
            reindexing,
        };
        let engine = detached(py, || Engine::open(store.get()?, options))?;
        Ok(Self {
            engine: Mutex::new(Some(engine)),
            keep_tokens,
        })
    }

    /// Stores analysed turns: a list of `(turn, facts, passages, card vectors)`.
    fn add<'py>(&self, py: Python<'py>, batch: Vec<Analysed<'py>>) -> PyResult<Bound<'py, PyAny>> {
        let batch = batch
            .into_iter()
            .map(|a| a.into_core(self.keep_tokens))
            .collect::<PyResult<Vec<_>>>()?;
        to_python(py, &self.with(py, |e| e.add(batch))?)
    }

    /// Journals raw turns; returns their ids and the report.
    fn journal<'py>(
        &self,
        py: Python<'py>,
        turns: Vec<NewTurn>,
    ) -> PyResult<(Vec<u64>, Bound<'py, PyAny>)> {
        let turns = turns
            .into_iter()
            .map(NewTurn::into_core)
            .collect::<PyResult<Vec<_>>>()?;
        let (ids, report) = self.with(py, |e| e.journal(&turns))?;
        Ok((ids, to_python(py, &report)?))
    }

    /// Analyses of journalled turns, oldest first: `(id, analysed)`.
    fn complete_pending<'py>(
        &self,
        py: Python<'py>,
        batch: Vec<(u64, Analysed<'py>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let batch = batch
            .into_iter()
            .map(|(id, a)| Ok((id, a.into_core(self.keep_tokens)?)))
            .collect::<PyResult<Vec<_>>>()?;
        to_python(py, &self.with(py, |e| e.complete_pending(batch))?)
    }

    fn pending(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |e| Ok(e.pending()))
    }

    fn begin_reindex(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Engine::begin_reindex)
    }

    fn relate<'py>(
        &self,
        py: Python<'py>,
        newer: u64,
        relation: &str,
        older: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = self.with(py, |e| {
            let relation = Relation::parse(relation).ok_or_else(|| {
                let known: Vec<&str> = Relation::ALL.iter().map(|r| r.as_str()).collect();
                Error::new(
                    Code::InputField,
                    format!("no relation is called {relation:?}; there are {known:?}"),
                )
            })?;
            e.relate(newer, relation, older)
        })?;
        to_python(py, &report)
    }

    fn delete(&self, py: Python<'_>, interaction_id: u64) -> PyResult<()> {
        self.with(py, |e| e.delete(interaction_id))
    }

    fn delete_all(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Engine::delete_all)
    }

    fn get<'py>(&self, py: Python<'py>, interaction_id: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.get(interaction_id))?)
    }

    fn find_external(&self, py: Python<'_>, external_id: &str) -> PyResult<Option<u64>> {
        self.with(py, |e| e.find_external(external_id))
    }

    fn page<'py>(&self, py: Python<'py>, first: u64, limit: u32) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.page(first, limit))?)
    }

    /// A page of the raw history that the filters let in.
    fn history_page<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        limit: u32,
        filters: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let filters = recall_options(py, None, None, filters, false, None)?.filters;
        to_python(
            py,
            &self.with(py, |e| e.history_page(first, limit, &filters))?,
        )
    }

    fn history<'py>(&self, py: Python<'py>, interaction_id: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.history(interaction_id))?)
    }

    fn explain<'py>(&self, py: Python<'py>, interaction_id: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.explain(interaction_id))?)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.stats())?)
    }

    fn digest(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |e| e.digest())
    }

    fn speakers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |e| Ok(e.speakers()))
    }

    fn newest_time(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |e| Ok(e.newest_time()))
    }

    fn len(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |e| Ok(e.len()))
    }

    fn count_tokens(&self, py: Python<'_>, text: &str) -> PyResult<u32> {
        self.with(py, |e| Ok(e.count_tokens(text)))
    }

    /// Evidence for a question; with `trace`, every candidate too.
    #[pyo3(signature = (query, *, limit, preset, filters, trace, overruled=None))]
    #[allow(clippy::too_many_arguments)]
    fn recall<'py>(
        &self,
        py: Python<'py>,
        query: PyQuery<'py>,
        limit: Option<usize>,
        preset: Option<String>,
        filters: Option<Bound<'py, PyAny>>,
        trace: bool,
        overruled: Option<PyOverruled>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let query = query.into_core()?;
        let options = recall_options(py, limit, preset, filters, trace, overruled)?;
        to_python(py, &self.with(py, |e| e.recall(&query, &options))?)
    }

    /// The four blocks as text.
    #[pyo3(signature = (query, *, max_tokens, include_active, limit, preset, filters, overruled=None))]
    #[allow(clippy::too_many_arguments)]
    fn render<'py>(
        &self,
        py: Python<'py>,
        query: PyQuery<'py>,
        max_tokens: Option<u32>,
        include_active: bool,
        limit: Option<usize>,
        preset: Option<String>,
        filters: Option<Bound<'py, PyAny>>,
        overruled: Option<PyOverruled>,
    ) -> PyResult<(String, Vec<u64>, u32)> {
        let query = query.into_core()?;
        let options = recall_options(py, limit, preset, filters, false, overruled)?;
        let context = self.with(py, |e| {
            e.render(&query, &options, max_tokens, include_active)
        })?;
        Ok((context.text, context.shown, context.tokens))
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| lock(&self.engine).take());
    }
}

fn recall_options(
    py: Python<'_>,
    limit: Option<usize>,
    preset: Option<String>,
    filters: Option<Bound<'_, PyAny>>,
    trace: bool,
    overruled: Option<PyOverruled>,
) -> PyResult<RecallOptions> {
    let filters = match filters {
        Some(f) => depythonize(&f).map_err(|e| {
            raise(
                py,
                &Error::new(Code::InputField, format!("unusable filters: {e}")),
            )
        })?,
        None => Default::default(),
    };
    Ok(RecallOptions {
        limit,
        preset,
        filters,
        trace,
        overruled: overruled.map_or_else(Overruled::default, |PyOverruled(e, f, a)| Overruled {
            escalate: e,
            facts: f,
            answer: a,
        }),
    })
}

/// What is decided outside of the engine: `(escalate, facts, answer)`.
#[derive(FromPyObject)]
pub struct PyOverruled(Option<bool>, Option<Vec<(u64, f64)>>, Option<String>);

/// A question: `(frame, vector, tokens, token terms)`.
#[derive(FromPyObject)]
pub struct PyQuery<'py>(
    Bound<'py, PyAny>,
    PyReadonlyArray1<'py, f32>,
    Option<PyReadonlyArray2<'py, f32>>,
    Vec<Option<String>>,
);

impl PyQuery<'_> {
    fn into_core(self) -> PyResult<Query> {
        let Self(frame, vector, tokens, token_terms) = self;
        let frame: QueryFrame = depythonize(&frame)?;
        Ok(Query {
            frame,
            vector: quantise(vector.as_slice()?),
            tokens: tokens.map_or(Ok(Vec::new()), |t| token_vectors(&t))?,
            token_terms,
        })
    }
}
