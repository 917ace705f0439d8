//! Products and sums of 16-bit vectors with a running sum, in f64.
//!
//! All numbers are whole. While no partial sum passes 2^53, every one is exact, so its
//! order and the width of the registers do not matter; that is for the caller to see to.

use crate::dispatched;

/// Numbers added side by side.
const LANES: usize = 16;

dispatched!(
    /// v·S, v·v and S·S, over the length of the shorter.
    products(vector: &[i16], sum: &[f64]) -> [f64; 3],
    products_portable
);
dispatched!(
    /// Adds a vector to the sum.
    add(sum: &mut [f64], vector: &[i16]),
    add_portable
);
dispatched!(
    /// Takes a vector off the sum.
    take_off(sum: &mut [f64], vector: &[i16]),
    take_off_portable
);

#[inline(always)]
fn products_portable(vector: &[i16], sum: &[f64]) -> [f64; 3] {
    let length = vector.len().min(sum.len());
    let (mut dot, mut vv, mut ss) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    let (rows, rest) = vector[..length].as_chunks::<LANES>();
    let (sums, rest_sums) = sum[..length].as_chunks::<LANES>();
    for (row, sum) in rows.iter().zip(sums) {
        for i in 0..LANES {
            let x = f64::from(row[i]);
            dot[i] += x * sum[i];
            vv[i] += x * x;
            ss[i] += sum[i] * sum[i];
        }
    }
    for (x, s) in rest.iter().zip(rest_sums) {
        let x = f64::from(*x);
        dot[0] += x * s;
        vv[0] += x * x;
        ss[0] += s * s;
    }
    [dot, vv, ss].map(|lanes| lanes.iter().sum())
}

#[inline(always)]
fn add_portable(sum: &mut [f64], vector: &[i16]) {
    for (s, x) in sum.iter_mut().zip(vector) {
        *s += f64::from(*x);
    }
}

#[inline(always)]
fn take_off_portable(sum: &mut [f64], vector: &[i16]) {
    for (s, x) in sum.iter_mut().zip(vector) {
        *s -= f64::from(*x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_width_gives_the_exact_numbers(
            rows in prop::collection::vec(prop::collection::vec(any::<i16>(), 45), 1..12),
            length in 0usize..45,
        ) {
            let (first, others) = rows.split_first().unwrap();
            let mut sum = vec![0.0; length];
            for row in others {
                add(&mut sum, row);
            }
            let exact: Vec<i64> = (0..length)
                .map(|i| others.iter().map(|r| i64::from(r[i])).sum())
                .collect();
            prop_assert!(sum.iter().zip(&exact).all(|(s, e)| *s as i64 == *e));
            let v: Vec<i64> = first[..length].iter().map(|x| i64::from(*x)).collect();
            let product = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<i64>() as f64;
            let wanted = [product(&v, &exact), product(&v, &v), product(&exact, &exact)];
            prop_assert_eq!(products(first, &sum), wanted);
            prop_assert_eq!(products_portable(first, &sum), wanted);
            for row in others {
                take_off(&mut sum, row);
            }
            prop_assert!(sum.iter().all(|s| *s == 0.0));
        }
    }
}
