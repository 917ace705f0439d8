//! The active memory: entries under a token budget, decaying turn by turn.

use crate::config::{Config, PruningPriority};
use crate::score::decay::{self, Tier};
use crate::score::prune::{self, Candidate};
use crate::types::{InteractionId, Signals};
use std::collections::BTreeMap;

/// One active turn, reduced to what decay and pruning need.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Interaction id.
    pub id: InteractionId,
    /// Tokens.
    pub tokens: u64,
    /// Survival Score at birth.
    pub omega: f64,
    /// Effective decay rate.
    pub rate: f64,
    /// Retention bonus (eq. 23).
    pub bonus: f64,
    /// Tier at the newest insertion.
    pub tier: Tier,
}

impl Entry {
    /// A new entry; its tier is that of its undecayed score.
    pub fn new(id: InteractionId, tokens: u32, omega: f64, signals: Signals, c: &Config) -> Self {
        Self {
            id,
            tokens: u64::from(tokens),
            omega,
            rate: decay::rate(&c.temporal_decay, omega),
            bonus: prune::retention_bonus(&c.pruning_priority, signals),
            tier: decay::tier(&c.memory_tiers, omega),
        }
    }

    /// Effective score when `newest` is the newest turn (eq. 15, 18).
    pub fn effective(&self, newest: InteractionId) -> f64 {
        decay::effective(self.omega, self.rate, newest.saturating_sub(self.id))
    }
}

/// What one insertion did to the active memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Entries that crossed a tier boundary: id, from, to, effective score.
    pub tiers: Vec<(InteractionId, Tier, Tier, f64)>,
    /// Entries below the hard-kill floor: id, effective score.
    pub killed: Vec<(InteractionId, f64)>,
    /// Entries evicted by the budget.
    pub pruned: Vec<Pruned>,
    /// Tokens still over the budget.
    pub over_budget: u64,
}

/// One budget eviction with the terms of eq. 25.
#[derive(Debug, Clone, PartialEq)]
pub struct Pruned {
    /// The entry.
    pub id: InteractionId,
    /// Effective score.
    pub effective: f64,
    /// Retention bonus.
    pub bonus: f64,
    /// Supersession penalty.
    pub penalty: f64,
    /// Pruning score.
    pub score: f64,
}

/// The active queue, in id order.
#[derive(Debug, Clone, Default)]
pub struct Active {
    entries: Vec<Entry>,
    tokens: u64,
    /// Effective scores of the entries while a turn is inserted; room that is kept.
    scores: Vec<f64>,
}

impl Active {
    /// Appends an entry without judging it (when a memory is reopened).
    pub fn restore(&mut self, entry: Entry) {
        self.tokens += entry.tokens;
        self.entries.push(entry);
    }

    /// Brings every tier up to date with the newest turn, silently.
    pub fn settle(&mut self, newest: InteractionId, c: &Config) {
        self.decay(newest);
        for (e, score) in self.entries.iter_mut().zip(&self.scores) {
            e.tier = decay::tier(&c.memory_tiers, *score);
        }
    }

    /// Inserts the newest turn, then decays, sweeps and prunes (section 9.1).
    pub fn insert(
        &mut self,
        entry: Entry,
        c: &Config,
        superseded: impl Fn(InteractionId) -> bool,
    ) -> Step {
        let newest = entry.id;
        self.restore(entry);
        self.advance(newest, c, superseded)
    }

    /// Decays, sweeps and prunes as of turn `newest`, whether it entered or not.
    pub fn advance(
        &mut self,
        newest: InteractionId,
        c: &Config,
        superseded: impl Fn(InteractionId) -> bool,
    ) -> Step {
        let mut step = Step::default();
        self.decay(newest);
        for (e, score) in self.entries.iter_mut().zip(&self.scores) {
            let tier = decay::tier(&c.memory_tiers, *score);
            if tier != e.tier {
                step.tiers.push((e.id, e.tier, tier, *score));
                e.tier = tier;
            }
        }
        if (newest + 1).is_multiple_of(c.capacity.pruning_frequency_x) {
            self.sweep(c.temporal_decay.hard_kill_threshold, &mut step);
        }
        if self.tokens > c.capacity.token_budget {
            self.prune(newest, c, &superseded, &mut step);
        }
        step
    }

    /// Effective scores of all entries at once, into `scores`: the same numbers as
    /// [`Entry::effective`] gives.
    fn decay(&mut self, newest: InteractionId) {
        let exponent = |e: &Entry| decay::exponent(e.rate, newest.saturating_sub(e.id));
        self.scores.clear();
        self.scores.extend(self.entries.iter().map(exponent));
        decay::effective_in_place(&mut self.scores, self.entries.iter().map(|e| e.omega));
    }

    /// Hard kill (eq. 21): strict, whatever the tier.
    fn sweep(&mut self, floor: f64, step: &mut Step) {
        for (e, score) in self.entries.iter().zip(&self.scores) {
            if below(*score, floor) {
                step.killed.push((e.id, *score));
                self.tokens -= e.tokens;
            }
        }
        if !step.killed.is_empty() {
            let mut scores = self.scores.iter();
            self.entries
                .retain(|_| scores.next().is_none_or(|score| !below(*score, floor)));
            self.scores.retain(|score| !below(*score, floor));
        }
    }

    fn prune(
        &mut self,
        newest: InteractionId,
        c: &Config,
        superseded: &impl Fn(InteractionId) -> bool,
        step: &mut Step,
    ) {
        let first_protected = (newest + 1).saturating_sub(u64::from(c.capacity.protect_last));
        let penalty = |id| penalty(&c.pruning_priority, superseded(id));
        // Ids ascend, so the protected entries are the last ones.
        let open = self.entries.partition_point(|e| e.id < first_protected);
        let protected_tokens: u64 = self.entries[open..].iter().map(|e| e.tokens).sum();
        let queue: Vec<Candidate> = self.entries[..open]
            .iter()
            .zip(&self.scores)
            .map(|(e, effective)| Candidate {
                id: e.id,
                effective: *effective,
                adjustment: e.bonus - penalty(e.id),
                tokens: e.tokens,
            })
            .collect();
        // Protected turns take their share of the budget first; what they alone
        // exceed it by cannot be helped and is reported.
        let budget = c.capacity.token_budget;
        let left = budget.saturating_sub(protected_tokens);
        let evict_healthy = c.capacity.when_only_healthy == "evict_lowest";
        let pass = prune::select(&queue, left, c.memory_tiers.healthy_min, evict_healthy);
        for (id, score) in pass.evicted {
            let Ok(at) = self.entries.binary_search_by_key(&id, |e| e.id) else {
                continue;
            };
            let e = self.entries.remove(at);
            self.tokens -= e.tokens;
            step.pruned.push(Pruned {
                id,
                effective: self.scores.remove(at),
                bonus: e.bonus,
                penalty: penalty(id),
                score,
            });
        }
        step.over_budget = self.tokens.saturating_sub(budget);
    }

    /// Takes one entry out; returns whether it was there.
    pub fn remove(&mut self, id: InteractionId) -> bool {
        match self.entries.binary_search_by_key(&id, |e| e.id) {
            Ok(at) => {
                self.tokens -= self.entries.remove(at).tokens;
                true
            }
            Err(_) => false,
        }
    }

    /// Entries in id order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of that id.
    pub fn get(&self, id: InteractionId) -> Option<&Entry> {
        self.entries
            .binary_search_by_key(&id, |e| e.id)
            .ok()
            .map(|at| &self.entries[at])
    }

    /// Tokens held.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Entries by tier, every tier named.
    pub fn tiers(&self) -> BTreeMap<&'static str, u64> {
        let mut counts: BTreeMap<&'static str, u64> =
            [Tier::Healthy, Tier::Unstable, Tier::Critical]
                .iter()
                .map(|t| (t.as_str(), 0))
                .collect();
        for e in &self.entries {
            *counts.entry(e.tier.as_str()).or_default() += 1;
        }
        counts
    }
}

/// Strictly below, as the hard kill asks.
fn below(score: f64, floor: f64) -> bool {
    score < floor
}

/// Supersession penalty (eq. 24).
fn penalty(p: &PruningPriority, superseded: bool) -> f64 {
    if superseded {
        p.superseded_past_penalty
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn insert(a: &mut Active, c: &Config, id: u64, tokens: u32, omega: f64) -> Step {
        a.insert(Entry::new(id, tokens, omega, Signals(0), c), c, |_| false)
    }

    #[test]
    fn the_sweep_runs_every_x_turns_and_is_strict() {
        let c = config::load("paper", "[temporal_decay]\nlambda_base = 10.0").unwrap();
        let mut a = Active::default();
        for id in 0..4 {
            assert!(insert(&mut a, &c, id, 1, 0.5).killed.is_empty());
        }
        let step = insert(&mut a, &c, 4, 1, 0.5);
        assert_eq!(
            step.killed.iter().map(|k| k.0).collect::<Vec<_>>(),
            [0, 1, 2, 3]
        );
        assert_eq!(a.entries().len(), 1);
        assert_eq!(a.tokens(), 1);
    }

    #[test]
    fn the_newest_turn_is_protected_by_default_and_not_in_the_paper() {
        for (preset, left) in [("default", 1), ("paper", 0)] {
            let c = config::load(preset, "[capacity]\ntoken_budget = 5").unwrap();
            let mut a = Active::default();
            let step = insert(&mut a, &c, 0, 9, 0.5);
            assert_eq!(a.entries().len(), left, "{preset}");
            assert_eq!(step.over_budget, 4 * left as u64);
        }
    }

    #[test]
    fn a_superseded_entry_goes_first() {
        let c = config::load("default", "[capacity]\ntoken_budget = 20").unwrap();
        let mut a = Active::default();
        insert(&mut a, &c, 0, 10, 0.70);
        insert(&mut a, &c, 1, 10, 0.50);
        let e = Entry::new(2, 10, 0.5, Signals(0), &c);
        let step = a.insert(e, &c, |id| id == 0);
        assert_eq!(step.pruned[0].id, 0);
        assert!((step.pruned[0].penalty - 0.35).abs() < 1e-12);
    }

    #[test]
    fn tier_changes_are_reported_once() {
        let c = config::load("default", "").unwrap();
        let mut a = Active::default();
        let mut changes = 0;
        for id in 0..60 {
            changes += insert(&mut a, &c, id, 1, 0.8)
                .tiers
                .iter()
                .filter(|t| t.0 == 0)
                .count();
        }
        assert_eq!(changes, 2, "healthy to unstable to critical");
    }
}
