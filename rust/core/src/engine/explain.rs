//! The life of one turn, and the memory in numbers.

use super::Engine;
use crate::error::Result;
use crate::lineage::REST;
use crate::score::{decay, survival};
use crate::types::{InteractionId, State, Validity};
use serde_json::{Value, json};
use std::collections::BTreeMap;

impl Engine {
    /// Everything that decided about one turn: signals and cues, the terms of its
    /// score, tier changes, lineage, eviction, and where it stands now.
    pub fn explain(&self, id: InteractionId) -> Result<Value> {
        let turn = self.get(id)?;
        let (derived, decisions) = {
            let store = self.store();
            (
                store.derived(&self.namespace, id)?,
                store.decisions(&self.namespace, id)?,
            )
        };
        let Some(d) = derived else {
            return Ok(json!({"turn": turn, "analysis": "pending"}));
        };
        let (w, s, f) = (&self.config.scoring_weights, d.score, &d.facts);
        let (rest, claims): (Vec<_>, Vec<_>) = f.claims.iter().partition(|c| c.kind == REST);
        let newer = self.newest() - id;
        let rate = decay::rate(&self.config.temporal_decay, s.omega);
        let effective = decay::effective(s.omega, rate, newer);
        let now = match turn.state {
            State::Archived => json!({"state": "archived"}),
            State::Active => json!({
                "state": "active",
                "newer_turns": newer,
                "effective": effective,
                "tier": decay::tier(&self.config.memory_tiers, effective),
                "half_life": decay::half_life(&self.config.temporal_decay, s.omega),
                "retention_bonus":
                    crate::score::prune::retention_bonus(&self.config.pruning_priority, f.signals),
            }),
        };
        let gate = self.explain_gate(id, &decisions)?;
        let e_norm = survival::entity_norm(f.entity_count, w.entity_cap);
        let mut explained = json!({
            "turn": turn,
            "signals": {
                "density": f.density,
                "sentiment": f.sentiment,
                "entity_count": f.entity_count,
                "entities": f.entities,
                "divergence": s.divergence,
                "conversational": f.signals.names(),
                "cues": f.cues,
                "claims": claims,
                "says_more": !rest.is_empty(),
                "times": f.times,
                "social": f.social,
            },
            "cards": self.cards_of(id, f),
            "score": {
                "terms": {
                    "density": w.alpha_density * f.density,
                    "sentiment": w.gamma_sentiment * f.sentiment,
                    "entities": w.beta_entities * e_norm,
                    "divergence": w.delta_technical * s.divergence,
                },
                "z_content": s.z_content,
                "z_op": s.z_op,
                "z_prov": s.z_prov,
                "midpoint": w.sigmoid_midpoint,
                "omega_raw": s.omega_raw,
                "omega": s.omega,
            },
            "now": now,
            "newer": self.lineage.newer(id),
            "older": self.lineage.older(id),
            "decisions": decisions,
        });
        if let Some(gate) = gate {
            explained["gate"] = gate;
        }
        if let Some(recurrence) = self.explain_recurrence(id) {
            explained["recurrence"] = recurrence;
        }
        Ok(explained)
    }

    fn cards_of(&self, id: InteractionId, facts: &crate::types::Facts) -> Vec<Value> {
        facts
            .cards
            .iter()
            .map(|c| {
                let topic = c
                    .identity
                    .as_ref()
                    .map(|i| crate::lineage::topic_key(&c.subject, i));
                let validity = match topic {
                    Some(topic) => self.lineage.validity_on(id, &topic),
                    None => self.lineage.validity(id),
                };
                json!({"card": c, "validity": validity})
            })
            .collect()
    }

    /// Counts: turns by state and validity, tiers, tokens, decisions, sizes.
    pub fn stats(&self) -> Result<Value> {
        self.open_only()?;
        let skipped = self.gate.skipped().len();
        let archived = self.turns.values().filter(|t| t.archived).count() + skipped;
        let mut validity: BTreeMap<Validity, u64> = BTreeMap::new();
        for id in self.turns.keys().chain(self.gate.skipped().keys()) {
            *validity.entry(self.lineage.validity(*id)).or_default() += 1;
        }
        let decisions = self.store().decision_counts(&self.namespace)?;
        let mut stats = json!({
            "namespace": self.namespace.name,
            "turns": self.len(),
            "active": self.turns.len() + skipped - archived,
            "archived": archived,
            "pending": self.pending.len(),
            "next_id": self.namespace.next_id,
            "active_tokens": self.active.tokens(),
            "token_budget": self.config.capacity.token_budget,
            "over_budget_tokens":
                self.active.tokens().saturating_sub(self.config.capacity.token_budget),
            "tiers": self.active.tiers(),
            "validity": validity,
            "relations": self.lineage.edges().count(),
            "cards": self.cards.len(),
            "vectors": self.flat.len(),
            "decisions": decisions,
            "analyser": self.namespace.analyser,
            "token_counter": self.namespace.token_counter,
        });
        if let Some(gate) = self.gate_stats() {
            stats["gate"] = gate;
        }
        if let Some(recurrence) = self.recurrence_stats() {
            stats["recurrence"] = recurrence;
        }
        let [utility, writing] = self.store().uses(&self.namespace)?;
        if utility.is_some() || writing.is_some() {
            stats["llm"] = json!({"utility": utility, "writing": writing});
        }
        Ok(stats)
    }
}
