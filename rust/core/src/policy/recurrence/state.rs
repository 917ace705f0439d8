//! The consolidated state of one memory: units, episodes, facts, and their indexes.

use super::units::centre;
use super::{Episode, Fact, Unit};
use crate::index::Flat;
use crate::order::best_first;
use crate::types::InteractionId;
use std::collections::{BTreeMap, BTreeSet};

/// Units, episodes and facts by number. Nothing in it is text.
#[derive(Debug, Clone, Default)]
pub struct Recurrence {
    units: BTreeMap<InteractionId, Unit>,
    unit_of: BTreeMap<InteractionId, InteractionId>,
    unit_vectors: Flat,
    /// Units behind some episode.
    promoted: BTreeSet<InteractionId>,
    episodes: BTreeMap<u64, Episode>,
    facts: BTreeMap<u64, Fact>,
}

/// Whether there is enough of an episode to be one; a turn may have been erased while
/// the policy was off.
pub fn stands(episode: &Episode) -> bool {
    episode.sentences.len() > 1 && !episode.vector.is_empty()
}

impl Recurrence {
    /// Adds a unit; units come in the order of their first turn.
    pub fn push_unit(&mut self, unit: Unit) {
        for turn in &unit.turns {
            self.unit_of.insert(*turn, unit.id);
        }
        self.unit_vectors
            .push(unit.id, &unit.vector, unit.vector.len());
        self.units.insert(unit.id, unit);
    }

    /// The unit that a turn is in.
    pub fn unit_of(&self, turn: InteractionId) -> Option<&Unit> {
        self.units.get(self.unit_of.get(&turn)?)
    }

    /// A unit by the turn that opened it.
    pub fn unit(&self, id: InteractionId) -> Option<&Unit> {
        self.units.get(&id)
    }

    /// Units, in order.
    pub fn units(&self) -> impl Iterator<Item = &Unit> {
        self.units.values()
    }

    /// Their vectors.
    pub fn unit_vectors(&self) -> &Flat {
        &self.unit_vectors
    }

    /// Unit mean of the units behind some turns, and its length.
    pub fn centre(&self, sources: &[InteractionId]) -> (Vec<i16>, f64) {
        let units: BTreeSet<InteractionId> = sources
            .iter()
            .filter_map(|t| self.unit_of.get(t).copied())
            .collect();
        centre(units.iter().map(|u| self.units[u].vector.as_slice()))
    }

    /// Episodes by number.
    pub fn episodes(&self) -> &BTreeMap<u64, Episode> {
        &self.episodes
    }

    /// Facts by number.
    pub fn facts(&self) -> &BTreeMap<u64, Fact> {
        &self.facts
    }

    /// Facts, to be marked.
    pub fn facts_mut(&mut self) -> impl Iterator<Item = &mut Fact> {
        self.facts.values_mut()
    }

    /// Whether a unit is behind an episode already.
    pub fn is_promoted(&self, unit: InteractionId) -> bool {
        self.promoted.contains(&unit)
    }

    /// Adds an episode, or a new version of it.
    pub fn put_episode(&mut self, episode: Episode) {
        self.promote(&episode.sources);
        self.episodes.insert(episode.id, episode);
    }

    fn promote(&mut self, sources: &[InteractionId]) {
        let units = sources.iter().filter_map(|t| self.unit_of.get(t));
        self.promoted.extend(units);
    }

    fn promote_again(&mut self) {
        self.promoted.clear();
        let sources: Vec<Vec<InteractionId>> =
            self.episodes.values().map(|e| e.sources.clone()).collect();
        for turns in sources {
            self.promote(&turns);
        }
    }

    /// Adds a fact.
    pub fn put_fact(&mut self, fact: Fact) {
        self.facts.insert(fact.id, fact);
    }

    /// Episodes that a turn is a source of.
    pub fn consolidated_in(&self, turn: InteractionId) -> Vec<u64> {
        let holds = |e: &&Episode| e.sources.binary_search(&turn).is_ok();
        self.episodes.values().filter(holds).map(|e| e.id).collect()
    }

    /// Standing facts by how near their turn is, nearest first.
    pub fn nearest_facts(&self, k: usize, similarity: impl Fn(InteractionId) -> f64) -> Vec<&Fact> {
        let standing = self.facts.values().filter(|f| f.superseded_by().is_none());
        let mut scored: Vec<(f64, &Fact)> =
            standing.map(|f| (similarity(f.span.turn), f)).collect();
        scored.sort_by(|a, b| best_first((a.0, a.1.id), (b.0, b.1.id)));
        scored.into_iter().take(k).map(|(_, f)| f).collect()
    }

    /// Takes a turn out of its unit; `vector` is that of what is left of it. The unit
    /// goes with its last turn.
    pub fn forget_turn(
        &mut self,
        turn: InteractionId,
        vector: impl Fn(&[InteractionId]) -> Vec<i16>,
    ) {
        let Some(mut unit) = self
            .unit_of
            .remove(&turn)
            .and_then(|id| self.units.remove(&id))
        else {
            return;
        };
        unit.turns.retain(|t| *t != turn);
        if !unit.turns.is_empty() {
            unit.vector = vector(&unit.turns);
            self.units.insert(unit.id, unit);
        }
        self.unit_vectors = Flat::default();
        for u in self.units.values() {
            self.unit_vectors.push(u.id, &u.vector, u.vector.len());
        }
        self.promote_again();
    }

    /// Drops the facts that stood in a turn, and what they replaced stands again.
    pub fn forget_facts_of(&mut self, turn: InteractionId) -> BTreeSet<u64> {
        let gone = self.facts.values().filter(|f| f.span.turn == turn);
        let gone: BTreeSet<u64> = gone.map(|f| f.id).collect();
        self.forget_facts(&gone);
        gone
    }

    /// Drops an episode with its facts.
    pub fn forget_episode(&mut self, id: u64) -> BTreeSet<u64> {
        self.episodes.remove(&id);
        self.promote_again();
        let gone = self.facts.values().filter(|f| f.episode == id);
        let gone: BTreeSet<u64> = gone.map(|f| f.id).collect();
        self.forget_facts(&gone);
        gone
    }

    fn forget_facts(&mut self, gone: &BTreeSet<u64>) {
        self.facts.retain(|id, _| !gone.contains(id));
        for held in self.facts.values_mut().flat_map(|f| &mut f.held) {
            held.replaced_by = held.replaced_by.filter(|by| !gone.contains(by));
        }
    }
}
