//! The first stage of the default ranking: which of the candidates are read and
//! reranked.
//!
//! Half dense, half BM25, each scaled over the candidates. A turn next to a good one
//! is worth a look too: replies often share no word with the question. So half of
//! the best neighbour's score is added, and a little for a named speaker.

use super::Engine;
use super::read::Candidate;
use crate::order::best_first;
use crate::retrieve::{Query, late};
use crate::types::InteractionId;
use std::collections::{BTreeMap, BTreeSet};

/// Share of the best neighbour's score.
const NEIGHBOUR: f64 = 0.5;
/// Added for a turn by a speaker whom the question names.
const SPEAKER: f64 = 0.2;

impl Engine {
    /// Marks all but the `keep` best turns as dropped; the cards of a turn go with it.
    pub(super) fn first_stage(
        &self,
        pool: &mut [Candidate],
        query: &Query,
        stems: &[String],
        window: u64,
        keep: usize,
    ) {
        let ids: BTreeSet<InteractionId> = pool.iter().map(|c| c.id).collect();
        if ids.len() <= keep {
            return;
        }
        let ids: Vec<InteractionId> = ids.into_iter().collect();
        let mut dense: Vec<f64> = ids
            .iter()
            .map(|id| self.flat.similarity(&query.vector, *id))
            .collect();
        let mut bm25: Vec<f64> = ids.iter().map(|id| self.bm25.bm25_of(stems, *id)).collect();
        late::min_max(&mut dense);
        late::min_max(&mut bm25);
        let own: BTreeMap<InteractionId, f64> = ids
            .iter()
            .zip(dense.iter().zip(&bm25))
            .map(|(id, (d, b))| (*id, 0.5 * d + 0.5 * b))
            .collect();
        let score = |id: InteractionId| {
            let near = self.neighbours(id, window);
            let best = near
                .iter()
                .filter(|n| **n != id)
                .filter_map(|n| own.get(n))
                .fold(0.0, |a, b| f64::max(a, *b));
            let named = self
                .turns
                .get(&id)
                .and_then(|m| m.speaker.as_deref())
                .is_some_and(|s| query.frame.speakers.iter().any(|x| x == s));
            own[&id] + NEIGHBOUR * best + SPEAKER * f64::from(u8::from(named))
        };
        let mut order: Vec<(f64, InteractionId)> = ids.iter().map(|id| (score(*id), *id)).collect();
        order.sort_by(|a, b| best_first(*a, *b));
        let kept: BTreeSet<InteractionId> = order.iter().take(keep).map(|(_, id)| *id).collect();
        for c in pool.iter_mut().filter(|c| !kept.contains(&c.id)) {
            c.dropped = Some("first_stage");
        }
    }
}
