//! What a graph over the vectors may stand for, and with what it is built.
//!
//! The graph itself is no part of the core: it is handed what it covers and hands back
//! what it found, which is scored here as everything else is. Whether a part of the
//! turns is searched by graph depends on the turns alone, never on what has been built
//! or saved, so that a restart changes no result.

use super::Engine;
use crate::error::{Code, Error, Result};
use crate::types::InteractionId;

/// The vectors of a segment: each one's turn, and the numbers, one after the other.
pub type SegmentVectors = (Vec<InteractionId>, Vec<i16>);

impl Engine {
    /// First ids of the full segments, where there are vectors enough for graphs.
    ///
    /// A segment is full when every id in it is that of an analysed turn. Where one
    /// was erased it is scanned from then on: its graph has to go with the turn.
    pub fn segments(&self) -> Vec<InteractionId> {
        let r = &self.config.retrieval;
        if r.ann_min_vectors == 0 || self.flat.len() < r.ann_min_vectors {
            return Vec::new();
        }
        let last = self.namespace.next_id / r.ann_segment;
        let firsts = (0..last).map(|n| n * r.ann_segment);
        firsts
            .filter(|first| self.turns.count(*first, first + r.ann_segment) == r.ann_segment)
            .collect()
    }

    /// The vectors of a segment, in id order.
    pub fn segment_vectors(&self, first: InteractionId) -> Result<SegmentVectors> {
        let end = first + self.config.retrieval.ann_segment;
        if self.turns.count(first, end) != end - first {
            return Err(Error::new(
                Code::NotFoundTurn,
                format!("there is no full segment from turn {first}"),
            ));
        }
        let mut vectors = Vec::new();
        let owners = self.flat.owners_between(first, end).to_vec();
        let mut distinct = owners.clone();
        distinct.dedup();
        for owner in distinct {
            vectors.extend(self.flat.vectors_of(owner));
        }
        Ok((owners, vectors))
    }
}
