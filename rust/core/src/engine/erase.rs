//! Erasing turns, and what was derived from them.

use super::Engine;
use crate::error::Result;
use crate::types::InteractionId;

impl Engine {
    /// Erases one turn: text, vectors, postings, cards, decisions, free pages.
    pub fn delete(&mut self, id: InteractionId) -> Result<()> {
        self.delete_many(&[id])
    }

    /// Erases turns, all of them or, after an error, none.
    pub fn delete_many(&mut self, ids: &[InteractionId]) -> Result<()> {
        for id in ids {
            self.get(*id)?;
        }
        self.write(|engine, store, _| {
            for id in ids {
                store.erase_turn(&engine.namespace, *id)?;
                engine.forget(*id);
                engine.ungather(store, *id)?;
            }
            Ok(())
        })?;
        self.store().scrub()
    }

    /// Erases every turn of this memory; ids go on where they were.
    pub fn delete_all(&mut self) -> Result<()> {
        self.write(|engine, store, _| store.erase_all(&engine.namespace))?;
        self.reload()?;
        self.store().scrub()
    }

    /// Drops everything derived, so that every turn waits for its analysis again.
    pub fn begin_reindex(&mut self) -> Result<()> {
        self.write(|engine, store, _| store.erase_derived(&engine.namespace))?;
        self.reload()
    }
}
