//! Facts under ADD, UPDATE, DELETE and NOOP (the D-Mem paper, section 3.1, which has a
//! language model decide; here rules do).
//!
//! A fact is a card; its key is whom it is about and what is said of it. Nothing is
//! kept but the cards themselves: the ledger of a key is read off them in order, so
//! erasing a turn also undoes what it did to others.

use crate::text::fold;
use crate::types::CardFacts;
use serde::Serialize;

/// What an arriving fact does to those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It stands beside the others.
    Add,
    /// It takes the place of another value.
    Update,
    /// It says that another one no longer holds; the other is marked, not erased.
    Delete,
    /// It says again what stands already.
    Noop,
}

/// A fact as it arrives.
#[derive(Debug, Clone, Copy)]
pub struct Fact<'a> {
    /// Number of its card.
    pub number: u64,
    /// Whether an assistant said it.
    pub by_assistant: bool,
    /// What it says.
    pub card: &'a CardFacts,
}

/// A fact once it has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Number of its card.
    pub number: u64,
    /// What it did.
    pub operation: Operation,
    /// The fact that it did it to.
    pub target: Option<u64>,
    /// Whether it still stands after all of them.
    pub stands: bool,
}

/// Whom a fact is about and what it says of them: facts with one key can collide.
pub fn key(card: &CardFacts) -> (&str, &str) {
    let what = card.identity.as_deref().filter(|i| !i.is_empty());
    (&card.subject, what.unwrap_or(&card.predicate))
}

/// Whether the key has one value at a time: one lives in one place, but buys and
/// likes many things.
fn single(card: &CardFacts) -> bool {
    matches!(
        card.kind.as_str(),
        "current_state" | "correction" | "constraint"
    ) || card.predicate.starts_with("favorite_")
}

/// Whether it says that something holds no longer.
fn ends(card: &CardFacts) -> bool {
    card.negated || (card.kind == "current_state" && card.temporal == "past")
}

fn same_value(a: &CardFacts, b: &CardFacts) -> bool {
    fold(&a.object) == fold(&b.object)
}

/// The facts of one key in the order they came, each with what it did.
///
/// Against each fact that stands, the newest first: equal content and a cosine above
/// `near` is NOOP; the same value, ended, is DELETE; another value of a key with one
/// value is UPDATE, unless an assistant says it against a person. Else it is ADD.
pub fn keep(facts: &[Fact<'_>], cosine: impl Fn(u64, u64) -> f64, near: f64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::with_capacity(facts.len());
    for (at, fact) in facts.iter().enumerate() {
        let found = (0..at)
            .rev()
            .filter(|i| entries[*i].stands)
            .find_map(|i| Some((i, against(fact, &facts[i], &cosine, near)?)));
        let operation = found.map_or(Operation::Add, |(_, o)| o);
        if let Some((i, Operation::Update | Operation::Delete)) = found {
            entries[i].stands = false;
        }
        entries.push(Entry {
            number: fact.number,
            operation,
            target: found.map(|(i, _)| facts[i].number),
            stands: operation != Operation::Noop,
        });
    }
    entries
}

fn against(
    new: &Fact<'_>,
    old: &Fact<'_>,
    cosine: &impl Fn(u64, u64) -> f64,
    near: f64,
) -> Option<Operation> {
    let (n, o) = (new.card, old.card);
    let same = same_value(n, o);
    if same && ends(n) == ends(o) {
        return (cosine(new.number, old.number) > near).then_some(Operation::Noop);
    }
    if same && ends(n) {
        return Some(Operation::Delete);
    }
    let outranked = new.by_assistant && !old.by_assistant;
    (!same && single(n) && single(o) && !ends(n) && !ends(o) && !outranked)
        .then_some(Operation::Update)
}

/// Pairs of facts on one key that both stand, though it has one value at a time.
pub fn conflicts(facts: &[Fact<'_>], entries: &[Entry]) -> Vec<(u64, u64)> {
    let standing: Vec<&Fact<'_>> = facts
        .iter()
        .zip(entries)
        .filter(|(f, e)| e.stands && single(f.card) && !ends(f.card))
        .map(|(f, _)| f)
        .collect();
    let mut pairs = Vec::new();
    for (i, newer) in standing.iter().enumerate() {
        for older in &standing[..i] {
            if !same_value(newer.card, older.card) {
                pairs.push((older.number, newer.number));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(kind: &str, predicate: &str, object: &str) -> CardFacts {
        CardFacts {
            kind: kind.into(),
            subject: "ana".into(),
            predicate: predicate.into(),
            object: object.into(),
            negated: false,
            temporal: "current".into(),
            start: 0,
            end: 1,
            identity: None,
            first: None,
            last: None,
            terms: vec![],
        }
    }

    /// Operations and standing of facts said by a person (`u`) or an assistant (`a`).
    fn run(cards: &[(char, CardFacts)], cosine: f64) -> (Vec<(Operation, bool)>, usize) {
        let facts: Vec<Fact<'_>> = cards
            .iter()
            .enumerate()
            .map(|(i, (who, card))| Fact {
                number: i as u64,
                by_assistant: *who == 'a',
                card,
            })
            .collect();
        let entries = keep(&facts, |_, _| cosine, 0.8);
        let conflicts = conflicts(&facts, &entries).len();
        let shown = entries.iter().map(|e| (e.operation, e.stands)).collect();
        (shown, conflicts)
    }

    #[test]
    fn a_new_value_updates_and_the_old_one_stands_no_more() {
        let cards = [
            ('u', card("current_state", "live_in", "Rome")),
            ('u', card("current_state", "live_in", "Porto")),
        ];
        let expected = [(Operation::Add, false), (Operation::Update, true)];
        assert_eq!(run(&cards, 0.5), (expected.to_vec(), 0));
    }

    #[test]
    fn the_same_value_is_nothing_new_only_above_the_cosine() {
        let cards = [
            ('u', card("current_state", "live_in", "Rome")),
            ('u', card("current_state", "live_in", "rome")),
        ];
        assert_eq!(run(&cards, 0.81).0[1], (Operation::Noop, false));
        assert_eq!(run(&cards, 0.80).0[1], (Operation::Add, true));
    }

    #[test]
    fn an_end_deletes_softly_and_only_its_own_value() {
        let mut over = card("preference", "like", "tea");
        over.negated = true;
        let cards = [
            ('u', card("preference", "like", "tea")),
            ('u', card("preference", "like", "cake")),
            ('u', over),
        ];
        let expected = [
            (Operation::Add, false),
            (Operation::Add, true),
            (Operation::Delete, true),
        ];
        assert_eq!(run(&cards, 0.5), (expected.to_vec(), 0));
        let mut past = card("current_state", "live_in", "Rome");
        past.temporal = "past".into();
        let cards = [('u', card("current_state", "live_in", "Rome")), ('u', past)];
        assert_eq!(run(&cards, 0.5).0[1].0, Operation::Delete);
    }

    #[test]
    fn events_and_likes_have_many_values() {
        let cards = [
            ('u', card("event", "buy", "a car")),
            ('u', card("event", "buy", "shoes")),
        ];
        let expected = [(Operation::Add, true), (Operation::Add, true)];
        assert_eq!(run(&cards, 0.9), (expected.to_vec(), 0));
    }

    #[test]
    fn an_assistants_word_against_a_persons_is_an_open_conflict() {
        let cards = [
            ('u', card("current_state", "live_in", "Rome")),
            ('a', card("current_state", "live_in", "Porto")),
        ];
        let expected = [(Operation::Add, true), (Operation::Add, true)];
        assert_eq!(run(&cards, 0.9), (expected.to_vec(), 1));
    }
}
