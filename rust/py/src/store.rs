//! A store as Python holds it.

use crate::{detached, to_python};
use ebbtide_core::engine::SharedStore;
use ebbtide_core::error::{Code, Error, Result};
use ebbtide_core::store::{OpenOptions, Store};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The guarded value, also after a panic of another thread.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open store file. It closes when it and its memories are closed.
#[pyclass(frozen, name = "StoreHandle")]
pub struct StoreHandle {
    store: Mutex<Option<SharedStore>>,
    origin: Origin,
}

/// The process that opened something. Behind a fork, the child has a copy of the parent's
/// connection and of its locks' state: it must neither use nor close them.
pub struct Origin(u32);

impl Origin {
    /// This process.
    pub fn here() -> Self {
        Self(std::process::id())
    }

    /// Whether this process is a fork of it.
    pub fn forked(&self) -> bool {
        self.0 != std::process::id()
    }

    /// An error in a fork of it.
    pub fn check(&self) -> Result<()> {
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

    /// Erases a namespace and its name; whether the write-ahead log is free of them, too.
    fn delete(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
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
    /// The store, unless it was closed.
    pub fn get(&self) -> Result<SharedStore> {
        self.origin.check()?;
        lock(&self.store)
            .clone()
            .ok_or_else(|| Error::new(Code::StoreClosed, "this store was closed; open it again"))
    }
}
