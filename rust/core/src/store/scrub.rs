//! The write-ahead log: what was erased is not to be there either.

use super::{Store, schema};
use crate::error::Result;
use std::time::Duration;

impl Store {
    /// Empties the write-ahead log, so that what was erased is nowhere on disk. `false` where
    /// another process reads a state from before, and goes on reading it for seconds: then
    /// each write tries again, and closing does.
    pub fn scrub(&self) -> Result<bool> {
        self.scrub_due.set(true);
        let busy: bool = self
            .conn
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| r.get(0))?;
        self.scrub_due.set(busy);
        Ok(!busy)
    }

    /// Makes up for what [`Self::scrub`] could not do, if nobody is in the way.
    pub(super) fn scrub_unless_busy(&self) {
        if self.read_only || !self.scrub_due.get() {
            return;
        }
        // What was written is written: an error here is no reason to say otherwise, and the
        // next try has it again.
        if self.conn.busy_timeout(Duration::ZERO).is_ok() {
            let _ = self.scrub();
        }
        let _ = self.conn.busy_timeout(schema::PATIENCE);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.scrub_unless_busy();
    }
}
