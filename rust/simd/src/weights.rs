//! Products with a matrix of weights, in f32, whose sums have one order.
//!
//! Each number of the result is the sum over the inner dimension from first to last, each
//! product added with one rounding (fused): in half the time of two, and where a processor
//! cannot, by a slow function. So a row's result is the same bits on every processor, and does
//! not depend on the rows that it is multiplied with.

use crate::network::{greater, halves};
use crate::{Level, Line, dispatch};

/// Columns that are summed side by side.
pub(crate) const PANEL: usize = 16;
/// Rows that share each number of a panel while it is in a register.
const ROWS: usize = 6;
/// Rows that stay near the processor while all panels pass by.
const NEAR: usize = 96;

/// Weights laid out for [`Weights::multiply`].
#[derive(Debug)]
pub struct Weights {
    inner: usize,
    columns: usize,
    /// For each panel of columns, for each step of the inner dimension, its numbers.
    panels: Vec<Line<[f32; PANEL]>>,
}

impl Weights {
    /// From rows of `inner` numbers, one for each column of the result.
    ///
    /// # Panics
    /// If `inner` is 0 or the rows are not whole.
    pub fn new(rows: &[f32], inner: usize) -> Self {
        assert!(rows.len().is_multiple_of(inner), "rows are not whole");
        let columns = rows.len() / inner;
        let mut panels = vec![Line([0.0; PANEL]); columns.div_ceil(PANEL) * inner];
        for (c, row) in rows.chunks_exact(inner).enumerate() {
            let panel = &mut panels[c / PANEL * inner..];
            for (step, x) in panel.iter_mut().zip(row) {
                step.0[c % PANEL] = *x;
            }
        }
        Self {
            inner,
            columns,
            panels,
        }
    }

    /// Numbers of a row that is multiplied.
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Numbers of a row of the result.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Fills `out` with the product of every row of `x` and the weights.
    ///
    /// # Panics
    /// If `x` and `out` do not hold as many whole rows.
    pub fn multiply(&self, x: &[f32], out: &mut [f32]) {
        let rows = x.len() / self.inner;
        let fits = x.len() == rows * self.inner && out.len() == rows * self.columns;
        assert!(fits, "the rows of both sides are as many and whole");
        self.multiply_at(Level::best(), Rows::new(x, self.inner), out);
    }

    /// The same of rows that overlap, each of which begins `stride` numbers after the one
    /// before it.
    ///
    /// # Panics
    /// If `x` does not hold all rows of `out`, or those are not whole.
    pub fn multiply_windows(&self, x: &[f32], stride: usize, out: &mut [f32]) {
        let rows = out.len().checked_div(self.columns).unwrap_or(0);
        let needed = rows
            .checked_sub(1)
            .map_or(0, |before| before * stride + self.inner);
        let fits = out.len() == rows * self.columns && x.len() >= needed;
        assert!(
            fits,
            "there are as many windows as rows, and those are whole"
        );
        self.multiply_at(Level::best(), Rows::new(x, stride), out);
    }

    fn multiply_at(&self, level: Level, x: Rows<'_>, out: &mut [f32]) {
        dispatch!(level, multiply(self, x, out));
    }
}

/// Rows of numbers, each so many after the one before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    numbers: &'a [f32],
    stride: usize,
}

impl<'a> Rows<'a> {
    fn new(numbers: &'a [f32], stride: usize) -> Self {
        Self { numbers, stride }
    }

    /// Those from one on.
    #[inline(always)]
    fn from(self, row: usize) -> Self {
        Self::new(&self.numbers[row * self.stride..], self.stride)
    }
}

/// The numbers of a panel's step side by side, however many registers they take.
pub(crate) trait Lanes: Copy {
    /// Nothing summed.
    fn zero() -> Self;
    /// The numbers as they lie.
    fn load(step: &[f32; PANEL]) -> Self;
    /// With `a` times each number of the step added, the two rounded once.
    fn fused(self, a: f32, step: Self) -> Self;
    /// The numbers.
    fn store(self) -> [f32; PANEL];

    /// Their sum: of the halves with each other, until one is left.
    #[inline(always)]
    fn total(self) -> f32 {
        halves(self.store(), |a, b| a + b)
    }

    /// The greatest.
    #[inline(always)]
    fn greatest(self) -> f32 {
        halves(self.store(), greater)
    }
}

impl Lanes for [f32; PANEL] {
    #[inline(always)]
    fn zero() -> Self {
        [0.0; PANEL]
    }

    #[inline(always)]
    fn load(step: &[f32; PANEL]) -> Self {
        *step
    }

    #[inline(always)]
    #[allow(clippy::disallowed_methods)] // Rounded once everywhere, if not as fast.
    fn fused(mut self, a: f32, step: Self) -> Self {
        for (s, b) in self.iter_mut().zip(step) {
            *s = a.mul_add(b, *s);
        }
        self
    }

    #[inline(always)]
    fn store(self) -> [f32; PANEL] {
        self
    }
}

/// The whole product with one kind of registers, `P` panels at a time.
#[inline(always)]
pub(crate) fn multiply_with<L: Lanes, const P: usize>(
    weights: &Weights,
    x: Rows<'_>,
    out: &mut [f32],
) {
    let (inner, columns) = (weights.inner, weights.columns);
    let count = out.len().checked_div(columns).unwrap_or(0);
    for near in (0..count).step_by(NEAR) {
        let end = count.min(near + NEAR);
        for (first, panels) in weights.panels.chunks(P * inner).enumerate() {
            for row in (near..end).step_by(ROWS) {
                let mut put = |r: usize, p: usize, sums: [f32; PANEL]| {
                    let columns = &mut out[(row + r) * columns..][..columns];
                    let columns = &mut columns[(first * P + p) * PANEL..];
                    let there = columns.len().min(PANEL);
                    columns[..there].copy_from_slice(&sums[..there]);
                };
                let few = ROWS.min(end - row);
                if panels.len() == P * inner {
                    rows::<L, P>(panels, inner, x.from(row), few, &mut put);
                } else {
                    rows::<L, 1>(panels, inner, x.from(row), few, &mut put);
                }
            }
        }
    }
}

/// A few rows by `P` panels.
#[inline(always)]
fn rows<L: Lanes, const P: usize>(
    panels: &[Line<[f32; PANEL]>],
    inner: usize,
    x: Rows<'_>,
    few: usize,
    put: &mut impl FnMut(usize, usize, [f32; PANEL]),
) {
    match few {
        ROWS => block::<L, ROWS, P>(panels, inner, x, put),
        5 => block::<L, 5, P>(panels, inner, x, put),
        4 => block::<L, 4, P>(panels, inner, x, put),
        3 => block::<L, 3, P>(panels, inner, x, put),
        2 => block::<L, 2, P>(panels, inner, x, put),
        _ => block::<L, 1, P>(panels, inner, x, put),
    }
}

/// `R` rows by `P` panels.
#[inline(always)]
fn block<L: Lanes, const R: usize, const P: usize>(
    panels: &[Line<[f32; PANEL]>],
    inner: usize,
    x: Rows<'_>,
    put: &mut impl FnMut(usize, usize, [f32; PANEL]),
) {
    // Slices of one length: the steps below need no check.
    let rows: [&[f32]; R] = std::array::from_fn(|r| &x.from(r).numbers[..inner]);
    let panels: [&[Line<[f32; PANEL]>]; P] = std::array::from_fn(|p| &panels[p * inner..][..inner]);
    let mut sums = [[L::zero(); P]; R];
    for k in 0..inner {
        let steps: [L; P] = std::array::from_fn(|p| L::load(&panels[p][k].0));
        for r in 0..R {
            for p in 0..P {
                sums[r][p] = sums[r][p].fused(rows[r][k], steps[p]);
            }
        }
    }
    for (r, sums) in sums.into_iter().enumerate() {
        for (p, sum) in sums.into_iter().enumerate() {
            put(r, p, sum.store());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One number after the other, as the head of this file says.
    #[allow(clippy::disallowed_methods)]
    fn schoolbook(x: &[f32], weights: &[f32]) -> f32 {
        x.iter()
            .zip(weights)
            .fold(0.0, |sum, (x, w)| x.mul_add(*w, sum))
    }

    proptest! {
        #[test]
        fn every_width_and_every_company_gives_the_bits_of_the_schoolbook(
            (inner, weights, x) in (1usize..70, 0usize..40, 0usize..110).prop_flat_map(
                |(inner, columns, rows)| (
                    Just(inner),
                    prop::collection::vec(-3.0f32..3.0, inner * columns),
                    prop::collection::vec(-3.0f32..3.0, inner * rows),
                ),
            ),
        ) {
            let laid = Weights::new(&weights, inner);
            let wanted: Vec<u32> = x
                .chunks_exact(inner)
                .flat_map(|x| weights.chunks_exact(inner).map(|w| schoolbook(x, w).to_bits()))
                .collect();
            let bits = |out: &[f32]| -> Vec<u32> { out.iter().map(|n| n.to_bits()).collect() };
            for level in Level::all() {
                let mut out = vec![f32::NAN; wanted.len()];
                laid.multiply_at(level, Rows::new(&x, inner), &mut out);
                prop_assert_eq!(bits(&out), wanted.clone());
            }
            // Windows a number apart are rows of their own.
            let windows: Vec<f32> = x.windows(inner).flatten().copied().collect();
            let mut apart = vec![0.0; windows.len() / inner * laid.columns()];
            let mut near = apart.clone();
            laid.multiply(&windows, &mut apart);
            laid.multiply_windows(&x, 1, &mut near);
            prop_assert_eq!(bits(&near), bits(&apart));
        }
    }
}
