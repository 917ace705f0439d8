//! A 16-bit vector as two planes of bytes, `x = step * high + low`.

use crate::{ROUNDING, dispatched};

/// Numbers whose squares are summed in 32 bits: each is at most 255 squared.
const PART: usize = 4096;

dispatched!(
    /// Splits a vector. The step is the least that lets the high part fit a byte, 1 to 256;
    /// the second number is the square of twice the length of the low part less its middle,
    /// `(step - 1) / 2`.
    ///
    /// # Panics
    /// If the three differ in length.
    split(row: &[i16], high: &mut [i8], low: &mut [u8]) -> (u16, u64),
    split_portable
);

/// How a row's planes are put together.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// 1 to 256.
    pub step: u16,
    /// Length of the low bytes less their middle, rounded up.
    pub residual: u16,
}

impl Scale {
    /// How far a row's dot product with a query of that length may lie from the middle that
    /// the high bytes give: the low bytes less their middle add at most their length times
    /// the query's. The one more covers the rounding of the middle.
    #[inline(always)]
    pub fn reach(self, length: f64) -> f64 {
        length * f64::from(self.residual) + 1.0
    }
}

dispatched!(
    /// Numbers that the dot products of a query with rows cannot pass, from those with the
    /// high bytes: the middle and the [reach](Scale::reach). `sum` is that of the query's
    /// numbers, `length` the query's. The three slices are as long.
    uppers(dots: &[i32], scales: &[Scale], sum: f64, length: f64, out: &mut [f64]),
    uppers_portable
);

#[inline(always)]
fn uppers_portable(dots: &[i32], scales: &[Scale], sum: f64, length: f64, out: &mut [f64]) {
    for ((dot, scale), out) in dots.iter().zip(scales).zip(out) {
        let step = f64::from(scale.step);
        let middle = step * f64::from(*dot) + 0.5 * (step - 1.0) * sum;
        *out = middle + scale.reach(length);
    }
}

#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss
)]
fn split_portable(row: &[i16], high: &mut [i8], low: &mut [u8]) -> (u16, u64) {
    assert!(row.len() == high.len() && row.len() == low.len());
    let most = row.iter().fold(0, |most, x| x.unsigned_abs().max(most));
    let step = (i32::from(most) / 128 + 1).min(256);
    let inverse = 1.0 / step as f32;
    let mut square = 0;
    let parts = row.chunks(PART).zip(high.chunks_mut(PART));
    for ((row, high), low) in parts.zip(low.chunks_mut(PART)) {
        let mut sum = 0u32;
        for ((x, h), l) in row.iter().zip(high).zip(low) {
            let x = i32::from(*x) + 128 * step;
            // The quotient of whole numbers below 2^16 by the step: half a unit either side
            // of its middle, which f32 misses by less than 2^-14, is no nearer than 1 / 512
            // to another whole number. The addition rounds to the nearest, without a branch.
            let middle = (x as f32 + 0.5) * inverse - 0.5;
            let quotient = ((middle + ROUNDING).to_bits() & 0x1FF) as i32;
            let rest = x - quotient * step;
            *h = (quotient - 128) as i8;
            *l = rest as u8;
            let twice = 2 * rest - (step - 1);
            sum += (twice * twice) as u32;
        }
        square += u64::from(sum);
    }
    (step as u16, square)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn held(row: &[i16]) {
        let most = row
            .iter()
            .map(|x| i32::from(*x).abs())
            .max()
            .unwrap_or_default();
        let step = (most / 128 + 1).min(256);
        let high: Vec<i32> = row.iter().map(|x| i32::from(*x).div_euclid(step)).collect();
        let low: Vec<i32> = row.iter().map(|x| i32::from(*x).rem_euclid(step)).collect();
        let square: i64 = low
            .iter()
            .map(|l| i64::from(2 * l - (step - 1)).pow(2))
            .sum();
        for form in [split, split_portable] {
            let (mut h, mut l) = (vec![0; row.len()], vec![0; row.len()]);
            let found = form(row, &mut h, &mut l);
            assert_eq!(found, (step as u16, square as u64));
            assert!(h.iter().map(|x| i32::from(*x)).eq(high.iter().copied()));
            assert!(l.iter().map(|x| i32::from(*x)).eq(low.iter().copied()));
        }
    }

    /// Every number at every step.
    #[test]
    fn the_quotients_are_those_of_whole_numbers() {
        for step in 1..=256 {
            let most = (128 * step - 1).min(32_767);
            let row: Vec<i16> = (-most..=most).map(|x| x as i16).collect();
            held(&row);
        }
        held(&[i16::MIN, 0, i16::MAX]);
        held(&[]);
    }

    proptest! {
        #[test]
        fn any_row_is_held(row in prop::collection::vec(any::<i16>(), 0..500), by in 1i16..300) {
            held(&row.iter().map(|x| x / by).collect::<Vec<_>>());
        }
    }
}
