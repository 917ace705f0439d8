//! Evidence: one item a source turn, its support, and the trace (section 9.3, step 5).

use super::candidates::Conditions;
use super::read::{Candidate, Evidence, Recall, RecallOptions, SHADOW, Support};
use super::{Engine, TurnMeta};
use crate::config::{Config, Retrieval};
use crate::error::Result;
use crate::retrieve::{Query, QueryFrame, cards, features};
use crate::store::Store;
use crate::types::InteractionId;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What becomes of a candidate that is neither dropped nor the same as a better one.
const KEPT: &str = "kept";

impl Engine {
    /// One item a source turn, its channels joined, its support attached.
    pub(super) fn assemble(
        &self,
        pool: Vec<Candidate>,
        query: &Query,
        config: &Config,
        options: &RecallOptions,
    ) -> Result<Recall> {
        let r = &config.retrieval;
        let limit = options.limit.unwrap_or(r.final_recall_limit);
        let mut recall = Recall::default();
        let mut joined: Vec<Candidate> = Vec::new();
        let mut traced = Vec::new();
        for c in pool {
            let mut fate = c.dropped.unwrap_or(KEPT);
            if c.dropped.is_none() {
                if let Some(first) = joined.iter_mut().find(|j| j.id == c.id) {
                    first.channels.extend(&c.channels);
                    fate = "joined";
                } else if joined.len() >= limit && !options.trace {
                    // Not shown: what it is like does not matter.
                    continue;
                } else if joined.iter().any(|j| self.same_words(j, &c)) {
                    fate = "duplicate";
                }
            }
            if options.trace {
                traced.push((c.clone(), fate));
            }
            if fate == KEPT {
                joined.push(c);
            }
        }
        let cut = if options.limit.is_none() && r.adaptive_truncation {
            adaptive_length(&joined, r.adaptive_floor).min(limit)
        } else {
            limit
        };
        joined.truncate(cut);
        recall.candidates = traced
            .iter()
            .map(|(c, fate)| self.trace_row(c, fate, &joined))
            .collect();
        self.add_evidence(&mut recall, joined, &query.frame, r, options)?;
        Ok(recall)
    }

    /// Adds candidates, best first, behind the evidence that there is.
    pub(super) fn add_evidence(
        &self,
        recall: &mut Recall,
        pool: Vec<Candidate>,
        q: &QueryFrame,
        r: &Retrieval,
        options: &RecallOptions,
    ) -> Result<()> {
        let conditions = self.conditions(&options.filters);
        self.store().reading(|store| {
            for c in pool {
                let rank = recall.evidence.len() + 1;
                let evidence = self.evidence(store, c, rank, q, r, &conditions)?;
                recall.evidence.extend(evidence);
            }
            Ok(())
        })
    }

    /// Two turns that say the same are shown once.
    pub(super) fn same_words(&self, a: &Candidate, b: &Candidate) -> bool {
        let who = |c: &Candidate| self.meta(c.id).map(|m| (&m.role, &m.speaker));
        a.known.text == b.known.text && who(a) == who(b)
    }

    /// A candidate with its turn and what supports it; `None` where the turn was erased by
    /// the writer while this reader was at it.
    fn evidence(
        &self,
        store: &Store,
        c: Candidate,
        rank: usize,
        q: &QueryFrame,
        r: &Retrieval,
        conditions: &Conditions<'_>,
    ) -> Result<Option<Evidence>> {
        let Some(turn) = store.turn(&self.namespace, c.id)? else {
            return Ok(None);
        };
        let mut support = Vec::new();
        let mut add = |id: InteractionId, relation: &'static str| -> Result<()> {
            // What stands beside the evidence meets the caller's conditions as it does.
            let shown = |m: &TurnMeta| id != c.id && self.admits(id, m, conditions);
            if support.len() < r.max_support_turns_per_card && self.meta(id).is_some_and(shown) {
                let found = store.turn(&self.namespace, id)?;
                support.extend(found.map(|t| Support {
                    turn: self.complete(t),
                    relation,
                }));
            }
            Ok(())
        };
        for edge in self.lineage.newer(c.id) {
            add(edge.newer, "newer")?;
        }
        if q.historical() {
            for edge in self.lineage.older(c.id) {
                add(edge.older, "history")?;
            }
        }
        if r.include_neighbor_turns {
            for id in self.neighbours(c.id, 1) {
                add(id, if id < c.id { "previous" } else { "next" })?;
            }
        }
        if r.fusion == "rrf" {
            for (id, _) in self.gate.linked(c.id) {
                add(id, "linked")?;
            }
        }
        let card = c.card.and_then(|n| self.cards.get(n)).map(|k| json!(k));
        let mut features: BTreeMap<&'static str, f64> = BTreeMap::new();
        features.extend(
            features::FEATURES
                .iter()
                .copied()
                .zip(c.answerability.features),
        );
        features.extend(
            features::PENALTIES
                .iter()
                .copied()
                .zip(c.answerability.penalties),
        );
        features.extend(c.terms.named());
        Ok(Some(Evidence {
            rank,
            score: c.score,
            kind: match c.card {
                _ if c.channels.get(SHADOW).is_some() => "shadow",
                Some(_) => "card",
                None => "raw",
            },
            turn: self.complete(turn),
            card,
            channels: c.channels.by_name(),
            features,
            support,
            confidence: c.confidence,
            times: c.known.facts.times.clone(),
        }))
    }

    pub(super) fn trace_row(&self, c: &Candidate, fate: &str, kept: &[Candidate]) -> Value {
        let shown = kept.iter().position(|k| k.id == c.id && k.card == c.card);
        let fate = if fate == KEPT && shown.is_none() {
            "cut"
        } else {
            fate
        };
        let named = |names: &[&'static str], values: &[f64]| -> BTreeMap<&'static str, f64> {
            names.iter().copied().zip(values.iter().copied()).collect()
        };
        json!({
            "interaction_id": c.id,
            "card": c.card.map(|n| cards::split(n).1),
            "channels": c.channels.by_name(),
            "features": named(&features::FEATURES, &c.answerability.features),
            "penalties": named(&features::PENALTIES, &c.answerability.penalties),
            "terms": c.terms,
            "score": c.score,
            "confidence": c.confidence,
            "rank": shown.map(|r| r + 1),
            "fate": fate,
        })
    }
}

/// How many items stand above the share `floor` of the best score.
fn adaptive_length(ranked: &[Candidate], floor: f64) -> usize {
    let Some(best) = ranked.first() else { return 0 };
    let least = best.score * floor;
    ranked
        .iter()
        .take_while(|c| c.score >= least)
        .count()
        .max(1)
}
