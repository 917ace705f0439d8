//! A question from Python, as the core takes it.

use crate::convert::{EMBEDDED, finite, token_vectors};
use crate::raise;
use ebbtide_core::engine::{Overruled, RecallOptions};
use ebbtide_core::error::{Code, Error};
use ebbtide_core::index::Found;
use ebbtide_core::retrieve::{Query, QueryFrame};
use ebbtide_core::score::vector::quantise;
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pythonize::depythonize;

/// A question: `(frame, vector, tokens, token terms)`.
#[derive(FromPyObject)]
pub struct PyQuery<'py>(
    Bound<'py, PyAny>,
    PyReadonlyArray1<'py, f32>,
    Option<PyReadonlyArray2<'py, f32>>,
    Vec<Option<String>>,
);

impl PyQuery<'_> {
    /// The question with its vectors quantised.
    pub fn into_core(self) -> PyResult<Query> {
        let Self(frame, vector, tokens, token_terms) = self;
        let frame: QueryFrame = depythonize(&frame)?;
        let numbers = vector.as_slice()?;
        finite(vector.py(), EMBEDDED, numbers)?;
        Ok(Query {
            frame,
            vector: quantise(numbers),
            tokens: tokens.map_or(Ok(Vec::new()), |t| token_vectors(EMBEDDED, &t))?,
            token_terms,
        })
    }
}

/// What is decided outside of the engine: `(escalate, facts, answer)`.
#[derive(FromPyObject)]
pub struct PyOverruled(Option<bool>, Option<Vec<(u64, f64)>>, Option<String>);

/// Ranges of ids that were searched by graph, and the ids found.
pub type Graph = (Vec<(u64, u64)>, Vec<u64>);

/// The options of one recall.
pub fn recall_options(
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
