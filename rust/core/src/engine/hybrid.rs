//! D-MEM's own recall (section 4.3): dense and BM25 by reciprocal rank fusion, and
//! the second stage that looks at skipped turns when the notes have no answer.

use super::read::{BM25, Candidate, Channels, Hits, RAW_SEMANTIC, Recall, RecallOptions, SHADOW};
use super::terms::{Term, Terms};
use super::{Engine, TurnMeta};
use crate::config::Config;
use crate::error::Result;
use crate::order::best_first;
use crate::retrieve::Query;
use crate::types::InteractionId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// k of reciprocal rank fusion (Cormack et al. 2009).
const FUSION: f64 = 60.0;
/// A skipped turn is evidence by half: the gate found nothing in it.
const SHADOW_SHARE: f64 = 0.5;

impl Engine {
    /// The best `limit` of twice as many by cosine and as many by BM25. Linked notes
    /// follow theirs as support.
    pub(super) fn recall_hybrid(
        &self,
        query: &Query,
        config: &Config,
        options: &RecallOptions,
    ) -> Result<Recall> {
        let r = &config.retrieval;
        let reach = options
            .limit
            .unwrap_or(r.final_recall_limit)
            .saturating_mul(2);
        let conditions = self.conditions(&options.filters);
        let admit = |id: InteractionId| self.may_answer(id, &conditions);
        let stems = self.query_stems(&query.frame);
        let dense = self.flat.search(&query.vector, reach, -1.0, admit);
        let sparse = self.bm25.bm25(&stems, reach, admit);
        let mut pool = fused(&[(RAW_SEMANTIC, dense), (BM25, sparse)]);
        self.read_candidates(&mut pool)?;
        let judge = self.judge_of(&query.frame);
        self.filter(&mut pool, &judge, &query.frame, r);
        self.judge(&mut pool, &judge, query);
        for c in &mut pool {
            c.confidence = self.confidence(c, c.answerability.features[0], &query.frame);
        }
        pool.sort_by(|a, b| {
            (a.dropped.is_some().cmp(&b.dropped.is_some()))
                .then(best_first((a.score, a.id), (b.score, b.id)))
        });
        self.assemble(pool, query, config, options)
    }

    /// Where no note is as near as `fallback_below`, the nearest skipped turns take the
    /// last places; their kind is `shadow`.
    pub(super) fn fall_back(
        &self,
        mut recall: Recall,
        query: &Query,
        config: &Config,
        options: &RecallOptions,
    ) -> Result<Recall> {
        let c = &self.config.policy.rpe;
        if !self.gated() || self.gate.skipped().is_empty() {
            return Ok(recall);
        }
        let conditions = self.conditions(&options.filters);
        let admit = |id: InteractionId| self.may_answer(id, &conditions);
        let nearest = self.flat.search(&query.vector, 1, -1.0, admit);
        if nearest.first().is_some_and(|hit| hit.1 >= c.fallback_below) {
            return Ok(recall);
        }
        let admit = |id: InteractionId, m: &TurnMeta| self.admits(id, m, &conditions);
        let hits = self.gate.in_shadow(&query.vector, c, admit);
        let mut pool = fused(&[(SHADOW, hits)]);
        self.read_candidates(&mut pool)?;
        self.judge(&mut pool, &self.judge_of(&query.frame), query);
        // A scan of the history may have found it already.
        let there: Vec<InteractionId> = { recall.evidence.iter() }
            .map(|e| e.turn.interaction_id)
            .collect();
        pool.retain(|c| c.dropped.is_none() && !there.contains(&c.id));
        for c in &mut pool {
            c.score = c.channels.get(SHADOW).unwrap_or(0.0);
            c.terms = Terms::default();
            c.answerability.features[0] = c.score;
            c.confidence = SHADOW_SHARE * self.confidence(c, c.score, &query.frame);
        }
        pool.sort_by(|a, b| best_first((a.score, a.id), (b.score, b.id)));
        let r = &config.retrieval;
        let limit = options.limit.unwrap_or(r.final_recall_limit);
        pool.truncate(limit);
        recall.evidence.truncate(limit - pool.len());
        if options.trace {
            let kept = recall.evidence.len();
            for row in &mut recall.candidates {
                if row["rank"].as_u64().is_some_and(|rank| rank > kept as u64) {
                    row["rank"] = Value::Null;
                    row["fate"] = json!("cut");
                }
            }
            for (c, rank) in pool.iter().zip(kept + 1..) {
                let mut row = self.trace_row(c, "shadow", &[]);
                row["rank"] = json!(rank);
                recall.candidates.push(row);
            }
        }
        self.add_evidence(&mut recall, pool, &query.frame, r, options)?;
        Ok(recall)
    }
}

/// One candidate an id; its score is the sum over the lists of 1 / (60 + place).
fn fused(lists: &[(usize, Hits)]) -> Vec<Candidate> {
    let mut found: BTreeMap<InteractionId, Candidate> = BTreeMap::new();
    for (channel, hits) in lists {
        let mut place = FUSION;
        for (id, score) in hits {
            place += 1.0;
            let new = || Candidate::new(*id, None, Channels::default());
            let c = found.entry(*id).or_insert_with(new);
            c.channels.set(*channel, *score);
            c.score += 1.0 / place;
            c.terms[Term::Rrf] = c.score;
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fusion_matches_hand_worked_values() {
        let dense = vec![(7, 0.9), (3, 0.8)];
        let sparse = vec![(3, 4.2), (5, 1.0)];
        let pool = fused(&[(RAW_SEMANTIC, dense), (BM25, sparse)]);
        let by_id: BTreeMap<u64, f64> = pool.iter().map(|c| (c.id, c.score)).collect();
        assert!((by_id[&7] - 1.0 / 61.0).abs() < 1e-15);
        assert!((by_id[&3] - (1.0 / 62.0 + 1.0 / 61.0)).abs() < 1e-15);
        assert!((by_id[&5] - 1.0 / 62.0).abs() < 1e-15);
    }
}
