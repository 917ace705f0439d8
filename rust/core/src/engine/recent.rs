//! What recall has read lately, kept in memory within a bound.
//!
//! Facts, folded texts and token vectors of a turn never change while it is there,
//! so keeping them changes how long a recall takes and nothing else. When something
//! was erased, by this process or another, everything kept is let go.

use super::Engine;
use super::known::Known;
use crate::error::Result;
use crate::store::Store;
use crate::types::InteractionId;
use lru::LruCache;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Of an entry itself: a turn without token vectors is not kept for nothing.
const ENTRY_BYTES: usize = 96;

#[derive(Debug, Default)]
struct Entry {
    known: Option<Arc<Known>>,
    tokens: Option<Arc<[u8]>>,
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
#[derive(Debug)]
pub(super) struct Recent {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    entries: LruCache<InteractionId, Entry>,
    bytes: usize,
    limit: usize,
    generation: (u64, i64),
}

impl Inner {
    fn with_limit(limit: usize) -> Self {
        Self {
            entries: LruCache::unbounded(),
            bytes: 0,
            limit,
            generation: (0, 0),
        }
    }

    /// Keeps something of a turn; with a bound of 0 nothing, ever. What was used least
    /// recently is let go, one by one: no recall pays for the others.
    fn keep(&mut self, id: InteractionId, put: impl FnOnce(&mut Entry)) {
        if self.limit == 0 {
            return;
        }
        let mut fresh = false;
        let entry = self.entries.get_or_insert_mut(id, || {
            fresh = true;
            Entry::default()
        });
        let before = if fresh { 0 } else { entry.bytes() };
        put(entry);
        self.bytes = self.bytes + entry.bytes() - before;
        while self.bytes > self.limit {
            let Some((_, gone)) = self.entries.pop_lru() else {
                break;
            };
            self.bytes -= gone.bytes();
        }
    }
}

impl Recent {
    /// Holds about so many bytes.
    pub(super) fn with_limit(limit: usize) -> Self {
        Self {
            inner: Mutex::new(Inner::with_limit(limit)),
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
        let kept = self
            .recent
            .lock()
            .entries
            .get(&id)
            .and_then(|e| e.known.clone());
        if kept.is_some() {
            return Ok(kept);
        }
        let Some((text, facts)) = store.text_and_facts(&self.namespace, id)? else {
            return Ok(None);
        };
        let known = Arc::new(Known::new(facts, &text));
        if self.stays(id) {
            let shared = Arc::clone(&known);
            self.recent.lock().keep(id, |e| e.known = Some(shared));
        }
        Ok(Some(known))
    }

    /// Whether what is read of a turn will be so: of one that still waits for its analysis
    /// nothing is derived yet.
    fn stays(&self, id: InteractionId) -> bool {
        !self.pending.contains(&id)
    }

    /// Token vectors of turns, packed, in their order; empty where none are kept. Those of
    /// turns side by side are read in one go.
    pub(super) fn tokens_of(&self, store: &Store, ids: &[InteractionId]) -> Result<Vec<Arc<[u8]>>> {
        let mut found: Vec<Option<Arc<[u8]>>> = {
            let mut inner = self.recent.lock();
            let mut kept = |id| inner.entries.get(id).and_then(|e| e.tokens.clone());
            ids.iter().map(&mut kept).collect()
        };
        let missing: Vec<usize> = (0..ids.len()).filter(|i| found[*i].is_none()).collect();
        let none: Arc<[u8]> = Arc::default();
        for run in missing.chunk_by(|a, b| a + 1 == *b && ids[*a] + 1 == ids[*b]) {
            let (first, last) = (run[0], run[run.len() - 1]);
            let span = (ids[first], ids[last]);
            let mut read = store
                .token_vectors(&self.namespace, span, self.flat.dimension())?
                .into_iter()
                .peekable();
            let mut inner = self.recent.lock();
            for place in run {
                let own = read.next_if(|(id, _)| *id == ids[*place]);
                let tokens = own.map_or_else(|| Arc::clone(&none), |(_, rows)| rows);
                if self.stays(ids[*place]) {
                    let shared = Arc::clone(&tokens);
                    inner.keep(ids[*place], |e| e.tokens = Some(shared));
                }
                found[*place] = Some(tokens);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(inner: &mut Inner, id: InteractionId, length: usize) {
        inner.keep(id, |e| e.tokens = Some(vec![0u8; length].into()));
    }

    #[test]
    fn it_stays_within_its_bound_and_keeps_what_was_used_last() {
        let mut inner = Inner::with_limit(1000);
        for id in 0..100 {
            filled(&mut inner, id, 100);
            assert!(inner.bytes <= 1000);
            // Looked at each time, the first stays.
            assert!(inner.entries.get(&0).is_some());
            assert!(inner.entries.contains(&id));
        }
        assert_eq!(inner.entries.len(), 5);
        assert_eq!(inner.bytes, 5 * (100 + ENTRY_BYTES));
    }

    #[test]
    fn what_grows_is_counted_once() {
        let mut inner = Inner::with_limit(1000);
        filled(&mut inner, 1, 100);
        filled(&mut inner, 1, 300);
        assert_eq!(inner.bytes, 300 + ENTRY_BYTES);
    }

    #[test]
    fn what_is_too_large_is_not_kept() {
        let mut inner = Inner::with_limit(10);
        filled(&mut inner, 1, 100);
        assert_eq!(inner.bytes, 0);
    }

    #[test]
    fn a_bound_of_nothing_keeps_nothing() {
        let mut inner = Inner::with_limit(0);
        filled(&mut inner, 1, 0);
        filled(&mut inner, 2, 100);
        assert!(inner.entries.is_empty());
    }
}
