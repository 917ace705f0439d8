//! Token vectors that know their neighbours: layers of which each sees one token more to
//! either side.

use crate::Misfit;
use ebbtide_simd::maxout::{Maxout, add_greatest};
use ebbtide_simd::weights::Weights;

/// Rows that a layer sees at once: a token and its neighbours.
const SEEN: usize = 3;

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
    greatest: Maxout,
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
            greatest: Maxout {
                bias: bias.to_vec(),
                scale: scale.to_vec(),
                shift: shift.to_vec(),
            },
        })
    }

    /// Passes all rows but the first and the last, which are seen by their neighbours alone;
    /// those that were passed. `room` is anything.
    fn pass<'r>(&self, rows: &'r mut [f32], room: &mut Vec<f32>) -> &'r mut [f32] {
        let (width, pieces) = (self.greatest.scale.len(), self.greatest.bias.len());
        let count = (rows.len() / width).saturating_sub(SEEN - 1);
        room.resize(count * pieces, 0.0);
        self.weights.multiply_windows(rows, width, room);
        let passed = rows.get_mut(width..(count + 1) * width).unwrap_or_default();
        add_greatest(&self.greatest, room, passed);
        passed
    }
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
        let (mut text, mut room) = (Vec::new(), Vec::new());
        let mut from = 0;
        for length in lengths {
            let to = from + length * width;
            let around = self.layers.len() * width;
            text.clear();
            text.resize(around, 0.0);
            text.extend_from_slice(&rows[from..to]);
            text.resize(text.len() + around, 0.0);
            let mut passed = &mut text[..];
            for layer in &self.layers {
                passed = layer.pass(passed, &mut room);
            }
            out.extend_from_slice(passed);
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
            rows = layer.pass(&mut edged, &mut Vec::new()).to_vec();
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
