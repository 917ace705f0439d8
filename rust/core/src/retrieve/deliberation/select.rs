//! Which of the scored sentences are kept: the paper's thresholds, then a filter.

use super::score::Milli;
use std::cmp::Ordering;

/// A sentence that the scan took down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sentence {
    /// Its turn.
    pub turn: u64,
    /// First character.
    pub from: usize,
    /// One past the last.
    pub to: usize,
    /// Its score.
    pub score: Milli,
}

impl Sentence {
    /// Best first; equal ones in the order of the conversation.
    pub fn best_first(&self, other: &Self) -> Ordering {
        other
            .score
            .cmp(&self.score)
            .then(self.turn.cmp(&other.turn))
            .then(self.from.cmp(&other.from))
    }
}

/// The paper's stage 2 and our bounds on it.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Kept above.
    pub keep: Milli,
    /// More than these are filtered.
    pub filter_above: usize,
    /// Most after the filter.
    pub budget: usize,
    /// Least score of what is taken where none is kept.
    pub fallback: Milli,
    /// Most of those.
    pub fallback_limit: usize,
    /// Turns closer than this say the same.
    pub duplicate: f64,
    /// Weight of the score against novelty, in [0, 1].
    pub lambda: f64,
}

/// The sentences kept, best first, and whether they are there for want of better ones.
///
/// Args: `found` in any order; `cosine` of two turns.
pub fn select(
    mut found: Vec<Sentence>,
    rules: &Rules,
    cosine: impl Fn(u64, u64) -> f64,
) -> (Vec<Sentence>, bool) {
    found.sort_by(Sentence::best_first);
    let kept: Vec<Sentence> = found
        .iter()
        .filter(|s| s.score > rules.keep)
        .cloned()
        .collect();
    if kept.is_empty() {
        found.retain(|s| s.score >= rules.fallback);
        found.truncate(rules.fallback_limit);
        return (found, true);
    }
    if kept.len() <= rules.filter_above {
        return (kept, false);
    }
    (filter(kept, rules, cosine), false)
}

/// Maximal marginal relevance (Carbonell and Goldstein 1998) without near-duplicates;
/// the sentences of one turn are no duplicates of each other.
fn filter(
    mut left: Vec<Sentence>,
    rules: &Rules,
    cosine: impl Fn(u64, u64) -> f64,
) -> Vec<Sentence> {
    let mut taken: Vec<Sentence> = Vec::new();
    // The greatest cosine of each to what is taken, kept up to date.
    let mut nearest = vec![0.0f64; left.len()];
    while taken.len() < rules.budget && !left.is_empty() {
        let worth = |i: usize| {
            rules.lambda * f64::from(left[i].score) / 10_000.0 - (1.0 - rules.lambda) * nearest[i]
        };
        let mut best = 0;
        for i in 1..left.len() {
            // What is left is in order, so the first of equals stays.
            if worth(i) > worth(best) {
                best = i;
            }
        }
        let chosen = left.remove(best);
        nearest.remove(best);
        let mut at = 0;
        while at < left.len() {
            let near = if left[at].turn == chosen.turn {
                0.0
            } else {
                cosine(chosen.turn, left[at].turn)
            };
            if near > rules.duplicate {
                left.remove(at);
                nearest.remove(at);
            } else {
                nearest[at] = nearest[at].max(near);
                at += 1;
            }
        }
        taken.push(chosen);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            keep: 6_000,
            filter_above: 6,
            budget: 3,
            fallback: 3_000,
            fallback_limit: 6,
            duplicate: 0.92,
            lambda: 0.5,
        }
    }

    fn scored(scores: &[Milli]) -> Vec<Sentence> {
        let each = |(i, s): (usize, &Milli)| Sentence {
            turn: i as u64,
            from: 0,
            to: 1,
            score: *s,
        };
        scores.iter().enumerate().map(each).collect()
    }

    fn turns(kept: &[Sentence]) -> Vec<u64> {
        kept.iter().map(|s| s.turn).collect()
    }

    #[test]
    fn kept_strictly_above_six_and_six_are_not_filtered() {
        let (kept, low) = select(scored(&[6_000, 6_001, 9_000]), &rules(), |_, _| 1.0);
        assert_eq!((turns(&kept), low), (vec![2, 1], false));
        let six = scored(&[7_000; 6]);
        assert_eq!(select(six, &rules(), |_, _| 1.0).0.len(), 6);
    }

    #[test]
    fn none_kept_takes_six_of_at_least_three() {
        let (kept, low) = select(
            scored(&[2_999, 3_000, 5_500, 6_000, 4_000, 4_000, 4_000, 3_500]),
            &rules(),
            |_, _| 0.0,
        );
        assert_eq!((turns(&kept), low), (vec![3, 2, 4, 5, 6, 7], true));
        let (none, low) = select(scored(&[2_999]), &rules(), |_, _| 0.0);
        assert!(none.is_empty() && low);
    }

    #[test]
    fn seven_are_filtered_for_novelty_and_duplicates() {
        let seven = scored(&[9_000, 8_900, 8_000, 8_000, 7_000, 7_000, 7_000]);
        // Turn 1 says what turn 0 says; turn 2 nearly does.
        let cosine = |a: u64, b: u64| match (a.min(b), a.max(b)) {
            (0, 1) => 0.93,
            (0, 2) => 0.9,
            _ => 0.0,
        };
        assert_eq!(turns(&select(seven, &rules(), cosine).0), [0, 3, 4]);
    }

    #[test]
    fn sentences_of_one_turn_are_no_duplicates() {
        let mut seven = scored(&[7_000; 7]);
        for (i, s) in seven.iter_mut().enumerate() {
            s.turn = 0;
            s.from = i;
        }
        assert_eq!(select(seven, &rules(), |_, _| 1.0).0.len(), 3);
    }
}
