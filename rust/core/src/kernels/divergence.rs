//! Divergence of each row from the window before it (eq. 6-7).

use super::{refuse, rows, same_length};
use crate::error::Result;
use crate::score::divergence::Sum;

/// For each row of `vectors`, 1 - cosine to the sum of the `window` rows before it.
///
/// # Errors
/// Where there are no columns, the window is empty, or lengths differ.
pub fn divergence(vectors: &[i16], width: usize, window: usize, out: &mut [f64]) -> Result<()> {
    let all = rows("vectors", vectors, width)?;
    same_length("out", out.len(), "vectors", all.len())?;
    if window == 0 {
        return refuse("window is 0; it must hold at least one vector");
    }
    let mut sum = Sum::default();
    for (at, (row, out)) in all.zip(out).enumerate() {
        *out = sum.divergence(row);
        sum.add(row);
        if at >= window {
            let oldest = at - window;
            sum.take_off(&vectors[oldest * width..(oldest + 1) * width]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::divergence::Window;
    use crate::score::vector::quantise;

    #[test]
    fn one_call_gives_what_the_engines_window_gives() {
        for (n, width, length) in [(0, 3, 1), (1, 3, 10), (40, 5, 1), (60, 17, 10), (20, 8, 50)] {
            let data: Vec<Vec<i16>> = (0..n)
                .map(|i| {
                    let row: Vec<f32> =
                        (0..width).map(|j| ((i * 7 + j * 3) as f32).sin()).collect();
                    quantise(&row)
                })
                .collect();
            let mut window = Window::new(length);
            let mut expected = Vec::new();
            for (id, row) in (0u64..).zip(&data) {
                expected.push(window.divergence(row));
                window.push(id, row);
            }
            let mut out = vec![9.0; n];
            divergence(&data.concat(), width, length, &mut out).unwrap();
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn an_empty_window_or_row_is_refused() {
        assert!(divergence(&[1, 2], 2, 0, &mut [0.0]).is_err());
        assert!(divergence(&[], 0, 1, &mut []).is_err());
        assert!(divergence(&[1, 2, 3], 2, 1, &mut [0.0]).is_err());
    }
}
