//! Text as the index and the budget see it: token counts, folding, bigrams.

use bpe_openai::Tokenizer;
use rust_stemmers::{Algorithm, Stemmer};
use std::sync::{Arc, Mutex, PoisonError};
use unicode_normalization::UnicodeNormalization;

/// Words remembered of each kind: about 2 MB.
const MOST_WORDS: usize = 20_000;
/// Bytes of the longest that is.
const LONGEST_WORD: usize = 32;

/// The tokenizer of that name, or `None`.
pub fn tokenizer(name: &str) -> Option<&'static Tokenizer> {
    match name {
        "cl100k_base" => Some(bpe_openai::cl100k_base()),
        "o200k_base" => Some(bpe_openai::o200k_base()),
        _ => None,
    }
}

/// Tokens of a text; special-token strings are ordinary text.
pub fn count_tokens(tokenizer: &Tokenizer, text: &str) -> u32 {
    u32::try_from(tokenizer.count(text)).unwrap_or(u32::MAX)
}

/// Whether a text behind a line break is split into the same tokens as alone, and what is
/// before the break too: every tokenizer here lets a piece go on behind a break with further
/// space, or, after marks, with slashes.
pub fn stands_apart(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_whitespace() || c == '/') && !text.is_empty()
}

/// NFC, lower case: how terms are compared.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().flat_map(char::to_lowercase).collect()
}

/// English Snowball stem of a folded term.
pub fn stem(term: &str) -> String {
    Stemmer::create(Algorithm::English).stem(term).into_owned()
}

/// Stems of words before: a conversation uses few words often, and stemming one costs more
/// than all else done with it.
#[derive(Debug, Clone, Default)]
pub struct Words {
    stems: Memo<Arc<str>>,
}

/// By word. Its order is never looked at.
#[allow(clippy::disallowed_types)]
pub(crate) type Memo<T> = std::collections::HashMap<Box<str>, T, foldhash::fast::RandomState>;

impl Words {
    /// The same as [`stem`].
    pub fn stem(&mut self, term: &str) -> Arc<str> {
        remembered(&mut self.stems, term, || stem(term).into())
    }

    /// Forgets every word: one of them may have been erased.
    pub fn clear(&mut self) {
        self.stems.clear();
    }
}

/// Counts tokens, and remembers those of the words that it has seen.
pub struct Counter {
    tokenizer: &'static Tokenizer,
    pieces: Mutex<Memo<u32>>,
}

impl Counter {
    /// That of a tokenizer.
    pub fn new(tokenizer: &'static Tokenizer) -> Self {
        Self {
            tokenizer,
            pieces: Mutex::default(),
        }
    }

    /// The same as [`count_tokens`].
    pub fn count(&self, text: &str) -> u32 {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let text = self.tokenizer.normalize(text);
        let (mut rest, mut sum) = (text.as_str(), 0u32);
        while let Some(length) =
            plain_piece(rest).or_else(|| self.tokenizer.split(rest).next().map(str::len))
        {
            let (piece, behind) = rest.split_at(length);
            let bytes = piece.as_bytes();
            let count = || u32::try_from(self.tokenizer.bpe.count(bytes)).unwrap_or(u32::MAX);
            sum = sum.saturating_add(remembered(&mut pieces, piece, count));
            rest = behind;
        }
        sum
    }

    /// Forgets every word: one of them may have been erased.
    pub fn clear(&self) {
        let pieces = self.pieces.lock();
        pieces.unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Bytes of a space, if any, and an English word that is followed by neither a letter nor
/// an apostrophe, or of a mark before a space. Every tokenizer here takes either as one
/// piece, and most pieces are such: to see that costs far less than its regular expression.
fn plain_piece(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if let [b'.' | b',' | b'!' | b'?' | b':' | b';', rest @ ..] = bytes {
        return rest.first().is_none_or(|b| *b == b' ').then_some(1);
    }
    let start = usize::from(bytes.first() == Some(&b' '));
    let capital = usize::from(bytes.get(start).is_some_and(u8::is_ascii_uppercase));
    let small = &bytes[start + capital..];
    let length = small.iter().take_while(|b| b.is_ascii_lowercase()).count();
    let ends = small
        .get(length)
        .is_none_or(|b| b.is_ascii() && !b.is_ascii_alphabetic() && *b != b'\'');
    (capital + length > 0 && ends).then_some(start + capital + length)
}

fn remembered<T: Clone>(memo: &mut Memo<T>, word: &str, make: impl FnOnce() -> T) -> T {
    if let Some(known) = memo.get(word) {
        return known.clone();
    }
    let made = make();
    if word.len() <= LONGEST_WORD {
        if memo.len() >= MOST_WORDS {
            memo.clear();
        }
        memo.insert(word.into(), made.clone());
    }
    made
}

/// Words of a text without a language model: runs of letters and digits, folded.
pub fn words(text: &str) -> Vec<String> {
    words_of(&fold(text)).map(str::to_owned).collect()
}

/// The same of a text that is folded already.
pub fn words_of(folded: &str) -> impl Iterator<Item = &str> {
    let runs = folded.split(|c: char| !c.is_alphanumeric());
    runs.filter(|w| !w.is_empty())
}

fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30FF   // kana
        | 0x3400..=0x4DBF // unified ideographs, extension A
        | 0x4E00..=0x9FFF // unified ideographs
        | 0xAC00..=0xD7AF // Hangul
        | 0xF900..=0xFAFF
        | 0x20000..=0x2FA1F)
}

/// Alphabets, punctuation and symbols before those languages: not even composed do they
/// become their characters.
fn never_cjk(c: char) -> bool {
    matches!(u32::from(c), 0..=0x10FF | 0x1200..=0x2E7F)
}

/// Bigrams of each run of Chinese, Japanese or Korean characters (a run of one
/// gives itself): those languages write no spaces, so words cannot be split.
pub fn cjk_bigrams(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    if text.is_ascii() || text.chars().all(never_cjk) {
        return terms;
    }
    let mut run: Vec<char> = Vec::new();
    for c in text.nfc().chain(std::iter::once(' ')) {
        if is_cjk(c) {
            run.push(c);
            continue;
        }
        if run.len() == 1 {
            terms.push(run[0].to_string());
        }
        terms.extend(run.windows(2).map(|pair| pair.iter().collect()));
        run.clear();
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn special_tokens_are_ordinary_text() {
        let t = tokenizer("cl100k_base").unwrap();
        assert_eq!(count_tokens(t, ""), 0);
        assert_eq!(count_tokens(t, "hello world"), 2);
        assert!(count_tokens(t, "<|endoftext|>") > 1);
        assert!(tokenizer("p50k").is_none());
    }

    #[test]
    fn a_long_run_without_spaces_is_counted_in_reasonable_time() {
        let t = tokenizer("cl100k_base").unwrap();
        assert_eq!(count_tokens(t, &"a".repeat(200_000)), 25_000);
    }

    #[test]
    fn cjk_runs_become_bigrams() {
        assert_eq!(
            cjk_bigrams("我住在北京 ok 猫"),
            ["我住", "住在", "在北", "北京", "猫"]
        );
        assert!(cjk_bigrams("plain words").is_empty());
        for c in (0..0x2FFFF)
            .filter_map(char::from_u32)
            .filter(|c| never_cjk(*c))
        {
            assert!(!c.to_string().nfc().any(is_cjk), "{c:?}");
        }
    }

    #[test]
    fn remembered_words_give_the_same() {
        let mut words = Words::default();
        for word in ["running", "ponies", "running", "猫", ""] {
            assert_eq!(*words.stem(word), *stem(word));
        }
        assert_eq!(words.stems.len(), 4);
        words.clear();
        assert!(words.stems.is_empty());
        for name in ["cl100k_base", "o200k_base"] {
            let t = tokenizer(name).unwrap();
            let counter = Counter::new(t);
            let long = "ab".repeat(300);
            for _ in 0..2 {
                for text in [
                    "",
                    "It's 8080, isn't it?  Yes.\n\n<|endoftext|>",
                    "東京e\u{301} 🙂",
                    &long,
                ] {
                    assert_eq!(counter.count(text), count_tokens(t, text), "{text:?}");
                }
            }
            let kept = |counter: &Counter| counter.pieces.lock().unwrap().clone();
            assert!(kept(&counter).keys().all(|w| w.len() <= LONGEST_WORD));
            counter.clear();
            assert!(kept(&counter).is_empty());
        }
    }

    proptest! {
        #[test]
        fn words_are_split_as_the_tokenizer_splits_them(
            texts in prop::collection::vec("([ A-Za-z]|['’.,!?:;\\n0-9\\t/-]|[.,!?:;] |é|東|e\u{301}|[ a-z]{3,9}){0,40}", 1..4)
        ) {
            for name in ["cl100k_base", "o200k_base"] {
                let t = tokenizer(name).unwrap();
                let counter = Counter::new(t);
                for text in &texts {
                    prop_assert_eq!(counter.count(text), count_tokens(t, text));
                    let mut rest = text.as_str();
                    for piece in t.split(text) {
                        if let Some(length) = plain_piece(rest) {
                            prop_assert_eq!(&rest[..length], piece);
                        }
                        rest = &rest[piece.len()..];
                    }
                }
            }
        }
    }

    #[test]
    fn folding_joins_composed_and_decomposed() {
        assert_eq!(fold("Cafe\u{301}"), fold("CAFÉ"));
    }
}
