//! The kernels over numpy arrays: read where they lie, computed without the GIL,
//! returned without a copy.

use crate::convert::unit_vectors;
use crate::{detached, refused};
use ebbtide_core::config::{MemoryTiers, TemporalDecay};
use ebbtide_core::kernels::{self, Postings};
use numpy::ndarray::{Dimension, Ix1, Ix2};
use numpy::{
    Element, IntoPyArray, PyArray, PyArray1, PyArrayMethods, PyReadonlyArray, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;

type Scored<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u8>>);
type Hits<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// An argument as an array of that type, read where it lies.
fn array<'py, T: Element, D: Dimension>(
    name: &str,
    given: &Bound<'py, PyAny>,
) -> PyResult<PyReadonlyArray<'py, T, D>> {
    let py = given.py();
    let wanted = || {
        let dtype = numpy::dtype::<T>(py);
        let dimensions = D::NDIM.unwrap_or(1);
        format!("{name} must be a numpy array of dtype {dtype} with {dimensions} dimension(s)")
    };
    let Ok(found) = given.cast::<PyArray<T, D>>() else {
        let kind = given.getattr("dtype").map_or_else(
            |_| given.get_type().to_string(),
            |dtype| {
                let dimensions = given
                    .getattr("ndim")
                    .map_or(String::new(), |n| n.to_string());
                format!("{dtype} with {dimensions}")
            },
        );
        return Err(refused(py, format!("{}, not {kind}", wanted())));
    };
    if !found.is_c_contiguous() {
        let remedy = "pass numpy.ascontiguousarray(...)";
        return Err(refused(
            py,
            format!("{name} is not contiguous in rows; {remedy}"),
        ));
    }
    found
        .try_readonly()
        .map_err(|e| refused(py, format!("{name} cannot be read: {e}")))
}

/// The numbers of a contiguous array.
fn slice<'a, T: Element, D: Dimension>(
    py: Python<'_>,
    name: &str,
    array: &'a PyReadonlyArray<'_, T, D>,
) -> PyResult<&'a [T]> {
    array
        .as_slice()
        .map_err(|e| refused(py, format!("{name} cannot be read: {e}")))
}

/// An int16 matrix as it lies, or a float32 one as unit vectors.
enum Vectors<'py> {
    There(PyReadonlyArray2<'py, i16>),
    Made(Vec<i16>, [usize; 2]),
}

impl<'py> Vectors<'py> {
    fn new(name: &str, given: &Bound<'py, PyAny>) -> PyResult<Self> {
        if given.cast::<PyArray<f32, Ix2>>().is_err() {
            return Ok(Self::There(array::<i16, Ix2>(name, given)?));
        }
        let rows = array::<f32, Ix2>(name, given)?;
        let shape = [rows.shape()[0], rows.shape()[1]];
        slice(given.py(), name, &rows)?;
        Ok(Self::Made(unit_vectors(name, &rows)?, shape))
    }

    fn get(&self, py: Python<'_>, name: &str) -> PyResult<(&[i16], usize, usize)> {
        Ok(match self {
            Self::There(rows) => (slice(py, name, rows)?, rows.shape()[0], rows.shape()[1]),
            Self::Made(data, [rows, width]) => (data, *rows, *width),
        })
    }
}

fn hits<'py>(py: Python<'py>, found: Vec<(u64, f64)>) -> Hits<'py> {
    let (rows, scores): (Vec<i64>, Vec<f64>) = found
        .into_iter()
        .map(|(row, score)| (row.cast_signed(), score))
        .unzip();
    (rows.into_pyarray(py), scores.into_pyarray(py))
}

/// Effective scores and tiers (eq. 16-20).
#[pyfunction]
#[pyo3(signature = (omega, age, *, lambda_base, inertia, healthy_min, critical_max))]
pub fn kernel_decay<'py>(
    py: Python<'py>,
    omega: &Bound<'py, PyAny>,
    age: &Bound<'py, PyAny>,
    lambda_base: f64,
    inertia: f64,
    healthy_min: f64,
    critical_max: f64,
) -> PyResult<Scored<'py>> {
    let (omega, age) = (
        array::<f64, Ix1>("omega", omega)?,
        array::<i64, Ix1>("age", age)?,
    );
    let (omega, age) = (slice(py, "omega", &omega)?, slice(py, "age", &age)?);
    let rates = TemporalDecay {
        lambda_base,
        inertia_strength: inertia,
        hard_kill_threshold: 0.0,
    };
    let tiers = MemoryTiers {
        critical_max,
        unstable_max: healthy_min,
        healthy_min,
    };
    let (effective, tier) = detached(py, || {
        let (mut effective, mut tier) = (vec![0.0; omega.len()], vec![0; omega.len()]);
        kernels::decay(omega, age, &rates, &tiers, &mut effective, &mut tier)?;
        Ok((effective, tier))
    })?;
    Ok((effective.into_pyarray(py), tier.into_pyarray(py)))
}

/// Rows to evict in order, and the tokens still over the budget (eq. 22-26).
#[pyfunction]
#[pyo3(signature = (effective, adjustment, tokens, *, budget, healthy_min, evict_healthy))]
pub fn kernel_prune<'py>(
    py: Python<'py>,
    effective: &Bound<'py, PyAny>,
    adjustment: &Bound<'py, PyAny>,
    tokens: &Bound<'py, PyAny>,
    budget: u64,
    healthy_min: f64,
    evict_healthy: bool,
) -> PyResult<(Bound<'py, PyArray1<i64>>, u64)> {
    let effective = array::<f64, Ix1>("effective", effective)?;
    let adjustment = array::<f64, Ix1>("adjustment", adjustment)?;
    let tokens = array::<i64, Ix1>("tokens", tokens)?;
    let effective = slice(py, "effective", &effective)?;
    let adjustment = slice(py, "adjustment", &adjustment)?;
    let tokens = slice(py, "tokens", &tokens)?;
    let done = detached(py, || {
        kernels::prune(
            effective,
            adjustment,
            tokens,
            budget,
            healthy_min,
            evict_healthy,
        )
    })?;
    Ok((done.rows.into_pyarray(py), done.over_budget))
}

/// Divergence of each row from the window before it (eq. 6-7).
#[pyfunction]
pub fn kernel_divergence<'py>(
    py: Python<'py>,
    vectors: &Bound<'py, PyAny>,
    window: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let vectors = Vectors::new("vectors", vectors)?;
    let (data, rows, width) = vectors.get(py, "vectors")?;
    let out = detached(py, || {
        // Rows without a column take no memory, however many, and are refused.
        let mut out = vec![0.0; if width == 0 { 0 } else { rows }];
        kernels::divergence(data, width, window, &mut out)?;
        Ok(out)
    })?;
    Ok(out.into_pyarray(py))
}

/// The rows nearest to a query.
#[pyfunction]
pub fn kernel_cosine_top_k<'py>(
    py: Python<'py>,
    vectors: &Bound<'py, PyAny>,
    query: &Bound<'py, PyAny>,
    k: usize,
) -> PyResult<Hits<'py>> {
    let vectors = Vectors::new("vectors", vectors)?;
    let (data, _, width) = vectors.get(py, "vectors")?;
    // A query is a matrix of one row.
    let dimensions = query.getattr("ndim").and_then(|n| n.extract::<usize>());
    if !dimensions.is_ok_and(|n| n == 1) {
        let message = "query must be a numpy array with 1 dimension";
        return Err(refused(py, message.into()));
    }
    let shaped = query.call_method1("reshape", (1, -1));
    let query = Vectors::new("query", shaped.as_ref().unwrap_or(query))?;
    let (query, _, _) = query.get(py, "query")?;
    let found = detached(py, || kernels::cosine_top_k(data, width, query, k))?;
    Ok(hits(py, found))
}

/// Documents by the share of the query's terms that they contain.
#[pyfunction]
pub fn kernel_overlap<'py>(
    py: Python<'py>,
    offsets: &Bound<'py, PyAny>,
    documents: &Bound<'py, PyAny>,
    count: usize,
    query: &Bound<'py, PyAny>,
    k: usize,
) -> PyResult<Hits<'py>> {
    let offsets = array::<i64, Ix1>("offsets", offsets)?;
    let documents = array::<u32, Ix1>("documents", documents)?;
    let query = array::<u32, Ix1>("query", query)?;
    let offsets = slice(py, "offsets", &offsets)?;
    let documents = slice(py, "documents", &documents)?;
    let query = slice(py, "query", &query)?;
    let found = detached(py, || {
        kernels::overlap(Postings::new(offsets, documents, count)?, query, k)
    })?;
    Ok(hits(py, found))
}

/// Documents by BM25.
#[pyfunction]
pub fn kernel_bm25<'py>(
    py: Python<'py>,
    offsets: &Bound<'py, PyAny>,
    documents: &Bound<'py, PyAny>,
    counts: &Bound<'py, PyAny>,
    lengths: &Bound<'py, PyAny>,
    query: &Bound<'py, PyAny>,
    k: usize,
) -> PyResult<Hits<'py>> {
    let offsets = array::<i64, Ix1>("offsets", offsets)?;
    let documents = array::<u32, Ix1>("documents", documents)?;
    let counts = array::<u32, Ix1>("counts", counts)?;
    let lengths = array::<u32, Ix1>("lengths", lengths)?;
    let query = array::<u32, Ix1>("query", query)?;
    let offsets = slice(py, "offsets", &offsets)?;
    let documents = slice(py, "documents", &documents)?;
    let counts = slice(py, "counts", &counts)?;
    let lengths = slice(py, "lengths", &lengths)?;
    let query = slice(py, "query", &query)?;
    let found = detached(py, || {
        let postings = Postings::new(offsets, documents, lengths.len())?;
        kernels::bm25(postings, counts, lengths, query, k)
    })?;
    Ok(hits(py, found))
}

/// Adds the kernels to the module.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(kernel_decay, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_prune, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_divergence, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_cosine_top_k, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_overlap, m)?)?;
    m.add_function(wrap_pyfunction!(kernel_bm25, m)?)?;
    Ok(())
}
