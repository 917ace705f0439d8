//! Products of rows of unsigned bytes with a matrix of signed ones.
//!
//! Sums are whole numbers of 32 bits, so that their order does not matter and all forms give
//! the same: those of AVX2, AVX-VNNI, AVX-512 (VNNI), tiles (AMX) and ARM's dot products differ
//! in speed alone.

use crate::room::Aligned;
#[cfg(target_arch = "x86_64")]
use crate::x86::tiles::Tiles;
use crate::{Kind, Level, Line, dispatch};
#[cfg(not(target_arch = "x86_64"))]
use std::ops::Range;

/// Columns that are summed side by side.
pub(crate) const PANEL: usize = 16;
/// Rows and columns of a block.
pub const SIDE: usize = 2 * PANEL;
/// Rows that stay near the processor while all columns pass by, where there are no tiles.
const NEAR: usize = 16 * SIDE;
/// Pieces in which a block of sums is put away while the tiles are at the next.
const PIECES: usize = 2;
/// Numbers of a row that are multiplied in one step.
pub(crate) const DEPTH: usize = 4;
/// Largest weight: the sum of two products with it still fits 16 bits, as AVX2 adds them.
pub const LARGEST: i8 = 64;

/// Weights laid out for [`ByteWeights::multiply`].
#[derive(Debug)]
pub struct ByteWeights {
    pub(crate) inner: usize,
    pub(crate) columns: usize,
    /// For each panel of columns, for each step: four numbers of each column.
    pub(crate) panels: Vec<Step>,
    /// Sum of each column.
    pub(crate) sums: Vec<i32>,
}

impl ByteWeights {
    /// From rows of `columns` numbers, one row for each number of what is multiplied.
    ///
    /// `None` unless `columns` is a multiple of [`SIDE`], there are a multiple of four rows,
    /// all of them whole, and no weight is beyond ±[`LARGEST`].
    pub fn new(rows: &[i8], columns: usize) -> Option<Self> {
        let inner = rows.len().checked_div(columns)?;
        let whole = inner > 0 && inner.is_multiple_of(DEPTH) && rows.len() == inner * columns;
        let small = |x: &i8| (-LARGEST..=LARGEST).contains(x);
        if !whole || !columns.is_multiple_of(SIDE) || !rows.iter().all(small) {
            return None;
        }
        let steps = inner / DEPTH;
        let mut panels = vec![Line([0; PANEL * DEPTH]); columns / PANEL * steps];
        let mut sums = vec![0; columns];
        for (k, row) in rows.chunks_exact(columns).enumerate() {
            for (c, x) in row.iter().enumerate() {
                let step = &mut panels[c / PANEL * steps + k / DEPTH].0;
                step[c % PANEL * DEPTH + k % DEPTH] = *x;
                sums[c] += i32::from(*x);
            }
        }
        Some(Self {
            inner,
            columns,
            panels,
            sums,
        })
    }

    /// Numbers of a row that is multiplied.
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Numbers of a row of the result.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Sum of each column.
    pub fn sums(&self) -> &[i32] {
        &self.sums
    }

    /// Calls `put` with the products of every row of `x` and the weights, block by block.
    /// It is not to multiply bytes itself: the tiles of a thread are those of one product.
    /// Rows that begin with a line of the cache ([`Aligned`]) take less time.
    ///
    /// # Panics
    /// If `x` does not hold whole rows.
    pub fn multiply(&self, x: &[u8], put: impl FnMut(Block<'_>)) {
        self.multiply_at(Level::best(), x, put);
    }

    /// [`ByteWeights::multiply`] at a chosen level.
    pub fn multiply_at(&self, level: Level, x: &[u8], put: impl FnMut(Block<'_>)) {
        let inner = self.inner;
        assert!(x.len().is_multiple_of(inner), "rows are not whole");
        // Rows that fill no block have zeros below them.
        let whole = x.len() / (SIDE * inner) * SIDE * inner;
        let mut last = Aligned::default();
        if whole < x.len() {
            last.resize(SIDE * inner);
            let (rows, below) = last.split_at_mut(x.len() - whole);
            rows.copy_from_slice(&x[whole..]);
            below.fill(0);
        }
        let rows = InBlocks {
            whole: &x[..whole],
            last: &last,
            count: x.len() / inner,
            inner,
        };
        match Tiles::ready(level, self) {
            Some(tiles) => self.by_tiles(tiles, rows, put),
            None => self.by_registers(level, rows, put),
        }
    }

    fn by_registers(&self, level: Level, rows: InBlocks<'_>, mut put: impl FnMut(Block<'_>)) {
        let mut sums = Line([[0; SIDE]; SIDE]);
        for first in (0..rows.count).step_by(NEAR) {
            for column in (0..self.columns).step_by(SIDE) {
                for row in (first..rows.count.min(first + NEAR)).step_by(SIDE) {
                    let (x, count) = rows.block(row);
                    dispatch!(level, bytes_block(self, column, x, count, &mut sums.0));
                    let sums = &sums.0[..count];
                    put(Block { row, column, sums });
                }
            }
        }
    }

    /// Tiles are done with a block before the rows of the next one have come. Panels lie one
    /// behind the other and come by themselves: so one block stays, and all panels pass by.
    ///
    /// They work beside the processor's other parts, which meanwhile put the block before where
    /// it belongs, piece by piece: as far as it looks ahead, there is always work for both.
    fn by_tiles(&self, mut tiles: Tiles, rows: InBlocks<'_>, mut put: impl FnMut(Block<'_>)) {
        let steps = self.inner / Tiles::BYTES;
        let [mut one, mut other] = [Line([[0; SIDE]; SIDE]); 2];
        let (mut now, mut before) = (&mut one, &mut other);
        let mut waits: Option<(usize, usize, usize)> = None;
        for row in (0..rows.count).step_by(SIDE) {
            let (x, count) = rows.block(row);
            for column in (0..self.columns).step_by(SIDE) {
                tiles.begin();
                for piece in 0..PIECES {
                    let part = |all: usize| all * piece / PIECES..all * (piece + 1) / PIECES;
                    tiles.add(self, column, x, part(steps));
                    if let Some((row, column, count)) = waits {
                        let part = part(count);
                        let (row, sums) = (row + part.start, &before.0[part]);
                        put(Block { row, column, sums });
                    }
                }
                tiles.end(&mut now.0);
                std::mem::swap(&mut now, &mut before);
                waits = Some((row, column, count));
            }
        }
        if let Some((row, column, count)) = waits {
            let sums = &before.0[..count];
            put(Block { row, column, sums });
        }
    }

    /// The steps of the panels from a column on.
    pub(crate) fn panels_at(&self, column: usize) -> (&[Step], &[Step]) {
        let steps = self.inner / DEPTH;
        self.panels[column / PANEL * steps..][..2 * steps].split_at(steps)
    }
}

/// The instructions that products of bytes run by here, by the name that processors give them.
#[must_use]
pub fn instructions() -> &'static str {
    match Level::best().0 {
        Kind::Portable => "none for bytes",
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 => "AVX2",
        #[cfg(target_arch = "x86_64")]
        Kind::AvxVnni => "AVX-VNNI",
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 if crate::x86::tiles::allowed() => "AMX",
        #[cfg(target_arch = "x86_64")]
        Kind::Avx512 => "AVX-512 VNNI",
        #[cfg(target_arch = "aarch64")]
        Kind::Dotprod => "dotprod",
    }
}

/// Rows of a product, block by block.
#[derive(Clone, Copy)]
struct InBlocks<'a> {
    whole: &'a [u8],
    /// The last block, if it is not whole: its rows, and zeros.
    last: &'a [u8],
    /// Rows of all.
    count: usize,
    /// Numbers of each.
    inner: usize,
}

impl<'a> InBlocks<'a> {
    /// The block from a row on, and how many of its rows there are.
    fn block(&self, row: usize) -> (&'a [u8], usize) {
        match self.whole.get(row * self.inner..(row + SIDE) * self.inner) {
            Some(block) => (block, SIDE),
            None => (self.last, self.count - row),
        }
    }
}

/// Sums of some rows and columns.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// The first row.
    pub row: usize,
    /// The first column.
    pub column: usize,
    /// The sums of [`SIDE`] columns, row by row.
    pub sums: &'a [[i32; SIDE]],
}

/// Four numbers of each column of a panel.
pub(crate) type Step = Line<[i8; PANEL * DEPTH]>;
/// A block's sums.
pub(crate) type Sums = [[i32; SIDE]; SIDE];

/// The first `count` rows of a block, number by number.
#[inline(always)]
pub(crate) fn block_portable(
    weights: &ByteWeights,
    column: usize,
    x: &[u8],
    count: usize,
    sums: &mut Sums,
) {
    let (left, right) = weights.panels_at(column);
    for (x, sums) in x.chunks_exact(weights.inner).zip(sums).take(count) {
        *sums = [0; SIDE];
        let (first, second) = sums.split_at_mut(PANEL);
        for (panel, sums) in [(left, first), (right, second)] {
            for (step, x) in panel.iter().zip(x.chunks_exact(DEPTH)) {
                for (sum, w) in sums.iter_mut().zip(step.0.chunks_exact(DEPTH)) {
                    let products = x.iter().zip(w).map(|(x, w)| i32::from(*x) * i32::from(*w));
                    *sum += products.sum::<i32>();
                }
            }
        }
    }
}

/// No other processor has tiles.
#[cfg(not(target_arch = "x86_64"))]
enum Tiles {}

#[cfg(not(target_arch = "x86_64"))]
impl Tiles {
    const BYTES: usize = 64;

    fn ready(_: Level, _: &ByteWeights) -> Option<Self> {
        None
    }

    fn begin(&mut self) {
        match *self {}
    }

    fn add(&mut self, _: &ByteWeights, _: usize, _: &[u8], _: Range<usize>) {
        match *self {}
    }

    fn end(&mut self, _: &mut Sums) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn product(weights: &ByteWeights, level: Level, x: &[u8]) -> Vec<i32> {
        let columns = weights.columns();
        let mut out = vec![i32::MIN; x.len() / weights.inner() * columns];
        weights.multiply_at(level, x, |block| {
            for (r, sums) in block.sums.iter().enumerate() {
                let row = &mut out[(block.row + r) * columns..][..columns];
                row[block.column..][..SIDE].copy_from_slice(sums);
            }
        });
        out
    }

    proptest! {
        #[test]
        fn every_form_is_the_schoolbook(
            (inner, columns, weights, x) in (1usize..40, 1usize..4, 0usize..140).prop_flat_map(
                |(steps, panels, rows)| {
                    // Whole tiles now and then.
                    let (inner, columns) = match steps % 3 {
                        0 => (steps.div_ceil(8) * 64, panels * SIDE),
                        _ => (steps * DEPTH, panels * SIDE),
                    };
                    (
                        Just(inner),
                        Just(columns),
                        prop::collection::vec(-LARGEST..=LARGEST, inner * columns),
                        prop::collection::vec(prop_oneof![any::<u8>(), Just(255)], inner * rows),
                    )
                },
            ),
        ) {
            let laid = ByteWeights::new(&weights, columns).expect("weights of whole steps");
            let wanted: Vec<i32> = x
                .chunks_exact(inner)
                .flat_map(|x| (0..columns).map(|c| {
                    let column = weights.iter().skip(c).step_by(columns);
                    x.iter().zip(column).map(|(x, w)| i32::from(*x) * i32::from(*w)).sum()
                }))
                .collect();
            for level in Level::all() {
                prop_assert_eq!(product(&laid, level, &x), wanted.clone());
            }
            prop_assert_eq!(laid.sums().to_vec(), product(&laid, Level::best(), &vec![1; inner]));
        }
    }
}
