//! Lineage: which turn replaces, corrects or voids which (paper, section 9.4),
//! and the topics by which the engine finds out by itself (eq. 24).

mod anew;
mod naming;
mod reach;
mod values;

pub use anew::{Anew, Changed};
pub use values::contradict;

use crate::error::{Code, Error, Result};
use crate::types::{Claim, InteractionId, Relation, Signals, Validity};
use naming::Naming;
use std::collections::{BTreeMap, BTreeSet};

/// A relation from a newer turn to an older one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Edge {
    /// The suppressed or contested side.
    pub older: InteractionId,
    /// The side that relates.
    pub newer: InteractionId,
    /// How.
    pub relation: Relation,
    /// The topic it is limited to; empty: the whole turn.
    pub topic: String,
    /// Added by the caller rather than found by the engine.
    pub by_caller: bool,
}

/// What turns said on a topic: those that said the same count as one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Stance {
    value: String,
    kind: String,
    negated: bool,
    by_assistant: bool,
}

/// Turns behind a stance, in id order.
#[derive(Debug, Clone, Default)]
struct Said {
    all: BTreeSet<InteractionId>,
    /// Those not suppressed on the topic: the only ones a newer turn can relate to.
    open: BTreeSet<InteractionId>,
}

type Topic = BTreeMap<Stance, Said>;

/// Its order is never looked at.
#[allow(clippy::disallowed_types)]
type Ids = std::collections::HashSet<InteractionId, foldhash::fast::RandomState>;

/// The lineage graph of one memory and its topic index.
#[derive(Debug, Clone, Default)]
pub struct Lineage {
    incoming: BTreeMap<InteractionId, Vec<Edge>>,
    /// Turns that `incoming` has, or had: of every active turn it is asked at every pruning.
    related: Ids,
    outgoing: BTreeMap<InteractionId, Vec<Edge>>,
    topics: BTreeMap<String, Topic>,
    topics_of: BTreeMap<InteractionId, BTreeSet<String>>,
    naming: Naming,
    /// Turns that say more than their claims hold.
    more: BTreeSet<InteractionId>,
    /// Edges that lead from a smaller id to a greater one; only callers make them.
    upward: usize,
}

/// Kind of the claim that stands for what a turn says besides: it is on no topic.
pub const REST: &str = "rest";

/// Values that leave nothing of a thing: neither a day nor an hour, no employer and no job.
const OVER: [&str; 3] = ["cancelled", "out of work", "retired"];

/// Key of a topic: whom it is about and what.
pub fn topic_key(subject: &str, identity: &str) -> String {
    format!("{subject}\u{1f}{identity}")
}

/// Whom and what the key of a topic is about.
fn topic_of_key(key: &str) -> (&str, &str) {
    key.split_once('\u{1f}').unwrap_or((key, ""))
}

impl Lineage {
    /// Relations that the claims of a new turn establish to older turns.
    ///
    /// A claim relates to every older, still standing claim on the same topic
    /// with another value. An assistant's turn never supersedes a user's.
    pub fn detect(
        &self,
        id: InteractionId,
        role: &str,
        signals: Signals,
        claims: &[Claim],
    ) -> Vec<Edge> {
        self.detect_on(|_| true, id, role, signals, claims)
    }

    /// The same on some topics.
    fn detect_on(
        &self,
        admits: impl Fn(&str) -> bool,
        id: InteractionId,
        role: &str,
        signals: Signals,
        claims: &[Claim],
    ) -> Vec<Edge> {
        let mut edges = BTreeSet::new();
        for claim in claims {
            let Some(topic) = self.topic_of(claim, id).filter(|t| admits(t)) else {
                continue;
            };
            for (stance, said) in self.topics.get(&topic).into_iter().flatten() {
                if said.open.is_empty() || role == "assistant" && !stance.by_assistant {
                    continue;
                }
                let Some(relation) = relation(claim, signals, stance) else {
                    continue;
                };
                for older in said.open.iter().filter(|older| **older != id) {
                    edges.insert(Edge {
                        older: *older,
                        newer: id,
                        relation,
                        topic: topic.clone(),
                        by_caller: false,
                    });
                }
            }
        }
        edges.into_iter().collect()
    }

    /// Makes a turn's claims known, so that newer ones can relate to them.
    pub fn register(&mut self, id: InteractionId, role: &str, claims: &[Claim]) {
        self.naming.insert(id, claims);
        if claims.iter().any(|c| c.kind == REST) {
            self.more.insert(id);
        }
        self.say(id, role, claims);
    }

    fn say(&mut self, id: InteractionId, role: &str, claims: &[Claim]) {
        for claim in claims {
            // Of its own claims those before count, too.
            let Some(topic) = self.topic_of(claim, id + 1) else {
                continue;
            };
            let open = self.suppressed_on(id, &topic).is_none();
            self.topics_of.entry(id).or_default().insert(topic.clone());
            let stance = Stance {
                value: claim.value.clone(),
                kind: claim.kind.clone(),
                negated: claim.negated,
                by_assistant: role == "assistant",
            };
            let said = self.topics.entry(topic).or_default();
            let said = said.entry(stance).or_default();
            said.all.insert(id);
            if open {
                said.open.insert(id);
            }
        }
    }

    /// The topic a claim belongs to. One that names the value it replaces belongs
    /// to the newest topic of the same subject that had this value, if its own
    /// name is that topic's or a shorter form of it: "the port is 8080, not 3000"
    /// speaks of the "port for the invoice service" that was 3000. Only turns below
    /// `end` count.
    fn topic_of(&self, claim: &Claim, end: InteractionId) -> Option<String> {
        let own = || {
            let named = !claim.identity.is_empty();
            named.then(|| topic_key(&claim.subject, &claim.identity))
        };
        let Some(old) = &claim.old_value else {
            return own();
        };
        self.candidates(claim)
            .filter_map(|(topic, stances)| Some((topic, newest(stances, old, end)?)))
            .max_by_key(|(_, id)| *id)
            .map(|(topic, _)| topic.clone())
            .or_else(own)
    }

    /// Topics that a claim which names the value it replaces may belong to by their names.
    fn candidates(&self, claim: &Claim) -> impl Iterator<Item = (&String, &Topic)> {
        let own = topic_key(&claim.subject, &claim.identity);
        let any = claim.identity.is_empty();
        let end = own.len();
        let start = own.clone();
        self.topics
            .range(start..)
            .take_while(move |(topic, _)| topic.starts_with(&own))
            .filter(move |(topic, _)| any || matches!(topic.as_bytes().get(end), None | Some(b' ')))
    }

    /// Adds an edge. Refuses a turn related to itself and a closed cycle.
    pub fn add(&mut self, edge: Edge) -> Result<()> {
        self.possible(&edge)?;
        self.enforce(edge);
        Ok(())
    }

    /// An error where the edge would relate a turn to itself, or close a cycle.
    pub fn possible(&self, edge: &Edge) -> Result<()> {
        if edge.older == edge.newer {
            return Err(Error::new(
                Code::InputCycle,
                format!("turn {} cannot be related to itself", edge.newer),
            ));
        }
        if self.reaches(edge.older, edge.newer) {
            return Err(Error::new(
                Code::InputCycle,
                format!(
                    "turn {} already leads to turn {}; relating them the other way round would close a cycle",
                    edge.older, edge.newer
                ),
            ));
        }
        Ok(())
    }

    fn put_in(&mut self, edge: Edge) {
        let older = edge.older;
        self.related.insert(older);
        let incoming = self.incoming.entry(older).or_default();
        if let Err(at) = incoming.binary_search(&edge) {
            incoming.insert(at, edge);
            self.settle(older);
        }
    }

    fn put_out(&mut self, edge: Edge) {
        let outgoing = self.outgoing.entry(edge.newer).or_default();
        if let Err(at) = outgoing.binary_search(&edge) {
            self.upward += usize::from(edge.older > edge.newer);
            outgoing.insert(at, edge);
        }
    }

    /// Brings up to date on which of its topics a turn is open.
    fn settle(&mut self, id: InteractionId) {
        for topic in self.topics_of.get(&id).into_iter().flatten() {
            let open = self.suppressed_on(id, topic).is_none();
            for said in self
                .topics
                .get_mut(topic)
                .into_iter()
                .flat_map(Topic::values_mut)
            {
                if open && said.all.contains(&id) {
                    said.open.insert(id);
                } else {
                    said.open.remove(&id);
                }
            }
        }
    }

    fn reaches(&self, from: InteractionId, to: InteractionId) -> bool {
        // Every path leads to smaller ids: a chain of a million need not be walked.
        if self.upward == 0 && from < to {
            return false;
        }
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            if id == to {
                return true;
            }
            if seen.insert(id) {
                open.extend(
                    self.outgoing
                        .get(&id)
                        .into_iter()
                        .flatten()
                        .map(|e| e.older),
                );
            }
        }
        false
    }

    fn suppressed_on(&self, id: InteractionId, topic: &str) -> Option<Validity> {
        let edges = self.incoming.get(&id)?.iter();
        strongest_of(&mut edges.filter(|e| e.topic.is_empty() || e.topic == topic))
    }

    /// Whether a turn still stands: void as a whole, or, where it says no more than its
    /// claims hold, once each topic it speaks of has been taken over by a newer turn.
    pub fn validity(&self, id: InteractionId) -> Validity {
        if !self.related.contains(&id) {
            return Validity::Current;
        }
        match self.incoming.get(&id) {
            Some(edges) => self.judge(id, edges.iter()),
            None => Validity::Current,
        }
    }

    fn judge<'a>(
        &self,
        id: InteractionId,
        edges: impl Iterator<Item = &'a Edge> + Clone,
    ) -> Validity {
        let mut whole = edges.clone().filter(|e| e.topic.is_empty());
        if let Some(v) = strongest_of(&mut whole) {
            return v;
        }
        if self.more.contains(&id) {
            return Validity::Current;
        }
        let mut strongest = Validity::Current;
        for topic in self.topics_of.get(&id).into_iter().flatten() {
            match strongest_of(&mut edges.clone().filter(|e| e.topic == *topic)) {
                Some(v) => strongest = strongest.max(v),
                None if self.said_again(id, topic, edges.clone()) => {}
                None if self.calls_off(id, topic) => {}
                None => return Validity::Current,
            }
        }
        strongest
    }

    /// Whether a turn that took another topic over says the same on this one: "on Tuesday
    /// at 3" leaves nothing of "on Monday at 3".
    fn said_again<'a>(
        &self,
        id: InteractionId,
        topic: &str,
        mut edges: impl Iterator<Item = &'a Edge>,
    ) -> bool {
        edges.any(|e| {
            let stances = self.topics.get(topic).into_iter().flat_map(Topic::values);
            let mut both = stances.filter(|s| s.all.contains(&id) && s.all.contains(&e.newer));
            e.relation.suppresses().is_some() && both.next().is_some()
        })
    }

    /// Whether a turn calls off what the topic is of: wholly, so that nothing is left of it
    /// once a day or an hour, or an employer, is given anew.
    fn calls_off(&self, id: InteractionId, topic: &str) -> bool {
        let said = |stances, value| with_value(stances, value).any(|said| said.all.contains(&id));
        let stances = self.topics.get(topic);
        stances.is_some_and(|stances| OVER.iter().any(|value| said(stances, value)))
    }

    /// Whether what a turn says on one topic still stands (for cards). A card of a thing
    /// ("the port is 3000") has the thing for a subject, its claim the one who says it.
    pub fn validity_on(&self, id: InteractionId, topic: &str) -> Validity {
        let what = topic_of_key(topic).1;
        let own = self.topics_of.get(&id);
        let same = own
            .filter(|own| !own.contains(topic))
            .and_then(|own| own.iter().find(|t| topic_of_key(t).1 == what));
        self.suppressed_on(id, same.map_or(topic, String::as_str))
            .unwrap_or(Validity::Current)
    }

    /// Edges into a turn: what newer turns did to it.
    pub fn newer(&self, id: InteractionId) -> &[Edge] {
        self.incoming.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Edges out of a turn: what it did to older ones.
    pub fn older(&self, id: InteractionId) -> &[Edge] {
        self.outgoing.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Every turn connected to this one, in id order, itself included.
    pub fn history(&self, id: InteractionId) -> Vec<InteractionId> {
        self.connected(vec![id])
    }

    fn connected(&self, mut open: Vec<InteractionId>) -> Vec<InteractionId> {
        let mut seen = BTreeSet::new();
        while let Some(id) = open.pop() {
            if seen.insert(id) {
                open.extend(self.neighbours(id));
            }
        }
        seen.into_iter().collect()
    }

    fn neighbours(&self, id: InteractionId) -> impl Iterator<Item = InteractionId> {
        let newer = self.newer(id).iter().map(|e| e.newer);
        newer.chain(self.older(id).iter().map(|e| e.older))
    }

    /// Every edge, ordered.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.incoming.values().flatten()
    }

    /// Forgets a turn: its claims and every edge that touches it.
    pub fn remove(&mut self, id: InteractionId) {
        self.unsay(id);
        self.related.remove(&id);
        self.naming.remove(id);
        self.more.remove(&id);
        for edge in self.incoming.remove(&id).unwrap_or_default() {
            self.upward -= usize::from(edge.older > edge.newer);
            retain(&mut self.outgoing, edge.newer, |e| e.older != id);
        }
        for edge in self.outgoing.remove(&id).unwrap_or_default() {
            self.upward -= usize::from(edge.older > edge.newer);
            retain(&mut self.incoming, edge.older, |e| e.newer != id);
            self.settle(edge.older);
        }
    }

    /// Takes a turn's claims out.
    fn unsay(&mut self, id: InteractionId) {
        for topic in self.topics_of.remove(&id).unwrap_or_default() {
            if let Some(stances) = self.topics.get_mut(&topic) {
                for said in stances.values_mut() {
                    said.all.remove(&id);
                    said.open.remove(&id);
                }
                stances.retain(|_, said| !said.all.is_empty());
                if stances.is_empty() {
                    self.topics.remove(&topic);
                }
            }
        }
    }
}

/// What the strongest of these edges makes of the turn they lead into.
fn strongest_of(edges: &mut dyn Iterator<Item = &Edge>) -> Option<Validity> {
    edges.filter_map(|e| e.relation.suppresses()).max()
}

/// Turns behind each stance of that value.
fn with_value<'a>(stances: &'a Topic, value: &str) -> impl Iterator<Item = &'a Said> {
    let first = Stance {
        value: value.to_owned(),
        kind: String::new(),
        negated: false,
        by_assistant: false,
    };
    stances
        .range(first..)
        .take_while(move |(stance, _)| stance.value == value)
        .map(|(_, said)| said)
}

/// The newest turn below `end` that said that value.
fn newest(stances: &Topic, value: &str, end: InteractionId) -> Option<InteractionId> {
    let last = |said: &Said| said.all.range(..end).next_back().copied();
    with_value(stances, value).filter_map(last).max()
}

fn has_value(stances: &Topic, value: &str) -> bool {
    with_value(stances, value).next().is_some()
}

fn retain(
    map: &mut BTreeMap<InteractionId, Vec<Edge>>,
    key: InteractionId,
    keep: impl FnMut(&Edge) -> bool,
) {
    if let Some(edges) = map.get_mut(&key) {
        edges.retain(keep);
        if edges.is_empty() {
            map.remove(&key);
        }
    }
}

/// The rule of design and eq. 24: same topic, another value, and kinds that
/// speak of the same thing.
fn relation(newer: &Claim, signals: Signals, older: &Stance) -> Option<Relation> {
    if newer.value == older.value && newer.negated == older.negated {
        return None;
    }
    let corrects = signals.has(Signals::CORRECTION);
    let names_old = newer.old_value.as_deref() == Some(older.value.as_str());
    if !names_old && !contradict((&newer.value, newer.negated), (&older.value, older.negated)) {
        return None;
    }
    let state = |kind: &str| matches!(kind, "current_state" | "correction");
    let same_matter = match (newer.kind.as_str(), older.kind.as_str()) {
        ("preference", "preference") | ("constraint", "constraint") => true,
        (n, "past_state") => state(n),
        (n, o) => state(n) && state(o),
    };
    if names_old && (corrects || signals.has(Signals::REPLACEMENT)) || same_matter {
        return Some(if corrects {
            Relation::Corrects
        } else {
            Relation::Supersedes
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(kind: &str, identity: &str, value: &str) -> Claim {
        Claim {
            kind: kind.into(),
            subject: "ana".into(),
            identity: identity.into(),
            value: value.into(),
            old_value: None,
            negated: false,
        }
    }

    fn say(l: &mut Lineage, id: u64, role: &str, bits: u8, c: Claim) -> Vec<Edge> {
        let edges = l.detect(id, role, Signals(bits), std::slice::from_ref(&c));
        l.register(id, role, std::slice::from_ref(&c));
        for e in &edges {
            l.add(e.clone()).unwrap();
        }
        edges
    }

    #[test]
    fn a_newer_state_supersedes_and_chains() {
        let mut l = Lineage::default();
        say(
            &mut l,
            0,
            "user",
            0,
            claim("current_state", "residence", "rome"),
        );
        say(
            &mut l,
            1,
            "user",
            0,
            claim("current_state", "residence", "berlin"),
        );
        let edges = say(
            &mut l,
            2,
            "user",
            0,
            claim("current_state", "residence", "porto"),
        );
        assert_eq!(edges.len(), 1, "rome was superseded already");
        assert_eq!(l.validity(0), Validity::Superseded);
        assert_eq!(l.validity(1), Validity::Superseded);
        assert_eq!(l.validity(2), Validity::Current);
        assert_eq!(l.history(0), [0, 1, 2]);
    }

    #[test]
    fn restating_the_same_value_supersedes_nothing() {
        let mut l = Lineage::default();
        say(&mut l, 0, "user", 0, claim("preference", "drink", "tea"));
        assert!(say(&mut l, 1, "user", 0, claim("preference", "drink", "tea")).is_empty());
    }

    #[test]
    fn an_assistant_never_supersedes_a_user() {
        let mut l = Lineage::default();
        say(&mut l, 0, "user", 0, claim("current_state", "port", "3000"));
        assert!(
            say(
                &mut l,
                1,
                "assistant",
                0,
                claim("current_state", "port", "1")
            )
            .is_empty()
        );
        assert_eq!(
            say(&mut l, 2, "user", 0, claim("current_state", "port", "2")).len(),
            2
        );
    }

    #[test]
    fn a_correction_may_name_only_the_old_value() {
        let mut l = Lineage::default();
        say(&mut l, 0, "user", 0, claim("current_state", "port", "3000"));
        let mut c = claim("correction", "", "8080");
        c.old_value = Some("3000".into());
        let edges = say(
            &mut l,
            1,
            "user",
            Signals::CORRECTION | Signals::REPLACEMENT,
            c,
        );
        assert_eq!(edges[0].relation, Relation::Corrects);
        assert_eq!(l.validity(0), Validity::Corrected);
        say(&mut l, 2, "user", 0, claim("current_state", "port", "9090"));
        assert_eq!(l.validity(1), Validity::Superseded);
    }

    #[test]
    fn a_correction_may_shorten_the_name_of_its_topic() {
        let mut l = Lineage::default();
        say(
            &mut l,
            0,
            "user",
            0,
            claim("current_state", "port for invoice service", "3000"),
        );
        say(
            &mut l,
            1,
            "user",
            0,
            claim("current_state", "portfolio", "3000"),
        );
        let mut c = claim("correction", "port", "8080");
        c.old_value = Some("3000".into());
        say(&mut l, 2, "user", Signals::CORRECTION, c);
        assert_eq!(l.validity(0), Validity::Corrected);
        assert_eq!(l.validity(1), Validity::Current);
        let later = claim("current_state", "port for invoice service", "8443");
        say(&mut l, 3, "user", 0, later);
        assert_eq!(l.validity(2), Validity::Superseded);
    }

    #[test]
    fn a_turn_with_two_topics_stands_until_both_are_taken_over() {
        let mut l = Lineage::default();
        let both = [
            claim("preference", "drink", "tea"),
            claim("current_state", "residence", "rome"),
        ];
        l.register(0, "user", &both);
        say(&mut l, 1, "user", 0, claim("preference", "drink", "coffee"));
        assert_eq!(l.validity(0), Validity::Current);
        assert_eq!(
            l.validity_on(0, &topic_key("ana", "drink")),
            Validity::Superseded
        );
        say(
            &mut l,
            2,
            "user",
            0,
            claim("current_state", "residence", "berlin"),
        );
        assert_eq!(l.validity(0), Validity::Superseded);
    }

    #[test]
    fn denying_one_value_does_not_contradict_another() {
        let denied = |v| Claim {
            negated: true,
            ..claim("current_state", "residence", v)
        };
        let lives = |v| claim("current_state", "residence", v);
        let mut l = Lineage::default();
        say(&mut l, 0, "user", 0, lives("porto"));
        assert!(say(&mut l, 1, "user", 0, denied("rome")).is_empty());
        assert!(say(&mut l, 2, "user", 0, lives("porto")).is_empty());
        let edges = say(&mut l, 3, "user", 0, denied("porto"));
        assert_eq!(edges.iter().map(|e| e.older).collect::<Vec<_>>(), [0, 2]);
        let edges = say(&mut l, 4, "user", 0, lives("rome"));
        assert_eq!(edges.iter().map(|e| e.older).collect::<Vec<_>>(), [1]);
        let mut named = denied("oslo");
        named.old_value = Some("rome".into());
        let edges = say(&mut l, 5, "user", Signals::REPLACEMENT, named);
        assert_eq!(edges.iter().map(|e| e.older).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn a_value_that_says_less_or_more_is_no_other_value() {
        let name = |v| claim("current_state", "name", v);
        let mut l = Lineage::default();
        say(&mut l, 0, "user", 0, name("ana"));
        assert!(say(&mut l, 1, "user", 0, name("ana silva")).is_empty());
        assert!(say(&mut l, 2, "user", 0, name("ana")).is_empty());
        assert_eq!(say(&mut l, 3, "user", 0, name("ana costa")).len(), 1);
        let nuts = |v| claim("current_state", "allergy:nut", v);
        say(&mut l, 4, "user", 0, nuts("allergic"));
        assert_eq!(say(&mut l, 5, "user", 0, nuts("not allergic")).len(), 1);
    }

    #[test]
    fn a_turn_that_says_more_than_its_claims_stands() {
        let mut l = Lineage::default();
        let (home, rest) = (
            claim("current_state", "residence", "rome"),
            claim(REST, "", ""),
        );
        l.register(0, "user", &[home, rest]);
        say(
            &mut l,
            1,
            "user",
            0,
            claim("current_state", "residence", "oslo"),
        );
        assert_eq!(l.validity(0), Validity::Current);
        let topic = topic_key("ana", "residence");
        assert_eq!(l.validity_on(0, &topic), Validity::Superseded);
        let card = topic_key("residence", "residence");
        assert_eq!(l.validity_on(0, &card), Validity::Superseded);
        assert_eq!(l.validity_on(0, "ana\u{1f}port"), Validity::Current);
        assert!(say(&mut l, 2, "user", 0, claim(REST, "", "")).is_empty());
        l.remove(0);
        say(&mut l, 0, "user", 0, claim("current_state", "port", "1"));
        say(&mut l, 3, "user", 0, claim("current_state", "port", "2"));
        assert_eq!(l.validity(0), Validity::Superseded);
    }

    #[test]
    fn a_topic_on_which_the_newer_turn_says_the_same_needs_no_taking_over() {
        let at = |day, hour| {
            let day = claim("current_state", "meeting", day);
            [day, claim("current_state", "meeting time", hour)]
        };
        let mut l = Lineage::default();
        for (id, claims) in (0..).zip([at("monday", "3 pm"), at("tuesday", "3 pm")]) {
            let edges = l.detect(id, "user", Signals(0), &claims);
            l.register(id, "user", &claims);
            for e in edges {
                l.add(e).unwrap();
            }
        }
        assert_eq!(l.validity(0), Validity::Superseded);
        say(
            &mut l,
            2,
            "user",
            0,
            claim("current_state", "meeting", "friday"),
        );
        assert_eq!(l.validity(1), Validity::Current, "still at three");
    }

    #[test]
    fn a_cancelled_thing_that_gets_a_day_again_is_not_cancelled() {
        let off = ["meeting", "meeting time"];
        let off = off.map(|topic| claim("current_state", topic, OVER[0]));
        let mut l = Lineage::default();
        say(
            &mut l,
            0,
            "user",
            0,
            claim("current_state", "meeting time", "3:00 pm"),
        );
        let edges = l.detect(1, "user", Signals(0), &off);
        l.register(1, "user", &off);
        for e in edges {
            l.add(e).unwrap();
        }
        assert_eq!(l.validity(0), Validity::Superseded);
        assert_eq!(l.validity(1), Validity::Current);
        say(
            &mut l,
            2,
            "user",
            0,
            claim("current_state", "meeting", "monday"),
        );
        assert_eq!(l.validity(1), Validity::Superseded);
    }

    #[test]
    fn a_removed_turn_gives_back_what_it_took_over() {
        let mut l = Lineage::default();
        let port = |v| claim("current_state", "port", v);
        for (id, value) in [(0, "1"), (1, "1"), (2, "2")] {
            say(&mut l, id, "user", 0, port(value));
        }
        assert_eq!(l.validity(1), Validity::Superseded);
        l.remove(2);
        assert_eq!(l.validity(1), Validity::Current);
        let edges = say(&mut l, 3, "user", 0, port("3"));
        assert_eq!(edges.iter().map(|e| e.older).collect::<Vec<_>>(), [0, 1]);
        l.remove(0);
        l.remove(3);
        let edges = say(&mut l, 4, "user", 0, port("4"));
        assert_eq!(edges.iter().map(|e| e.older).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_turn_that_was_voided_before_its_analysis_is_not_open() {
        let mut l = Lineage::default();
        l.add(Edge {
            older: 0,
            newer: 1,
            relation: Relation::Invalidates,
            topic: String::new(),
            by_caller: true,
        })
        .unwrap();
        say(&mut l, 0, "user", 0, claim("current_state", "port", "1"));
        assert!(say(&mut l, 2, "user", 0, claim("current_state", "port", "2")).is_empty());
    }

    #[test]
    fn cycles_are_refused_and_removal_restores() {
        let mut l = Lineage::default();
        let edge = |newer, older| Edge {
            older,
            newer,
            relation: Relation::Corrects,
            topic: String::new(),
            by_caller: true,
        };
        l.add(edge(1, 0)).unwrap();
        l.add(edge(2, 1)).unwrap();
        assert_eq!(l.add(edge(0, 2)).unwrap_err().code, Code::InputCycle);
        assert_eq!(l.add(edge(3, 3)).unwrap_err().code, Code::InputCycle);
        l.remove(1);
        assert_eq!(l.validity(0), Validity::Current);
        l.add(edge(0, 2)).unwrap();
    }
}
