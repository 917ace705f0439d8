//! Text as the index and the budget see it: token counts, folding, bigrams.

use bpe_openai::Tokenizer;
use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;

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

/// Words of a text without a language model: runs of letters and digits, folded.
pub fn words(text: &str) -> Vec<String> {
    fold(text)
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect()
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

/// Bigrams of each run of Chinese, Japanese or Korean characters (a run of one
/// gives itself): those languages write no spaces, so words cannot be split.
pub fn cjk_bigrams(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
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
    }

    #[test]
    fn folding_joins_composed_and_decomposed() {
        assert_eq!(fold("Cafe\u{301}"), fold("CAFÉ"));
    }
}
