//! A memory as Python holds it.

use crate::asking::{Graph, PyOverruled, PyQuery, recall_options};
use crate::convert::{self, Analysed, NewTurn};
use crate::store::{Origin, StoreHandle, lock};
use crate::{detached, from_json, raise, to_python};
use ebbtide_core::config::Config;
use ebbtide_core::engine::{Engine, MemoryOptions};
use ebbtide_core::error::{Code, Error, Result};
use ebbtide_core::store::Written;
use ebbtide_core::types::{Cost, Relation, State};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pythonize::depythonize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// One memory in a store.
#[pyclass(frozen, name = "MemoryHandle")]
pub struct MemoryHandle {
    // Emptied by `close`, so that the store's lock is freed at once.
    engine: Mutex<Option<Engine>>,
    keep_tokens: bool,
    origin: Origin,
}

impl Drop for MemoryHandle {
    fn drop(&mut self) {
        let held = self
            .engine
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        self.origin.let_go(held.take());
    }
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

    fn delete(&self, py: Python<'_>, interaction_id: u64) -> PyResult<bool> {
        self.with(py, |e| e.delete(interaction_id))
    }

    /// Erases turns, all or none; whether the write-ahead log is free of them, too.
    fn delete_many(&self, py: Python<'_>, interaction_ids: Vec<u64>) -> PyResult<bool> {
        self.with(py, |e| e.delete_many(&interaction_ids))
    }

    fn delete_all(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, Engine::delete_all)
    }

    fn get<'py>(&self, py: Python<'py>, interaction_id: u64) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.with(py, |e| e.get(interaction_id))?)
    }

    fn find_external(&self, py: Python<'_>, external_id: &str) -> PyResult<Option<u64>> {
        self.with(py, |e| e.find_external(external_id))
    }

    /// Whether a turn with the caller's own id was ever stored, and not erased.
    fn knows_external(&self, py: Python<'_>, external_id: &str) -> PyResult<bool> {
        self.with(py, |e| e.knows_external(external_id))
    }

    /// Whether the turn known by the caller's own id says another text, or did once.
    fn says_other(&self, py: Python<'_>, external_id: &str, text: &str) -> PyResult<bool> {
        self.with(py, |e| e.says_other(external_id, text))
    }

    #[pyo3(signature = (first, limit, archived=None, metadata=None))]
    fn page<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        limit: u32,
        archived: Option<bool>,
        metadata: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let state = archived.map(|yes| if yes { State::Archived } else { State::Active });
        let wanted: Option<serde_json::Map<_, _>> =
            metadata.map(|m| depythonize(&m)).transpose()?;
        let page = self.with(py, |e| match wanted.filter(|w| !w.is_empty()) {
            Some(wanted) => e.page_having(first, limit, state, &wanted),
            None => e.page(first, limit, state),
        })?;
        to_python(py, &page)
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

    fn newest_time(&self, py: Python<'_>) -> PyResult<Option<(i64, i32)>> {
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
            py.detach(|| drop(lock(&self.engine).take()));
        }
    }
}

/// The turn of each vector, and the vectors, int16 [n, d].
type Segment<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray2<i16>>);

/// What a language model wrote: `(text, facts, failed, cost)`.
#[derive(FromPyObject)]
pub struct PyWritten(
    Option<String>,
    Option<Vec<(u64, String)>>,
    Option<String>,
    convert::Cost,
);
