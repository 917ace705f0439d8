//! Memory cards as the recall sees them: a symbolic index and, where they were
//! embedded, their vectors. Cards point to turns; they are never evidence alone.

use crate::index::top::TopK;
use crate::index::{Flat, Inverted};
use crate::retrieve::query::QueryFrame;
use crate::retrieve::words::{Name, contains_words};
use crate::text::{fold, words};
use crate::types::{CardFacts, Facts, InteractionId};
use std::collections::BTreeMap;

/// At most this many cards a turn; a card's number is `turn << 8 | index`.
const INDEX_BITS: u32 = 8;

/// Names of the parts of the symbolic score, in Table 4's order.
pub const PARTS: [&str; 5] = [
    "card_subject",
    "card_entity",
    "card_predicate",
    "card_specificity",
    "card_answer_type",
];

/// Cards of one memory.
#[derive(Debug, Clone, Default)]
pub struct CardIndex {
    cards: BTreeMap<u64, CardFacts>,
    vectors: Flat,
    terms: Inverted,
}

/// The turn and index behind a card's number.
pub fn split(number: u64) -> (InteractionId, usize) {
    (
        number >> INDEX_BITS,
        (number & ((1 << INDEX_BITS) - 1)) as usize,
    )
}

impl CardIndex {
    /// Adds the cards of a turn. System and tool turns make none.
    pub fn push(
        &mut self,
        id: InteractionId,
        role: &str,
        facts: &Facts,
        vectors: &[i16],
        dimension: usize,
    ) {
        if matches!(role, "system" | "tool") {
            return;
        }
        for (i, card) in facts.cards.iter().take(1 << INDEX_BITS).enumerate() {
            let number = id << INDEX_BITS | i as u64;
            let row = vectors
                .get(i * dimension..(i + 1) * dimension)
                .unwrap_or(&[]);
            self.vectors.push(number, row, dimension);
            self.terms
                .push(number, card.terms.iter().map(String::as_str));
            self.cards.insert(number, card.clone());
        }
    }

    /// Forgets the cards of turns, given in id order.
    pub fn remove(&mut self, ids: &[InteractionId]) {
        let each = ids.iter().flat_map(|id| self.of(*id));
        let numbers: Vec<u64> = each.map(|(number, _)| number).collect();
        for number in &numbers {
            self.cards.remove(number);
        }
        self.vectors.remove(&numbers);
        self.terms.remove(&numbers);
    }

    /// Number of cards.
    pub fn len(&self) -> usize {
        self.cards.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cards.is_empty()
    }

    /// A card by number.
    pub fn get(&self, number: u64) -> Option<&CardFacts> {
        self.cards.get(&number)
    }

    /// Whether any card was embedded.
    pub fn embedded(&self) -> bool {
        !self.vectors.is_empty()
    }

    /// Semantic channel over card vectors.
    pub fn semantic(
        &self,
        query: &[i16],
        k: usize,
        floor: f64,
        admit: impl Fn(u64) -> bool + Sync,
    ) -> Vec<(u64, f64)> {
        self.vectors.search(query, k, floor, admit)
    }

    /// Every card, by number.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &CardFacts)> {
        self.cards.iter().map(|(n, c)| (*n, c))
    }

    /// Cards of one turn, by number.
    pub fn of(&self, id: InteractionId) -> impl Iterator<Item = (u64, &CardFacts)> {
        self.cards
            .range(id << INDEX_BITS..(id + 1) << INDEX_BITS)
            .map(|(n, c)| (*n, c))
    }

    /// Symbolic channel: cards that share a term with the question, scored by
    /// the fields of Table 4, best first.
    pub fn symbolic(
        &self,
        frame: &QueryFrame,
        weights: &[f64],
        k: usize,
        admit: impl Fn(u64) -> bool,
    ) -> Vec<(u64, f64)> {
        let mut query = frame.terms.clone();
        query.extend(frame.predicate_lemmas.iter().cloned());
        let shared = self
            .terms
            .overlap(&query, k.max(64).saturating_mul(4), admit);
        let sought = Sought::new(frame, weights);
        let mut top = TopK::new(k);
        for (number, _) in shared {
            if let Some(card) = self.cards.get(&number) {
                // The names are looked for last: few cards come so far.
                let mut parts = sought.parts_but_names(card);
                if !top.keeps(sought.sum(&parts), number) {
                    continue;
                }
                parts[ENTITY] = sought.names(card);
                let score = sought.sum(&parts);
                if score > 0.0 {
                    top.push(score, number);
                }
            }
        }
        top.into_sorted()
    }
}

/// Place of the names among the parts.
const ENTITY: usize = 1;

/// A question and the weights of the parts, made ready for many cards.
///
/// (0.9 subject + 0.55 entity + 1.2 predicate + 1.35 specificity + 0.2 answer type) / 4.2,
/// each part in [0, 1] (Table 4).
struct Sought<'a> {
    frame: &'a QueryFrame,
    weights: &'a [f64],
    total: f64,
    /// Its entities, folded.
    names: Vec<Name>,
    /// Of each of its speakers.
    genitives: Vec<String>,
    /// Its focus, folded; empty where it has none.
    focus: String,
}

impl<'a> Sought<'a> {
    fn new(frame: &'a QueryFrame, weights: &'a [f64]) -> Self {
        Self {
            frame,
            weights,
            total: weights.iter().sum(),
            names: { frame.entities.iter() }
                .map(|e| Name::new(&fold(&e.text)))
                .collect(),
            genitives: frame.speakers.iter().map(|s| format!("{s}'s")).collect(),
            focus: frame.subject_focus.as_deref().map(fold).unwrap_or_default(),
        }
    }

    /// The weighted mean: not even rounded does it fall where a part that weighs for the
    /// card rises.
    fn sum(&self, parts: &[f64; PARTS.len()]) -> f64 {
        parts
            .iter()
            .zip(self.weights)
            .map(|(p, w)| p * w)
            .sum::<f64>()
            / self.total
    }

    /// The parts of a card, that of the names as good as it can be.
    fn parts_but_names(&self, card: &CardFacts) -> [f64; PARTS.len()] {
        let frame = self.frame;
        let one = |yes: bool| f64::from(u8::from(yes));
        let canonical = frame.predicate_canonical.as_deref() == Some(card.predicate.as_str());
        let predicate = canonical || has_word(&card.predicate, &frame.predicate_lemmas);
        let specificity = share(&frame.name_free_terms, |t| card.terms.contains(t));
        [
            one(self.is_about(card)),
            one(self.weights[ENTITY] >= 0.0),
            one(predicate),
            specificity,
            one(answers(card, &frame.answer_type)),
        ]
    }

    /// Share of the question's entities that the card has.
    fn names(&self, card: &CardFacts) -> f64 {
        if self.names.is_empty() {
            return 0.0;
        }
        let text = fold(&format!("{} {}", card.subject, card.object));
        share(&self.names, |name| name.occurs_in(&text))
    }

    fn is_about(&self, card: &CardFacts) -> bool {
        let (subject, focus) = (&card.subject, &self.focus);
        self.frame.speakers.contains(subject)
            || self.genitives.iter().any(|g| subject.starts_with(g))
            || (!focus.is_empty()
                && (contains_words(subject, focus) || contains_words(focus, subject)))
    }
}

fn answers(card: &CardFacts, answer_type: &str) -> bool {
    match answer_type {
        "time" => card.first.is_some(),
        "quantity" => card.object.chars().any(|c| c.is_ascii_digit()),
        "person" | "place" | "list" => card.object.chars().any(char::is_uppercase),
        _ => false,
    }
}

fn share<T>(items: &[T], mut holds: impl FnMut(&T) -> bool) -> f64 {
    let (mut held, mut all) = (0u32, 0u32);
    for item in items {
        all += 1;
        held += u32::from(holds(item));
    }
    if all == 0 {
        0.0
    } else {
        f64::from(held) / f64::from(all)
    }
}

/// Whether a text has one of these [`words`].
fn has_word(text: &str, of: &[String]) -> bool {
    if !text.is_ascii() {
        let words = words(text);
        return of.iter().any(|w| words.contains(w));
    }
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let folded = |word: &str, w: &String| {
        word.len() == w.len() && word.bytes().map(|b| b.to_ascii_lowercase()).eq(w.bytes())
    };
    words.any(|word| !word.is_empty() && of.iter().any(|w| folded(word, w)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retrieve::query::QueryEntity;

    fn card() -> CardFacts {
        CardFacts {
            kind: "event".into(),
            subject: "ana".into(),
            predicate: "adopt".into(),
            object: "a puppy".into(),
            negated: false,
            temporal: "past".into(),
            start: 0,
            end: 0,
            identity: None,
            first: Some("2024-05-01".into()),
            last: Some("2024-05-01".into()),
            terms: ["ana", "adopt", "puppy"].map(String::from).to_vec(),
        }
    }

    fn frame() -> QueryFrame {
        QueryFrame {
            entities: vec![QueryEntity {
                text: "Ana".into(),
                label: "PERSON".into(),
            }],
            speakers: vec!["ana".into()],
            predicate_lemmas: vec!["adopt".into()],
            answer_type: "time".into(),
            terms: ["ana", "adopt", "puppy"].map(String::from).to_vec(),
            name_free_terms: ["adopt", "puppy"].map(String::from).to_vec(),
            ..QueryFrame::default()
        }
    }

    #[test]
    fn a_full_match_scores_one() {
        let w = [0.9, 0.55, 1.2, 1.35, 0.2];
        let score = |frame: &QueryFrame| {
            let sought = Sought::new(frame, &w);
            let mut parts = sought.parts_but_names(&card());
            parts[ENTITY] = sought.names(&card());
            sought.sum(&parts)
        };
        assert!((score(&frame()) - 1.0).abs() < 1e-12);
        let other = QueryFrame {
            speakers: vec!["ben".into()],
            entities: vec![],
            ..frame()
        };
        let expected = (1.2 + 1.35 + 0.2) / 4.2;
        assert!((score(&other) - expected).abs() < 1e-12);
    }

    #[test]
    fn words_are_found_as_they_are_split() {
        let lemmas = ["go", "straße", ""].map(String::from);
        for (text, has) in [
            ("go_to", true),
            ("GO", true),
            ("to__", false),
            ("ago", false),
            ("", false),
            ("Straße!", true),
        ] {
            assert_eq!(has_word(text, &lemmas), has, "{text:?}");
            assert_eq!(words(text).iter().any(|w| lemmas.contains(w)), has);
        }
    }

    #[test]
    fn cards_of_a_removed_turn_are_gone() {
        let mut index = CardIndex::default();
        let facts = Facts {
            cards: vec![card(), card()],
            ..Facts::default()
        };
        index.push(3, "user", &facts, &[], 0);
        index.push(4, "system", &facts, &[], 0);
        assert_eq!(index.len(), 2);
        for k in [5, usize::MAX] {
            let hits = index.symbolic(&frame(), &[0.9, 0.55, 1.2, 1.35, 0.2], k, |_| true);
            assert_eq!(split(hits[1].0), (3, 1));
        }
        index.remove(&[3]);
        assert!(index.is_empty());
    }
}
