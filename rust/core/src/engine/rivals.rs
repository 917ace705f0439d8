//! Turns that tell of another thing of the same kind: "the production server" says
//! nothing new of "the staging server".

use super::read::Candidate;
use crate::retrieve::QueryFrame;
use crate::text;

/// Words that tell no two things apart.
const GENERAL: [&str; 14] = [
    "new",
    "old",
    "current",
    "currently",
    "latest",
    "last",
    "next",
    "now",
    "actual",
    "own",
    "same",
    "exact",
    "usual",
    "only",
];
/// What a thing's name begins behind.
const BEFORE: [&str; 20] = [
    "a", "an", "the", "my", "our", "your", "his", "her", "its", "their", "this", "that", "these",
    "those", "each", "every", "any", "some", "no", "s",
];
/// Whose thing it is, where it is not the asker's.
const OTHERS: [&str; 4] = ["his", "her", "their", "your"];
/// What is short for "is" behind these owns nothing.
const NO_OWNERS: [&str; 9] = [
    "it", "that", "he", "she", "what", "there", "here", "who", "where",
];
/// What is asked for stands behind these.
const ASKING: [&str; 4] = ["which", "what", "whose", "many"];
/// Letters by which a word may be longer than its lemma.
const ENDING: usize = 2;

/// The things that a question names.
#[derive(Debug)]
pub(super) struct Things {
    /// Lemmas of what it is about and of what it asks for.
    names: Vec<String>,
    /// A word that tells a thing from others of its kind, and the kind.
    told_apart: Vec<(String, String)>,
    /// Kinds of which the asker's own is meant.
    own: Vec<String>,
}

impl Things {
    pub(super) fn of(q: &QueryFrame) -> Self {
        let words = text::words(&q.text);
        let focus = text::words(q.subject_focus.as_deref().unwrap_or_default());
        // A question without a subject of its own is its own focus, verb and all.
        let whole = focus.first() == words.first();
        let verb = |term: &String| q.predicate_lemmas.contains(term);
        let behind = { words.windows(2) }.filter(|w| ASKING.contains(&w[0].as_str()));
        let nouns: Vec<&String> = focus.iter().chain(behind.map(|w| &w[1])).collect();
        let is_noun = |term: &String| nouns.iter().any(|noun| is_form(noun, term));
        let terms = { q.name_free_terms.iter() }.filter(|t| !GENERAL.contains(&t.as_str()));
        let subject = terms.clone().filter(|t| is_noun(t) && !(whole && verb(t)));
        let mut names: Vec<String> = subject.cloned().collect();
        if names.is_empty() {
            // "Where do I keep the spare key?"
            names = terms.filter(|t| !verb(t)).cloned().collect();
        }
        let named = |word: &String| names.iter().find(|name| is_form(word, name)).cloned();
        let pairs = words
            .windows(2)
            .filter_map(|w| Some((named(&w[0])?, named(&w[1])?)));
        let own = words
            .windows(2)
            .filter(|w| matches!(w[0].as_str(), "my" | "our"));
        Self {
            told_apart: pairs.filter(|(which, kind)| which != kind).collect(),
            own: own.filter_map(|w| named(&w[1])).collect(),
            names,
        }
    }

    /// Whether the older names something of the question, and the newer nothing of that.
    pub(super) fn lost(&self, newer: &Candidate, older: &Candidate) -> bool {
        let mut named = self.names.iter().filter(|name| has(older, name)).peekable();
        named.peek().is_some() && !named.any(|name| has(newer, name))
    }

    /// Whether the older tells of the very thing asked about and the newer of another of its
    /// kind, or of somebody else's.
    pub(super) fn rival(&self, newer: &Candidate, older: &Candidate) -> bool {
        let another = |(which, kind): &(String, String)| {
            has(older, which) && !has(newer, which) && names_another(newer, kind)
        };
        self.told_apart.iter().any(another) || { self.own.iter() }
            .any(|kind| owned(newer, kind) && !owned(older, kind))
    }
}

/// Whether the turn has the word.
fn has(c: &Candidate, lemma: &str) -> bool {
    c.known.facts.terms.iter().any(|term| term == lemma)
}

/// Whether a word is the lemma, or it with an ending.
fn is_form(word: &str, lemma: &str) -> bool {
    word.strip_prefix(lemma)
        .is_some_and(|rest| rest.len() <= ENDING)
}

/// Whether the turn has the kind behind a word that tells it apart: "the production server".
fn names_another(c: &Candidate, kind: &str) -> bool {
    let words: Vec<&str> = text::words_of(&c.known.text).collect();
    let content = |word: &str| c.known.facts.terms.iter().any(|term| is_form(word, term));
    let another = |at: usize| {
        let (mut apart, mut from) = (false, at);
        while from > 0 && (content(words[from - 1]) || GENERAL.contains(&words[from - 1])) {
            apart |= !GENERAL.contains(&words[from - 1]);
            from -= 1;
        }
        // "I changed servers" has no such word: what is before the kind is a verb.
        apart && (from == 0 || BEFORE.contains(&words[from - 1]))
    };
    (0..words.len()).any(|at| is_form(words[at], kind) && another(at))
}

/// Whether the turn has somebody's: "Carla's desk", "her desk".
fn owned(c: &Candidate, kind: &str) -> bool {
    let words: Vec<&str> = text::words_of(&c.known.text).collect();
    let theirs = |at: usize| match words[..at] {
        [.., owner, "s"] => !NO_OWNERS.contains(&owner),
        [.., last] => OTHERS.contains(&last),
        [] => false,
    };
    (0..words.len()).any(|at| is_form(words[at], kind) && theirs(at))
}
