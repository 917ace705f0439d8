//! Token vectors that know their neighbours: layers of which each sees one token more to
//! either side.

use crate::{Misfit, add, greatest_of};
use ebbtide_simd::weights::Weights;

/// Rows that a layer sees at once: a token and its neighbours.
const SEEN: usize = 3;
/// Added to a variance so that it divides.
const LEAST: f32 = 1e-8;

/// The numbers of a layer.
#[derive(Debug, Clone, Copy)]
pub struct LayerNumbers<'a> {
    /// Of each piece of each number: [width, pieces, 3 · width].
    pub weights: &'a [f32],
    /// Added to each piece: [width, pieces].
    pub bias: &'a [f32],
    /// By which each normalised number is multiplied: [width].
    pub scale: &'a [f32],
    /// Added to each: [width].
    pub shift: &'a [f32],
}

/// Greatest pieces of what is seen, normalised, and the token itself added.
#[derive(Debug)]
struct Layer {
    weights: Weights,
    bias: Vec<f32>,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Layer {
    fn new(numbers: &LayerNumbers<'_>, width: usize) -> Result<Self, Misfit> {
        let seen = SEEN * width;
        let LayerNumbers {
            weights,
            bias,
            scale,
            shift,
        } = *numbers;
        let whole = width > 0 && !bias.is_empty() && bias.len().is_multiple_of(width);
        if !whole || weights.len() != bias.len() * seen || shift.len() != width {
            return Err(Misfit(format!(
                "{} weights and {} biases are not those of windows of {SEEN} tokens with {width} numbers",
                weights.len(),
                bias.len(),
            )));
        }
        Ok(Self {
            weights: Weights::new(weights, seen),
            bias: bias.to_vec(),
            scale: scale.to_vec(),
            shift: shift.to_vec(),
        })
    }

    /// From rows to two fewer, the first and the last being seen by their neighbours alone.
    fn pass(&self, rows: &[f32], room: &mut Room) {
        let width = self.scale.len();
        let seen = SEEN * width;
        let starts = (0..(rows.len() + width).saturating_sub(seen)).step_by(width);
        room.windows.clear();
        starts.for_each(|from| room.windows.extend_from_slice(&rows[from..from + seen]));
        let pieces = self.bias.len() / width;
        room.products
            .resize(room.windows.len() / seen * self.bias.len(), 0.0);
        self.weights.multiply(&room.windows, &mut room.products);
        room.rows.clear();
        let products = room.products.chunks_exact_mut(self.bias.len());
        for (products, row) in products.zip(rows[width..].chunks_exact(width)) {
            add(products, &self.bias);
            let from = room.rows.len();
            room.rows.extend(greatest_of(products, pieces));
            self.normalise(&mut room.rows[from..]);
            add(&mut room.rows[from..], row);
        }
    }

    fn normalise(&self, row: &mut [f32]) {
        let count = row.len() as f32;
        let mean = sum(row, |x| x) / count;
        let variance = sum(row, |x| (x - mean) * (x - mean)) / count;
        let deviation = (variance + LEAST).sqrt();
        for ((x, scale), shift) in row.iter_mut().zip(&self.scale).zip(&self.shift) {
            *x = (*x - mean) / deviation * scale + shift;
        }
    }
}

/// The sum of what is made of numbers, in the order of numpy's: eight sums side by side for up
/// to 128 numbers, halves that are summed by themselves for more.
fn sum(numbers: &[f32], of: impl Fn(f32) -> f32 + Copy) -> f32 {
    const SIDE_BY_SIDE: usize = 8;
    const MOST: usize = 128;
    let count = numbers.len();
    if count > MOST {
        let half = count / 2 - count / 2 % SIDE_BY_SIDE;
        let (left, right) = numbers.split_at(half);
        return sum(left, of) + sum(right, of);
    }
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

/// Room for the rows of one text.
#[derive(Debug, Default)]
struct Room {
    windows: Vec<f32>,
    products: Vec<f32>,
    rows: Vec<f32>,
}

/// Layers, one after the other.
#[derive(Debug)]
pub struct Windows {
    width: usize,
    layers: Vec<Layer>,
}

impl Windows {
    /// From the numbers of each layer.
    ///
    /// # Errors
    /// They do not fit each other.
    pub fn new(layers: &[LayerNumbers<'_>]) -> Result<Self, Misfit> {
        let width = layers.first().map_or(0, |first| first.scale.len());
        let layers = layers.iter().map(|numbers| Layer::new(numbers, width));
        Ok(Self {
            width,
            layers: layers.collect::<Result<_, _>>()?,
        })
    }

    /// The rows of all texts, of which each has `lengths` tokens; before and after a text there
    /// are only zeros.
    ///
    /// # Errors
    /// The lengths do not add up to the rows.
    pub fn encode(&self, rows: &[f32], lengths: &[usize]) -> Result<Vec<f32>, Misfit> {
        let (told, width) = (lengths.iter().sum::<usize>(), self.width);
        if told * width != rows.len() {
            let given = rows.len();
            let message = format!("{told} tokens of {width} numbers, not of {given} in all");
            return Err(Misfit(message));
        }
        let mut out = Vec::with_capacity(rows.len());
        let mut room = Room::default();
        let (mut text, mut from) = (Vec::new(), 0);
        for length in lengths {
            let to = from + length * width;
            let around = self.layers.len() * width;
            text.clear();
            text.resize(around, 0.0);
            text.extend_from_slice(&rows[from..to]);
            text.resize(text.len() + around, 0.0);
            for layer in &self.layers {
                layer.pass(&text, &mut room);
                std::mem::swap(&mut text, &mut room.rows);
            }
            out.extend_from_slice(&text);
            from = to;
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The layer as spaCy computes it: all texts with as many zeros around each as there are
    /// layers, every layer over all rows.
    fn side_by_side(layers: &[LayerNumbers<'_>], width: usize, texts: &[Vec<f32>]) -> Vec<f32> {
        let around = vec![0.0; layers.len() * width];
        let mut rows = around.clone();
        for text in texts {
            rows.extend(text);
            rows.extend(&around);
        }
        for numbers in layers {
            let layer = Layer::new(numbers, width).expect("numbers that fit");
            let mut edged = vec![0.0; width];
            edged.extend(&rows);
            edged.extend(vec![0.0; width]);
            let mut room = Room::default();
            layer.pass(&edged, &mut room);
            rows = room.rows;
        }
        let mut out = Vec::new();
        let mut from = around.len();
        for text in texts {
            out.extend(&rows[from..from + text.len()]);
            from += text.len() + around.len();
        }
        out
    }

    fn numbers(count: usize) -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-2.0f32..2.0, count)
    }

    proptest! {
        #[test]
        fn a_text_does_not_see_its_neighbours(
            (width, layers, texts) in (1usize..5, 1usize..4).prop_flat_map(|(width, pieces)| (
                Just(width),
                prop::collection::vec(
                    (numbers(width * pieces * SEEN * width), numbers(width * pieces), numbers(width), numbers(width)),
                    0..4,
                ),
                prop::collection::vec((0usize..5).prop_flat_map(move |n| numbers(n * width)), 0..4),
            )),
        ) {
            let layers: Vec<LayerNumbers<'_>> = layers
                .iter()
                .map(|(weights, bias, scale, shift)| LayerNumbers { weights, bias, scale, shift })
                .collect();
            let lengths: Vec<usize> = texts.iter().map(|t| t.len() / width).collect();
            let windows = Windows::new(&layers).expect("numbers that fit");
            let rows = texts.concat();
            if !layers.is_empty() {
                let passed = windows.encode(&rows, &lengths).expect("rows that fit");
                prop_assert_eq!(passed, side_by_side(&layers, width, &texts));
                prop_assert!(windows.encode(&rows, &[lengths, vec![1]].concat()).is_err());
            }
        }
    }

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

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let one = [1.0; 1];
        let fits = LayerNumbers {
            weights: &[1.0; 6],
            bias: &[0.0; 2],
            scale: &one,
            shift: &one,
        };
        assert!(Windows::new(&[fits]).is_ok());
        let no_bias = LayerNumbers { bias: &[], ..fits };
        let few = LayerNumbers {
            weights: &[1.0; 5],
            ..fits
        };
        let wide = LayerNumbers {
            shift: &[1.0; 2],
            ..fits
        };
        for wrong in [no_bias, few, wide] {
            assert!(Windows::new(&[fits, wrong]).is_err());
        }
    }
}
