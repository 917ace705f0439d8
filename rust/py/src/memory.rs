//! A store and the memories in it, as Python holds them.

use crate::convert::{self, Analysed, NewTurn, token_vectors};
use crate::{detached, raise};
use ebbtide_core::config::Config;
use ebbtide_core::engine::{Engine, MemoryOptions, Overruled, RecallOptions, SharedStore};
use ebbtide_core::error::{Code, Error, Result};
use ebbtide_core::index::Found;
use ebbtide_core::retrieve::{Query, QueryFrame};
use ebbtide_core::score::vector::quantise;
use ebbtide_core::store::{OpenOptions, Store, Written};
use ebbtide_core::types::{Cost, Relation};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
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
    origin: Origin,
}

/// The process that opened something. Behind a fork, the child has a copy of the parent's
/// connection and of its locks' state: it must neither use nor close them.
struct Origin(u32);

impl Origin {
    fn here() -> Self {
        Self(std::process::id())
    }

    fn forked(&self) -> bool {
        self.0 != std::process::id()
    }

    fn check(&self) -> Result<()> {
        if self.forked() {
            return Err(Error::new(
                Code::StoreClosed,
                format!(
                    "this memory was opened by process {}, before it forked; open it again in this process, read-only while that one has it open",
                    self.0
                ),
            ));
        }
        Ok(())
    }
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        if self.origin.forked() {
            let held = self.store.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(held.take());
        }
    }
}

impl Drop for MemoryHandle {
    fn drop(&mut self) {
        if self.origin.forked() {
            let held = self
                .engine
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(held.take());
        }
    }
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
            origin: Origin::here(),
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
            let found = store.known_namespace(name)?;
            store.transaction(|s| s.erase_namespace(&found))?;
            store.scrub()
        })
    }

    /// Writes a namespace to a file; returns its number of rows.
    fn export(&self, py: Python<'_>, name: &str, path: PathBuf) -> PyResult<u64> {
        detached(py, || lock(&*self.get()?).export(name, &path))
    }

    /// Reads a namespace from a file; returns its name and its number of rows.
    fn import_(
        &self,
        py: Python<'_>,
        path: PathBuf,
        name: Option<&str>,
    ) -> PyResult<(String, u64)> {
        detached(py, || lock(&*self.get()?).import(&path, name))
    }

    /// Copies the store into a new file while it is used.
    fn backup(&self, py: Python<'_>, target: PathBuf) -> PyResult<()> {
        detached(py, || lock(&*self.get()?).backup(&target))
    }

    /// What is wrong with the store.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &detached(py, || lock(&*self.get()?).check())?)
    }

    /// Erases the turns of a namespace that are not what was written; returns their ids.
    fn erase_unsound_turns(&self, py: Python<'_>, name: &str) -> PyResult<Vec<u64>> {
        detached(py, || lock(&*self.get()?).erase_unsound_turns(name))
    }

    /// Erases what is derived in these namespaces, and derived rows without a turn.
    fn erase_damaged(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        detached(py, || lock(&*self.get()?).erase_damaged(&names))
    }

    /// The file; none for a store in memory.
    fn path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        detached(py, || Ok(lock(&*self.get()?).path().map(PathBuf::from)))
    }

    fn vacuum(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || lock(&*self.get()?).vacuum())
    }

    fn close(&self) {
        if !self.origin.forked() {
            lock(&self.store).take();
        }
    }
}

impl StoreHandle {
    fn get(&self) -> Result<SharedStore> {
        self.origin.check()?;
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
    origin: Origin,
}

impl MemoryHandle {
    /// Runs `work` on the engine, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Engine) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || {
            self.origin.check()?;
            match lock(&self.engine).as_mut() {
                Some(engine) => work(engine),
                None => Err(Error::new(
                    Code::StoreClosed,
                    "this memory was closed; open it again",
                )),
            }
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
            origin: Origin::here(),
        })
    }

    /// Whether this process is a fork of the one that opened it.
    fn forked(&self) -> bool {
        self.origin.forked()
    }

    /// An error in a fork: asked before any lock is taken, which another thread of the
    /// parent may have held when it forked.
    fn check_process(&self, py: Python<'_>) -> PyResult<()> {
        self.origin.check().map_err(|e| raise(py, &e))
    }

    /// Stores analysed turns: a list of `(turn, facts, passages, card vectors, assessment)`.
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

    /// Turns of which a language model said something.
    fn assessed(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |e| e.assessed())
    }

    /// What a language model is to write next.
    fn unwritten<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.unwritten())?)
    }

    /// Takes what it wrote: the episode, `(turn, fact)` rows, why something is missing.
    fn written(
        &self,
        py: Python<'_>,
        episode: u64,
        version: u32,
        outcome: PyWritten,
    ) -> PyResult<()> {
        let PyWritten(text, facts, failed, (calls, tokens)) = outcome;
        let cost = Cost { calls, tokens };
        let outcome = Written {
            text,
            facts,
            failed,
            cost,
        };
        self.with(py, |e| e.written(episode, version, outcome))
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

    /// Erases turns, all or none.
    fn delete_many(&self, py: Python<'_>, interaction_ids: Vec<u64>) -> PyResult<()> {
        self.with(py, |e| e.delete_many(&interaction_ids))
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
        let filters = recall_options(py, None, None, filters, false, None, None)?.filters;
        to_python(
            py,
            &self.with(py, |e| e.history_page(first, limit, &filters))?,
        )
    }

    /// Ids of every turn.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u64>>> {
        Ok(self.with(py, |e| e.ids())?.into_pyarray(py))
    }

    /// Passage vectors by turn: int16, little endian, one passage after the other.
    fn vectors(
        &self,
        py: Python<'_>,
        first: u64,
        limit: u32,
    ) -> PyResult<Vec<(u64, Cow<'_, [u8]>)>> {
        let found = self.with(py, |e| e.vectors(first, limit))?;
        Ok(found.into_iter().map(|(id, v)| (id, v.into())).collect())
    }

    /// Relations that callers stated: newer, relation, older.
    fn stated(&self, py: Python<'_>) -> PyResult<Vec<(u64, &'static str, u64)>> {
        self.with(py, |e| e.stated())
    }

    fn history<'py>(&self, py: Python<'py>, interaction_id: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.history(interaction_id))?)
    }

    fn explain<'py>(&self, py: Python<'py>, interaction_id: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.explain(interaction_id))?)
    }

    fn episodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.episodes())?)
    }

    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.facts())?)
    }

    /// Cosine of every pair of units.
    fn unit_cosines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(self.with(py, |e| e.unit_cosines())?.into_pyarray(py))
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

    /// First ids of the segments that are to be searched by graph.
    fn segments(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.with(py, |e| Ok(e.segments()))
    }

    /// A segment's vectors: the turn of each row, and int16 [n, d].
    fn segment_vectors<'py>(&self, py: Python<'py>, first: u64) -> PyResult<Segment<'py>> {
        let (owners, vectors) = self.with(py, |e| e.segment_vectors(first))?;
        let shape = [owners.len(), vectors.len() / owners.len().max(1)];
        let rows = vectors.into_pyarray(py).reshape(shape)?;
        Ok((owners.into_pyarray(py), rows))
    }

    fn count_tokens(&self, py: Python<'_>, text: &str) -> PyResult<u32> {
        self.with(py, |e| Ok(e.count_tokens(text)))
    }

    /// Evidence for a question; with `trace`, every candidate too.
    ///
    /// `graph` is what graphs over segments found: pairs of first and past-the-last id
    /// searched, and the ids found.
    #[pyo3(signature = (query, *, limit, preset, filters, trace, graph=None, overruled=None))]
    #[allow(clippy::too_many_arguments)]
    fn recall<'py>(
        &self,
        py: Python<'py>,
        query: PyQuery<'py>,
        limit: Option<usize>,
        preset: Option<String>,
        filters: Option<Bound<'py, PyAny>>,
        trace: bool,
        graph: Option<Graph>,
        overruled: Option<PyOverruled>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let query = query.into_core()?;
        let options = recall_options(py, limit, preset, filters, trace, graph, overruled)?;
        to_python(py, &self.with(py, |e| e.recall(&query, &options))?)
    }

    /// The four blocks as text.
    #[pyo3(signature = (query, *, max_tokens, include_active, limit, preset, filters, graph=None, overruled=None))]
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
        graph: Option<Graph>,
        overruled: Option<PyOverruled>,
    ) -> PyResult<(String, Vec<u64>, u32)> {
        let query = query.into_core()?;
        let options = recall_options(py, limit, preset, filters, false, graph, overruled)?;
        let context = self.with(py, |e| {
            e.render(&query, &options, max_tokens, include_active)
        })?;
        Ok((context.text, context.shown, context.tokens))
    }

    fn close(&self, py: Python<'_>) {
        if !self.origin.forked() {
            py.detach(|| lock(&self.engine).take());
        }
    }
}

/// The turn of each vector, and the vectors, int16 [n, d].
type Segment<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray2<i16>>);

/// Ranges of ids that were searched by graph, and the ids found.
type Graph = (Vec<(u64, u64)>, Vec<u64>);

fn recall_options(
    py: Python<'_>,
    limit: Option<usize>,
    preset: Option<String>,
    filters: Option<Bound<'_, PyAny>>,
    trace: bool,
    graph: Option<Graph>,
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
        graph: graph.map_or_else(Found::default, |(ranges, owners)| Found { ranges, owners }),
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

/// What a language model wrote: `(text, facts, failed, cost)`.
#[derive(FromPyObject)]
pub struct PyWritten(
    Option<String>,
    Option<Vec<(u64, String)>>,
    Option<String>,
    convert::Cost,
);

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
