//! A turn as the candidates of a recall need it: what no question changes is worked out
//! once, when it is read.

use crate::retrieve::words::contains_words;
use crate::text::fold;
use crate::types::Facts;

/// Words that make a statement a guess.
const HEDGES: [&str; 6] = [
    "probably",
    "most likely",
    "maybe",
    "perhaps",
    "i thought",
    "not sure",
];

/// What recall knows of a turn it has read.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// What was read from it.
    pub(super) facts: Facts,
    /// Its folded text.
    pub(super) text: String,
    /// How many words it has.
    pub(super) words: u32,
    /// Whether it is a guess.
    pub(super) is_hedged: bool,
}

impl Known {
    /// Works out what depends on the turn alone.
    pub(super) fn new(facts: Facts, text: &str) -> Self {
        let text = fold(text);
        Self {
            facts,
            words: u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX),
            is_hedged: HEDGES.iter().any(|w| contains_words(&text, w)),
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_and_a_guess_is_seen() {
        let known = Known::new(Facts::default(), "Perhaps  the\nfirewall.");
        assert_eq!((known.words, known.is_hedged), (3, true));
        assert_eq!(known.text, "perhaps  the\nfirewall.");
        assert!(!Known::new(Facts::default(), "A perhapsburg.").is_hedged);
    }
}
