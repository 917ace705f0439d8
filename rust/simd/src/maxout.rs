//! What spaCy's layers do with their products: the greatest of pieces, and rows normalised as
//! numpy sums them.

use crate::dispatched;

/// The numbers of a layer but its weights.
#[derive(Debug, Clone)]
pub struct Maxout {
    /// Added to each piece: [width, pieces].
    pub bias: Vec<f32>,
    /// By which each normalised number is multiplied: [width].
    pub scale: Vec<f32>,
    /// Added to each: [width].
    pub shift: Vec<f32>,
}

dispatched!(
    /// Adds to each of `rows` what its products make: of the pieces of each number the greatest,
    /// normalised.
    ///
    /// `products` [rows, width, pieces] are overwritten; `rows` is [rows, width].
    add_greatest(layer: &Maxout, products: &mut [f32], rows: &mut [f32]),
    portable::add_greatest
);

/// Fills `out` with the greatest of every `pieces` numbers.
#[inline(always)]
pub fn greatest(numbers: &[f32], pieces: usize, out: &mut [f32]) {
    match pieces {
        // As many as spaCy's models have: known, they are compared side by side.
        2 => greatest_of(numbers.as_chunks::<2>().0, out),
        3 => greatest_of(numbers.as_chunks::<3>().0, out),
        _ => greatest_of(numbers.chunks_exact(pieces), out),
    }
}

#[inline(always)]
fn greatest_of(groups: impl IntoIterator<Item = impl AsRef<[f32]>>, out: &mut [f32]) {
    for (group, out) in groups.into_iter().zip(out) {
        let (first, others) = group.as_ref().split_at(1);
        let others = others.iter();
        *out = others.fold(first[0], |most, x| if *x > most { *x } else { most });
    }
}

mod portable {
    use super::{Maxout, greatest};

    /// Added to a variance so that it divides.
    const LEAST: f32 = 1e-8;

    #[inline(always)]
    pub fn add_greatest(layer: &Maxout, products: &mut [f32], rows: &mut [f32]) {
        let (width, all) = (layer.scale.len(), layer.bias.len());
        let mut made = vec![0.0; width];
        for (products, row) in products
            .chunks_exact_mut(all)
            .zip(rows.chunks_exact_mut(width))
        {
            for (product, bias) in products.iter_mut().zip(&layer.bias) {
                *product += bias;
            }
            greatest(products, all / width, &mut made);
            normalise(layer, &mut made);
            for (x, made) in row.iter_mut().zip(&made) {
                *x += made;
            }
        }
    }

    #[inline(always)]
    fn normalise(layer: &Maxout, row: &mut [f32]) {
        let count = row.len() as f32;
        let mean = sum(row, |x| x) / count;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
        let deviation = (variance + LEAST).sqrt();
        for ((x, scale), shift) in row.iter_mut().zip(&layer.scale).zip(&layer.shift) {
            *x = (*x - mean) / deviation * scale + shift;
        }
    }

    /// Sums that run side by side.
    const SIDE_BY_SIDE: usize = 8;
    /// Numbers that are summed in one go.
    const MOST: usize = 128;

    /// The sum of what is made of numbers, in the order of numpy's: eight sums side by side, or
    /// of many numbers halves that are summed by themselves.
    #[inline(always)]
    pub fn sum(numbers: &[f32], of: impl Fn(f32) -> f32 + Copy) -> f32 {
        if numbers.len() > MOST {
            return halves(numbers, of);
        }
        few(numbers, of)
    }

    fn halves<F: Fn(f32) -> f32 + Copy>(numbers: &[f32], of: F) -> f32 {
        let count = numbers.len();
        if count <= MOST {
            return few(numbers, of);
        }
        let (left, right) = numbers.split_at(count / 2 - count / 2 % SIDE_BY_SIDE);
        halves(left, of) + halves(right, of)
    }

    #[inline(always)]
    fn few(numbers: &[f32], of: impl Fn(f32) -> f32 + Copy) -> f32 {
        let (groups, rest) = numbers.as_chunks::<SIDE_BY_SIDE>();
        let mut groups = groups.iter();
        let first = groups.next().map_or(0.0, |group| {
            let mut sums = group.map(of);
            for group in groups {
                sums.iter_mut().zip(group).for_each(|(s, x)| *s += of(*x));
            }
            let [a, b, c, d, e, f, g, h] = sums;
            ((a + b) + (c + d)) + ((e + f) + (g + h))
        });
        rest.iter().fold(first, |sum, x| sum + of(*x))
    }
}

#[cfg(test)]
mod tests {
    use super::portable::{self, sum};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sums_run_as_numpys() {
        // What numpy 2.4 gives for the sum of 1 / (i + 1), as bits.
        let numbers = |count: usize| -> Vec<f32> { (1..=count).map(|i| 1.0 / i as f32).collect() };
        for (count, bits) in SUMS {
            assert_eq!(sum(&numbers(count), |x| x).to_bits(), bits, "{count}");
        }
    }

    const SUMS: [(usize, u32); 7] = [
        (0, 0),
        (3, 1072343723),
        (8, 1076752736),
        (96, 1084535370),
        (128, 1085135960),
        (129, 1085152218),
        (300, 1086917527),
    ];

    fn numbers(count: usize) -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-2.0f32..2.0, count)
    }

    proptest! {
        #[test]
        fn wide_registers_give_the_bits_of_single_numbers(
            (bias, scale, shift, products, rows) in (1usize..40, 1usize..5, 0usize..4).prop_flat_map(
                |(width, pieces, rows)| (
                    numbers(width * pieces),
                    numbers(width),
                    numbers(width),
                    numbers(rows * width * pieces),
                    numbers(rows * width),
                ),
            ),
        ) {
            let layer = Maxout { bias, scale, shift };
            let (mut wide, mut single) = (rows.clone(), rows);
            add_greatest(&layer, &mut products.clone(), &mut wide);
            portable::add_greatest(&layer, &mut products.clone(), &mut single);
            let bits = |rows: &[f32]| -> Vec<u32> { rows.iter().map(|x| x.to_bits()).collect() };
            prop_assert_eq!(bits(&wide), bits(&single));
        }
    }
}
