//! Episodes: the sentences that tell most of a group of units, in the order of time.

use super::sentences::{Sentence, Span, likeness};
use crate::order::best_first;
use crate::score::vector::{cosine, dot};
use crate::types::InteractionId;
use std::collections::{BTreeMap, BTreeSet};

/// Least sentences, and turns, of an episode: less only repeats a message.
const LEAST: usize = 2;

/// What was said on a topic, as spans of the turns that said it.
#[derive(Debug, Clone, PartialEq)]
pub struct Episode {
    /// Number: see [`super::number`].
    pub id: u64,
    /// Grows by one whenever it is made anew.
    pub version: u32,
    /// The turn whose arrival made this version.
    pub at: InteractionId,
    /// Every turn behind it, in id order.
    pub sources: Vec<InteractionId>,
    /// Its sentences, chronological.
    pub sentences: Vec<Span>,
    /// Unit mean of its units' vectors.
    pub vector: Vec<i16>,
    /// Length of that mean: how close its units lie, in [0, 1].
    pub cohesion: f64,
    /// What a language model made of it, in place of its sentences.
    pub text: Option<String>,
}

impl Episode {
    /// Mean cosine of a unit to the episode's units. The cosine to their mean alone
    /// would grow with every merge, until the episode drew everything to it.
    pub fn similarity(&self, unit: &[i16]) -> f64 {
        cosine(dot(unit, &self.vector)) * self.cohesion
    }
}

/// Chooses at most `most` sentences by maximal marginal relevance (Carbonell and
/// Goldstein 1998): relevance is the mean of centroid similarity, coverage and Ω.
/// Chronological; `None` where they would not make an episode.
pub fn choose(
    candidates: &[Sentence],
    most: usize,
    lambda: f64,
    idf: &dyn Fn(&str) -> f64,
) -> Option<Vec<Span>> {
    let relevance = relevance(candidates, idf);
    let mut chosen: Vec<usize> = Vec::new();
    while chosen.len() < most {
        let rest = (0..candidates.len()).filter(|i| !chosen.contains(i));
        let gains = rest.map(|i| {
            let repeated = chosen
                .iter()
                .map(|j| likeness(&candidates[i].stems, &candidates[*j].stems, idf))
                .fold(0.0, f64::max);
            (lambda * relevance[i] - (1.0 - lambda) * repeated, i as u64)
        });
        let Some((_, best)) = gains.min_by(|a, b| best_first(*a, *b)) else {
            break;
        };
        #[allow(clippy::cast_possible_truncation)]
        chosen.push(best as usize);
    }
    let mut spans: Vec<Span> = chosen.iter().map(|i| candidates[*i].span).collect();
    spans.sort_unstable();
    let turns: BTreeSet<InteractionId> = spans.iter().map(|s| s.turn).collect();
    (spans.len() >= LEAST && turns.len() >= LEAST).then_some(spans)
}

/// Relevance of each candidate, in [0, 1].
pub fn relevance(candidates: &[Sentence], idf: &dyn Fn(&str) -> f64) -> Vec<f64> {
    let recurring = recurring(candidates);
    let all: f64 = recurring.iter().map(|s| idf(s)).sum();
    candidates
        .iter()
        .map(|c| {
            let held: f64 = c
                .stems
                .iter()
                .filter(|s| recurring.contains(s.as_str()))
                .map(|s| idf(s))
                .sum();
            let coverage = if all > 0.0 { held / all } else { 0.0 };
            (c.centroid.max(0.0) + coverage + c.omega) / 3.0
        })
        .collect()
}

/// Stems that more than one unit has: what the group is about.
fn recurring(candidates: &[Sentence]) -> BTreeSet<&str> {
    let mut units: BTreeMap<&str, BTreeSet<InteractionId>> = BTreeMap::new();
    for c in candidates {
        for s in &c.stems {
            units.entry(s).or_default().insert(c.unit);
        }
    }
    units.retain(|_, of| of.len() > 1);
    units.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(turn: u64, stems: &[&str], centroid: f64, omega: f64) -> Sentence {
        let mut stems: Vec<String> = stems.iter().map(|s| (*s).to_owned()).collect();
        stems.sort();
        Sentence {
            span: Span {
                turn,
                start: 0,
                end: 9,
            },
            unit: turn,
            stems,
            omega,
            centroid,
        }
    }

    fn one(_: &str) -> f64 {
        1.0
    }

    #[test]
    fn relevance_is_the_mean_of_three() {
        let all = [
            sentence(0, &["cake", "mia"], 0.9, 0.6),
            sentence(1, &["cake", "oven"], 0.6, 0.3),
        ];
        // Only "cake" recurs: each covers all of it.
        let r = relevance(&all, &one);
        assert!((r[0] - (0.9 + 1.0 + 0.6) / 3.0).abs() < 1e-12);
        assert!((r[1] - (0.6 + 1.0 + 0.3) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_repetition_gives_way_to_something_new() {
        let all = [
            sentence(4, &["cake", "mia"], 0.9, 0.6),
            sentence(2, &["cake", "mia"], 0.9, 0.5),
            sentence(3, &["oven", "lemon"], 0.5, 0.2),
        ];
        // relevance 0.833, 0.8, 0.233; after the first, MMR at 0.7:
        // 0.7·0.8 − 0.3·1 = 0.26 and 0.7·0.233 − 0.3·0 = 0.163: the copy still leads,
        let two = choose(&all, 2, 0.7, &one).unwrap();
        assert_eq!(two.iter().map(|s| s.turn).collect::<Vec<_>>(), [2, 4]);
        // at 0.5 they change places: 0.4 − 0.5 < 0 < 0.117.
        let two = choose(&all, 2, 0.5, &one).unwrap();
        assert_eq!(two.iter().map(|s| s.turn).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn one_turn_makes_no_episode() {
        let all = [sentence(0, &["a", "b"], 0.9, 0.5)];
        assert_eq!(choose(&all, 6, 0.7, &one), None);
        let twice = [all[0].clone(), all[0].clone()];
        assert_eq!(choose(&twice, 6, 0.7, &one), None);
    }
}
