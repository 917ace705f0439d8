//! A store as Python holds it.

use crate::{detached, to_python};
use ebbtide_core::error::{Code, Error, Result};
use ebbtide_core::store::{OpenOptions, SharedStore, Store};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// The process that opened something. Behind a fork, the child had copies of the parent's
/// connection and lock: `forking` let go of them, and nothing here uses or closes them.
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

    /// Drops what was opened; in a fork of it, leaves it.
    pub fn let_go<T: Send>(&self, opened: Option<T>) {
        if self.forked() {
            std::mem::forget(opened);
        } else {
            // Without the GIL: closing waits for a fork, whose thread may wait for the GIL.
            Python::attach(|py| py.detach(|| drop(opened)));
        }
    }
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        let held = self.store.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.origin.let_go(held.take());
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
        let store = detached(py, || {
            SharedStore::new(|| match path {
                Some(path) => Store::open(&path, &options),
                None => Store::in_memory(),
            })
        })?;
        Ok(Self {
            store: Mutex::new(Some(store)),
            origin: Origin::here(),
        })
    }

    fn namespaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        detached(py, || self.get()?.lock().namespaces())
    }

    /// Fingerprint and token counter a namespace was made with, if it exists.
    fn made_with(&self, py: Python<'_>, name: &str) -> PyResult<Option<(String, String)>> {
        let found = detached(py, || self.get()?.lock().find_namespace(name))?;
        Ok(found.map(|n| (n.analyser, n.token_counter)))
    }

    /// Erases a namespace and its name; whether the write-ahead log is free of them, too.
    fn delete(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        detached(py, || {
            let shared = self.get()?;
            let mut store = shared.lock();
            let found = store.known_namespace(name)?;
            store.transaction(|s| s.erase_namespace(&found))?;
            store.scrub()
        })
    }

    /// Writes a namespace to a file; returns its number of rows.
    fn export(&self, py: Python<'_>, name: &str, path: PathBuf) -> PyResult<u64> {
        detached(py, || self.get()?.lock().export(name, &path))
    }

    /// Reads a namespace from a file; returns its name and its number of rows.
    fn import_(
        &self,
        py: Python<'_>,
        path: PathBuf,
        name: Option<&str>,
    ) -> PyResult<(String, u64)> {
        detached(py, || self.get()?.lock().import(&path, name))
    }

    /// Copies the store into a new file while it is used.
    fn backup(&self, py: Python<'_>, target: PathBuf) -> PyResult<()> {
        detached(py, || self.get()?.lock().backup(&target))
    }

    /// What is wrong with the store.
    fn check<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &detached(py, || self.get()?.lock().check())?)
    }

    /// Erases the turns of a namespace that are not what was written; returns their ids.
    fn erase_unsound_turns(&self, py: Python<'_>, name: &str) -> PyResult<Vec<u64>> {
        detached(py, || self.get()?.lock().erase_unsound_turns(name))
    }

    /// Erases what is derived in these namespaces, and derived rows without a turn.
    fn erase_damaged(&self, py: Python<'_>, names: Vec<String>) -> PyResult<()> {
        detached(py, || self.get()?.lock().erase_damaged(&names))
    }

    /// The file; none for a store in memory.
    fn path(&self, py: Python<'_>) -> PyResult<Option<PathBuf>> {
        detached(py, || Ok(self.get()?.lock().path().map(PathBuf::from)))
    }

    fn vacuum(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.get()?.lock().vacuum())
    }

    fn close(&self) {
        if !self.origin.forked() {
            let held = lock(&self.store).take();
            self.origin.let_go(held);
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
