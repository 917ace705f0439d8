//! The consolidated state of one memory: units, episodes, facts, and their indexes.

use super::facts::replaced_already;
use super::units::centre;
use super::{Episode, Fact, Unit};
use crate::index::Flat;
use crate::order::best_first;
use crate::types::InteractionId;
use std::collections::{BTreeMap, BTreeSet};

/// Units, episodes and facts by number.
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

    /// Episodes that one of these turns, in id order, is a source of.
    pub fn consolidated_in(&self, turns: &[InteractionId]) -> Vec<u64> {
        let gone = |source: &InteractionId| turns.binary_search(source).is_ok();
        let holds = |e: &&Episode| e.sources.iter().any(gone);
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

    /// Takes turns out of their units; `vector` is that of what is left of one. A unit
    /// goes with its last turn.
    pub fn forget_turns(
        &mut self,
        turns: &[InteractionId],
        vector: impl Fn(&[InteractionId]) -> Vec<i16>,
    ) {
        let mut touched = BTreeSet::new();
        for turn in turns {
            let unit = self.unit_of.remove(turn);
            if let Some(unit) = unit.and_then(|id| self.units.get_mut(&id)) {
                unit.turns.retain(|t| t != turn);
                touched.insert(unit.id);
            }
        }
        if touched.is_empty() {
            return;
        }
        self.units.retain(|_, unit| !unit.turns.is_empty());
        for id in touched {
            if let Some(unit) = self.units.get_mut(&id) {
                unit.vector = vector(&unit.turns);
            }
        }
        self.unit_vectors = Flat::default();
        for u in self.units.values() {
            self.unit_vectors.push(u.id, &u.vector, u.vector.len());
        }
        self.promote_again();
    }

    /// Drops the facts that stood in one of these turns, in id order, or may draw on it, and
    /// what they replaced stands again.
    pub fn forget_facts_of(&mut self, turns: &[InteractionId]) -> BTreeSet<u64> {
        let among = |turn: &InteractionId| turns.binary_search(turn).is_ok();
        let drawn = |f: &Fact| { f.wording.as_ref() }.is_some_and(|w| w.drawn.iter().any(among));
        let gone = self.facts.values();
        let gone = gone.filter(|f| among(&f.span.turn) || drawn(f));
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

    /// Marks facts that stand only because what replaced them was erased, where another
    /// fact replaces them too; returns them.
    pub fn settle(&mut self) -> Vec<u64> {
        let every: Vec<Fact> = self.facts.values().cloned().collect();
        let mut changed = Vec::new();
        for fact in self.facts.values_mut() {
            let mut held = fact.held.clone();
            held.retain(|h| h.replaced_by.is_none());
            replaced_already(every.iter(), fact.span.turn, &mut held);
            for new in held.into_iter().filter(|h| h.replaced_by.is_some()) {
                let old = fact.held.iter_mut().find(|h| h.topic == new.topic);
                old.expect("it was one of them").replaced_by = new.replaced_by;
                changed.push(fact.id);
            }
        }
        changed.dedup();
        changed
    }

    fn forget_facts(&mut self, gone: &BTreeSet<u64>) {
        self.facts.retain(|id, _| !gone.contains(id));
        for held in self.facts.values_mut().flat_map(|f| &mut f.held) {
            held.replaced_by = held.replaced_by.filter(|by| !gone.contains(by));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::recurrence::facts::Held;
    use crate::policy::recurrence::{Span, number};
    use crate::score::vector::quantise;

    fn unit(id: InteractionId) -> Unit {
        Unit {
            id,
            turns: vec![id, id + 1],
            vector: quantise(&[1.0, 0.0]),
        }
    }

    fn fact(turn: InteractionId, value: &str, replaced_by: Option<u64>) -> Fact {
        Fact {
            id: number(turn, 0),
            episode: 1,
            span: Span {
                turn,
                start: 0,
                end: 5,
            },
            reasons: Vec::new(),
            held: vec![Held {
                topic: "ana\u{1f}residence".into(),
                value: value.into(),
                replaced_by,
            }],
            stems: Vec::new(),
            wording: None,
        }
    }

    #[test]
    fn a_unit_is_promoted_with_its_episode_and_free_without() {
        let mut state = Recurrence::default();
        for id in [0, 2, 4] {
            state.push_unit(unit(id));
        }
        state.put_episode(Episode {
            id: 9,
            version: 1,
            at: 3,
            sources: vec![0, 1, 2, 3],
            sentences: Vec::new(),
            vector: quantise(&[1.0, 0.0]),
            cohesion: 1.0,
            text: None,
        });
        assert!(state.is_promoted(0) && state.is_promoted(2) && !state.is_promoted(4));
        assert_eq!(state.consolidated_in(&[3]), [9]);
        state.forget_turns(&[1], |_| quantise(&[0.0, 1.0]));
        assert_eq!(state.unit_of(0).unwrap().turns, [0]);
        assert!(state.unit_of(1).is_none());
        state.forget_episode(9);
        assert!(!state.is_promoted(0));
    }

    #[test]
    fn the_nearest_standing_facts_come_first() {
        let mut state = Recurrence::default();
        for turn in 0..5 {
            state.put_fact(fact(turn, "rome", (turn == 3).then_some(9)));
        }
        // Eq. 8: the k most similar; the third is superseded, equal ones go by number.
        let near = |turn: InteractionId| [0.2, 0.9, 0.5, 1.0, 0.5][turn as usize];
        let ids = |k| -> Vec<u64> { state.nearest_facts(k, near).iter().map(|f| f.id).collect() };
        assert_eq!(ids(3), [number(1, 0), number(2, 0), number(4, 0)]);
        assert_eq!(ids(9).len(), 4);
    }

    #[test]
    fn what_a_third_fact_replaces_does_not_stand_again() {
        let mut state = Recurrence::default();
        let (b, c) = (number(2, 0), number(4, 0));
        state.put_fact(fact(0, "lisbon", Some(b)));
        state.put_fact(fact(2, "porto", Some(c)));
        state.put_fact(fact(4, "rome", None));
        assert_eq!(state.forget_facts_of(&[2]), BTreeSet::from([b]));
        assert_eq!(state.settle(), [number(0, 0)]);
        assert_eq!(state.facts()[&number(0, 0)].superseded_by(), Some(c));
        state.forget_facts_of(&[4]);
        assert!(state.settle().is_empty());
        assert_eq!(state.facts()[&number(0, 0)].superseded_by(), None);
    }
}
