//! Memory cards as the recall sees them: a symbolic index and, where they were
//! embedded, their vectors. Cards point to turns; they are never evidence alone.

use crate::index::top::TopK;
use crate::index::{Flat, Inverted};
use crate::retrieve::query::QueryFrame;
use crate::text::{fold, words};
use crate::types::{CardFacts, Facts, InteractionId};
use memchr::memmem;
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

    /// Forgets the cards of a turn.
    pub fn remove(&mut self, id: InteractionId) {
        let range = id << INDEX_BITS..(id + 1) << INDEX_BITS;
        let numbers: Vec<u64> = self.cards.range(range).map(|(n, _)| *n).collect();
        for number in numbers {
            self.cards.remove(&number);
            self.vectors.remove(number);
            self.terms.remove(number);
        }
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
        admit: impl Fn(u64) -> bool + Sync,
    ) -> Vec<(u64, f64)> {
        let mut query = frame.terms.clone();
        query.extend(frame.predicate_lemmas.iter().cloned());
        let shared = self.terms.overlap(&query, 4 * k.max(64), admit);
        let mut top = TopK::new(k);
        for (number, _) in shared {
            if let Some(card) = self.cards.get(&number) {
                let score = symbolic_score(card, frame, weights);
                if score > 0.0 {
                    top.push(score, number);
                }
            }
        }
        top.into_sorted()
    }
}

/// (0.9 subject + 0.55 entity + 1.2 predicate + 1.35 specificity + 0.2 answer type) / 4.2,
/// each part in [0, 1] (Table 4).
pub fn symbolic_score(card: &CardFacts, frame: &QueryFrame, weights: &[f64]) -> f64 {
    let subject = subject_part(card, frame);
    let text = fold(&format!("{} {}", card.subject, card.object));
    let entity = share(frame.entities.iter().map(|e| fold(&e.text)), |name| {
        contains_words(&text, name)
    });
    let canonical = frame.predicate_canonical.as_deref() == Some(card.predicate.as_str());
    let lemmas = words(&card.predicate);
    let predicate = if canonical || frame.predicate_lemmas.iter().any(|l| lemmas.contains(l)) {
        1.0
    } else {
        0.0
    };
    let specificity = share(frame.name_free_terms.iter().cloned(), |t| {
        card.terms.iter().any(|c| c == t)
    });
    let answer = answer_part(card, &frame.answer_type);
    let parts = [subject, entity, predicate, specificity, answer];
    let total: f64 = weights.iter().sum();
    parts.iter().zip(weights).map(|(p, w)| p * w).sum::<f64>() / total
}

fn subject_part(card: &CardFacts, frame: &QueryFrame) -> f64 {
    let named = frame
        .speakers
        .iter()
        .any(|s| card.subject == *s || card.subject.starts_with(&format!("{s}'s")));
    let focus = frame.subject_focus.as_deref().map(fold).is_some_and(|f| {
        !f.is_empty() && (contains_words(&card.subject, &f) || contains_words(&f, &card.subject))
    });
    if named || focus { 1.0 } else { 0.0 }
}

fn answer_part(card: &CardFacts, answer_type: &str) -> f64 {
    let fits = match answer_type {
        "time" => card.first.is_some(),
        "quantity" => card.object.chars().any(|c| c.is_ascii_digit()),
        "person" | "place" | "list" => card.object.chars().any(char::is_uppercase),
        _ => false,
    };
    if fits { 1.0 } else { 0.0 }
}

fn share(items: impl Iterator<Item = String>, mut holds: impl FnMut(&str) -> bool) -> f64 {
    let (mut held, mut all) = (0u32, 0u32);
    for item in items {
        all += 1;
        held += u32::from(holds(&item));
    }
    if all == 0 {
        0.0
    } else {
        f64::from(held) / f64::from(all)
    }
}

/// Whether `name` occurs in `text` on word boundaries. Both folded.
///
/// A name begins and ends with whole characters, and so does each place it is found at.
pub fn contains_words(text: &str, name: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    memmem::find_iter(text.as_bytes(), name).any(|at| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
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
        assert!((symbolic_score(&card(), &frame(), &w) - 1.0).abs() < 1e-12);
        let other = QueryFrame {
            speakers: vec!["ben".into()],
            entities: vec![],
            ..frame()
        };
        let expected = (1.2 + 1.35 + 0.2) / 4.2;
        assert!((symbolic_score(&card(), &other, &w) - expected).abs() < 1e-12);
    }

    #[test]
    fn names_match_on_word_boundaries() {
        assert!(contains_words("ask ana's dog", "ana"));
        assert!(!contains_words("banana bread", "ana"));
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
        let hits = index.symbolic(&frame(), &[0.9, 0.55, 1.2, 1.35, 0.2], 5, |_| true);
        assert_eq!(split(hits[1].0), (3, 1));
        index.remove(3);
        assert!(index.is_empty());
    }
}
