//! A store as the memories in it share it.

use super::Store;
use super::forking::{Pass, pass, remember};
use crate::error::Result;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A store shared by the memories in it; it closes with the last who has it.
#[derive(Debug)]
pub struct SharedStore {
    store: Arc<Mutex<Store>>,
    // Had while this is dropped, and given back last: the store may close with it.
    leaving: Option<Pass>,
}

impl SharedStore {
    /// A store that `open` opens.
    pub fn new(open: impl FnOnce() -> Result<Store>) -> Result<Self> {
        let _pass = pass();
        let store = Arc::new(Mutex::new(open()?));
        remember(&store);
        Ok(Self {
            store,
            leaving: None,
        })
    }

    /// The store, once nobody else uses it.
    pub fn lock(&self) -> Held<'_> {
        let pass = pass();
        // A panic while the lock was held left no half-done transaction: SQLite
        // rolls back what was not committed.
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        Held { store, _pass: pass }
    }
}

impl Clone for SharedStore {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            leaving: None,
        }
    }
}

impl Drop for SharedStore {
    fn drop(&mut self) {
        self.leaving = Some(pass());
    }
}

/// A store that nobody else uses; no fork happens meanwhile.
#[derive(Debug)]
pub struct Held<'a> {
    store: MutexGuard<'a, Store>,
    _pass: Pass,
}

impl Deref for Held<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.store
    }
}
