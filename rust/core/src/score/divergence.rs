//! Semantic divergence from the recent conversation (eq. 6-7), in exact integers.

use ebbtide_simd::sums;
use std::collections::VecDeque;

/// Whole numbers up to here are exact in f64.
const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53

/// The running sum of the vectors of a window.
///
/// Its components are whole numbers in f64, far below 2^53, so adding the newest
/// and taking off the oldest gives exactly the sum of the window: no drift, no order.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    total: Vec<f64>,
    /// Vectors that were added and not taken off.
    count: u32,
}

impl Sum {
    /// Adds a vector; the dimension is that of the newest.
    pub fn add(&mut self, vector: &[i16]) {
        self.total.resize(vector.len(), 0.0);
        self.count += 1;
        sums::add(&mut self.total, vector);
    }

    /// Takes a vector off that was added before.
    pub fn take_off(&mut self, vector: &[i16]) {
        self.count -= 1;
        sums::take_off(&mut self.total, vector);
    }

    /// D = 1 - cos, in [0, 2]; 0 for the first turn and for a zero vector (eq. 7).
    pub fn divergence(&self, vector: &[i16]) -> f64 {
        if self.total.len() != vector.len() {
            return 0.0;
        }
        let (dot, vv, ss) = self.products(vector);
        if vv == 0.0 || ss == 0.0 {
            return 0.0;
        }
        let cosine = dot / (vv.sqrt() * ss.sqrt());
        1.0 - cosine.clamp(-1.0, 1.0)
    }

    /// v·S, v·v and S·S, each rounded once.
    fn products(&self, vector: &[i16]) -> (f64, f64, f64) {
        #[allow(clippy::cast_precision_loss)]
        let most = (f64::from(self.count) * 32_768.0).powi(2) * vector.len() as f64;
        if most > EXACT {
            return self.wide_products(vector);
        }
        // No partial sum exceeds `most`, so every one is exact in any order.
        let [dot, vv, ss] = sums::products(vector, &self.total);
        (dot, vv, ss)
    }

    /// The same for windows so long that the products need more than 53 bits.
    fn wide_products(&self, vector: &[i16]) -> (f64, f64, f64) {
        let (mut dot, mut vv, mut ss) = (0i128, 0i128, 0i128);
        for (x, s) in vector.iter().zip(&self.total) {
            #[allow(clippy::cast_possible_truncation)]
            let (x, s) = (i128::from(*x), *s as i128);
            dot += x * s;
            vv += x * x;
            ss += s * s;
        }
        #[allow(clippy::cast_precision_loss)]
        let rounded = (dot as f64, vv as f64, ss as f64);
        rounded
    }
}

/// The last W unit vectors and their running sum.
#[derive(Debug, Clone)]
pub struct Window {
    capacity: usize,
    vectors: VecDeque<(u64, Vec<i16>)>,
    sum: Sum,
}

impl Window {
    /// An empty window of `capacity` vectors.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            vectors: VecDeque::new(),
            sum: Sum::default(),
        }
    }

    /// D = 1 - cos, in [0, 2]; 0 for the first turn and for a zero vector (eq. 7).
    pub fn divergence(&self, vector: &[i16]) -> f64 {
        self.sum.divergence(vector)
    }

    /// Adds a turn's vector; the oldest leaves when the window is full.
    pub fn push(&mut self, id: u64, vector: &[i16]) {
        self.sum.add(vector);
        let mut room = Vec::new();
        if self.vectors.len() >= self.capacity
            && let Some((_, old)) = self.vectors.pop_front()
        {
            self.sum.take_off(&old);
            room = old;
        }
        room.clear();
        room.extend_from_slice(vector);
        self.vectors.push_back((id, room));
    }

    /// Whether the window holds that turn's vector.
    pub fn contains(&self, id: u64) -> bool {
        self.vectors.iter().any(|(i, _)| *i == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::vector::quantise;

    #[test]
    fn the_first_turn_and_the_zero_vector_do_not_diverge() {
        let mut w = Window::new(2);
        let x = quantise(&[1.0, 0.0]);
        assert!(w.divergence(&x).abs() < 1e-12);
        w.push(0, &x);
        assert!(w.divergence(&[0, 0]).abs() < 1e-12);
        assert!((w.divergence(&quantise(&[0.0, 1.0])) - 1.0).abs() < 1e-12);
        assert!((w.divergence(&quantise(&[-1.0, 0.0])) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_running_sum_equals_the_window() {
        let mut w = Window::new(3);
        for i in 0..50u8 {
            let angle = f32::from(i);
            w.push(u64::from(i), &quantise(&[angle.sin(), angle.cos(), 0.3]));
            let mut sum = vec![0.0; 3];
            for (_, v) in &w.vectors {
                for (s, x) in sum.iter_mut().zip(v) {
                    *s += f64::from(*x);
                }
            }
            assert_eq!(sum, w.sum.total);
            assert!(w.vectors.len() <= 3);
        }
    }
    #[test]
    fn narrow_and_wide_products_agree() {
        let mut sum = Sum::default();
        for i in 0..40i16 {
            let row: Vec<i16> = (0..383i16)
                .map(|j| (i * 211 + j * 37) % 8191 - 4000)
                .collect();
            assert_eq!(sum.total.is_empty(), i == 0);
            if i > 0 {
                assert_eq!(sum.products(&row), sum.wide_products(&row));
            }
            sum.add(&row);
        }
    }

    #[test]
    fn a_window_of_a_million_is_still_exact() {
        let mut sum = Sum {
            total: vec![32_767.0 * 1e6; 384],
            count: 1_000_000,
        };
        let row = vec![32_767; 384];
        assert!(sum.divergence(&row).abs() < 1e-15);
        sum.take_off(&row);
        assert_eq!(sum.total[0], 32_767.0 * 999_999.0);
    }
}
