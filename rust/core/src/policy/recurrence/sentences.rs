//! Sentences: what episodes and facts are made of.

use crate::render;
use crate::text::{fold, stem, words};
use crate::types::{Facts, InteractionId};
use std::collections::BTreeSet;

/// A longer sentence is a list, a log or code, not something somebody told.
const LONGEST: usize = 400;
/// Fewer content terms say nothing by themselves.
const LEAST_TERMS: usize = 3;

/// A stretch of one turn's text, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The turn.
    pub turn: InteractionId,
    /// First character.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
}

/// A sentence that may be chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Sentence {
    /// Where it stands.
    pub span: Span,
    /// The unit its turn belongs to.
    pub unit: InteractionId,
    /// Stems of its content words, each once, in order.
    pub stems: Vec<String>,
    /// Survival Score of its turn.
    pub omega: f64,
    /// Cosine of its turn and the episode's vector, set when an episode is made.
    pub centroid: f64,
}

/// Stems of a turn's content terms.
pub fn content(facts: &Facts) -> BTreeSet<String> {
    facts.terms.iter().map(|t| stem(&fold(t))).collect()
}

/// The telling sentences of a turn: no questions, nothing without content.
pub fn telling(
    turn: InteractionId,
    unit: InteractionId,
    text: &str,
    facts: &Facts,
    omega: f64,
) -> Vec<Sentence> {
    let content = content(facts);
    let chars: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    for (start, end) in render::sentences(text) {
        let Some((start, end)) = trimmed(&chars, start, end) else {
            continue;
        };
        if end - start > LONGEST || matches!(chars[end - 1], '?' | '？') {
            continue;
        }
        let own: String = chars[start..end].iter().collect();
        let stems = content_stems(&own, &content);
        if stems.len() < LEAST_TERMS {
            continue;
        }
        found.push(Sentence {
            span: Span {
                turn,
                start: u32::try_from(start).unwrap_or(u32::MAX),
                end: u32::try_from(end).unwrap_or(u32::MAX),
            },
            unit,
            stems,
            omega,
            centroid: 0.0,
        });
    }
    found
}

fn trimmed(chars: &[char], start: usize, end: usize) -> Option<(usize, usize)> {
    let first = (start..end).find(|i| !chars[*i].is_whitespace())?;
    let last = (first..end).rfind(|i| !chars[*i].is_whitespace())?;
    Some((first, last + 1))
}

/// The words of a sentence whose stem is one of the turn's content terms.
pub fn content_stems(sentence: &str, content: &BTreeSet<String>) -> Vec<String> {
    let stems: BTreeSet<String> = words(sentence)
        .iter()
        .map(|w| stem(w))
        .filter(|s| content.contains(s))
        .collect();
    stems.into_iter().collect()
}

/// Cosine of two sets of stems, each weighed by its rarity.
pub fn likeness(a: &[String], b: &[String], idf: &dyn Fn(&str) -> f64) -> f64 {
    let square = |stems: &[String]| -> f64 { stems.iter().map(|s| idf(s) * idf(s)).sum() };
    let shared: f64 = a
        .iter()
        .filter(|s| b.binary_search(s).is_ok())
        .map(|s| idf(s) * idf(s))
        .sum();
    let norm = (square(a) * square(b)).sqrt();
    if norm > 0.0 { shared / norm } else { 0.0 }
}

/// Share of `stems`, weighed by rarity, that `held` has.
pub fn covered(stems: &[String], held: &BTreeSet<&str>, idf: &dyn Fn(&str) -> f64) -> f64 {
    let weights: Vec<f64> = stems.iter().map(|s| idf(s)).collect();
    share(stems, &weights, |s| held.contains(s))
}

/// The same with each stem's weight.
pub fn share(stems: &[String], weights: &[f64], held: impl Fn(&str) -> bool) -> f64 {
    let all: f64 = weights.iter().sum();
    let kept = stems.iter().zip(weights).filter(|(s, _)| held(s));
    let kept: f64 = kept.map(|(_, w)| w).sum();
    if all > 0.0 { kept / all } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(words: &[&str]) -> Vec<String> {
        words.iter().map(|w| (*w).to_owned()).collect()
    }

    #[test]
    fn questions_and_empty_words_tell_nothing() {
        let facts = Facts {
            terms: stems(&["run", "race", "park", "nice", "want", "ran"]),
            ..Facts::default()
        };
        let text =
            " I ran races in the park.  Nice! Want to run a race in the park? Races, runs, parks!";
        let found = telling(3, 2, text, &facts, 0.5);
        let spans: Vec<(u32, u32)> = found.iter().map(|s| (s.span.start, s.span.end)).collect();
        assert_eq!(spans, [(1, 25), (65, 84)]);
        assert_eq!(found[0].stems, stems(&["park", "race", "ran"]));
    }

    #[test]
    fn likeness_and_cover_weigh_by_rarity() {
        let idf = |s: &str| if s == "rare" { 3.0 } else { 1.0 };
        let (a, b) = (stems(&["cat", "rare"]), stems(&["dog", "rare"]));
        assert!((likeness(&a, &b, &idf) - 0.9).abs() < 1e-12); // 9 / sqrt(10 · 10)
        assert!((covered(&a, &BTreeSet::from(["rare"]), &idf) - 0.75).abs() < 1e-12);
        assert_eq!(likeness(&[], &b, &idf), 0.0);
    }
}
