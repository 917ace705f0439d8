//! Late interaction: each token of the question looks for its best match among a
//! turn's tokens. Sums of exact integer cosines, in the question's order.

use crate::score::vector::TOKEN_SCALE;
use ebbtide_simd::{Question, packed};

/// Best match of each question token among the tokens of a text, in one row a text.
///
/// A match is an integer cosine; a text without tokens has none for any.
#[derive(Debug, Clone)]
pub struct Matches(Vec<i32>);

impl Matches {
    /// Of no text at all.
    pub fn none(question: &Question) -> Self {
        Self(vec![i32::MIN; question.len()])
    }

    /// Of the tokens of a text, packed, one after the other.
    pub fn of(question: &Question, rows: &[u8]) -> Self {
        let mut matches = Self::none(question);
        question.best(rows, &mut matches.0);
        matches
    }

    /// Those of two texts taken together.
    pub fn merge(&mut self, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = (*a).max(*b);
        }
    }

    /// Weighted mean cosine, -1 for no match at all; 0 where nothing weighs anything.
    pub fn score(&self, weights: &[f64]) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (m, w) in self.0.iter().zip(weights) {
            sum += cosine(*m) * w;
            total += w;
        }
        if total > 0.0 { sum / total } else { 0.0 }
    }
}

fn cosine(product: i32) -> f64 {
    (f64::from(product) / (TOKEN_SCALE * packed::LENGTH)).clamp(-1.0, 1.0)
}

/// Scales scores to [0, 1] by their least, or `from` where that is less, and their greatest,
/// which count as at least `apart` apart; all equal: 0.
pub fn min_max(scores: &mut [f64], from: f64, apart: f64) {
    let low = scores.iter().copied().fold(from, f64::min);
    let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let spread = f64::max(high - low, apart);
    for s in scores.iter_mut() {
        *s = if spread > 0.0 {
            (*s - low) / spread
        } else {
            0.0
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_question_token_takes_its_best_partner() {
        let question = Question::new(&[127, 0, 0, 127], 2);
        let mut turn = Vec::new();
        packed::pack(&[127, 0, 90, 90], 2, &mut turn);
        let m = Matches::of(&question, &turn);
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-4, "{a} is not {b}");
        let half = 0.5f64.sqrt();
        near(m.score(&[1.0, 3.0]), (1.0 + 3.0 * half) / 4.0);
        near(m.score(&[0.0, 0.0]), 0.0);
        near(Matches::of(&question, &[]).score(&[1.0, 3.0]), -1.0);
        let mut both = Matches::none(&question);
        both.merge(&m);
        near(both.score(&[0.0, 1.0]), half);
    }

    #[test]
    fn scaling_keeps_the_order() {
        let mut s = [2.0, 4.0, 3.0];
        min_max(&mut s, f64::INFINITY, 0.0);
        assert_eq!(s, [0.0, 1.0, 0.5]);
        let mut flat = [2.0, 2.0];
        min_max(&mut flat, f64::INFINITY, 0.0);
        assert_eq!(flat, [0.0, 0.0]);
        let mut few = [0.5, 0.75, 0.625];
        min_max(&mut few, f64::INFINITY, 0.5);
        assert_eq!(few, [0.0, 0.5, 0.25]);
        let mut near = [0.75, 1.0];
        min_max(&mut near, 0.5, 0.0);
        assert_eq!(near, [0.5, 1.0]);
    }
}
