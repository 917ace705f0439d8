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
        let mut all = self.heap.into_vec();
        all.sort_unstable();
        all.into_iter().map(|w| (w.1, w.0)).collect()
    }
}

/// A bound that at least `k` scores of a stream reach, raised now and then: what lies
/// below it is not among the best. Cheaper than keeping the best themselves.
pub struct Floor {
    k: usize,
    scores: Vec<f64>,
    least: f64,
}

impl Floor {
    /// Of the best `k`, at least 1.
    pub fn new(k: usize) -> Self {
        Self {
            k: k.max(1),
            scores: Vec::new(),
            least: f64::NEG_INFINITY,
        }
    }

    /// The bound so far.
    pub fn least(&self) -> f64 {
        self.least
    }

    /// Takes a score into account.
    pub fn push(&mut self, score: f64) {
        if score > self.least {
            self.scores.push(score);
            // Rare at first, never more than one look at each score and again.
            if self.scores.len() >= self.k.saturating_mul(2) {
                self.settle();
            }
        }
    }

    /// Another for scores that this one does not see.
    pub fn beside(&self) -> Self {
        Self {
            k: self.k,
            scores: Vec::new(),
            least: self.least,
        }
    }

    /// Takes into account what the one [beside](Floor::beside) it has seen.
    pub fn join(&mut self, other: &Self) {
        self.least = self.least.max(other.least);
        for score in &other.scores {
            self.push(*score);
        }
    }

    /// Raises the bound to the `k`th best score so far, where there are as many.
    pub fn settle(&mut self) {
        if self.scores.len() < self.k {
            return;
        }
        let last = self.k - 1;
        let (_, least, _) = self
            .scores
            .select_nth_unstable_by(last, |a, b| b.total_cmp(a));
        self.least = *least;
        self.scores.truncate(self.k);
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
        let mut floor = Floor::new(2);
        for score in [0.1, 0.9, 0.5, 0.7, 0.6] {
            floor.push(score);
        }
        floor.settle();
        assert_eq!(floor.least(), 0.7);
        let mut other = floor.beside();
        for score in [0.8, 0.2] {
            other.push(score);
        }
        floor.join(&other);
        floor.settle();
        assert_eq!(floor.least(), 0.8);
        let mut most = Floor::new(usize::MAX);
        most.push(0.5);
        assert_eq!(most.least(), f64::NEG_INFINITY);
        assert!(!TopK::new(0).keeps(1.0, 0));
        assert_eq!(TopK::new(0).least(), f64::INFINITY);
    }
}
