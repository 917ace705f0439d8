//! Late interaction: each token of the question looks for its best match among a
//! turn's tokens. Sums of exact integer cosines, in the question's order.

use crate::score::vector::TOKEN_SCALE;
use ebbtide_simd::Question;

/// Best cosine of each question token among the turn's tokens; -1 for no tokens.
pub fn best_matches(question: &Question, turn: &[i8]) -> Vec<f64> {
    let best = question.best(turn).into_iter();
    best.map(|b| {
        if b == i32::MIN {
            return -1.0;
        }
        (f64::from(b) / (TOKEN_SCALE * TOKEN_SCALE)).clamp(-1.0, 1.0)
    })
    .collect()
}

/// Elementwise maximum: the matches of several turns taken together.
pub fn merge(into: &mut Vec<f64>, other: &[f64]) {
    if into.is_empty() {
        into.extend_from_slice(other);
        return;
    }
    for (a, b) in into.iter_mut().zip(other) {
        *a = a.max(*b);
    }
}

/// Weighted mean of the matches; 0 where there are none.
pub fn score(matches: &[f64], weights: &[f64]) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (m, w) in matches.iter().zip(weights) {
        sum += m * w;
        total += w;
    }
    if total > 0.0 { sum / total } else { 0.0 }
}

/// Scales scores to [0, 1] by their least and greatest; all equal: 0.
pub fn min_max(scores: &mut [f64]) {
    let low = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for s in scores.iter_mut() {
        *s = if high > low {
            (*s - low) / (high - low)
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
        let turn = [127, 0, 90, 90];
        let m = best_matches(&question, &turn);
        assert!((m[0] - 1.0).abs() < 1e-9);
        assert!((m[1] - 90.0 / 127.0).abs() < 1e-9);
        assert!((score(&m, &[1.0, 3.0]) - (1.0 + 3.0 * 90.0 / 127.0) / 4.0).abs() < 1e-9);
        assert_eq!(best_matches(&question, &[]), [-1.0, -1.0]);
    }

    #[test]
    fn scaling_keeps_the_order() {
        let mut s = [2.0, 4.0, 3.0];
        min_max(&mut s);
        assert_eq!(s, [0.0, 1.0, 0.5]);
        let mut flat = [2.0, 2.0];
        min_max(&mut flat);
        assert_eq!(flat, [0.0, 0.0]);
    }
}
