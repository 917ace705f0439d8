//! Exact cosine search over 16-bit unit vectors.
//!
//! A vector is kept in two planes of bytes, `x = step * high + low` with a step of its
//! own. A search reads the high plane, half of the bytes, and knows from it each dot
//! product within a bound: the low bytes less their middle have a known length `r`, so
//! by Cauchy-Schwarz they add at most `r` times the query's length. Only what the bound
//! cannot rule out is then computed exactly, so the result is that of a full scan.

use crate::index::rows;
use crate::index::top::{Floor, TopK};
use crate::score::vector::{SCALE, cosine};
use ebbtide_simd::planes::{self, Scale};
use ebbtide_simd::{Digits, dot_split, prefetch, room};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows whose bounds are computed together.
const BLOCK: usize = 512;
/// From so many rows on a second thread helps: below, it saves less than it now and then
/// takes to start.
const SHARED: usize = if cfg!(test) { 32 } else { 524_288 };
/// Rows that a thread takes at a time.
const PIECE: usize = if cfg!(test) { 10 } else { 32_768 };
/// Rows from the one that is read to the one that is asked for, where they lie all over the
/// memory.
const AHEAD: usize = 4;
/// Below so many rows for each hit wanted, the bounds rule out too little to pay.
const FEW: usize = 4;

/// Vectors with their owners, in id order; an owner may have several.
#[derive(Debug, Clone, Default)]
pub struct Flat {
    dimension: usize,
    owners: Vec<u64>,
    high: Vec<i8>,
    low: Vec<u8>,
    scales: Vec<Scale>,
}

/// What a graph search over parts of the vectors found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// Owners from the first up to, not including, the second were searched.
    pub ranges: Vec<(u64, u64)>,
    /// Owners that were found there.
    pub owners: Vec<u64>,
}

/// A query made ready for the scan.
struct Probe {
    digits: Option<Digits>,
    sum: f64,
    length: f64,
}

impl Probe {
    fn of(query: &[i16]) -> Self {
        let square: f64 = query.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
        Self {
            digits: Digits::of(query),
            sum: query.iter().map(|x| f64::from(*x)).sum(),
            length: square.sqrt(),
        }
    }

    /// The greatest dot product with each row whose high bytes give these.
    fn uppers(&self, dots: &[i32], scales: &[Scale], out: &mut [f64]) {
        planes::uppers(dots, scales, self.sum, self.length, out);
    }

    /// The least one, where the greatest is known. The middle lies between them.
    fn lower(&self, upper: f64, scale: Scale) -> f64 {
        upper - 2.0 * scale.reach(self.length)
    }
}

/// A bound, clipped as the cosine is, so that what ties there ties here.
fn clipped(bound: f64) -> f64 {
    bound.min(SCALE * SCALE)
}

impl Flat {
    /// Appends the vectors of one owner; owners come in increasing order.
    pub fn push(&mut self, owner: u64, vectors: &[i16], dimension: usize) {
        if dimension == 0 || vectors.is_empty() {
            return;
        }
        self.dimension = dimension;
        for row in vectors.chunks_exact(dimension) {
            self.owners.push(owner);
            let scale = split(row, &mut self.high, &mut self.low);
            self.scales.push(scale);
        }
    }

    /// Forgets owners, given in increasing order: what stays is moved once, however many go.
    pub fn remove(&mut self, owners: &[u64]) {
        let rows = owners.iter().map(|owner| self.rows_of(*owner));
        let gone: Vec<Range<usize>> = rows.filter(|rows| !rows.is_empty()).collect();
        rows::cut(&mut self.owners, &gone, 1);
        rows::cut(&mut self.scales, &gone, 1);
        rows::cut(&mut self.high, &gone, self.dimension);
        rows::cut(&mut self.low, &gone, self.dimension);
    }

    /// The best `k` owners by their best vector, of those that `admit` lets in
    /// and whose cosine is at least `floor`.
    pub fn search(
        &self,
        query: &[i16],
        k: usize,
        floor: f64,
        admit: impl Fn(u64) -> bool + Sync,
    ) -> Vec<(u64, f64)> {
        self.search_rest(query, k, floor, &Found::default(), admit)
    }

    /// The first `k` owners: to a question without a direction none is nearer than another.
    pub fn first(&self, k: usize, admit: impl Fn(u64) -> bool) -> Vec<(u64, f64)> {
        let mut last = None;
        let each = self.owners.iter().copied();
        let owners = each.filter(|o| last.replace(*o) != Some(*o) && admit(*o));
        owners.take(k).map(|owner| (owner, 0.0)).collect()
    }

    /// The same where a graph has searched a part: its finds are scored exactly, the
    /// rest is scanned.
    pub fn search_rest(
        &self,
        query: &[i16],
        k: usize,
        floor: f64,
        found: &Found,
        admit: impl Fn(u64) -> bool + Sync,
    ) -> Vec<(u64, f64)> {
        if k == 0 || query.len() != self.dimension || query.iter().all(|x| *x == 0) {
            return Vec::new();
        }
        let probe = Probe::of(query);
        let mut promising = Vec::new();
        let mut lows = Floor::new(k);
        for part in self.rest(&found.ranges) {
            if part.len() <= FEW.saturating_mul(k) || probe.digits.is_none() {
                self.all(part, &mut promising);
            } else if part.len() < SHARED {
                self.scan(&probe, part, &mut lows, &mut promising, &admit);
            } else {
                self.scan_shared(&probe, part, &mut lows, &mut promising, &admit);
            }
        }
        let hits = found.owners.iter().map(|o| self.rows_of(*o));
        promising.extend(hits.filter(|r| !r.is_empty()).map(|r| (f64::INFINITY, r)));
        lows.settle();
        let least = lows.least();
        promising.retain(|(upper, _)| *upper >= least);
        self.best_of(query, k, floor, promising, admit)
    }

    /// The best `k` of rows whose products cannot pass the bounds beside them.
    fn best_of(
        &self,
        query: &[i16],
        k: usize,
        floor: f64,
        mut promising: Vec<(f64, Range<usize>)>,
        admit: impl Fn(u64) -> bool,
    ) -> Vec<(u64, f64)> {
        if promising.len() > k {
            // Those with the greatest bounds first: their products rule out most of the others.
            promising.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0));
        }
        let mut top = TopK::new(k);
        for (at, (upper, rows)) in promising.iter().enumerate() {
            if let Some((_, next)) = promising.get(at + AHEAD) {
                self.ask_for(next.start);
            }
            if *upper / (SCALE * SCALE) < top.least() {
                continue;
            }
            let owner = self.owners[rows.start];
            let score = self.best(query, rows.clone());
            if score >= floor && top.keeps(score, owner) && admit(owner) {
                top.push(score, owner);
            }
        }
        top.into_sorted()
    }

    /// Rows whose owners lie in none of the ranges.
    fn rest(&self, ranges: &[(u64, u64)]) -> Vec<Range<usize>> {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        let mut parts = Vec::new();
        let mut from = 0;
        for (first, end) in sorted {
            let start = self.first_row(first).max(from);
            parts.push(from..start);
            from = self.first_row(end).max(start);
        }
        parts.push(from..self.owners.len());
        parts.retain(|p| !p.is_empty());
        parts
    }

    fn all(&self, part: Range<usize>, promising: &mut Vec<(f64, Range<usize>)>) {
        let mut at = part.start;
        while at < part.end {
            let end = self.end_of(at);
            promising.push((f64::INFINITY, at..end));
            at = end;
        }
    }

    /// The same as [`Flat::scan`], with another thread's help. Each takes the next piece, so
    /// that one that is late only does less. What is promising may be more and in another
    /// order; what is best of it is the same.
    fn scan_shared(
        &self,
        probe: &Probe,
        part: Range<usize>,
        lows: &mut Floor,
        promising: &mut Vec<(f64, Range<usize>)>,
        admit: &(impl Fn(u64) -> bool + Sync),
    ) {
        // An owner's rows stay together.
        let edge = |row: usize| match row < part.end {
            true => self.first_row(self.owners[row]),
            false => part.end,
        };
        let pieces = AtomicUsize::new(0);
        let take = |lows: &mut Floor, promising: &mut _| loop {
            let row = part.start + PIECE * pieces.fetch_add(1, Ordering::Relaxed);
            if row >= part.end {
                break;
            }
            self.scan(probe, edge(row)..edge(row + PIECE), lows, promising, admit);
        };
        let (mut other, mut found) = (lows.beside(), Vec::new());
        std::thread::scope(|scope| {
            // Where the system gives no thread, this one takes every piece.
            let helper = std::thread::Builder::new();
            let _ = helper.spawn_scoped(scope, || take(&mut other, &mut found));
            take(lows, promising);
        });
        lows.join(&other);
        promising.append(&mut found);
    }

    /// Notes the owners that may be among the best, with their greatest dot product;
    /// `lows` bounds the best of the least ones.
    fn scan(
        &self,
        probe: &Probe,
        part: Range<usize>,
        lows: &mut Floor,
        promising: &mut Vec<(f64, Range<usize>)>,
        admit: &impl Fn(u64) -> bool,
    ) {
        let Some(digits) = &probe.digits else {
            return self.all(part, promising);
        };
        let d = self.dimension;
        let (mut dots, mut uppers) = ([0; BLOCK], [0.0; BLOCK]);
        let mut at = part.start;
        while at < part.end {
            // An owner's rows stay together; more than a block of them goes unbounded.
            let mut end = (at + BLOCK).min(part.end);
            while end < part.end && end > at && self.owners[end] == self.owners[end - 1] {
                end -= 1;
            }
            if end == at {
                end = self.end_of(at);
                promising.push((f64::INFINITY, at..end));
                at = end;
                continue;
            }
            let (dots, uppers) = (&mut dots[..end - at], &mut uppers[..end - at]);
            digits.dots(&self.high[at * d..end * d], dots);
            probe.uppers(dots, &self.scales[at..end], uppers);
            let mut row = at;
            // Few rows of a large memory get past this line.
            while let Some(skipped) = uppers[row - at..].iter().position(|u| *u >= lows.least()) {
                let owner = self.owners[row + skipped];
                let others = |o: &u64| *o != owner;
                let before = self.owners[at..row + skipped].iter().rposition(others);
                let first = at + before.map_or(0, |other| other + 1);
                row = self.end_of(first);
                if admit(owner) {
                    let (mut lower, mut upper) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
                    for r in first..row {
                        let bound = uppers[r - at];
                        lower = lower.max(probe.lower(bound, self.scales[r]));
                        upper = upper.max(bound);
                    }
                    promising.push((clipped(upper), first..row));
                    lows.push(clipped(lower));
                }
            }
            at = end;
        }
    }

    /// Vectors of one owner, one after the other.
    pub fn vectors_of(&self, owner: u64) -> Vec<i16> {
        let rows = self.rows_of(owner);
        let mut out = Vec::with_capacity(rows.len() * self.dimension);
        for row in rows {
            let step = self.step(row);
            let (high, low) = self.planes(row);
            out.extend(
                high.iter()
                    .zip(low)
                    .map(|(h, l)| i16::from(*h).wrapping_mul(step) + i16::from(*l)),
            );
        }
        out
    }

    /// Best cosine of each owner; 0 for one without vectors.
    pub fn similarities(&self, query: &[i16], owners: &[u64]) -> Vec<f64> {
        if query.len() != self.dimension {
            return vec![0.0; owners.len()];
        }
        let rows: Vec<Range<usize>> = owners.iter().map(|o| self.rows_of(*o)).collect();
        let each = rows.iter().enumerate().map(|(at, own)| {
            if let Some(next) = rows.get(at + AHEAD).filter(|next| !next.is_empty()) {
                self.ask_for(next.start);
            }
            if own.is_empty() {
                0.0
            } else {
                self.best(query, own.clone())
            }
        });
        each.collect()
    }

    /// Best cosine of one owner.
    pub fn similarity(&self, query: &[i16], owner: u64) -> f64 {
        let rows = self.rows_of(owner);
        if query.len() != self.dimension || rows.is_empty() {
            return 0.0;
        }
        self.best(query, rows)
    }

    fn best(&self, query: &[i16], rows: Range<usize>) -> f64 {
        let dots = rows.map(|row| {
            let (high, low) = self.planes(row);
            dot_split(query, high, low, self.step(row))
        });
        dots.max().map_or(0.0, cosine)
    }

    fn planes(&self, row: usize) -> (&[i8], &[u8]) {
        let bytes = row * self.dimension..(row + 1) * self.dimension;
        (&self.high[bytes.clone()], &self.low[bytes])
    }

    /// Has a row brought from the memory while others are read.
    fn ask_for(&self, row: usize) {
        let (high, low) = self.planes(row);
        prefetch(high);
        prefetch(low);
    }

    fn step(&self, row: usize) -> i16 {
        i16::try_from(self.scales[row].step).expect("at most 256")
    }

    /// First row of an owner, or where it would be. Ids have few gaps, so that the
    /// place of an id is mostly its distance from the first.
    fn first_row(&self, owner: u64) -> usize {
        let Some(first) = self.owners.first() else {
            return 0;
        };
        let guess = usize::try_from(owner.saturating_sub(*first)).unwrap_or(usize::MAX);
        if self.owners.get(guess) == Some(&owner) && (guess == 0 || self.owners[guess - 1] != owner)
        {
            return guess;
        }
        self.owners.partition_point(|o| *o < owner)
    }

    fn end_of(&self, row: usize) -> usize {
        let owner = self.owners[row];
        let rest = &self.owners[row..];
        row + rest.iter().take_while(|o| **o == owner).count()
    }

    fn rows_of(&self, owner: u64) -> Range<usize> {
        let first = self.first_row(owner);
        if self.owners.get(first) == Some(&owner) {
            first..self.end_of(first)
        } else {
            first..first
        }
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

    /// Owners from `first` up to `end`, each row's, in order.
    pub fn owners_between(&self, first: u64, end: u64) -> &[u64] {
        let from = self.first_row(first);
        &self.owners[from..self.first_row(end).max(from)]
    }
}

/// Appends a row's planes.
fn split(row: &[i16], high: &mut Vec<i8>, low: &mut Vec<u8>) -> Scale {
    let from = high.len();
    room::reserve(high, row.len());
    room::reserve(low, row.len());
    high.resize(from + row.len(), 0);
    low.resize(from + row.len(), 0);
    let (step, square) = planes::split(row, &mut high[from..], &mut low[from..]);
    #[allow(clippy::cast_precision_loss)]
    let residual = (0.5 * (square as f64).sqrt()).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Scale {
        step,
        residual: residual as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::best_first;
    use crate::score::vector::quantise;
    use proptest::prelude::*;

    /// Every owner scored, sorted, cut.
    fn naive(flat: &Flat, query: &[i16], k: usize, floor: f64) -> Vec<(u64, f64)> {
        let mut owners = flat.owners.clone();
        owners.dedup();
        let mut all: Vec<(u64, f64)> = owners
            .into_iter()
            .map(|o| (o, flat.similarity(query, o)))
            .filter(|(_, s)| *s >= floor)
            .collect();
        all.sort_by(|a, b| best_first((a.1, a.0), (b.1, b.0)));
        all.truncate(k);
        all
    }

    proptest! {
        #[test]
        fn search_equals_a_full_sort(
            rows in prop::collection::vec(prop::collection::vec(-1.0f32..1.0, 8), 1..200),
            query in prop::collection::vec(-1.0f32..1.0, 8),
            k in 1usize..20,
            each in 1u64..5,
            edge in 0u64..50,
        ) {
            let mut flat = Flat::default();
            for (i, row) in rows.iter().enumerate() {
                // Equal ones too: ties must fall as in the sort.
                let row = if i % 7 == 3 { &rows[0] } else { row };
                flat.push(i as u64 / each, &quantise(row), 8);
            }
            let q = quantise(&query);
            let expected = naive(&flat, &q, k, -0.5);
            prop_assert_eq!(flat.search(&q, k, -0.5, |_| true), expected.clone());
            let odd: Vec<(u64, f64)> = naive(&flat, &q, usize::MAX, -0.5)
                .into_iter().filter(|h| h.0 % 2 == 1).take(k).collect();
            prop_assert_eq!(flat.search(&q, k, -0.5, |o| o % 2 == 1), odd);
            // A graph that finds everything changes nothing.
            let found = Found { ranges: vec![(edge, 2 * edge)], owners: (edge..2 * edge).collect() };
            prop_assert_eq!(flat.search_rest(&q, k, -0.5, &found, |_| true), expected);
        }

        #[test]
        fn planes_hold_the_vector_and_bound_its_products(
            row in prop::collection::vec(any::<i16>(), 16),
            query in prop::collection::vec(-1.0f32..1.0, 16),
        ) {
            let mut flat = Flat::default();
            flat.push(5, &row, 16);
            prop_assert_eq!(flat.vectors_of(5), row);
            let q = quantise(&query);
            let small = quantise(&query.iter().rev().copied().collect::<Vec<_>>());
            let mut flat = Flat::default();
            flat.push(5, &small, 16);
            let probe = Probe::of(&q);
            if let Some(digits) = &probe.digits {
                let (mut dots, mut most) = ([0], [0.0]);
                digits.dots(&flat.high, &mut dots);
                probe.uppers(&dots, &flat.scales, &mut most);
                let [most] = most;
                let least = probe.lower(most, flat.scales[0]);
                let exact = f64::from(crate::score::vector::dot(&q, &small));
                prop_assert!(least <= exact && exact <= most);
            }
        }
    }

    #[test]
    fn a_removed_owner_is_gone() {
        let mut flat = Flat::default();
        let x = quantise(&[1.0, 0.0]);
        flat.push(3, &[x.clone(), x.clone()].concat(), 2);
        flat.push(7, &x, 2);
        assert_eq!(flat.search(&x, usize::MAX, -1.0, |_| true).len(), 2);
        flat.remove(&[3]);
        assert_eq!(flat.search(&x, 5, -1.0, |_| true).len(), 1);
        assert_eq!(flat.len(), 1);
        assert!(flat.vectors_of(3).is_empty());
        assert_eq!(flat.owners_between(0, 8), [7]);
    }
}
