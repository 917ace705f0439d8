//! Token vectors in four bits a number.
//!
//! A row is a weight, two bytes, little end first, and then half a byte a number: byte
//! `i` holds number `i` low and number `i + half` high, each from -7 to 7. The weight is
//! 2^18 by the length of the numbers, so that weight and dot product together are the
//! dot product with a vector of length 2^18, whatever the steps of the row were.

/// Length of a row's vector, its weight taken in.
pub const LENGTH: f64 = (1u32 << 18) as f64;

/// Bytes of a weight.
const WEIGHT: usize = 2;
/// The greatest number.
const MOST: u8 = 7;

/// Bytes of a row of so many numbers.
#[must_use]
pub const fn row_bytes(dimension: usize) -> usize {
    WEIGHT + dimension.div_ceil(2)
}

/// Appends rows of `dimension` numbers each; a broken last one is left out.
///
/// # Panics
/// If `dimension` is 0.
pub fn pack(rows: &[i8], dimension: usize, out: &mut Vec<u8>) {
    let half = dimension.div_ceil(2);
    out.reserve(rows.len() / dimension * row_bytes(dimension));
    let mut numbers = vec![0u8; 2 * half];
    for row in rows.chunks_exact(dimension) {
        let square = quantise(row, &mut numbers[..dimension]);
        out.extend(weight(square).to_le_bytes());
        let (low, high) = numbers.split_at(half);
        out.extend(low.iter().zip(high).map(|(l, h)| (l & 0xf) | (h << 4)));
    }
}

/// The numbers of a row in steps of a seventh of three quarters of its greatest: more is
/// clipped, for the many small numbers say more than the few great ones. Returns the sum
/// of their squares.
fn quantise(row: &[i8], out: &mut [u8]) -> u32 {
    let most = row.iter().map(|x| x.unsigned_abs()).max().unwrap_or(0);
    // x * 28 / (3 * most), rounded, is at least n from 3 * most * (2 n - 1) / 56 on.
    let from = |n: u32| (3 * u32::from(most) * (2 * n - 1)).div_ceil(56);
    let steps: [u8; MOST as usize] =
        std::array::from_fn(|i| u8::try_from(from(i as u32 + 1)).unwrap_or(u8::MAX));
    if most == 0 {
        out.fill(0);
        return 0;
    }
    let mut square = 0u32;
    for (x, o) in row.iter().zip(out) {
        let size = x.unsigned_abs();
        let n = steps
            .iter()
            .fold(0u8, |n, step| n + u8::from(size >= *step));
        square += u32::from(n) * u32::from(n);
        *o = if *x < 0 { n.wrapping_neg() } else { n };
    }
    square
}

/// 2^18 by the root of a sum of squares, rounded; 0 for nothing.
fn weight(square: u32) -> u16 {
    if square == 0 {
        return 0;
    }
    let twice = ((1u64 << 38) / u64::from(square)).isqrt();
    u16::try_from(twice.div_ceil(2)).unwrap_or(u16::MAX)
}

/// A row's weight, and its numbers two a byte.
#[inline(always)]
pub(crate) fn weight_and_halves(row: &[u8]) -> (i32, &[u8]) {
    let (weight, bytes) = row.split_at(WEIGHT);
    let weight = u16::from_le_bytes([weight[0], weight[1]]);
    (i32::from(weight), bytes)
}

/// The numbers of a row; returns its weight.
#[inline(always)]
pub(crate) fn unpack(row: &[u8], out: &mut [i8]) -> i32 {
    let (weight, bytes) = weight_and_halves(row);
    let (low, high) = out.split_at_mut(bytes.len());
    for (o, b) in low.iter_mut().zip(bytes) {
        *o = (b << 4).cast_signed() >> 4;
    }
    for (o, b) in high.iter_mut().zip(bytes) {
        *o = b.cast_signed() >> 4;
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(rows: &[i8], dimension: usize) -> Vec<u8> {
        let mut out = Vec::new();
        pack(rows, dimension, &mut out);
        out
    }

    #[test]
    fn a_row_by_hand() {
        // Steps of 3 * 28 / 28 = 3: 28 and 21 are clipped or just fit, 4 is 1.33, 5 is 1.67.
        let row = packed(&[28, -21, 4, 5, 0], 5);
        assert_eq!(row.len(), row_bytes(5));
        let mut numbers = [0i8; 6];
        let weight = unpack(&row, &mut numbers);
        assert_eq!(numbers, [7, -7, 1, 2, 0, 0]);
        // 49 + 49 + 1 + 4 = 103: 262144 by 10.149.
        assert_eq!(weight, 25830);
    }

    #[test]
    fn nothing_and_one_number_fit() {
        assert_eq!(packed(&[0, 0, 0], 3), [0, 0, 0, 0]);
        let mut numbers = [0i8; 2];
        assert_eq!(unpack(&packed(&[-128], 1), &mut numbers), 37449);
        assert_eq!(numbers, [-7, 0]);
        assert!(packed(&[], 4).is_empty());
        assert_eq!(packed(&[1, 2, 3, 4, 5], 4).len(), row_bytes(4));
    }

    proptest! {
        #[test]
        fn the_direction_is_kept(row in prop::collection::vec(-40i8..=40, 384)) {
            prop_assume!(row.iter().any(|x| *x != 0));
            let mut numbers = vec![0i8; 384];
            let weight = f64::from(unpack(&packed(&row, 384), &mut numbers));
            let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
                row.iter().zip(&numbers).map(|(x, n)| f(f64::from(*x), f64::from(*n))).sum()
            };
            let (own, both, packed) = (sum(&|x, _| x * x), sum(&|x, n| x * n), sum(&|_, n| n * n));
            prop_assert!((packed.sqrt() * weight / LENGTH - 1.0).abs() < 1e-3);
            prop_assert!(both / (own * packed).sqrt() > 0.96);
        }
    }
}
