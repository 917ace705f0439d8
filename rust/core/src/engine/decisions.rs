//! The decision log: what was done with a turn, and why, as an insertion writes it down.

use super::Engine;
use crate::error::Result;
use crate::lineage::Edge;
use crate::score::decay::Tier;
use crate::store::{DecisionLog, Keys, Store};
use crate::types::{InteractionId, Validity};
use serde::Serialize;
use serde_json::{Value, json};

/// Terms of a `tier` decision. The two frequent kinds are written from a structure:
/// a JSON value would be put together and taken apart for each.
#[derive(Serialize)]
pub(super) struct TierDetail {
    pub(super) from: Tier,
    pub(super) to: Tier,
    pub(super) effective: f64,
}

/// Terms of an `evict_budget` decision.
#[derive(Serialize)]
pub(super) struct BudgetDetail {
    pub(super) effective: f64,
    pub(super) bonus: f64,
    pub(super) penalty: f64,
    pub(super) score: f64,
    pub(super) budget: u64,
}

/// Detail of a `supersede` or `relate` decision, and what it made of the older turn.
pub(super) fn related(edge: &Edge, validity: Validity) -> Value {
    json!({
        "by": edge.newer,
        "relation": edge.relation,
        "topic": edge.topic.replace('\u{1f}', ": "),
        "validity": validity,
    })
}

/// Detail of an `overruled` decision: a caller's word rules the relation out.
pub(super) fn overruled(edge: &Edge) -> Value {
    json!({"by": edge.newer, "relation": edge.relation})
}

/// Decisions of one insertion, numbered in order.
pub(super) struct Trace<'a> {
    log: DecisionLog<'a>,
    keys: Keys,
    pub(super) at: InteractionId,
    seq: u32,
}

impl<'a> Trace<'a> {
    pub(super) fn new(store: &'a Store, engine: &Engine, at: InteractionId) -> Self {
        Self::behind(store, engine, at, 0)
    }

    /// Decisions that come after the first `seq` of that moment.
    pub(super) fn behind(store: &'a Store, engine: &Engine, at: InteractionId, seq: u32) -> Self {
        Self {
            log: DecisionLog::new(store),
            keys: engine.namespace.keys(),
            at,
            seq,
        }
    }

    pub(super) fn add(
        &mut self,
        id: InteractionId,
        kind: &str,
        detail: impl Serialize,
    ) -> Result<()> {
        self.seq += 1;
        // Only a map with keys that are no text cannot be written; there is none.
        let detail = serde_json::to_string(&detail).unwrap_or_default();
        self.log
            .add(self.keys.of(id), self.at, self.seq, kind, &detail)
    }
}
