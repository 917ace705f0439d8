//! How far it reaches that turns go: which relations depend on what they said.

use super::{Lineage, Topic, has_value};
use crate::types::{Claim, InteractionId};
use std::collections::BTreeSet;

/// What is to be related anew.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) topics: BTreeSet<String>,
    /// Turns that speak of these topics, or may, without those that go.
    pub(super) turns: BTreeSet<InteractionId>,
    /// Whether these are all topics of these turns, and of all that they are connected with.
    pub(super) whole: bool,
}

/// A topic, and a value that was or will be said on it.
type Value = (String, String);

impl Lineage {
    /// `everything` where what callers stated is not all in force yet.
    pub(super) fn reach_of(&self, gone: &BTreeSet<InteractionId>, everything: bool) -> Reach {
        let moved = self.moved(gone);
        let mut reach = Reach::default();
        reach
            .topics
            .extend(moved.iter().map(|(topic, _)| topic.clone()));
        reach.topics.extend(self.freed(gone));
        if everything {
            reach.topics.extend(self.topics.keys().cloned());
        }
        for topic in &reach.topics {
            reach.turns.extend(self.speaking(topic, &moved));
        }
        let mut connected: Vec<InteractionId> = gone.union(&reach.turns).copied().collect();
        if self.upward > 0 {
            connected = self.connected(connected);
        }
        let upward = |id: &InteractionId| self.older(*id).iter().any(|e| e.older > e.newer);
        if everything || connected.iter().any(upward) {
            // A way through a turn that goes may have ruled out a relation of any of them.
            reach.whole = true;
            self.widen(&mut reach, connected, &moved);
        }
        reach.turns.retain(|id| !gone.contains(id));
        reach
    }

    /// Values that may move from topic to topic, those of the turns that go first: a claim
    /// that replaces such a value may then speak of another topic, and its own value moves.
    fn moved(&self, gone: &BTreeSet<InteractionId>) -> BTreeSet<Value> {
        let mut open = Vec::new();
        let spoken = gone.iter().filter_map(|id| self.topics_of.get(id));
        for topic in spoken.flatten().collect::<BTreeSet<_>>() {
            let stances = self.topics.get(topic).into_iter().flatten();
            let leave = stances.filter(|(_, said)| !said.all.is_disjoint(gone));
            open.extend(leave.map(|(stance, _)| (topic.clone(), stance.value.clone())));
        }
        let (mut moved, mut asked) = (BTreeSet::new(), BTreeSet::new());
        while let Some(value) = open.pop() {
            if moved.contains(&value) {
                continue;
            }
            let claims = self.naming.of_value(&value.0, &value.1).into_iter();
            for (_, claim) in claims.filter(|(id, _)| !gone.contains(id)) {
                open.push((value.0.clone(), claim.value.clone()));
                let name = (&claim.subject, &claim.identity);
                if asked.insert((name, &claim.old_value, &claim.value)) {
                    let topics = self.possible_topics(claim).into_iter();
                    open.extend(topics.map(|topic| (topic, claim.value.clone())));
                }
            }
            moved.insert(value);
        }
        moved
    }

    /// Topics that a claim which names an old value may speak of as things stand.
    fn possible_topics(&self, claim: &Claim) -> Vec<String> {
        let old = claim.old_value.as_deref().unwrap_or_default();
        let said = self
            .candidates(claim)
            .filter(|(_, topic)| has_value(topic, old));
        let mut topics: Vec<String> = said.map(|(topic, _)| topic.clone()).collect();
        if !claim.identity.is_empty() {
            topics.push(super::topic_key(&claim.subject, &claim.identity));
        }
        topics
    }

    /// Topics on which turns are open again without those that go.
    fn freed(&self, gone: &BTreeSet<InteractionId>) -> BTreeSet<String> {
        let mut topics = BTreeSet::new();
        for edge in gone.iter().flat_map(|id| self.older(*id)) {
            if edge.topic.is_empty() {
                topics.extend(
                    self.topics_of
                        .get(&edge.older)
                        .into_iter()
                        .flatten()
                        .cloned(),
                );
            } else {
                topics.insert(edge.topic.clone());
            }
        }
        topics
    }

    /// Turns that speak of a topic, or may have related to it, or may come to.
    fn speaking(&self, topic: &str, moved: &BTreeSet<Value>) -> BTreeSet<InteractionId> {
        let stances = self.topics.get(topic);
        let comes = |value: &str| moved.contains(&(topic.to_owned(), value.to_owned()));
        let was_said = |value: &str| stances.is_some_and(|s| has_value(s, value)) || comes(value);
        let mut turns = self.naming.on(topic, was_said);
        let said = stances.into_iter().flat_map(Topic::values);
        turns.extend(said.flat_map(|said| &said.all));
        turns
    }

    /// Takes in every topic of these turns, and every turn that is connected with those that
    /// speak of them.
    fn widen(&self, reach: &mut Reach, mut open: Vec<InteractionId>, moved: &BTreeSet<Value>) {
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            open.extend(self.neighbours(id));
            for topic in self.topics_of.get(&id).into_iter().flatten() {
                if reach.topics.insert(topic.clone()) {
                    let turns = self.speaking(topic, moved);
                    open.extend(&turns);
                    reach.turns.extend(turns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lineage::Edge;
    use crate::types::{Relation, Signals};

    fn claim(identity: &str, value: &str, old: Option<&str>) -> Claim {
        Claim {
            kind: "current_state".into(),
            subject: "ana".into(),
            identity: identity.into(),
            value: value.into(),
            old_value: old.map(str::to_owned),
            negated: false,
        }
    }

    fn told(claims: Vec<Claim>) -> Lineage {
        let mut l = Lineage::default();
        for (id, claim) in (0..).zip(claims) {
            let edges = l.detect(id, "user", Signals(0), std::slice::from_ref(&claim));
            l.register(id, "user", &[claim]);
            edges.into_iter().for_each(|e| l.add(e).unwrap());
        }
        l
    }

    fn reached(l: &Lineage, gone: u64) -> Vec<u64> {
        l.clone()
            .without(&[gone], false)
            .claims
            .into_keys()
            .collect()
    }

    fn stated(newer: u64, older: u64) -> Edge {
        Edge {
            older,
            newer,
            relation: Relation::ConflictsWith,
            topic: String::new(),
            by_caller: true,
        }
    }

    #[test]
    fn only_turns_on_the_topic_are_told_again() {
        let l = told(vec![
            claim("port", "1", None),
            claim("tea", "1", None),
            claim("port", "2", None),
            claim("tea", "3", Some("1")),
            claim("portfolio", "4", Some("2")),
        ]);
        assert_eq!(reached(&l, 0), [2]);
        assert_eq!(reached(&l, 2), [0]);
        assert_eq!(reached(&l, 1), [3]);
    }

    #[test]
    fn who_replaces_the_value_may_mean_another_topic() {
        let l = told(vec![
            claim("port of billing", "1", None),
            claim("port", "1", None),
            claim("port", "9", Some("1")),
            claim("port of billing", "2", None),
            claim("tea", "1", None),
            claim("", "5", Some("9")),
        ]);
        assert_eq!(reached(&l, 1), [0, 2, 3, 5]);
        assert_eq!(reached(&l, 3), [0, 2]);
        assert_eq!(reached(&l, 4), [0; 0]);
    }

    #[test]
    fn a_way_upward_reaches_what_is_connected_with_it() {
        let mut l = told(vec![
            claim("tea", "1", None),
            claim("tea", "2", None),
            claim("port", "1", None),
            claim("port", "2", None),
            claim("port", "1", None),
            claim("cat", "1", None),
        ]);
        l.add(stated(5, 1)).unwrap();
        assert_eq!(reached(&l, 1), [0]);
        l.add(stated(2, 5)).unwrap();
        assert_eq!(reached(&l, 1), [0, 2, 3, 4, 5]);
        assert_eq!(reached(&l, 0), [1, 2, 3, 4, 5]);
        l.remove(5);
        assert_eq!(reached(&l, 3), [2, 4]);
    }
}
