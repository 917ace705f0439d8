//! Exact cosine search over 16-bit unit vectors.

use crate::order::best_first;
use crate::score::vector::{cosine, dot};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Vectors with their owners, in id order; an owner may have several.
#[derive(Debug, Clone, Default)]
pub struct Flat {
    dimension: usize,
    owners: Vec<u64>,
    data: Vec<i16>,
}

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

impl Flat {
    /// Appends the vectors of one owner; owners come in increasing order.
    pub fn push(&mut self, owner: u64, vectors: &[i16], dimension: usize) {
        if dimension == 0 || vectors.is_empty() {
            return;
        }
        self.dimension = dimension;
        self.data.extend_from_slice(vectors);
        self.owners
            .extend(std::iter::repeat_n(owner, vectors.len() / dimension));
    }

    /// Forgets one owner.
    pub fn remove(&mut self, owner: u64) {
        let from = self.owners.partition_point(|o| *o < owner);
        let to = self.owners.partition_point(|o| *o <= owner);
        self.owners.drain(from..to);
        self.data.drain(from * self.dimension..to * self.dimension);
    }

    /// The best `k` owners by their best vector, of those that `admit` lets in
    /// and whose cosine is at least `floor`.
    pub fn search(
        &self,
        query: &[i16],
        k: usize,
        floor: f64,
        admit: impl Fn(u64) -> bool,
    ) -> Vec<(u64, f64)> {
        if k == 0 || query.len() != self.dimension || query.iter().all(|x| *x == 0) {
            return Vec::new();
        }
        let mut top = TopK::new(k);
        let mut at = 0;
        while at < self.owners.len() {
            let owner = self.owners[at];
            let mut best = i32::MIN;
            while at < self.owners.len() && self.owners[at] == owner {
                let row = &self.data[at * self.dimension..(at + 1) * self.dimension];
                best = best.max(dot(query, row));
                at += 1;
            }
            let score = cosine(best);
            if score >= floor && admit(owner) {
                top.push(score, owner);
            }
        }
        top.into_sorted()
    }

    /// Vectors of one owner, one after the other.
    pub fn vectors_of(&self, owner: u64) -> &[i16] {
        let from = self.owners.partition_point(|o| *o < owner);
        let to = self.owners.partition_point(|o| *o <= owner);
        &self.data[from * self.dimension..to * self.dimension]
    }

    /// Best cosine of one owner.
    pub fn similarity(&self, query: &[i16], owner: u64) -> f64 {
        if self.dimension == 0 || query.len() != self.dimension {
            return 0.0;
        }
        let rows = self.vectors_of(owner).chunks_exact(self.dimension);
        rows.map(|row| dot(query, row)).max().map_or(0.0, cosine)
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Dimension of the vectors; 0 while there are none.
    pub fn dimension(&self) -> usize {
        self.dimension
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::vector::quantise;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn search_equals_a_full_sort(
            rows in prop::collection::vec(prop::collection::vec(-1.0f32..1.0, 8), 1..60),
            query in prop::collection::vec(-1.0f32..1.0, 8),
            k in 1usize..20,
        ) {
            let mut flat = Flat::default();
            for (i, row) in rows.iter().enumerate() {
                flat.push(i as u64 / 2, &quantise(row), 8);
            }
            let q = quantise(&query);
            let mut naive: Vec<(u64, f64)> = (0..rows.len().div_ceil(2) as u64)
                .map(|o| (o, flat.similarity(&q, o)))
                .filter(|(_, s)| *s >= -0.5)
                .collect();
            naive.sort_by(|a, b| best_first((a.1, a.0), (b.1, b.0)));
            naive.truncate(k);
            prop_assert_eq!(flat.search(&q, k, -0.5, |_| true), naive);
        }
    }

    #[test]
    fn a_removed_owner_is_gone() {
        let mut flat = Flat::default();
        let x = quantise(&[1.0, 0.0]);
        flat.push(3, &[x.clone(), x.clone()].concat(), 2);
        flat.push(7, &x, 2);
        flat.remove(3);
        assert_eq!(flat.search(&x, 5, -1.0, |_| true).len(), 1);
        assert_eq!(flat.len(), 1);
    }
}
