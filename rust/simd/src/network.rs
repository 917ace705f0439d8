//! What a network does between its products, number by number in `f32`.
//!
//! Where a product is added to, the two are rounded once (fused), on every processor: where it
//! has no such instruction, by a slow function. Sums of many numbers run in sixteen lanes that
//! are added pairwise. So the wider forms are the portable ones, compiled for wider registers,
//! and give the same bits. Exponentials are polynomials of their own, since those of a platform
//! differ.

use crate::bytes::{Block, SIDE};
use crate::weights::{Lanes, PANEL};
use crate::{Level, Line, dispatch, dispatched};
use std::ops::Range;

/// Sums that run side by side.
const LANES: usize = PANEL;
/// Numbers of a query and its keys that are multiplied in one go.
const STRIDE: usize = 8;
/// Rows of queries that go together, at most.
const MOST: usize = 8;

/// How sums of bytes become numbers again, column by column.
#[derive(Debug, Clone)]
pub struct Columns {
    /// What one of a weight is worth.
    pub scale: Vec<f32>,
    /// Added.
    pub bias: Vec<f32>,
}

/// What a row's bytes mean: `(byte - zero) * step`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowScale {
    /// What one is worth.
    pub step: f32,
    /// The byte of 0.
    pub zero: i32,
}

/// A block's sums, and what is needed to know what they mean.
#[derive(Debug, Clone, Copy)]
pub struct Meant<'a> {
    /// Of all columns.
    pub columns: &'a Columns,
    /// Sum of each column's weights.
    pub weights: &'a [i32],
    /// Of all rows.
    pub rows: &'a [RowScale],
    /// The sums.
    pub block: Block<'a>,
}

dispatched!(
    /// Rows of `out` get the numbers that are meant by a block's sums.
    numbers(sums: Meant<'_>, out: &mut [f32]),
    portable::numbers
);
dispatched!(
    /// Rows of `out` get the numbers that are meant by a block's sums, each put through the
    /// Gaussian error linear unit.
    gelu(sums: Meant<'_>, out: &mut [f32]),
    portable::gelu
);
dispatched!(
    /// The numbers that are meant by a block's sums are added to the rows of `out`.
    add(sums: Meant<'_>, out: &mut [f32]),
    portable::add
);
dispatched!(
    /// Rows of numbers made bytes, each between its own least and greatest number (and 0), so
    /// that no row depends on another.
    bytes(numbers: &[f32], out: &mut [u8], rows: &mut [RowScale]),
    portable::bytes
);
dispatched!(
    /// Rows normalised, scaled and shifted.
    normalise(norm: &Norm, rows: &mut [f32]),
    portable::normalise
);

/// One head's attention: for every row of queries the mean of the values, weighed by the
/// exponentials of `scale` times the products with the keys.
///
/// `out` is [asking rows, heads · [`HEAD`]], of which the numbers of this head are filled; `room`
/// is anything.
pub fn attend(scale: f32, head: Head<'_>, room: &mut Room, out: &mut [f32]) {
    dispatch!(Level::best(), attend(scale, head, room, out));
}

/// Scale and shift of normalised rows, and what is added to their variance.
#[derive(Debug, Clone)]
pub struct Norm {
    /// Times each number.
    pub scale: Vec<f32>,
    /// Added to each.
    pub shift: Vec<f32>,
    /// Added to the variance.
    pub least: f32,
}

/// Numbers of one head.
pub const HEAD: usize = 32;

/// One head's rows among those of all: queries, keys and values of a text.
#[derive(Debug, Clone)]
pub struct Head<'a> {
    /// Rows with queries of all heads, keys of all, values of all: [rows, 3 · heads · [`HEAD`]].
    pub rows: &'a [f32],
    /// The rows whose queries count; what comes of one does not depend on the others.
    pub asking: Range<usize>,
    /// How many heads there are.
    pub heads: usize,
    /// Which this one is.
    pub number: usize,
}

/// Room for the numbers of one head.
#[derive(Debug, Default)]
pub struct Room {
    keys: Vec<Line<[f32; LANES]>>,
    values: Vec<Line<[f32; HEAD]>>,
    shares: Vec<Line<[f32; LANES]>>,
}

pub(crate) use portable::{attend_with, greater, halves};

mod portable {
    // It is rounded once everywhere; what differs is how long that takes.
    #![allow(clippy::disallowed_methods)]

    use super::{HEAD, Head, LANES, Lanes, MOST, Meant, Norm, Room, RowScale, SIDE, STRIDE};
    use crate::{Line, ROUNDING};

    /// Calls `with` for each sum of a block: what it means, and where it belongs.
    #[inline(always)]
    fn each(sums: Meant<'_>, out: &mut [f32], with: impl Fn(f32, &mut f32)) {
        let Meant {
            columns,
            weights,
            rows,
            block,
        } = sums;
        let (width, at) = (columns.bias.len(), block.column);
        let weights = &weights[at..].as_chunks::<SIDE>().0[0];
        let scale = &columns.scale[at..].as_chunks::<SIDE>().0[0];
        let bias = &columns.bias[at..].as_chunks::<SIDE>().0[0];
        let out = out[block.row * width..].chunks_exact_mut(width);
        for ((sums, row), out) in block.sums.iter().zip(&rows[block.row..]).zip(out) {
            let out = &mut out[at..].as_chunks_mut::<SIDE>().0[0];
            for c in 0..SIDE {
                let whole = (sums[c] - row.zero * weights[c]) as f32;
                with(whole.mul_add(scale[c] * row.step, bias[c]), &mut out[c]);
            }
        }
    }

    #[inline(always)]
    pub fn numbers(sums: Meant<'_>, out: &mut [f32]) {
        each(sums, out, |x, out| *out = x);
    }

    #[inline(always)]
    pub fn gelu(sums: Meant<'_>, out: &mut [f32]) {
        each(sums, out, |x, out| *out = unit(x));
    }

    #[inline(always)]
    pub fn add(sums: Meant<'_>, out: &mut [f32]) {
        each(sums, out, |x, out| *out += x);
    }

    #[inline(always)]
    pub fn bytes(numbers: &[f32], out: &mut [u8], rows: &mut [RowScale]) {
        let width = numbers.len().checked_div(rows.len()).unwrap_or(1);
        let parts = numbers.chunks_exact(width).zip(out.chunks_exact_mut(width));
        for ((numbers, out), row) in parts.zip(rows) {
            let (low, high) = bounds(numbers);
            // Of what cannot be told from 0, all bytes are that of 0.
            let by = if high - low > 1e-30 {
                255.0 / (high - low)
            } else {
                0.0
            };
            let zero = whole(-low * by);
            *row = RowScale {
                step: (high - low) / 255.0,
                zero,
            };
            for (x, out) in numbers.iter().zip(out) {
                *out = (whole(x * by) + zero).clamp(0, 255) as u8;
            }
        }
    }

    /// The least and the greatest of the numbers and 0, by their bits: those of positive numbers
    /// have the order of whole numbers, those of negative ones the opposite and are greater
    /// without a sign. The compiler knows how to find such bounds side by side.
    #[inline(always)]
    fn bounds(numbers: &[f32]) -> (f32, f32) {
        let (mut low, mut high) = ((-0.0f32).to_bits(), 0);
        for x in numbers {
            low = low.max(x.to_bits());
            high = high.max(x.to_bits().cast_signed());
        }
        (f32::from_bits(low), f32::from_bits(high.cast_unsigned()))
    }

    /// The nearest whole number to one of up to 2^22; of two, the even one.
    #[inline(always)]
    fn whole(x: f32) -> i32 {
        (x + ROUNDING).to_bits() as i32 - ROUNDING.to_bits() as i32
    }

    /// The Gaussian error linear unit.
    #[inline(always)]
    pub fn unit(x: f32) -> f32 {
        let half = 0.5 * x;
        half.mul_add(erf(x * std::f32::consts::FRAC_1_SQRT_2), half)
    }

    /// The error function within 4e-6: an odd polynomial, without a quotient.
    #[inline(always)]
    fn erf(x: f32) -> f32 {
        /// From here on it is 1 as far as is told.
        const MOST: f32 = 3.4;
        /// Of `2 (x / MOST)² - 1`, the lowest power first; fitted for the least greatest error.
        const BY: [f32; 11] = [
            0.415_665_45,
            -0.206_107_08,
            0.149_502_02,
            -0.114_526_28,
            0.086_713_22,
            -0.063_958_17,
            0.040_716_834,
            -0.019_578_118,
            0.013_436_288,
            -0.012_947_22,
            0.005_201_369,
        ];
        let x = if x > -MOST { x } else { -MOST };
        let x = if x < MOST { x } else { MOST };
        let u = (x * x).mul_add(2.0 / (MOST * MOST), -1.0);
        let mut sum = BY[BY.len() - 1];
        for by in BY[..BY.len() - 1].iter().rev() {
            sum = sum.mul_add(u, *by);
        }
        x * sum
    }

    /// e^x for x up to 0, within two units of the last place; 0 from e^-87 on. The polynomial
    /// is that of Cephes' `expf`.
    #[inline(always)]
    pub fn exp(x: f32) -> f32 {
        const LN2_HIGH: f32 = 0.693_359_4;
        const LN2_LOW: f32 = -2.121_944_4e-4;
        let bounded = if x > -87.0 { x } else { -87.0 };
        let shifted = bounded.mul_add(std::f32::consts::LOG2_E, ROUNDING);
        let k = shifted - ROUNDING;
        let r = (-k).mul_add(LN2_LOW, (-k).mul_add(LN2_HIGH, bounded));
        let p = r.mul_add(1.987_569_2e-4, 1.398_2e-3);
        let p = r.mul_add(p, 8.333_452e-3);
        let p = r.mul_add(p, 4.166_579_6e-2);
        let p = r.mul_add(p, 1.666_666_5e-1);
        let p = r.mul_add(p, 5.000_000_3e-1);
        let y = (r * r).mul_add(p, r) + 1.0;
        let power = ((shifted.to_bits() << 23) as i32 + 1.0f32.to_bits() as i32) as u32;
        let y = y * f32::from_bits(power);
        if x < -87.0 { 0.0 } else { y }
    }

    #[inline(always)]
    pub fn normalise(norm: &Norm, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(norm.scale.len()) {
            normalise_row(norm, row);
        }
    }

    #[inline(always)]
    fn normalise_row(norm: &Norm, row: &mut [f32]) {
        let count = row.len() as f32;
        let mean = sum(row, |x| x) / count;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
        let by = 1.0 / (variance + norm.least).sqrt();
        let width = row.len();
        let (scale, shift) = (&norm.scale[..width], &norm.shift[..width]);
        for c in 0..width {
            row[c] = ((row[c] - mean) * by).mul_add(scale[c], shift[c]);
        }
    }

    /// In lanes, which are added pairwise.
    #[inline(always)]
    fn sum(numbers: &[f32], of: impl Fn(f32) -> f32) -> f32 {
        let mut lanes = [0.0; LANES];
        let (whole, rest) = numbers.as_chunks::<LANES>();
        for block in whole {
            for (lane, x) in lanes.iter_mut().zip(block) {
                *lane += of(*x);
            }
        }
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *lane += of(*x);
        }
        halves(lanes, |a, b| a + b)
    }

    /// Sixteen numbers brought together: the halves with each other, until one is left.
    #[inline(always)]
    pub fn halves(mut lanes: [f32; LANES], with: impl Fn(f32, f32) -> f32) -> f32 {
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                lanes[i] = with(lanes[i], lanes[i + half]);
            }
            half /= 2;
        }
        lanes[0]
    }

    /// `R` rows of queries share keys and values in registers.
    #[inline(always)]
    pub fn attend_with<L: Lanes, const R: usize>(
        scale: f32,
        head: Head<'_>,
        room: &mut Room,
        out: &mut [f32],
    ) {
        let width = head.heads * HEAD;
        let (rows, at) = (head.rows, head.number * HEAD);
        let count = rows.len() / (3 * width);
        room.fill(rows, width, at);
        let shares = &mut room.shares[..count.div_ceil(LANES) * R];
        let end = head.asking.end;
        for (first, out) in head.asking.step_by(R).zip(out.chunks_mut(R * width)) {
            let queries: [&[f32; HEAD]; R] = std::array::from_fn(|r| {
                let row = (first + r).min(end - 1);
                &rows[row * 3 * width + at..].as_chunks().0[0]
            });
            scores::<L, R>(scale, queries, count, &room.keys, shares);
            let totals = exponentials::<L, R>(shares);
            let means = means::<L, R>(shares, &room.values[..count], totals);
            for (mean, out) in means.iter().zip(out.chunks_mut(width)) {
                out[at..][..HEAD].copy_from_slice(mean);
            }
        }
    }

    impl Room {
        /// The keys and values of one head of rows that are `3 * width` long, and room for shares.
        /// Behind the keys may be some of a text before.
        #[inline(always)]
        fn fill(&mut self, rows: &[f32], width: usize, at: usize) {
            let count = rows.len() / (3 * width);
            let blocks = count.div_ceil(LANES);
            if self.values.len() < blocks * LANES {
                self.keys.resize(blocks * HEAD, Line([0.0; LANES]));
                self.values.resize(blocks * LANES, Line([0.0; HEAD]));
                self.shares.resize(blocks * MOST, Line([0.0; LANES]));
            }
            let keys = self.keys.as_chunks_mut::<HEAD>().0;
            let slots = rows.chunks_exact(3 * width).zip(&mut self.values);
            for (t, (row, value)) in slots.enumerate() {
                value.0 = row[2 * width + at..].as_chunks().0[0];
                let key = row[width + at..][..HEAD].iter();
                for (numbers, x) in keys[t / LANES].iter_mut().zip(key) {
                    numbers.0[t % LANES] = *x;
                }
            }
        }
    }

    /// Products of the queries with all keys: of each block of keys, one row a query. Where
    /// there is no key, what no exponential sees.
    #[inline(always)]
    fn scores<L: Lanes, const R: usize>(
        scale: f32,
        queries: [&[f32; HEAD]; R],
        count: usize,
        keys: &[Line<[f32; LANES]>],
        out: &mut [Line<[f32; LANES]>],
    ) {
        let blocks = keys.as_chunks::<HEAD>().0.iter();
        for (b, (keys, out)) in blocks.zip(out.as_chunks_mut::<R>().0).enumerate() {
            let mut sums = [L::zero(); R];
            // In strides, within which every number has a fixed place.
            for (stride, keys) in keys.as_chunks::<STRIDE>().0.iter().enumerate() {
                let queries = queries.map(|query| &query.as_chunks::<STRIDE>().0[stride]);
                for (k, key) in keys.iter().enumerate() {
                    let key = L::load(&key.0);
                    for r in 0..R {
                        sums[r] = sums[r].fused(queries[r][k], key);
                    }
                }
            }
            let there = (count - b * LANES).min(LANES);
            for (out, sums) in out.iter_mut().zip(sums) {
                for (i, (out, sum)) in out.0.iter_mut().zip(sums.store()).enumerate() {
                    *out = if i < there { sum * scale } else { f32::MIN };
                }
            }
        }
    }

    /// Replaces scores by exponentials of what they are below the greatest; their sums.
    #[inline(always)]
    fn exponentials<L: Lanes, const R: usize>(shares: &mut [Line<[f32; LANES]>]) -> [f32; R] {
        let mut greatest = [[f32::MIN; LANES]; R];
        for block in shares.as_chunks::<R>().0 {
            for (most, scores) in greatest.iter_mut().zip(block) {
                for (most, x) in most.iter_mut().zip(&scores.0) {
                    *most = greater(*most, *x);
                }
            }
        }
        let greatest = greatest.map(|lanes| L::load(&lanes).greatest());
        let mut totals = [[0.0; LANES]; R];
        for block in shares.as_chunks_mut::<R>().0 {
            for ((scores, total), most) in block.iter_mut().zip(&mut totals).zip(greatest) {
                for (x, total) in scores.0.iter_mut().zip(total) {
                    *x = exp(*x - most);
                    *total += *x;
                }
            }
        }
        totals.map(|lanes| L::load(&lanes).total())
    }

    /// Not `max`, which has to look for what is no number.
    #[inline(always)]
    pub fn greater(a: f32, b: f32) -> f32 {
        if a > b { a } else { b }
    }

    #[inline(always)]
    fn means<L: Lanes, const R: usize>(
        shares: &[Line<[f32; LANES]>],
        values: &[Line<[f32; HEAD]>],
        totals: [f32; R],
    ) -> [[f32; HEAD]; R] {
        let mut sums = [[L::zero(); HEAD / LANES]; R];
        let blocks = shares.as_chunks::<R>().0.iter();
        for (shares, values) in blocks.zip(values.chunks(LANES)) {
            for (t, value) in values.iter().enumerate() {
                let halves: [L; HEAD / LANES] =
                    std::array::from_fn(|h| L::load(&value.0.as_chunks().0[h]));
                for r in 0..R {
                    for h in 0..HEAD / LANES {
                        sums[r][h] = sums[r][h].fused(shares[r].0[t], halves[h]);
                    }
                }
            }
        }
        let mut out = [[0.0; HEAD]; R];
        for ((out, sums), total) in out.iter_mut().zip(sums).zip(totals) {
            let by = 1.0 / total;
            for (out, sum) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                *out = sum.store().map(|x| x * by);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch;
    use proptest::prelude::*;

    const WIDTH: usize = 2 * SIDE;

    fn floats(count: usize) -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-4.0f32..4.0, count)
    }

    fn bits(numbers: &[f32]) -> Vec<u32> {
        numbers.iter().map(|x| x.to_bits()).collect()
    }

    proptest! {
        #[test]
        fn wide_registers_give_the_bits_of_single_numbers(
            sums in prop::collection::vec(-2_000_000i32..2_000_000, 3 * SIDE),
            weights in prop::collection::vec(-9000i32..9000, WIDTH),
            (scale, bias) in (floats(WIDTH), floats(WIDTH)),
            rows in floats(3 * WIDTH),
            sizes in prop::array::uniform3(prop_oneof![Just(0.0f32), 1e-35f32..1e-25, 0.01f32..9.0]),
        ) {
            let mut numbers_of_rows = rows.clone();
            for (row, size) in numbers_of_rows.chunks_exact_mut(WIDTH).zip(sizes) {
                row.iter_mut().for_each(|x| *x *= size);
            }
            let (mut ours, mut plain) = ([0; 3 * WIDTH], [0; 3 * WIDTH]);
            let (mut scales, mut same) = ([RowScale::default(); 3], [RowScale::default(); 3]);
            bytes(&numbers_of_rows, &mut ours, &mut scales);
            portable::bytes(&numbers_of_rows, &mut plain, &mut same);
            prop_assert_eq!(ours, plain);
            for (row, scale) in same.iter().zip(&scales) {
                prop_assert_eq!((row.step.to_bits(), row.zero), (scale.step.to_bits(), scale.zero));
            }
            for (i, (row, scale)) in numbers_of_rows.chunks_exact(WIDTH).zip(&scales).enumerate() {
                let low = row.iter().copied().fold(0.0, f32::min);
                let high = row.iter().copied().fold(0.0, f32::max);
                let by = if high - low > 1e-30 { 255.0 / (high - low) } else { 0.0 };
                prop_assert_eq!(scale.step, (high - low) / 255.0);
                prop_assert_eq!(scale.zero as f32, (-low * by).round_ties_even());
                for (x, byte) in row.iter().zip(&ours[i * WIDTH..]) {
                    let whole = (x * by).round_ties_even() + scale.zero as f32;
                    prop_assert_eq!(f32::from(*byte), whole.clamp(0.0, 255.0));
                }
            }

            let scale = scale.iter().map(|x| x * 1e-4).collect();
            let columns = Columns { scale, bias: bias.clone() };
            let block = Block { row: 0, column: SIDE, sums: sums.as_chunks::<SIDE>().0 };
            let sums = Meant { columns: &columns, weights: &weights, rows: &scales, block };
            let (mut ours, mut plain) = (rows.clone(), rows.clone());
            numbers(sums, &mut ours);
            portable::numbers(sums, &mut plain);
            prop_assert_eq!(bits(&ours), bits(&plain));
            add(sums, &mut ours);
            portable::add(sums, &mut plain);
            prop_assert_eq!(bits(&ours), bits(&plain));
            let norm = Norm { scale: bias, shift: rows[..WIDTH].to_vec(), least: 1e-12 };
            normalise(&norm, &mut ours);
            portable::normalise(&norm, &mut plain);
            prop_assert_eq!(bits(&ours), bits(&plain));
            gelu(sums, &mut ours);
            portable::gelu(sums, &mut plain);
            prop_assert_eq!(bits(&ours), bits(&plain));
        }

        #[test]
        fn heads_see_the_same_at_every_level(
            (heads, rows) in (1usize..3, 0usize..37).prop_flat_map(
                |(heads, count)| (Just(heads), floats(count * 3 * heads * HEAD)),
            ),
        ) {
            let width = heads * HEAD;
            for number in 0..heads {
                let count = rows.len() / (3 * width);
                let head = Head { rows: &rows, asking: 0..count, heads, number };
                let wanted = plain_attention(&head);
                let mut first: Option<Vec<u32>> = None;
                for level in Level::all() {
                    let (mut room, mut out) = (Room::default(), vec![0.0; rows.len() / 3]);
                    dispatch!(level, attend(0.25, head.clone(), &mut room, &mut out));
                    let (at, end) = (number * HEAD, (number + 1) * HEAD);
                    let seen = out.chunks(width).flat_map(|row| row[at..end].to_vec());
                    for (x, y) in seen.zip(&wanted) {
                        prop_assert!((f64::from(x) - y).abs() < 1e-4, "{x} {y}");
                    }
                    let found = bits(&out);
                    prop_assert_eq!(first.get_or_insert_with(|| found.clone()), &found);
                    // Some of the rows alone.
                    let some = Head { asking: count / 3..count, ..head.clone() };
                    let from = count / 3 * width;
                    out[from..].fill(0.0);
                    dispatch!(level, attend(0.25, some, &mut room, &mut out[from..]));
                    prop_assert_eq!(bits(&out), found);
                }
            }
        }

        #[test]
        fn exponentials_are_near(x in -90.0f32..=0.0) {
            let wanted = libm::exp(f64::from(x));
            let found = f64::from(portable::exp(x));
            prop_assert!((found - wanted).abs() <= 3e-7 * wanted + 2e-38, "{found} {wanted}");
        }

        #[test]
        fn the_unit_is_near(x in -6.0f32..6.0) {
            let exact = f64::from(x);
            let wanted = 0.5 * exact * (1.0 + libm::erf(exact * std::f64::consts::FRAC_1_SQRT_2));
            prop_assert!((f64::from(portable::unit(x)) - wanted).abs() < 2e-5);
        }
    }

    /// What attention is, in `f64`.
    fn plain_attention(head: &Head<'_>) -> Vec<f64> {
        let (width, at) = (head.heads * HEAD, head.number * HEAD);
        let part = |row: &[f32], which: usize| -> Vec<f64> {
            let numbers = &row[which * width + at..][..HEAD];
            numbers.iter().map(|x| f64::from(*x)).collect()
        };
        let rows: Vec<&[f32]> = head.rows.chunks(3 * width).collect();
        let mut out = Vec::new();
        for query in rows.iter().map(|row| part(row, 0)) {
            let score = |row: &&[f32]| -> f64 {
                let products = query.iter().zip(part(row, 1)).map(|(a, b)| a * b);
                libm::exp(0.25 * products.sum::<f64>())
            };
            let shares: Vec<f64> = rows.iter().map(score).collect();
            let total: f64 = shares.iter().sum();
            for i in 0..HEAD {
                let weighed = rows.iter().zip(&shares).map(|(row, s)| s * part(row, 2)[i]);
                out.push(weighed.sum::<f64>() / total);
            }
        }
        out
    }
}
