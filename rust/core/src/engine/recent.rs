//! What recall has read lately, kept in memory within a bound.
//!
//! Facts, folded texts and token vectors of a turn never change while it is there,
//! so keeping them changes how long a recall takes and nothing else. When something
//! was erased, by this process or another, everything kept is let go.

use super::Engine;
use crate::error::Result;
use crate::store::Store;
use crate::text::fold;
use crate::types::{Facts, InteractionId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A turn as the candidates of a recall need it.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What was read from it.
    pub(super) facts: Facts,
    /// Its folded text.
    pub(super) text: String,
}

/// Of an entry itself: a turn without token vectors is not kept for nothing.
const ENTRY_BYTES: usize = 96;

#[derive(Debug, Default)]
struct Entry {
    known: Option<Arc<Known>>,
    tokens: Option<Arc<[i8]>>,
    used: u64,
}

impl Entry {
    fn bytes(&self) -> usize {
        let tokens = self.tokens.as_ref().map_or(0, |t| t.len());
        // Facts hold about five times the text: terms, cues, cards, times.
        let known = self.known.as_ref().map_or(0, |k| 6 * k.text.len() + 512);
        tokens + known + ENTRY_BYTES
    }
}

/// The bounded store of what was read.
#[derive(Debug, Default)]
pub(super) struct Recent {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    entries: BTreeMap<InteractionId, Entry>,
    bytes: usize,
    limit: usize,
    clock: u64,
    generation: (u64, i64),
}

impl Inner {
    /// What is kept of a turn, noted as used.
    fn kept(&mut self, id: InteractionId) -> Option<&Entry> {
        let entry = self.entries.get_mut(&id)?;
        self.clock += 1;
        entry.used = self.clock;
        Some(entry)
    }

    /// Keeps something of a turn; with a bound of 0 nothing, ever.
    fn keep(&mut self, id: InteractionId, put: impl FnOnce(&mut Entry)) {
        if self.limit == 0 {
            return;
        }
        self.clock += 1;
        let entry = self.entries.entry(id).or_default();
        let before = if entry.used == 0 { 0 } else { entry.bytes() };
        put(entry);
        entry.used = self.clock;
        let grown = entry.bytes().saturating_sub(before);
        self.bytes += grown;
        if self.bytes > self.limit {
            self.shrink();
        }
    }

    /// Lets the least recently used half go, in one pass.
    fn shrink(&mut self) {
        let mut uses: Vec<u64> = self.entries.values().map(|e| e.used).collect();
        uses.sort_unstable();
        let middle = uses.get(uses.len() / 2).copied().unwrap_or(0);
        self.entries.retain(|_, e| e.used > middle);
        self.bytes = self.entries.values().map(Entry::bytes).sum();
    }
}

impl Recent {
    /// Holds about so many bytes.
    pub(super) fn with_limit(limit: usize) -> Self {
        let inner = Inner {
            limit,
            ..Inner::default()
        };
        Self {
            inner: Mutex::new(inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Lets everything go that may have been erased since; call it before a recall reads.
    pub(super) fn refresh_recent(&self) -> Result<()> {
        let generation = self.store().generation()?;
        let mut inner = self.recent.lock();
        if inner.generation != generation {
            inner.generation = generation;
            inner.entries.clear();
            inner.bytes = 0;
        }
        Ok(())
    }

    /// Facts and folded text of a turn; `None` where it is no longer there.
    pub(super) fn known(&self, store: &Store, id: InteractionId) -> Result<Option<Arc<Known>>> {
        let kept = self.recent.lock().kept(id).and_then(|e| e.known.clone());
        if kept.is_some() {
            return Ok(kept);
        }
        let Some(turn) = store.turn(&self.namespace, id)? else {
            return Ok(None);
        };
        let derived = store.derived(&self.namespace, id)?;
        let known = Arc::new(Known {
            facts: derived.map(|d| d.facts).unwrap_or_default(),
            text: fold(&turn.text),
        });
        let shared = Arc::clone(&known);
        self.recent.lock().keep(id, |e| e.known = Some(shared));
        Ok(Some(known))
    }

    /// Token vectors of a turn, one after the other; empty where none are kept.
    pub(super) fn tokens_of(&self, store: &Store, id: InteractionId) -> Result<Arc<[i8]>> {
        let kept = self.recent.lock().kept(id).and_then(|e| e.tokens.clone());
        if let Some(tokens) = kept {
            return Ok(tokens);
        }
        let tokens: Arc<[i8]> = store.token_vectors(&self.namespace, id)?.into();
        let shared = Arc::clone(&tokens);
        self.recent.lock().keep(id, |e| e.tokens = Some(shared));
        Ok(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(inner: &mut Inner, id: InteractionId, length: usize) {
        inner.keep(id, |e| e.tokens = Some(vec![0i8; length].into()));
    }

    #[test]
    fn it_stays_within_its_bound_and_keeps_what_was_used_last() {
        let mut inner = Inner {
            limit: 1000,
            ..Inner::default()
        };
        for id in 0..100 {
            filled(&mut inner, id, 100);
            assert!(inner.bytes <= 1000);
            assert!(inner.entries.contains_key(&id));
        }
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let mut inner = Inner {
            limit: 10,
            ..Inner::default()
        };
        filled(&mut inner, 1, 100);
        assert_eq!(inner.bytes, 0);
    }

    #[test]
    fn a_bound_of_nothing_keeps_nothing() {
        let mut inner = Inner::default();
        filled(&mut inner, 1, 0);
        filled(&mut inner, 2, 100);
        assert!(inner.entries.is_empty() && inner.kept(2).is_none());
    }

    #[test]
    fn looking_leaves_nothing_behind() {
        let mut inner = Inner {
            limit: 1000,
            ..Inner::default()
        };
        assert!(inner.kept(7).is_none());
        assert!(inner.entries.is_empty());
    }
}
