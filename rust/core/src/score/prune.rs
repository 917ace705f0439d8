//! Budget-pressure pruning (eq. 22-26): which entries leave, in which order.

use crate::config::PruningPriority;
use crate::order::ordered_bits;
use crate::types::Signals;

/// An active entry as the pruning rule sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Interaction id.
    pub id: u64,
    /// Effective score now.
    pub effective: f64,
    /// Retention bonus minus supersession penalty.
    pub adjustment: f64,
    /// Tokens it occupies.
    pub tokens: u64,
}

/// Retention bonus (eq. 23).
pub fn retention_bonus(p: &PruningPriority, s: Signals) -> f64 {
    p.rho_constraint * s.indicator(Signals::CONSTRAINT)
        + p.rho_preference * s.indicator(Signals::PREFERENCE)
        + p.rho_current_state * s.indicator(Signals::CURRENT_STATE)
        + p.rho_correction * s.indicator(Signals::CORRECTION)
        + p.rho_replacement * s.indicator(Signals::REPLACEMENT)
}

/// What one pass over the queue decided.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pass {
    /// Evicted entries in order, with their pruning score.
    pub evicted: Vec<(u64, f64)>,
    /// Tokens still over the budget, because only protected entries are left.
    pub over_budget: u64,
}

/// Evicts by least pruning score (ties: smaller id) until the budget is met.
///
/// Healthy entries (above `healthy_min`) are no candidates unless `evict_healthy`.
/// Scores do not change within a pass, so taking the entries in order gives the same
/// outcome as taking the argmin again and again; a property test holds it to that.
pub fn select(queue: &[Candidate], budget: u64, healthy_min: f64, evict_healthy: bool) -> Pass {
    let mut tokens: u64 = queue.iter().map(|c| c.tokens).sum();
    let mut pass = Pass::default();
    if tokens <= budget {
        return pass;
    }
    let mut order: Vec<(Key, usize)> = queue
        .iter()
        .enumerate()
        .map(|(at, c)| (key(c, healthy_min), at))
        .filter(|((healthy, _, _), _)| evict_healthy || !healthy)
        .collect();
    // Mostly one or a few leave: only the least so many are brought into order, then
    // eight times as many, until the budget is met.
    let (mut done, mut step) = (0, 1);
    while tokens > budget && done < order.len() {
        let rest = &mut order[done..];
        let taken = step.min(rest.len());
        if taken < rest.len() {
            rest.select_nth_unstable(taken - 1);
        }
        rest[..taken].sort_unstable();
        for (_, at) in &rest[..taken] {
            if tokens <= budget {
                break;
            }
            let c = &queue[*at];
            tokens -= c.tokens;
            pass.evicted.push((c.id, score(c)));
        }
        done += taken;
        step *= 8;
    }
    pass.over_budget = tokens.saturating_sub(budget);
    pass
}

/// Healthy ones last, where they may go at all; then by score and id.
type Key = (bool, i64, u64);

fn key(c: &Candidate, healthy_min: f64) -> Key {
    (c.effective > healthy_min, ordered_bits(score(c)), c.id)
}

/// Pruning score (eq. 25).
fn score(c: &Candidate) -> f64 {
    c.effective + c.adjustment
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The paper's loop, word for word: argmin, evict, repeat (section 7.2.4).
    fn naive(queue: &[Candidate], budget: u64, healthy_min: f64) -> Pass {
        let mut left = queue.to_vec();
        let mut pass = Pass::default();
        loop {
            let tokens: u64 = left.iter().map(|c| c.tokens).sum();
            if tokens <= budget {
                return pass;
            }
            let mut best: Option<usize> = None;
            for (i, c) in left.iter().enumerate() {
                if c.effective > healthy_min {
                    continue;
                }
                let s = c.effective + c.adjustment;
                let better = best.is_none_or(|b| {
                    let t = left[b].effective + left[b].adjustment;
                    s < t || (s.total_cmp(&t).is_eq() && c.id < left[b].id)
                });
                if better {
                    best = Some(i);
                }
            }
            let Some(i) = best else {
                pass.over_budget = tokens - budget;
                return pass;
            };
            let c = left.remove(i);
            pass.evicted.push((c.id, c.effective + c.adjustment));
        }
    }

    fn queue() -> impl Strategy<Value = Vec<Candidate>> {
        // Few distinct scores, so that ties are common.
        prop::collection::vec((0u8..20, 0u8..4, 0u64..60), 0..80).prop_map(|rows| {
            rows.into_iter()
                .enumerate()
                .map(|(i, (effective, adjustment, tokens))| Candidate {
                    id: i as u64,
                    effective: f64::from(effective) / 19.0,
                    adjustment: f64::from(adjustment) * 0.1 - 0.15,
                    tokens,
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn one_sort_equals_the_naive_loop(queue in queue(), budget in 1u64..900) {
            prop_assert_eq!(select(&queue, budget, 0.75, false), naive(&queue, budget, 0.75));
        }
    }

    #[test]
    fn healthy_entries_leave_only_where_the_policy_says_so() {
        let queue = [
            Candidate {
                id: 0,
                effective: 0.9,
                adjustment: 0.0,
                tokens: 80,
            },
            Candidate {
                id: 1,
                effective: 0.8,
                adjustment: 0.0,
                tokens: 80,
            },
        ];
        let kept = select(&queue, 100, 0.75, false);
        assert_eq!((kept.evicted.len(), kept.over_budget), (0, 60));
        let evicted = select(&queue, 100, 0.75, true);
        assert_eq!(evicted.evicted, [(1, 0.8)]);
        assert_eq!(evicted.over_budget, 0);
    }

    #[test]
    fn a_superseded_entry_leaves_before_a_weaker_one() {
        let queue = [
            Candidate {
                id: 0,
                effective: 0.5,
                adjustment: -0.35,
                tokens: 10,
            },
            Candidate {
                id: 1,
                effective: 0.2,
                adjustment: 0.2,
                tokens: 10,
            },
        ];
        assert_eq!(select(&queue, 10, 0.75, false).evicted[0].0, 0);
    }
}
