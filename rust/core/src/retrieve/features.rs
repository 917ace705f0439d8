//! Answerability (eq. 34): ten features and three penalties, each in [0, 1].
//!
//! A feature is neutral (0.5) where the question gives it nothing to judge. The
//! order is that of the paper's Table 4. Each is explained with an example in
//! `docs/recall.md`.

use crate::calendar;
use crate::retrieve::query::{QueryEntity, QueryFrame};
use crate::retrieve::words::{Name, contains_words};
use crate::text::fold;
use crate::types::{Entity, Facts, Signals, TimeExpression, Validity};
use memchr::memmem::Finder;

/// Names of the features, in Table 4's order.
pub const FEATURES: [&str; 10] = [
    "semantic_similarity",
    "entity_overlap",
    "subject_match",
    "predicate_match",
    "query_specificity",
    "temporal_compatibility",
    "current_state",
    "not_superseded",
    "answer_span",
    "evidence_chain",
];
/// Names of the penalties, in Table 4's order.
pub const PENALTIES: [&str; 3] = ["stale", "social", "topic_only"];
/// What a feature says when it has nothing to judge.
pub const NEUTRAL: f64 = 0.5;
/// Words that give a reason.
const REASONS: [&str; 7] = [
    "because",
    "since",
    "so that",
    "due to",
    "in order to",
    "reason",
    "why",
];

/// Numbers that are written out.
const NUMBERS: [&str; 20] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "twenty", "thirty", "forty", "fifty", "sixty", "ninety",
];

/// A candidate as the features see it.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// Folded text.
    pub text: &'a str,
    /// Speaker, lower case.
    pub speaker: Option<&'a str>,
    /// Role.
    pub role: &'a str,
    /// Its facts.
    pub facts: &'a Facts,
    /// The day it was said, `YYYY-MM-DD`.
    pub day: Option<&'a str>,
    /// Whether it still stands.
    pub validity: Validity,
    /// Cosine to the question.
    pub cosine: f64,
    /// Whether lineage links it to other turns.
    pub linked: bool,
    /// Found through one of its cards.
    pub has_card: bool,
}

/// Feature and penalty values of one candidate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answerability {
    /// In the order of [`FEATURES`].
    pub features: [f64; 10],
    /// In the order of [`PENALTIES`].
    pub penalties: [f64; 3],
}

impl Answerability {
    /// The weighted sum of eq. 34.
    pub fn score(&self, weights: &[f64], penalties: &[f64]) -> f64 {
        let mut sum = 0.0;
        for (f, w) in self.features.iter().zip(weights) {
            sum += f * w;
        }
        for (p, w) in self.penalties.iter().zip(penalties) {
            sum -= p * w;
        }
        sum
    }
}

/// A question made ready to judge turns by.
#[derive(Debug)]
pub struct Judge<'a> {
    frame: &'a QueryFrame,
    /// The names of each of its entities.
    entities: Vec<Vec<Name>>,
    /// The entities as it names them, folded.
    named: Vec<String>,
    speakers: Vec<Name>,
    /// The words of whom or what it is about.
    focus: Vec<Name>,
    /// Its content, each term with its rarity.
    terms: Vec<(&'a str, Finder<'a>, f64)>,
    reasons: Vec<Name>,
}

impl<'a> Judge<'a> {
    /// `idf` weighs a term by its rarity.
    pub fn new(frame: &'a QueryFrame, idf: impl Fn(&str) -> f64) -> Self {
        let folded = |name: &str| Name::new(&fold(name));
        let names = |(i, e): (usize, &QueryEntity)| {
            let aliases = frame.aliases.get(i).into_iter().flatten();
            let all = aliases.map(String::as_str).chain([e.text.as_str()]);
            all.map(folded).collect()
        };
        let term = |t: &'a String| (t.as_str(), Finder::new(t), idf(t));
        let focus = fold(frame.subject_focus.as_deref().unwrap_or_default());
        let reasons = match frame.answer_type.as_str() {
            "reason" => &REASONS[..],
            _ => &[],
        };
        Self {
            frame,
            entities: frame.entities.iter().enumerate().map(names).collect(),
            named: frame.entities.iter().map(|e| fold(&e.text)).collect(),
            speakers: frame.speakers.iter().map(|s| Name::new(s)).collect(),
            focus: focus.split_whitespace().map(Name::new).collect(),
            terms: frame.name_free_terms.iter().map(term).collect(),
            reasons: reasons.iter().map(|r| Name::new(r)).collect(),
        }
    }

    /// The day that a turn was said on by its own clock, where the question asks for days.
    pub fn day_of(&self, local_micros: Option<i64>) -> Option<String> {
        local_micros
            .filter(|_| self.frame.names_days())
            .map(calendar::iso_day)
    }

    /// All of them for one candidate.
    pub fn judge(&self, s: &Subject<'_>) -> Answerability {
        let entity = self.entity_overlap(s);
        let subject = self.subject_match(s);
        let predicate = self.predicate_match(s);
        let specificity = self.query_specificity(s);
        let answer = self.answer_span(s);
        let q = self.frame;
        let features = [
            s.cosine.clamp(0.0, 1.0),
            entity,
            subject,
            predicate,
            specificity,
            self.temporal_compatibility(s),
            current_state(s, q),
            not_superseded(s, q),
            answer,
            evidence_chain(s),
        ];
        let penalties = [
            stale(s, q),
            social(s),
            topic_only(entity, subject, predicate, specificity, answer),
        ];
        Answerability {
            features,
            penalties,
        }
    }

    /// Share of the question's entities (by any of their names) that the turn names
    /// or that its speaker bears. "Did Ana meet Rui?" / "I met Rui" by Ana: 1.
    pub fn entity_overlap(&self, s: &Subject<'_>) -> f64 {
        if self.entities.is_empty() {
            return NEUTRAL;
        }
        let hit = |name: &Name| {
            name.occurs_in(s.text) || s.speaker.is_some_and(|speaker| name.occurs_in(speaker))
        };
        let held = self.entities.iter().filter(|names| names.iter().any(hit));
        ratio(held.count(), self.entities.len())
    }

    /// Whether the turn is about whom the question is about: 1 said by them, 0.75
    /// names them, 0 neither.
    pub fn subject_match(&self, s: &Subject<'_>) -> f64 {
        let q = self.frame;
        if !q.speakers.is_empty() {
            let by = s
                .speaker
                .is_some_and(|sp| q.speakers.iter().any(|x| x == sp));
            return if by {
                1.0
            } else if self.speakers.iter().any(|x| x.occurs_in(s.text)) {
                0.75
            } else {
                0.0
            };
        }
        if let Some(role) = q.role_hint.as_deref() {
            return if s.role == role { 1.0 } else { 0.25 };
        }
        if q.is_first_person {
            return if s.role == "user" { 1.0 } else { 0.25 };
        }
        if self.focus.is_empty() {
            return NEUTRAL;
        }
        let held = self.focus.iter().filter(|word| word.occurs_in(s.text));
        ratio(held.count(), self.focus.len())
    }

    /// Whether the turn expresses the question's predicate in any of its words.
    pub fn predicate_match(&self, s: &Subject<'_>) -> f64 {
        let q = self.frame;
        if q.predicate_lemmas.is_empty() {
            return NEUTRAL;
        }
        let said = q
            .predicate_lemmas
            .iter()
            .any(|l| s.facts.terms.iter().any(|t| t == l));
        let card = q.predicate_canonical.as_ref();
        let projected = card.is_some_and(|p| s.facts.cards.iter().any(|c| c.predicate == *p));
        if said || projected { 1.0 } else { 0.0 }
    }

    /// Share of the question's content, weighed by rarity, that the turn contains.
    pub fn query_specificity(&self, s: &Subject<'_>) -> f64 {
        let (mut held, mut all) = (0.0, 0.0);
        for (term, finder, weight) in &self.terms {
            all += weight;
            if s.facts.terms.iter().any(|t| t == term) || finder.find(s.text.as_bytes()).is_some() {
                held += weight;
            }
        }
        if all > 0.0 { held / all } else { NEUTRAL }
    }

    /// Whether the turn was said, or speaks of a time, inside the asked range; half where
    /// it was said inside but speaks of other days. For a "when" without a range,
    /// whether it speaks of a time at all.
    pub fn temporal_compatibility(&self, s: &Subject<'_>) -> f64 {
        let q = self.frame;
        if q.names_days() {
            let (first, last) = (q.first.as_deref(), q.last.as_deref());
            if s.facts.times.iter().any(|t| overlaps(t, first, last)) {
                return 1.0;
            }
            // Asked a week on, "a week ago" wants what happened then, and not what was told
            // then of an earlier month; "on 13 October" may want what was said that day.
            let earlier = |last: &str| q.counts_back && first > Some(last);
            let other =
                |t: &TimeExpression| t.grain == "day" || t.last.as_deref().is_some_and(earlier);
            let elsewhere = s.facts.times.iter().any(other);
            return match s.day {
                // "Yesterday I painted" tells of the day before it was said.
                Some(day) if within(day, first, last) && elsewhere => NEUTRAL,
                Some(day) if within(day, first, last) => 1.0,
                Some(_) => 0.0,
                None => NEUTRAL,
            };
        }
        if q.answer_type == "time"
            || matches!(q.temporal_intent.as_str(), "point" | "range" | "duration")
        {
            return if s.facts.times.is_empty() {
                NEUTRAL
            } else {
                1.0
            };
        }
        NEUTRAL
    }

    /// Whether the turn holds something of the kind asked for, other than what the
    /// question itself names. "Who …?" / "I met Rui": 1; "I met someone": 0.
    pub fn answer_span(&self, s: &Subject<'_>) -> f64 {
        let q = self.frame;
        let has = |labels: &[&str]| {
            let other = |e: &Entity| !self.named.contains(&fold(&e.text));
            let mut entities = s.facts.entities.iter();
            entities.any(|e| labels.contains(&e.label.as_str()) && other(e))
        };
        let fits = match q.answer_type.as_str() {
            "person" => has(&["PERSON", "ORG", "NORP"]),
            "place" => has(&["GPE", "LOC", "FAC", "ORG"]),
            "time" => !s.facts.times.is_empty() || has(&["DATE", "TIME"]),
            "quantity" => {
                has(&["CARDINAL", "QUANTITY", "MONEY", "PERCENT", "ORDINAL"])
                    || s.text.chars().any(|c| c.is_ascii_digit())
                    || s.facts.entities.iter().any(is_count_of_days)
            }
            "reason" => self.reasons.iter().any(|w| w.occurs_in(s.text)),
            "list" => s.text.contains(',') || contains_words(s.text, "and"),
            _ => return NEUTRAL,
        };
        if fits { 1.0 } else { 0.0 }
    }
}

/// Whether it is a time span with a number that is written out: "ten days".
fn is_count_of_days(e: &Entity) -> bool {
    let first = || fold(e.text.split_whitespace().next().unwrap_or_default());
    matches!(e.label.as_str(), "DATE" | "TIME") && NUMBERS.contains(&first().as_str())
}

/// How the turn's standing fits the question's: now, or then.
pub fn current_state(s: &Subject<'_>, q: &QueryFrame) -> f64 {
    let past = s.facts.signals.has(Signals::PAST_STATE) || s.validity != Validity::Current;
    match q.currentness.as_str() {
        "current" if s.validity != Validity::Current => 0.0,
        "current"
            if s.facts
                .signals
                .has(Signals::CURRENT_STATE | Signals::PREFERENCE) =>
        {
            1.0
        }
        "historical" if past => 1.0,
        "historical" if s.facts.signals.has(Signals::CURRENT_STATE) => 0.25,
        _ => NEUTRAL,
    }
}

/// 1 where nothing newer took its place; neutral where the past is asked about.
pub fn not_superseded(s: &Subject<'_>, q: &QueryFrame) -> f64 {
    if q.historical() {
        NEUTRAL
    } else if s.validity == Validity::Current {
        1.0
    } else {
        0.0
    }
}

/// Whether more evidence hangs on it: lineage, or a card over the raw turn.
pub fn evidence_chain(s: &Subject<'_>) -> f64 {
    if s.linked || s.has_card { 1.0 } else { 0.0 }
}

/// Out of date for a question about the present. What corrects is not stale;
/// what was corrected is.
pub fn stale(s: &Subject<'_>, q: &QueryFrame) -> f64 {
    if q.historical() || s.validity == Validity::Current {
        0.0
    } else {
        1.0
    }
}

/// Phatic or merely acknowledging.
pub fn social(s: &Subject<'_>) -> f64 {
    let bare = s.facts.signals.has(Signals::ACK_LIKE) && s.facts.terms.len() <= 3;
    if s.facts.social || bare { 1.0 } else { 0.0 }
}

/// Names the topic but says nothing that could answer: no predicate, no span of
/// the asked kind, under half of the question's content.
pub fn topic_only(entity: f64, subject: f64, predicate: f64, specificity: f64, answer: f64) -> f64 {
    let on_topic = entity > NEUTRAL || subject > NEUTRAL;
    if on_topic && predicate < NEUTRAL && answer < NEUTRAL && specificity < 0.5 {
        1.0
    } else {
        0.0
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn within(day: &str, first: Option<&str>, last: Option<&str>) -> bool {
    first.is_none_or(|f| day >= f) && last.is_none_or(|l| day <= l)
}

fn overlaps(t: &TimeExpression, first: Option<&str>, last: Option<&str>) -> bool {
    if t.first.is_none() && t.last.is_none() {
        return false;
    }
    let starts = last.is_none_or(|l| t.first.as_deref().is_none_or(|f| f <= l));
    let ends = first.is_none_or(|f| t.last.as_deref().is_none_or(|l| l >= f));
    starts && ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Entity;

    fn facts(terms: &[&str]) -> Facts {
        Facts {
            terms: terms.iter().map(|t| (*t).to_owned()).collect(),
            ..Facts::default()
        }
    }

    fn subject<'a>(text: &'a str, facts: &'a Facts) -> Subject<'a> {
        Subject {
            text,
            speaker: Some("ana"),
            role: "user",
            facts,
            day: Some("2024-05-10"),
            validity: Validity::Current,
            cosine: 0.6,
            linked: false,
            has_card: false,
        }
    }

    fn judge(q: &QueryFrame) -> Judge<'_> {
        Judge::new(q, |_| 1.0)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn table_4_weights_a_sum_by_hand() {
        let w = [1.0, 1.0, 1.2, 1.15, 1.2, 0.8, 0.9, 1.0, 1.0, 0.4];
        let a = Answerability {
            features: [0.5; 10],
            penalties: [1.0, 0.0, 1.0],
        };
        near(a.score(&w, &[1.1, 0.9, 1.2]), 9.65 * 0.5 - 2.3);
    }

    #[test]
    fn entities_count_by_any_name_and_by_speaker() {
        let f = facts(&[]);
        let q = QueryFrame {
            entities: vec![
                QueryEntity {
                    text: "Ana".into(),
                    ..Default::default()
                },
                QueryEntity {
                    text: "Rui Costa".into(),
                    ..Default::default()
                },
            ],
            aliases: vec![vec![], vec!["Rui".into()]],
            ..Default::default()
        };
        near(judge(&q).entity_overlap(&subject("i met rui", &f)), 1.0);
        near(judge(&q).entity_overlap(&subject("i met ruins", &f)), 0.5);
        near(
            judge(&QueryFrame::default()).entity_overlap(&subject("x", &f)),
            NEUTRAL,
        );
    }

    #[test]
    fn the_subject_is_who_speaks_or_is_named() {
        let f = facts(&[]);
        let q = QueryFrame {
            speakers: vec!["ana".into()],
            ..Default::default()
        };
        near(judge(&q).subject_match(&subject("hi", &f)), 1.0);
        let mut other = subject("ana said hi", &f);
        other.speaker = Some("ben");
        near(judge(&q).subject_match(&other), 0.75);
        other.text = "hi";
        near(judge(&q).subject_match(&other), 0.0);
    }

    #[test]
    fn a_question_for_a_role_is_about_that_role() {
        let f = facts(&[]);
        let q = QueryFrame {
            role_hint: Some("assistant".into()),
            is_first_person: true,
            ..Default::default()
        };
        let mut s = subject("use port 8080", &f);
        near(judge(&q).subject_match(&s), 0.25);
        s.role = "assistant";
        near(judge(&q).subject_match(&s), 1.0);
        // A named speaker counts before the role.
        let named = QueryFrame {
            speakers: vec!["ben".into()],
            ..q
        };
        near(judge(&named).subject_match(&s), 0.0);
    }

    #[test]
    fn rare_terms_weigh_more() {
        let f = facts(&["port"]);
        let q = QueryFrame {
            name_free_terms: vec!["port".into(), "proxy".into()],
            ..Default::default()
        };
        let idf = |t: &str| if t == "port" { 3.0 } else { 1.0 };
        near(
            Judge::new(&q, idf).query_specificity(&subject("the port", &f)),
            0.75,
        );
    }

    #[test]
    fn predicates_match_by_lemma() {
        let f = facts(&["move"]);
        let q = QueryFrame {
            predicate_lemmas: vec!["live".into(), "move".into()],
            ..Default::default()
        };
        near(judge(&q).predicate_match(&subject("", &f)), 1.0);
        near(
            judge(&q).predicate_match(&subject("", &facts(&["eat"]))),
            0.0,
        );
        near(
            judge(&QueryFrame::default()).predicate_match(&subject("", &f)),
            NEUTRAL,
        );
    }

    #[test]
    fn time_is_judged_by_what_is_said_then_by_when() {
        let q = QueryFrame {
            first: Some("2024-05-01".into()),
            last: Some("2024-05-31".into()),
            ..Default::default()
        };
        let f = facts(&[]);
        near(judge(&q).temporal_compatibility(&subject("", &f)), 1.0);
        let mut s = subject("", &f);
        s.day = Some("2024-07-01");
        near(judge(&q).temporal_compatibility(&s), 0.0);
        let spoken = Facts {
            times: vec![TimeExpression {
                text: "in May".into(),
                start: 0,
                end: 6,
                first: Some("2024-05-01".into()),
                last: Some("2024-05-31".into()),
                grain: "month".into(),
                words: String::new(),
            }],
            ..Facts::default()
        };
        let mut s = subject("", &spoken);
        s.day = Some("2024-07-01");
        near(judge(&q).temporal_compatibility(&s), 1.0);
    }

    #[test]
    fn said_in_the_range_but_telling_of_another_day_is_undecided() {
        let q = QueryFrame {
            first: Some("2024-05-10".into()),
            last: Some("2024-05-10".into()),
            ..Default::default()
        };
        let mut yesterday = Facts {
            times: vec![TimeExpression {
                text: "yesterday".into(),
                start: 0,
                end: 9,
                first: Some("2024-05-09".into()),
                last: Some("2024-05-09".into()),
                grain: "day".into(),
                words: String::new(),
            }],
            ..Facts::default()
        };
        near(
            judge(&q).temporal_compatibility(&subject("", &yesterday)),
            NEUTRAL,
        );
        // "Last year" beside what was said that day takes nothing from it.
        yesterday.times[0].grain = "year".into();
        near(
            judge(&q).temporal_compatibility(&subject("", &yesterday)),
            1.0,
        );
        // But "a week ago" is when it happened, and this happened before.
        let a_week_ago = QueryFrame {
            counts_back: true,
            ..q
        };
        let of = |facts: &Facts| judge(&a_week_ago).temporal_compatibility(&subject("", facts));
        near(of(&yesterday), NEUTRAL);
        let mut later = yesterday.clone();
        later.times[0].first = Some("2025-01-01".into());
        later.times[0].last = Some("2025-12-31".into());
        near(of(&later), 1.0);
        later.times[0].last = None;
        near(of(&later), 1.0);
    }

    #[test]
    fn stale_is_what_was_corrected_not_what_corrects() {
        let f = facts(&[]);
        let now = QueryFrame {
            currentness: "current".into(),
            ..Default::default()
        };
        let then = QueryFrame {
            currentness: "historical".into(),
            ..Default::default()
        };
        let mut s = subject("", &f);
        near(stale(&s, &now), 0.0);
        near(not_superseded(&s, &now), 1.0);
        s.validity = Validity::Corrected;
        near(stale(&s, &now), 1.0);
        near(stale(&s, &then), 0.0);
        near(current_state(&s, &now), 0.0);
        near(current_state(&s, &then), 1.0);
        near(not_superseded(&s, &then), NEUTRAL);
    }

    #[test]
    fn an_answer_of_the_asked_kind_that_is_not_in_the_question() {
        let f = Facts {
            entities: vec![Entity {
                text: "Rui".into(),
                label: "PERSON".into(),
                start: 0,
                end: 3,
            }],
            ..Facts::default()
        };
        let who = QueryFrame {
            answer_type: "person".into(),
            ..Default::default()
        };
        near(judge(&who).answer_span(&subject("i met rui", &f)), 1.0);
        let named = QueryFrame {
            entities: vec![QueryEntity {
                text: "Rui".into(),
                ..Default::default()
            }],
            ..who.clone()
        };
        near(judge(&named).answer_span(&subject("i met rui", &f)), 0.0);
        let many = QueryFrame {
            answer_type: "quantity".into(),
            ..Default::default()
        };
        near(
            judge(&many).answer_span(&subject("port 8080", &facts(&[]))),
            1.0,
        );
        near(
            judge(&QueryFrame::default()).answer_span(&subject("x", &f)),
            NEUTRAL,
        );
    }

    #[test]
    fn small_talk_and_bare_topics_are_penalised() {
        let f = Facts {
            social: true,
            ..Facts::default()
        };
        near(social(&subject("thanks", &f)), 1.0);
        near(social(&subject("x", &facts(&[]))), 0.0);
        near(topic_only(1.0, 0.5, 0.0, 0.2, 0.0), 1.0);
        near(topic_only(1.0, 0.5, 1.0, 0.2, 0.0), 0.0);
        near(evidence_chain(&subject("x", &facts(&[]))), 0.0);
    }
}
