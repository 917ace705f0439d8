//! What a copy of a memory elsewhere needs besides its turns.

use super::Engine;
use crate::error::Result;
use crate::store::IDS;
use crate::types::InteractionId;

impl Engine {
    /// Ids of every turn, analysed or not, in order.
    pub fn ids(&self) -> Result<Vec<InteractionId>> {
        self.open_only()?;
        self.store().ids(&self.namespace)
    }

    /// Passage vectors of up to `limit` analysed turns from `from` on, in id order:
    /// 16-bit integers, little endian, one passage after the other.
    pub fn vectors(
        &self,
        from: InteractionId,
        limit: u32,
    ) -> Result<Vec<(InteractionId, Vec<u8>)>> {
        self.open_only()?;
        if from >= IDS {
            return Ok(Vec::new());
        }
        self.store().vectors(&self.namespace, from, limit)
    }

    /// Relations that callers stated: newer, relation, older; ordered by older, newer.
    ///
    /// Those that the engine found are found again by whoever reads the turns.
    pub fn stated(&self) -> Result<Vec<(InteractionId, &'static str, InteractionId)>> {
        self.open_only()?;
        let edges = self.lineage.edges().filter(|e| e.by_caller);
        Ok(edges
            .map(|e| (e.newer, e.relation.as_str(), e.older))
            .collect())
    }
}
