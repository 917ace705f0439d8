//! Stems as numbers: the words of a long history are stemmed once each, and compared
//! without their letters.

use crate::text::{Memo, stem};

/// Bytes of words and stems that are kept at once, and of an entry beside its letters. Words
/// may be long: a history may hold pasted data.
const MOST: usize = 8 << 20;
const ENTRY: usize = 64;

/// Stems by number, a question's own first.
#[derive(Debug, Default)]
pub(super) struct Stems {
    question: Vec<String>,
    /// The number of the stem of a word.
    words: Memo<u32>,
    /// The number of a stem.
    numbers: Memo<u32>,
    bytes: usize,
}

impl Stems {
    /// With those of a question's terms.
    pub(super) fn new(terms: &[String]) -> Self {
        let mut question: Vec<String> = terms.iter().map(|t| stem(t)).collect();
        question.sort_unstable();
        question.dedup();
        let mut stems = Self {
            question,
            ..Self::default()
        };
        stems.begin_anew();
        stems
    }

    fn begin_anew(&mut self) {
        self.words.clear();
        self.numbers.clear();
        self.bytes = 0;
        let each = self.question.iter().map(|s| s.as_str().into());
        self.numbers.extend(each.zip(0..));
    }

    /// Forgets all but the question's where there are many: other numbers that were given
    /// before mean nothing any more.
    pub(super) fn make_room(&mut self) {
        if self.bytes > MOST {
            self.begin_anew();
        }
    }

    /// The number of a word's stem.
    pub(super) fn number(&mut self, word: &str) -> u32 {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(stem(word).into()).or_insert(next);
        self.words.insert(word.into(), number);
        self.bytes += 2 * word.len() + ENTRY;
        number
    }

    /// The numbers of words' stems, ascending, each once.
    pub(super) fn numbers<'w>(&mut self, words: impl Iterator<Item = &'w str>) -> Vec<u32> {
        ascending(words.map(|w| self.number(w)).collect())
    }

    /// Those of the question among ascending numbers.
    pub(super) fn asked_among<'n>(&self, numbers: &'n [u32]) -> &'n [u32] {
        let own = u32::try_from(self.question.len()).unwrap_or(u32::MAX);
        &numbers[..numbers.partition_point(|n| *n < own)]
    }
}

/// Numbers in order, each once.
pub(super) fn ascending(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_stem_have_one_number() {
        let question = ["run", "porto", "run"].map(String::from);
        let mut stems = Stems::new(&question);
        let numbers = stems.numbers(["running", "other", "runs", "porto"].into_iter());
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(stems.asked_among(&numbers), [0, 1]);
        assert_eq!((stems.number("run"), stems.number("runs")), (1, 1));
        for word in 0..=MOST / ENTRY {
            stems.number(&format!("w{word}"));
        }
        stems.make_room();
        assert_eq!((stems.numbers.len(), stems.words.len()), (2, 0));
        assert_eq!((stems.number("ports"), stems.number("runs")), (2, 1));
    }
}
