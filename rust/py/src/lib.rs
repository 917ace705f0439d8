//! Python bindings of the core: conversions, the GIL, errors. No decisions.

mod asking;
mod convert;
mod encoder;
mod kernels;
mod memory;
mod parser;
mod store;
mod weights;

use ebbtide_core::config;
use ebbtide_core::error::{Code, Error};
use ebbtide_core::store::forking;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pythonize::pythonize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// A recall reads some hundred rows of some kilobytes each and lets as many go: glibc's own
/// allocator took a sixth of its time to put the pieces together again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The Python exception for an error of the core: its family names the class.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let family = error.code.as_str().split('.').next().unwrap_or("");
    let class = match family {
        "config" => "ConfigError",
        "input" => "InputError",
        "schema" => "SchemaVersionError",
        "fingerprint" => "FingerprintError",
        "not_found" => "NotFoundError",
        _ => "StoreError",
    };
    let made = py
        .import("ebbtide.errors")
        .and_then(|m| m.getattr(class))
        .and_then(|c| c.call1((error.message.as_str(), error.code.as_str())));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(e) => e,
    }
}

/// The Python exception for arrays that do not fit.
pub fn refused(py: Python<'_>, message: String) -> PyErr {
    raise(py, &Error::new(Code::InputFacts, message))
}

/// Runs `work` without the GIL and maps its error.
pub fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|e| raise(py, &e))
}

/// A value of the core as Python data.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    pythonize(py, value).map_err(Into::into)
}

/// What Python gave as JSON text; `what` names it in the error.
pub fn from_json<T: DeserializeOwned>(py: Python<'_>, what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|e| {
        raise(
            py,
            &Error::new(Code::InputField, format!("unusable {what}: {e}")),
        )
    })
}

/// Resolves and checks a configuration; returns it as JSON text.
#[pyfunction]
fn load_config(py: Python<'_>, preset: &str, user: &str) -> PyResult<String> {
    let config = config::load(preset, user).map_err(|e| raise(py, &e))?;
    serde_json::to_string(&config)
        .map_err(|e| raise(py, &Error::new(Code::ConfigType, e.to_string())))
}

/// The annotated defaults as TOML text.
#[pyfunction]
fn default_config() -> &'static str {
    config::DEFAULTS
}

/// The schema version that new stores get, and the newest that can be opened.
#[pyfunction]
fn schema_version() -> usize {
    ebbtide_core::store::SCHEMA_VERSION
}

/// What this module was compiled for, and how: `x86_64-linux-gnu`, `release`.
#[pyfunction]
fn build() -> (String, &'static str) {
    use std::env::consts::{ARCH, OS};
    let abi = match () {
        () if cfg!(target_env = "gnu") => "-gnu",
        () if cfg!(target_env = "musl") => "-musl",
        () if cfg!(target_env = "msvc") => "-msvc",
        () => "",
    };
    let profile = match cfg!(debug_assertions) {
        true => "debug",
        false => "release",
    };
    (format!("{ARCH}-{OS}{abi}"), profile)
}

/// The instructions by which the default model multiplies here: `AMX`, `AVX-512 VNNI`, `AVX2`.
#[pyfunction]
fn instructions() -> &'static str {
    ebbtide_simd::bytes::instructions()
}

/// Waits until nobody uses a store; to be called before a fork, by the thread that forks.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    py.detach(forking::before);
}

/// Ends what `before_fork` began, in the parent.
#[pyfunction]
fn after_fork_in_parent() {
    forking::after_in_parent();
}

/// Lets go of the stores that the parent has open, in the child.
#[pyfunction]
fn after_fork_in_child() {
    forking::after_in_child();
}

/// Every error code.
#[pyfunction]
fn error_codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|c| c.as_str()).collect()
}

/// Seconds that the clock of a stamp is ahead of UTC.
#[pyfunction]
fn clock_offset(given: &str) -> i32 {
    ebbtide_core::calendar::clock_offset(given)
}

/// Tokens of a text by a named counter.
#[pyfunction]
fn count_tokens(py: Python<'_>, text: &str, counter: &str) -> PyResult<u32> {
    let tokenizer = ebbtide_core::text::tokenizer(counter).ok_or_else(|| {
        raise(
            py,
            &Error::new(
                Code::ConfigRange,
                format!("no token counter is called {counter:?}"),
            ),
        )
    })?;
    Ok(py.detach(|| ebbtide_core::text::count_tokens(tokenizer, text)))
}

/// What the places of each list of weights in `[retrieval]` weigh, by the list's key.
#[pyfunction]
fn weighed() -> BTreeMap<&'static str, &'static [&'static str]> {
    ebbtide_core::retrieve::WEIGHED.into()
}

/// A text without the blocks that `render_context` made.
#[pyfunction]
fn without_rendered(text: &str) -> String {
    ebbtide_core::render::without_rendered(text)
}

/// Rows of a float32 matrix as 16-bit unit vectors, the form that is stored.
#[pyfunction]
fn unit_vectors<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f32>,
) -> PyResult<Bound<'py, PyArray2<i16>>> {
    let shape = [rows.as_array().nrows(), rows.as_array().ncols()];
    convert::unit_vectors(convert::EMBEDDED, &rows)?
        .into_pyarray(py)
        .reshape(shape)
}

/// Rows of a float32 matrix as 8-bit unit vectors, the form that token vectors are stored in.
#[pyfunction]
fn token_vectors<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, f32>,
) -> PyResult<Bound<'py, PyArray2<i8>>> {
    let shape = [rows.as_array().nrows(), rows.as_array().ncols()];
    convert::token_vectors(convert::EMBEDDED, &rows)?
        .into_pyarray(py)
        .reshape(shape)
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_function(wrap_pyfunction!(load_config, m)?)?;
    m.add_function(wrap_pyfunction!(default_config, m)?)?;
    m.add_function(wrap_pyfunction!(schema_version, m)?)?;
    m.add_function(wrap_pyfunction!(build, m)?)?;
    m.add_function(wrap_pyfunction!(instructions, m)?)?;
    m.add_function(wrap_pyfunction!(before_fork, m)?)?;
    m.add_function(wrap_pyfunction!(after_fork_in_parent, m)?)?;
    m.add_function(wrap_pyfunction!(after_fork_in_child, m)?)?;
    m.add_function(wrap_pyfunction!(error_codes, m)?)?;
    m.add_function(wrap_pyfunction!(count_tokens, m)?)?;
    m.add_function(wrap_pyfunction!(weighed, m)?)?;
    m.add_function(wrap_pyfunction!(without_rendered, m)?)?;
    m.add_function(wrap_pyfunction!(clock_offset, m)?)?;
    m.add_function(wrap_pyfunction!(unit_vectors, m)?)?;
    m.add_function(wrap_pyfunction!(token_vectors, m)?)?;
    kernels::register(m)?;
    m.add_class::<store::StoreHandle>()?;
    m.add_class::<memory::MemoryHandle>()?;
    m.add_class::<encoder::TextEncoder>()?;
    m.add_class::<parser::ArcMoves>()?;
    m.add_class::<parser::EntityMoves>()?;
    m.add_class::<parser::TokenWindows>()?;
    m.add_class::<weights::LaidWeights>()?;
    Ok(())
}
