//! Relating anew once turns are gone, as if they had never been there.

use super::reach::Reach;
use super::{Edge, Lineage, Stance, topic_of_key};
use crate::error::Result;
use crate::types::{Claim, InteractionId, Signals, Validity};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be related anew: the turns left that speak of the topics of those that went.
#[derive(Debug)]
pub struct Anew {
    /// Turns that went.
    pub gone: BTreeSet<InteractionId>,
    /// What is claimed on these topics, in id order; each turn is to be
    /// [told](Lineage::tell_again) again.
    pub claims: BTreeMap<InteractionId, Vec<Claim>>,
    /// What callers stated of these turns: in force again from its place on.
    pub stated: Vec<Edge>,
    /// Whether every edge of these turns is found anew, and what is refused is all known.
    pub whole: bool,
    topics: BTreeSet<String>,
    /// Turns that something which is gone related to.
    touched: BTreeSet<InteractionId>,
    /// What the engine had found of these turns, and their topics.
    before: BTreeMap<InteractionId, (BTreeSet<Edge>, BTreeSet<String>)>,
    /// What a caller's word rules out.
    refused: BTreeMap<InteractionId, BTreeSet<Edge>>,
}

/// How the edges into one turn changed.
#[derive(Debug)]
pub struct Changed {
    /// That turn.
    pub older: InteractionId,
    /// Edges that are no more.
    pub gone: Vec<Edge>,
    /// Edges that are new.
    pub new: Vec<Edge>,
}

impl Anew {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.touched.is_empty()
    }

    /// Edges into a turn that a caller's word rules out.
    pub fn refused(&self, older: InteractionId) -> impl Iterator<Item = &Edge> {
        self.refused.get(&older).into_iter().flatten()
    }

    fn admits(&self, edge: &Edge) -> bool {
        !edge.by_caller && self.topics.contains(&edge.topic)
    }
}

impl Lineage {
    /// Takes turns out, and with them all that depends on what they said: the topics they
    /// spoke of are empty until [`Self::tell_again`] has had every turn of the result.
    /// `everything` where what callers stated is not all in force yet.
    pub fn without(&mut self, gone: &[InteractionId], everything: bool) -> Anew {
        let gone: BTreeSet<InteractionId> = gone.iter().copied().collect();
        let Reach {
            topics,
            turns,
            whole,
        } = self.reach_of(&gone, everything);
        let touched = gone.iter().flat_map(|id| self.older(*id));
        let touched = touched.map(|e| e.older).filter(|id| !gone.contains(id));
        let mut anew = Anew {
            claims: self.claims_on(&topics, &turns),
            stated: Vec::new(),
            whole,
            touched: touched.collect(),
            topics,
            gone,
            before: BTreeMap::new(),
            refused: BTreeMap::new(),
        };
        let before = turns.iter().map(|id| (*id, self.found(*id, &anew)));
        anew.before = before.collect();
        for id in &anew.gone {
            self.remove(*id);
        }
        self.empty(&anew);
        anew.stated = self.suspend(&turns);
        anew
    }

    /// Edges into a turn that the engine found on these topics, and the turn's own topics.
    fn found(&self, id: InteractionId, anew: &Anew) -> (BTreeSet<Edge>, BTreeSet<String>) {
        let edges = self.newer(id).iter().filter(|e| anew.admits(e));
        let own = self.topics_of.get(&id).cloned();
        (edges.cloned().collect(), own.unwrap_or_default())
    }

    /// What turns claim on these topics; all that is claimed where it depends on earlier
    /// turns of which topic that is.
    fn claims_on(
        &self,
        topics: &BTreeSet<String>,
        turns: &BTreeSet<InteractionId>,
    ) -> BTreeMap<InteractionId, Vec<Claim>> {
        let all = |id: &InteractionId| self.naming.claims(*id).cloned().unwrap_or_default();
        let mut claims: BTreeMap<_, _> = turns.iter().map(|id| (*id, all(id))).collect();
        for topic in topics {
            for (stance, said) in self.topics.get(topic).into_iter().flatten() {
                for id in { said.all.iter() }.filter(|id| self.naming.claims(**id).is_none()) {
                    if let Some(own) = claims.get_mut(id) {
                        own.push(stance.on(topic));
                    }
                }
            }
        }
        claims
    }

    /// Takes claims on these topics out, and the edges that were found by them.
    fn empty(&mut self, anew: &Anew) {
        for topic in &anew.topics {
            self.topics.remove(topic);
        }
        for id in anew.claims.keys() {
            if self.naming.claims(*id).is_some() {
                self.unsay(*id);
            } else if let Some(own) = self.topics_of.get_mut(id) {
                own.retain(|topic| !anew.topics.contains(topic));
                if own.is_empty() {
                    self.topics_of.remove(id);
                }
            }
            super::retain(&mut self.incoming, *id, |e| !anew.admits(e));
            super::retain(&mut self.outgoing, *id, |e| !anew.admits(e));
        }
    }

    /// Puts what callers stated of these turns out of force, but not out of mind: nothing
    /// that is found meanwhile may contradict it.
    fn suspend(&mut self, turns: &BTreeSet<InteractionId>) -> Vec<Edge> {
        let mut stated = Vec::new();
        for id in turns {
            stated.extend(self.newer(*id).iter().filter(|e| e.by_caller).cloned());
            super::retain(&mut self.incoming, *id, |e| !e.by_caller);
        }
        stated
    }

    /// Makes known what a caller stated, before it is in force.
    pub fn announce(&mut self, edge: &Edge) -> Result<()> {
        self.possible(edge)?;
        self.put_out(edge.clone());
        Ok(())
    }

    /// Puts in force what a caller stated.
    pub fn enforce(&mut self, edge: Edge) {
        self.put_out(edge.clone());
        self.put_in(edge);
    }

    /// Relates a turn's claims to those before it, where that is to be done anew.
    pub fn tell_again(
        &mut self,
        anew: &mut Anew,
        id: InteractionId,
        role: &str,
        signals: Signals,
        claims: &[Claim],
    ) {
        let admits = |topic: &str| anew.topics.contains(topic);
        let edges = self.detect_on(admits, id, role, signals, claims);
        self.say(id, role, claims);
        for edge in edges {
            if self.add(edge.clone()).is_err() {
                anew.refused.entry(edge.older).or_default().insert(edge);
            }
        }
    }

    /// Turns into which edges lead that did not, or led that do not, or of which there is
    /// something else to be said.
    pub fn changes(&self, anew: &Anew) -> Vec<Changed> {
        let mut changes = Vec::new();
        for (older, before) in &anew.before {
            let now = self.found(*older, anew);
            if now != *before || anew.touched.contains(older) || anew.whole {
                changes.push(Changed {
                    older: *older,
                    gone: before.0.difference(&now.0).cloned().collect(),
                    new: now.0.difference(&before.0).cloned().collect(),
                });
            }
        }
        let others = { anew.touched.iter() }.filter(|t| !anew.before.contains_key(t));
        changes.extend(others.map(|older| Changed {
            older: *older,
            gone: Vec::new(),
            new: Vec::new(),
        }));
        changes
    }

    /// Validity of a turn, were these all the edges into it.
    pub fn validity_by(&self, id: InteractionId, edges: &[&Edge]) -> Validity {
        self.judge(id, edges.iter().copied())
    }
}

impl Stance {
    /// The claim that was made, where it names no value that it replaces.
    fn on(&self, topic: &str) -> Claim {
        let (subject, identity) = topic_of_key(topic);
        Claim {
            kind: self.kind.clone(),
            subject: subject.to_owned(),
            identity: identity.to_owned(),
            value: self.value.clone(),
            old_value: None,
            negated: self.negated,
        }
    }
}
