//! The best `k` of a stream.

use crate::order::best_first;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

struct Worst(f64, u64);

impl PartialEq for Worst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Worst {}
impl PartialOrd for Worst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Worst {
    fn cmp(&self, other: &Self) -> Ordering {
        best_first((self.0, self.1), (other.0, other.1))
    }
}

/// Keeps the best `k` of a stream of (score, id), in any order of arrival.
#[derive(Default)]
pub struct TopK {
    k: usize,
    heap: BinaryHeap<Worst>,
}

impl TopK {
    /// Room for `k`.
    pub fn new(k: usize) -> Self {
        Self {
            k,
            heap: BinaryHeap::with_capacity(k.min(4096) + 1),
        }
    }

    /// Whether [`TopK::push`] would keep it: asked first where it costs something to
    /// find out whether the id may be offered at all.
    pub fn keeps(&self, score: f64, id: u64) -> bool {
        if self.heap.len() < self.k {
            return true;
        }
        self.heap
            .peek()
            .is_some_and(|worst| Worst(score, id) < *worst)
    }

    /// The score that one more must reach to be kept; below every score while there
    /// is room.
    pub fn least(&self) -> f64 {
        match self.heap.peek() {
            Some(worst) if self.heap.len() >= self.k => worst.0,
            None if self.k == 0 => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Offers one.
    pub fn push(&mut self, score: f64, id: u64) {
        if self.heap.len() < self.k {
            self.heap.push(Worst(score, id));
        } else if let Some(mut worst) = self.heap.peek_mut() {
            let new = Worst(score, id);
            if new < *worst {
                *worst = new;
            }
        }
    }

    /// Best first.
    pub fn into_sorted(self) -> Vec<(u64, f64)> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|w| (w.1, w.0))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_keeps_it_says_before() {
        let mut top = TopK::new(2);
        assert!(top.keeps(f64::MIN, 9));
        top.push(0.5, 3);
        assert_eq!(top.least(), f64::NEG_INFINITY);
        top.push(0.7, 4);
        assert_eq!(top.least(), 0.5);
        assert!(top.keeps(0.5, 2) && !top.keeps(0.5, 3) && !top.keeps(0.4, 0));
        assert!(!TopK::new(0).keeps(1.0, 0));
        assert_eq!(TopK::new(0).least(), f64::INFINITY);
    }
}
