//! Relating anew once turns are gone, as if they had never been there.

use super::{Edge, Lineage, Topic};
use crate::error::Result;
use crate::types::{Claim, InteractionId, Signals, Validity};
use std::collections::{BTreeMap, BTreeSet};

/// Topics that turns which are gone had a say in.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    These(BTreeSet<String>),
    /// Every topic that begins with one of these: of which of its subject's topics a claim
    /// speaks that names the value it replaces depends on all of them.
    Of(BTreeSet<String>),
    All,
}

impl Reach {
    fn admits(&self, topic: &str) -> bool {
        match self {
            Self::These(topics) => topics.contains(topic),
            Self::Of(subjects) => subjects.iter().any(|s| topic.starts_with(s.as_str())),
            Self::All => true,
        }
    }
}

/// What is to be related anew: the turns left that speak of the topics of those that went.
#[derive(Debug)]
pub struct Anew {
    reach: Reach,
    /// Those turns, in id order; each is to be [told](Lineage::tell_again) again.
    pub turns: BTreeSet<InteractionId>,
    /// What callers stated of them: in force again from its place on.
    pub stated: Vec<Edge>,
    /// Turns that something which is gone related to.
    pub touched: BTreeSet<InteractionId>,
    /// What the engine had found, by the older turn.
    before: BTreeMap<InteractionId, BTreeSet<Edge>>,
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
        self.turns.is_empty() && self.touched.is_empty()
    }

    /// Whether every edge was found anew, and what was refused is all known.
    pub fn is_whole(&self) -> bool {
        self.reach == Reach::All
    }

    /// Edges into a turn that a caller's word rules out.
    pub fn refused(&self, older: InteractionId) -> impl Iterator<Item = &Edge> {
        self.refused.get(&older).into_iter().flatten()
    }
}

impl Lineage {
    /// Takes turns out, and with them all that depends on what they said: the topics they
    /// spoke of are empty until [`Self::tell_again`] has had every turn of the result.
    pub fn without(&mut self, gone: &[InteractionId]) -> Anew {
        let reach = self.reach_of(gone);
        let topics: Vec<String> = match &reach {
            Reach::These(these) => these.iter().cloned().collect(),
            _ => { self.topics.keys() }
                .filter(|t| reach.admits(t))
                .cloned()
                .collect(),
        };
        let speaking = topics.iter().filter_map(|t| self.topics.get(t));
        let said = speaking.flat_map(Topic::values);
        let mut turns: BTreeSet<InteractionId> = said.flat_map(|s| &s.all).copied().collect();
        let out = gone.iter().flat_map(|id| self.older(*id));
        let mut touched: BTreeSet<InteractionId> = out.map(|e| e.older).collect();
        for id in gone {
            turns.remove(id);
            touched.remove(id);
        }
        let found = |id: &InteractionId| {
            let found = self.newer(*id).iter();
            let found = found.filter(|e| !e.by_caller && reach.admits(&e.topic));
            (*id, found.cloned().collect())
        };
        let before = turns.iter().map(found).collect();
        for id in gone {
            self.remove(*id);
        }
        self.empty(&topics, &turns, &reach);
        Anew {
            stated: self.suspend(&turns),
            reach,
            turns,
            touched,
            before,
            refused: BTreeMap::new(),
        }
    }

    fn reach_of(&self, gone: &[InteractionId]) -> Reach {
        let mut topics = BTreeSet::new();
        let mut related = false;
        for id in gone {
            topics.extend(self.topics_of.get(id).into_iter().flatten().cloned());
            related |= !self.newer(*id).is_empty();
            for edge in self.older(*id) {
                related = true;
                if edge.topic.is_empty() {
                    let freed = self.topics_of.get(&edge.older);
                    topics.extend(freed.into_iter().flatten().cloned());
                } else {
                    topics.insert(edge.topic.clone());
                }
            }
        }
        // A way through the gone turn may have ruled out relations of any others.
        if self.upward > 0 && related {
            return Reach::All;
        }
        let said = { topics.iter() }.filter_map(|t| self.topics.get(t));
        let mut speaking = said.flat_map(Topic::values).flat_map(|s| &s.all);
        if speaking.any(|id| self.naming.contains(id)) {
            let subject = |t: &String| t.split_inclusive('\u{1f}').next().map(str::to_owned);
            return Reach::Of(topics.iter().filter_map(subject).collect());
        }
        Reach::These(topics)
    }

    /// Takes claims on these topics out, and the edges that were found by them.
    fn empty(&mut self, topics: &[String], turns: &BTreeSet<InteractionId>, reach: &Reach) {
        for topic in topics {
            self.topics.remove(topic);
        }
        let stays = |e: &Edge| e.by_caller || !reach.admits(&e.topic);
        for id in turns {
            if let Some(own) = self.topics_of.get_mut(id) {
                own.retain(|t| !reach.admits(t));
            }
            super::retain(&mut self.incoming, *id, stays);
            super::retain(&mut self.outgoing, *id, stays);
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
        let admitted = |c: &&Claim| {
            anew.reach
                .admits(&super::topic_key(&c.subject, &c.identity))
        };
        let claims: Vec<Claim> = claims.iter().filter(admitted).cloned().collect();
        let edges = self.detect(id, role, signals, &claims);
        self.register(id, role, &claims);
        for edge in edges {
            if self.add(edge.clone()).is_err() {
                anew.refused.entry(edge.older).or_default().insert(edge);
            }
        }
        if self.topics_of.get(&id).is_some_and(BTreeSet::is_empty) {
            self.topics_of.remove(&id);
        }
    }

    /// Turns into which edges lead that did not, or led that do not.
    pub fn changes(&self, anew: &Anew) -> Vec<Changed> {
        let mut changes = Vec::new();
        for (older, before) in &anew.before {
            let found = self.newer(*older).iter();
            let found = found.filter(|e| !e.by_caller && anew.reach.admits(&e.topic));
            let after: BTreeSet<Edge> = found.cloned().collect();
            if after != *before || anew.touched.contains(older) || anew.is_whole() {
                changes.push(Changed {
                    older: *older,
                    gone: before.difference(&after).cloned().collect(),
                    new: after.difference(before).cloned().collect(),
                });
            }
        }
        let others = anew.touched.iter().filter(|t| !anew.turns.contains(t));
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
