//! Python objects to the core's types. Facts are read attribute by attribute from
//! the analysis dataclasses: no copies in between, no dictionaries.

use crate::refused;
use ebbtide_core::score::vector::{quantise, quantise_token};
use ebbtide_core::types as core;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// A sequence; mostly a tuple, whose items are had without an iterator.
pub struct Many<T>(Vec<T>);

impl<'py, T: FromPyObjectOwned<'py>> FromPyObject<'_, 'py> for Many<T> {
    type Error = PyErr;

    fn extract(items: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let Ok(tuple) = items.cast::<PyTuple>() else {
            return items.extract().map(Self);
        };
        let mut many = Vec::with_capacity(tuple.len());
        for item in tuple.iter_borrowed() {
            many.push(item.extract().map_err(Into::into)?);
        }
        Ok(Self(many))
    }
}

#[derive(FromPyObject)]
pub struct Entity {
    text: String,
    label: String,
    start: u32,
    end: u32,
}

#[derive(FromPyObject)]
pub struct Cue {
    signal: String,
    text: String,
    start: u32,
    end: u32,
    rule: String,
}

#[derive(FromPyObject)]
pub struct Claim {
    kind: String,
    subject: String,
    identity: String,
    value: String,
    old_value: Option<String>,
    negated: bool,
}

#[derive(FromPyObject)]
pub struct TimeExpression {
    text: String,
    start: u32,
    end: u32,
    first: Option<String>,
    last: Option<String>,
    grain: String,
    words: String,
}

#[derive(FromPyObject)]
pub struct CardFacts {
    kind: String,
    subject: String,
    predicate: String,
    object: String,
    negated: bool,
    temporal: String,
    start: u32,
    end: u32,
    identity: Option<String>,
    first: Option<String>,
    last: Option<String>,
    terms: Many<String>,
}

#[derive(FromPyObject)]
pub struct Facts<'py> {
    density: f64,
    sentiment: f64,
    entity_count: u32,
    entities: Many<Entity>,
    signals: Bound<'py, PyAny>,
    cues: Many<Cue>,
    claims: Many<Claim>,
    social: bool,
    terms: Many<String>,
    times: Many<TimeExpression>,
    cards: Many<CardFacts>,
}

impl Facts<'_> {
    pub fn into_core(self) -> PyResult<core::Facts> {
        let mut signals = core::Signals::default();
        for name in self.signals.try_iter()? {
            let name = name?.cast_into::<PyString>()?;
            let name = name.to_str()?;
            signals = signals
                .with(name)
                .ok_or_else(|| PyValueError::new_err(format!("unknown signal {name:?}")))?;
        }
        Ok(core::Facts {
            density: self.density,
            sentiment: self.sentiment,
            entity_count: self.entity_count,
            entities: self
                .entities
                .0
                .into_iter()
                .map(|e| core::Entity {
                    text: e.text,
                    label: e.label,
                    start: e.start,
                    end: e.end,
                })
                .collect(),
            signals,
            cues: self
                .cues
                .0
                .into_iter()
                .map(|c| core::Cue {
                    signal: c.signal,
                    text: c.text,
                    start: c.start,
                    end: c.end,
                    rule: c.rule,
                })
                .collect(),
            claims: self
                .claims
                .0
                .into_iter()
                .map(|c| core::Claim {
                    kind: c.kind,
                    subject: c.subject,
                    identity: c.identity,
                    value: c.value,
                    old_value: c.old_value,
                    negated: c.negated,
                })
                .collect(),
            social: self.social,
            terms: self.terms.0,
            times: self
                .times
                .0
                .into_iter()
                .map(TimeExpression::into_core)
                .collect(),
            cards: self.cards.0.into_iter().map(CardFacts::into_core).collect(),
        })
    }
}

impl TimeExpression {
    fn into_core(self) -> core::TimeExpression {
        core::TimeExpression {
            text: self.text,
            start: self.start,
            end: self.end,
            first: self.first,
            last: self.last,
            grain: self.grain,
            words: self.words,
        }
    }
}

impl CardFacts {
    fn into_core(self) -> core::CardFacts {
        core::CardFacts {
            kind: self.kind,
            subject: self.subject,
            predicate: self.predicate,
            object: self.object,
            negated: self.negated,
            temporal: self.temporal,
            start: self.start,
            end: self.end,
            identity: self.identity,
            first: self.first,
            last: self.last,
            terms: self.terms.0,
        }
    }
}

#[derive(FromPyObject)]
pub struct Stamp {
    given: String,
    utc_micros: i64,
    naive: bool,
}

/// A turn whose fields the facade has checked; provenance and metadata are JSON.
#[derive(FromPyObject)]
pub struct NewTurn {
    text: String,
    role: String,
    speaker: Option<String>,
    stamp: Option<Stamp>,
    session_id: Option<String>,
    external_id: Option<String>,
    provenance: Option<String>,
    metadata: Option<String>,
    received_at: i64,
}

impl NewTurn {
    pub fn into_core(self) -> PyResult<core::NewTurn> {
        let provenance = match self.provenance {
            Some(json) => Some(
                serde_json::from_str(&json).map_err(|e| PyValueError::new_err(e.to_string()))?,
            ),
            None => None,
        };
        Ok(core::NewTurn {
            text: self.text,
            role: self.role,
            speaker: self.speaker,
            timestamp: self.stamp.map(|s| core::Stamp {
                given: s.given,
                utc_micros: s.utc_micros,
                naive: s.naive,
            }),
            session_id: self.session_id,
            external_id: self.external_id,
            provenance,
            metadata: self.metadata,
            received_at: self.received_at,
        })
    }
}

/// One window of a text with its canonical vectors. They are copied at once while no other
/// Python code runs, so that nothing need keep account of who else might write them.
#[derive(FromPyObject)]
pub struct Passage<'py> {
    start: u32,
    end: u32,
    vector: Bound<'py, PyArray1<i16>>,
    tokens: Option<Bound<'py, PyArray2<i8>>>,
}

impl Passage<'_> {
    fn to_core(&self, keep_tokens: bool) -> PyResult<core::Passage> {
        Ok(core::Passage {
            start: self.start,
            end: self.end,
            vector: self.vector.to_vec()?,
            tokens: match &self.tokens {
                Some(rows) if keep_tokens => rows.to_vec()?,
                _ => Vec::new(),
            },
        })
    }
}

/// What an embedder's vectors are called in an error.
pub const EMBEDDED: &str = "a vector of the embedder";

/// An error unless every number is finite: the unit vector of others would be all zero.
pub fn finite(py: Python<'_>, name: &str, numbers: &[f32]) -> PyResult<()> {
    // One pass without a branch.
    if numbers.iter().fold(true, |sound, x| sound & x.is_finite()) {
        return Ok(());
    }
    let message = format!("{name} holds a number that is not finite");
    Err(refused(py, message))
}

/// Rows of a float32 matrix as 16-bit unit vectors, one after the other.
pub fn unit_vectors(name: &str, rows: &PyReadonlyArray2<'_, f32>) -> PyResult<Vec<i16>> {
    let width = rows.as_array().ncols();
    let mut out = Vec::with_capacity(rows.as_array().len());
    if width > 0 {
        let numbers = rows.as_slice()?;
        finite(rows.py(), name, numbers)?;
        for row in numbers.chunks_exact(width) {
            out.extend(quantise(row));
        }
    }
    Ok(out)
}

/// Rows of a float32 matrix as 8-bit unit vectors, one after the other.
pub fn token_vectors(name: &str, rows: &PyReadonlyArray2<'_, f32>) -> PyResult<Vec<i8>> {
    let width = rows.as_array().ncols();
    let mut out = Vec::with_capacity(rows.as_array().len());
    if width > 0 {
        let numbers = rows.as_slice()?;
        finite(rows.py(), name, numbers)?;
        for row in numbers.chunks_exact(width) {
            quantise_token(row, &mut out);
        }
    }
    Ok(out)
}

/// What a language model's part cost: `(calls, tokens)`.
pub type Cost = (u64, u64);

/// What a language model said of a turn: `(lifecycle, utility, failed, cost)`.
#[derive(FromPyObject)]
pub struct Assessment(Option<String>, Option<f64>, Option<String>, Cost);

impl Assessment {
    fn into_core(self) -> PyResult<core::Assessment> {
        let Self(lifecycle, utility, failed, (calls, tokens)) = self;
        let said = match (lifecycle, utility, failed) {
            (_, _, Some(failed)) => Err(failed),
            (Some(name), Some(utility), None) => {
                let lifecycle = core::Lifecycle::parse(&name)
                    .ok_or_else(|| PyValueError::new_err(format!("unknown lifecycle {name:?}")))?;
                Ok((lifecycle, utility))
            }
            _ => return Err(PyValueError::new_err("neither an assessment nor a failure")),
        };
        Ok(core::Assessment {
            said,
            cost: core::Cost { calls, tokens },
        })
    }
}

/// A turn with its analysis: `(turn, facts, passages, card vectors, assessment)`.
#[derive(FromPyObject)]
pub struct Analysed<'py>(
    NewTurn,
    Facts<'py>,
    Many<Passage<'py>>,
    Many<Bound<'py, PyArray1<i16>>>,
    Option<Assessment>,
);

impl Analysed<'_> {
    pub fn into_core(self, keep_tokens: bool) -> PyResult<core::AnalysedTurn> {
        let Self(turn, facts, passages, cards, assessment) = self;
        Ok(core::AnalysedTurn {
            turn: turn.into_core()?,
            facts: facts.into_core()?,
            passages: passages
                .0
                .iter()
                .map(|p| p.to_core(keep_tokens))
                .collect::<PyResult<_>>()?,
            card_vectors: cards
                .0
                .iter()
                .map(|v| Ok(v.to_vec()?))
                .collect::<PyResult<_>>()?,
            assessment: assessment.map(Assessment::into_core).transpose()?,
        })
    }
}
