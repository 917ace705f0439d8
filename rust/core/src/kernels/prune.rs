//! Budget pruning over arrays (eq. 22-26).

use super::{finite, refuse, same_length};
use crate::error::Result;
use crate::score::prune::{Candidate, select};

/// What a pruning pass over rows decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Rows to evict, in order.
    pub rows: Vec<i64>,
    /// Tokens still over the budget, because only healthy rows are left.
    pub over_budget: u64,
}

/// Rows that leave until `tokens` fit into `budget`: least `effective + adjustment`
/// first, ties by row.
///
/// # Errors
/// Where lengths differ, a number is not finite, tokens are negative or overflow.
pub fn prune(
    effective: &[f64],
    adjustment: &[f64],
    tokens: &[i64],
    budget: u64,
    healthy_min: f64,
    evict_healthy: bool,
) -> Result<Evicted> {
    same_length("adjustment", adjustment.len(), "effective", effective.len())?;
    same_length("tokens", tokens.len(), "effective", effective.len())?;
    finite("effective", effective)?;
    finite("adjustment", adjustment)?;
    let mut total = 0i64;
    for (at, t) in tokens.iter().enumerate() {
        if *t < 0 {
            return refuse(format!("tokens[{at}] is {t}; tokens are counted from 0 on"));
        }
        total = match total.checked_add(*t) {
            Some(total) => total,
            None => return refuse("the tokens add up to more than 2^63"),
        };
    }
    if total.cast_unsigned() <= budget {
        return Ok(Evicted::default());
    }
    let queue: Vec<Candidate> = (0u64..)
        .zip(effective.iter().zip(adjustment).zip(tokens))
        .map(|(id, ((effective, adjustment), tokens))| Candidate {
            id,
            effective: *effective,
            adjustment: *adjustment,
            tokens: tokens.cast_unsigned(),
        })
        .collect();
    let pass = select(&queue, budget, healthy_min, evict_healthy);
    Ok(Evicted {
        rows: pass
            .evicted
            .iter()
            .map(|(id, _)| id.cast_signed())
            .collect(),
        over_budget: pass.over_budget,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_leave_first_and_ties_go_by_row() {
        let done = prune(
            &[0.5, 0.2, 0.9, 0.2],
            &[0.0, 0.1, 0.0, 0.1],
            &[10, 10, 10, 10],
            15,
            0.75,
            false,
        );
        let done = done.unwrap();
        assert_eq!((done.rows, done.over_budget), (vec![1, 3, 0], 0));
    }

    #[test]
    fn healthy_rows_stay_and_the_rest_is_reported() {
        let done = prune(&[0.9], &[0.0], &[10], 4, 0.75, false).unwrap();
        assert_eq!((done.rows.len(), done.over_budget), (0, 6));
        let none = prune(&[], &[], &[], 0, 0.75, false).unwrap();
        assert_eq!(none, Evicted::default());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (effective, adjustment, tokens) in
            [(f64::NAN, 0.0, 1), (0.0, f64::INFINITY, 1), (0.0, 0.0, -1)]
        {
            assert!(prune(&[effective], &[adjustment], &[tokens], 0, 0.75, false).is_err());
        }
        assert!(prune(&[0.0], &[], &[1], 0, 0.75, false).is_err());
        assert!(prune(&[0.0; 2], &[0.0; 2], &[i64::MAX; 2], 0, 0.75, false).is_err());
    }
}
