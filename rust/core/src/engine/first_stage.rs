//! The first stage of the default ranking: which of the candidates are read and
//! reranked.
//!
//! Half dense, half BM25, each scaled over the candidates. A turn next to a good one
//! is worth a look too: replies often share no word with the question. So half of
//! the best neighbour's score is added, and a little for a named speaker. Remarks that
//! the talk is not about are nobody's neighbour, and stand back as they do in the ranking.

use super::Engine;
use super::read::{BM25, RAW_SEMANTIC, Sighting};
use crate::config::Config;
use crate::order::best_first;
use crate::retrieve::{Query, late};
use crate::types::InteractionId;

/// Share of the best neighbour's score.
const NEIGHBOUR: f64 = 0.5;
/// Added for a turn by a speaker whom the question names.
const SPEAKER: f64 = 0.2;

impl Engine {
    /// The ids of the `keep` best turns, ascending; the cards of the others go with them.
    /// `None`: there are no more.
    pub(super) fn first_stage(
        &self,
        found: &[Sighting],
        query: &Query,
        stems: &[String],
        config: &Config,
        keep: usize,
    ) -> Option<Vec<InteractionId>> {
        let window = config.retrieval.late_interaction_window;
        let aside = config.ranking.remark;
        let mut ids: Vec<InteractionId> = found.iter().map(|s| s.id).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.len() <= keep {
            return None;
        }
        let own = self.own_scores(found, &ids, query, stems);
        let places: Vec<Option<usize>> = ids.iter().map(|id| self.turns.position(*id)).collect();
        let reach = usize::try_from(window).unwrap_or(usize::MAX);
        let remark = |p: &usize| aside > 0.0 && self.turns.standing(*p).remark;
        let score = |i: usize| {
            let Some(place) = places[i] else {
                return own[i];
            };
            let around = self.turns.around(place, reach);
            let near = |j: &usize| places[*j].is_some_and(|p| around.contains(&p));
            let before = (0..i).rev().take_while(near);
            let best = before
                .chain((i + 1..ids.len()).take_while(near))
                .filter(|j| !places[*j].as_ref().is_some_and(remark))
                .fold(0.0, |a, j| f64::max(a, own[j]));
            let speaker = self.turns.get(&ids[i]).and_then(|m| m.speaker.as_deref());
            let named = speaker.is_some_and(|s| query.frame.speakers.iter().any(|x| x == s));
            let one = |yes: bool| f64::from(u8::from(yes));
            own[i] + NEIGHBOUR * best + SPEAKER * one(named) - aside * one(remark(&place))
        };
        let mut order: Vec<(f64, InteractionId)> =
            (0..ids.len()).map(|i| (score(i), ids[i])).collect();
        // There are more than are kept. Which ones matters, and not their order.
        order.select_nth_unstable_by(keep, |a, b| best_first(*a, *b));
        let mut kept: Vec<InteractionId> = order[..keep].iter().map(|(_, id)| *id).collect();
        kept.sort_unstable();
        Some(kept)
    }

    /// Half dense, half BM25, each scaled over the turns. What a channel has found
    /// carries its score already.
    fn own_scores(
        &self,
        found: &[Sighting],
        ids: &[InteractionId],
        query: &Query,
        stems: &[String],
    ) -> Vec<f64> {
        let mut dense = vec![None; ids.len()];
        let mut bm25 = vec![None; ids.len()];
        for s in found.iter().filter(|s| s.card.is_none()) {
            if let Ok(at) = ids.binary_search(&s.id) {
                dense[at] = s.channels.get(RAW_SEMANTIC);
                bm25[at] = s.channels.get(BM25);
            }
        }
        let terms = self.bm25.terms(stems);
        let unknown: Vec<InteractionId> = { ids.iter().zip(&dense) }
            .filter_map(|(id, s)| s.is_none().then_some(*id))
            .collect();
        let mut computed = self.flat.similarities(&query.vector, &unknown).into_iter();
        let mut dense: Vec<f64> = dense
            .into_iter()
            .map(|s| s.or_else(|| computed.next()).unwrap_or_default())
            .collect();
        let mut bm25: Vec<f64> = bm25
            .into_iter()
            .zip(ids)
            .map(|(s, id)| s.unwrap_or_else(|| terms.score(*id)))
            .collect();
        late::min_max(&mut dense, f64::INFINITY, 0.0);
        late::min_max(&mut bm25, f64::INFINITY, 0.0);
        let both = dense.iter().zip(&bm25);
        both.map(|(d, b)| 0.5 * d + 0.5 * b).collect()
    }
}
