//! Erasing turns, and what was derived from them.

use super::Engine;
use crate::config::Archive;
use crate::error::Result;
use crate::store::{Store, raw_records};
use crate::types::InteractionId;
use std::collections::BTreeSet;

impl Engine {
    /// Erases one turn: text, vectors, postings, cards, decisions, free pages.
    /// `false` where the text may be in the write-ahead log for some time yet.
    pub fn delete(&mut self, id: InteractionId) -> Result<bool> {
        self.delete_many(&[id])
    }

    /// Erases turns, all of them or, after an error, none; returns as [`Self::delete`] does.
    pub fn delete_many(&mut self, ids: &[InteractionId]) -> Result<bool> {
        for id in ids {
            self.get(*id)?;
        }
        self.write(|engine, store, _| engine.erase(store, ids))?;
        self.store().scrub()
    }

    /// Turns, within a transaction: from the store, the indexes, and what was gathered. What
    /// is left is related as if they had never been there.
    pub(super) fn erase(&mut self, store: &Store, ids: &[InteractionId]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        ids.dedup();
        let anew = self.unrelate(&ids);
        // Of a turn that is damaged the id is left behind: it is in no other index.
        let read = |id: &InteractionId| store.turn(&self.namespace, *id).ok().flatten();
        let turns = ids.iter().filter_map(read);
        let fields: Vec<_> = turns.map(|t| (t.interaction_id, t.metadata)).collect();
        self.metadata.remove(&fields);
        store.erase_turns(&self.namespace, &ids)?;
        self.forget(&ids);
        self.ungather(store, &ids)?;
        self.relate_anew(store, anew)
    }

    /// Erases every turn of this memory; ids go on where they were. Returns as
    /// [`Self::delete`] does.
    pub fn delete_all(&mut self) -> Result<bool> {
        self.write(|engine, store, _| store.erase_all(&engine.namespace))?;
        self.reload()?;
        self.store().scrub()
    }

    /// Drops everything derived, so that every turn waits for its analysis again.
    pub fn begin_reindex(&mut self) -> Result<()> {
        self.write(|engine, store, _| store.erase_derived(&engine.namespace))?;
        self.reload()
    }

    /// What the archive file has of turns that a reindexing archives again: begun now, or
    /// gone on with.
    pub(super) fn filed_lines(&self, store: &Store) -> BTreeSet<String> {
        let ltm = &self.config.ltm;
        if ltm.archive() != Archive::WriteOnly || self.pending.is_empty() || store.read_only() {
            return BTreeSet::new();
        }
        raw_records(&ltm.storage_path)
    }
}
