//! Facts: what an episode leaves out, one sentence each (RecMem, eq. 8 and 9).

use super::sentences::{Sentence, Span, covered};
use crate::config::RecurrencePolicy;
use crate::lineage::{contradict, topic_key};
use crate::types::{Facts, InteractionId};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Signals that bind or tell a state; asking and acknowledging do neither.
const OPERATIONAL: [&str; 6] = [
    "constraint",
    "preference",
    "current_state",
    "past_state",
    "correction",
    "replacement",
];
/// Claims that hold until another value comes.
const STANDING: [&str; 3] = ["constraint", "preference", "current_state"];
/// Entity labels that measure.
const QUANTITIES: [&str; 4] = ["CARDINAL", "MONEY", "PERCENT", "QUANTITY"];
/// Entity labels that name nothing.
const NAMELESS: [&str; 7] = [
    "CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME",
];

/// How a denied value begins.
const DENIED: &str = "not ";

/// A value that a fact gives to a topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Whom and what it is about.
    pub topic: String,
    /// The value; a denied one is marked.
    pub value: String,
    /// The fact that gave the topic another value.
    pub replaced_by: Option<u64>,
}

impl Held {
    /// Whether the other gives the same topic a value that this one excludes.
    fn opposes(&self, other: &Self) -> bool {
        fn parts(value: &str) -> (&str, bool) {
            match value.strip_prefix(DENIED) {
                Some(plain) => (plain, true),
                None => (value, false),
            }
        }
        self.topic == other.topic && contradict(parts(&self.value), parts(&other.value))
    }
}

/// One sentence worth keeping by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Number: see [`super::number`].
    pub id: u64,
    /// The episode whose refinement found it.
    pub episode: u64,
    /// Its sentence.
    pub span: Span,
    /// Why it was kept: `first_person`, `operational`, `entity`.
    pub reasons: Vec<String>,
    /// What it says of topics that have one value.
    pub held: Vec<Held>,
    /// Stems of its content words; rebuilt at opening.
    pub stems: Vec<String>,
    /// How a language model put it, in place of the sentence.
    pub wording: Option<Wording>,
}

/// A fact in a language model's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording {
    /// The words.
    pub text: String,
    /// Every turn they may draw on, in id order: what the model had before it.
    pub drawn: Vec<InteractionId>,
}

impl Fact {
    /// The fact that superseded it: once each of its topics has another value.
    pub fn superseded_by(&self) -> Option<u64> {
        let replaced = self.held.iter().map(|h| h.replaced_by);
        let newest = replaced.clone().flatten().max();
        newest.filter(|_| replaced.clone().all(|r| r.is_some()))
    }
}

/// A sentence that could become a fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// The sentence.
    pub sentence: Sentence,
    /// Why.
    pub reasons: Vec<&'static str>,
    /// Topics and values.
    pub held: Vec<Held>,
}

/// The sentences of one turn that say something definite.
pub fn details(sentences: Vec<Sentence>, facts: &Facts, speaker: &str, role: &str) -> Vec<Detail> {
    let mut found = Vec::new();
    for sentence in sentences {
        let reasons = reasons(&sentence.span, facts, speaker);
        if !reasons.is_empty() {
            let held = held(&sentence.span, facts, role);
            found.push(Detail {
                sentence,
                reasons,
                held,
            });
        }
    }
    found
}

fn reasons(span: &Span, facts: &Facts, speaker: &str) -> Vec<&'static str> {
    let within = |start: u32, end: u32| start >= span.start && end <= span.end;
    let overlaps = |start: u32, end: u32| start < span.end && end > span.start;
    let own = |subject: &str| {
        subject
            .strip_prefix(speaker)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("'s "))
    };
    let first_person = facts
        .cards
        .iter()
        .any(|c| overlaps(c.start, c.end) && own(&c.subject));
    let operational = facts
        .cues
        .iter()
        .any(|c| within(c.start, c.end) && OPERATIONAL.contains(&c.signal.as_str()));
    let labelled = |labels: &[&str], yes: bool| {
        facts
            .entities
            .iter()
            .any(|e| within(e.start, e.end) && labels.contains(&e.label.as_str()) == yes)
    };
    let timed = facts.times.iter().any(|t| within(t.start, t.end));
    let entity = labelled(&NAMELESS, false) && (timed || labelled(&QUANTITIES, true));
    [
        (first_person, "first_person"),
        (operational, "operational"),
        (entity, "entity"),
    ]
    .into_iter()
    .filter_map(|(holds, name)| holds.then_some(name))
    .collect()
}

/// What the cards of a sentence say of topics with one value. What an assistant says
/// of the user never takes the place of what the user said.
pub fn held(span: &Span, facts: &Facts, role: &str) -> Vec<Held> {
    let mut found: Vec<Held> = Vec::new();
    if role == "assistant" {
        return found;
    }
    for card in &facts.cards {
        let inside = card.start < span.end && card.end > span.start;
        let Some(identity) = card.identity.as_ref().filter(|i| inside && !i.is_empty()) else {
            continue;
        };
        let claim = facts.claims.iter().find(|c| {
            c.subject == card.subject
                && c.identity == *identity
                && STANDING.contains(&c.kind.as_str())
        });
        let topic = topic_key(&card.subject, identity);
        if let Some(claim) = claim.filter(|_| found.iter().all(|h| h.topic != topic)) {
            let denied = if claim.negated { DENIED } else { "" };
            found.push(Held {
                topic,
                value: format!("{denied}{}", claim.value),
                replaced_by: None,
            });
        }
    }
    found
}

/// The details that an episode leaves out and no stored fact tells, the most definite
/// first in the choice, chronological in the result.
pub fn refine(
    details: Vec<Detail>,
    episode: &BTreeSet<&str>,
    known: &[&Fact],
    p: &RecurrencePolicy,
    idf: &dyn Fn(&str) -> f64,
) -> Vec<Detail> {
    let mut left: Vec<Detail> = Vec::new();
    for d in details {
        let told = covered(&d.sentence.stems, episode, idf) >= p.fact_covered;
        let updates = known.iter().any(|f| contradicts(f, &d.held));
        let stored = known.iter().any(|f| tells(f, &d, p.fact_known, idf));
        if !told && (updates || !stored) {
            left.push(d);
        }
    }
    left.sort_by(|a, b| {
        Reverse(a.reasons.len())
            .cmp(&Reverse(b.reasons.len()))
            .then(b.sentence.omega.total_cmp(&a.sentence.omega))
            .then(a.sentence.span.cmp(&b.sentence.span))
    });
    left.truncate(p.max_facts);
    left.sort_by_key(|d| d.sentence.span);
    left
}

/// Whether a standing fact gives a topic a value that these exclude.
pub fn contradicts(fact: &Fact, held: &[Held]) -> bool {
    fact.held
        .iter()
        .any(|old| old.replaced_by.is_none() && held.iter().any(|new| new.opposes(old)))
}

/// Whether a stored fact holds that share of a detail's content.
pub fn tells(fact: &Fact, d: &Detail, share: f64, idf: &dyn Fn(&str) -> f64) -> bool {
    let stems: BTreeSet<&str> = fact.stems.iter().map(String::as_str).collect();
    covered(&d.sentence.stems, &stems, idf) >= share
}

/// Marks what a new fact replaces in older ones; returns those that changed.
pub fn supersede<'a>(
    facts: impl Iterator<Item = &'a mut Fact>,
    new: u64,
    said_at: InteractionId,
    held: &[Held],
) -> Vec<u64> {
    let mut changed = Vec::new();
    for fact in facts.filter(|f| f.id != new && f.span.turn <= said_at) {
        let mut touched = false;
        for old in &mut fact.held {
            let newer = held.iter().any(|h| h.opposes(old));
            if newer && old.replaced_by.is_none() {
                old.replaced_by = Some(new);
                touched = true;
            }
        }
        if touched {
            changed.push(fact.id);
        }
    }
    changed
}

/// Marks what later turns have replaced already: recurrence also finds old statements.
pub fn replaced_already<'a>(
    facts: impl Iterator<Item = &'a Fact>,
    said_at: InteractionId,
    held: &mut [Held],
) {
    for fact in facts.filter(|f| f.span.turn > said_at) {
        for h in held.iter_mut() {
            let newer = fact.held.iter().any(|later| later.opposes(h));
            if newer {
                h.replaced_by = h.replaced_by.max(Some(fact.id));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::types::{CardFacts, Claim, Cue, Entity};

    fn policy() -> RecurrencePolicy {
        config::load("default", "").unwrap().policy.recurrence
    }

    fn one(_: &str) -> f64 {
        1.0
    }

    fn sentence(turn: u64, start: u32, end: u32, stems: &[&str], omega: f64) -> Sentence {
        Sentence {
            span: Span { turn, start, end },
            unit: turn,
            stems: stems.iter().map(|s| (*s).to_owned()).collect(),
            omega,
            centroid: 0.0,
        }
    }

    fn detail(turn: u64, stems: &[&str], reasons: Vec<&'static str>, omega: f64) -> Detail {
        Detail {
            sentence: sentence(turn, 0, 9, stems, omega),
            reasons,
            held: Vec::new(),
        }
    }

    fn lives_in(value: &str) -> Held {
        Held {
            topic: topic_key("ana", "residence"),
            value: value.into(),
            replaced_by: None,
        }
    }

    fn fact(id: u64, turn: u64, value: &str) -> Fact {
        Fact {
            id,
            episode: 1,
            span: Span {
                turn,
                start: 0,
                end: 9,
            },
            reasons: vec!["first_person".into()],
            held: vec![lives_in(value)],
            stems: vec!["live".into(), value.into()],
            wording: None,
        }
    }

    fn analysed() -> Facts {
        Facts {
            cards: vec![CardFacts {
                kind: "current_state".into(),
                subject: "ana".into(),
                predicate: "live_in".into(),
                object: "Porto".into(),
                negated: false,
                temporal: "current".into(),
                start: 0,
                end: 16,
                identity: Some("residence".into()),
                first: None,
                last: None,
                terms: Vec::new(),
            }],
            claims: vec![Claim {
                kind: "current_state".into(),
                subject: "ana".into(),
                identity: "residence".into(),
                value: "porto".into(),
                old_value: None,
                negated: false,
            }],
            cues: vec![Cue {
                signal: "current_state".into(),
                text: "I live".into(),
                start: 0,
                end: 6,
                rule: "habit".into(),
            }],
            entities: [("Porto", "GPE", 10, 15), ("40", "CARDINAL", 30, 32)]
                .map(|(text, label, start, end)| Entity {
                    text: text.into(),
                    label: label.into(),
                    start,
                    end,
                })
                .to_vec(),
            ..Facts::default()
        }
    }

    #[test]
    fn only_a_value_that_excludes_the_old_one_contradicts() {
        let fact = fact(1, 0, "porto");
        for (value, opposes) in [
            ("oslo", true),
            ("not porto", true),
            ("porto", false),
            ("not oslo", false),
            ("porto alegre", false),
        ] {
            assert_eq!(contradicts(&fact, &[lives_in(value)]), opposes, "{value}");
        }
    }

    #[test]
    fn a_detail_says_why_it_is_kept() {
        let of = |start, end, speaker: &str, role: &str| {
            details(
                vec![sentence(0, start, end, &[], 0.5)],
                &analysed(),
                speaker,
                role,
            )
        };
        let own = of(0, 16, "ana", "user");
        assert_eq!(own[0].reasons, ["first_person", "operational"]);
        assert_eq!(own[0].held, [lives_in("porto")]);
        assert_eq!(of(0, 16, "ben", "user")[0].reasons, ["operational"]);
        assert!(of(0, 16, "ana", "assistant")[0].held.is_empty());
        assert!(
            of(16, 40, "ana", "user").is_empty(),
            "a number alone is no fact"
        );
        assert!(of(0, 40, "ana", "user")[0].reasons.contains(&"entity"));
    }

    #[test]
    fn what_the_episode_or_a_fact_tells_is_left_out() {
        let p = policy();
        let episode = BTreeSet::from(["cake", "mia"]);
        let told = detail(0, &["cake", "mia"], vec!["operational"], 0.5);
        let new = detail(1, &["nut", "allergy"], vec!["operational"], 0.5);
        let both = vec![told, new.clone()];
        let left = refine(both.clone(), &episode, &[], &p, &one);
        assert_eq!(left, [new]);
        let known = Fact {
            stems: vec!["allergy".into(), "nut".into()],
            wording: None,
            ..fact(7, 0, "x")
        };
        assert!(refine(both, &episode, &[&known], &p, &one).is_empty());
    }

    #[test]
    fn fewer_than_ten_and_the_most_definite() {
        let p = policy();
        let mut many: Vec<Detail> = (0..12)
            .map(|i| detail(i, &["a", "b"], vec!["entity"], 0.1))
            .collect();
        many[11].reasons = vec!["first_person", "entity"];
        many[10].sentence.omega = 0.9;
        let left = refine(many, &BTreeSet::new(), &[], &p, &one);
        let turns: Vec<u64> = left.iter().map(|d| d.sentence.span.turn).collect();
        assert_eq!(turns, [0, 1, 2, 3, 4, 5, 6, 10, 11]);
    }

    #[test]
    fn a_new_value_supersedes_and_the_same_does_not() {
        let mut facts = [
            fact(1, 0, "lisbon"),
            fact(2, 1, "porto"),
            fact(3, 2, "porto"),
        ];
        let held = [lives_in("porto")];
        assert!(contradicts(&facts[0], &held) && !contradicts(&facts[1], &held));
        assert_eq!(supersede(facts.iter_mut(), 3, 2, &held), [1]);
        assert_eq!(facts[0].superseded_by(), Some(3));
        assert_eq!(facts[1].superseded_by(), None);
        // Found late, said early: it replaces nothing newer.
        let mut late = [lives_in("rome")];
        assert!(supersede(facts[1..].iter_mut(), 9, 0, &late).is_empty());
        replaced_already(facts[1..].iter(), 0, &mut late);
        assert_eq!(late[0].replaced_by, Some(3));
    }

    #[test]
    fn a_fact_on_two_topics_stands_until_both_are_taken_over() {
        let mut two = fact(1, 0, "lisbon");
        two.held.push(Held {
            topic: topic_key("ana", "employer"),
            value: "acme".into(),
            replaced_by: None,
        });
        let mut facts = [two];
        supersede(facts.iter_mut(), 5, 4, &[lives_in("porto")]);
        assert_eq!(facts[0].superseded_by(), None);
        facts[0].held[1].replaced_by = Some(8);
        assert_eq!(facts[0].superseded_by(), Some(8));
    }
}
