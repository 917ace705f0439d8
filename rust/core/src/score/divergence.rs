//! Semantic divergence from the recent conversation (eq. 6-7), in exact integers.

use std::collections::VecDeque;

/// The last W unit vectors and their running sum.
///
/// The sum is kept in 64-bit integers, so adding the newest and taking off the
/// oldest gives exactly the sum of the window: no drift, no order.
#[derive(Debug, Clone)]
pub struct Window {
    capacity: usize,
    vectors: VecDeque<(u64, Vec<i16>)>,
    sum: Vec<i64>,
}

impl Window {
    /// An empty window of `capacity` vectors.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            vectors: VecDeque::new(),
            sum: Vec::new(),
        }
    }

    /// D = 1 - cos, in [0, 2]; 0 for the first turn and for a zero vector (eq. 7).
    pub fn divergence(&self, vector: &[i16]) -> f64 {
        if self.sum.len() != vector.len() {
            return 0.0;
        }
        let (mut dot, mut vv, mut ss) = (0i64, 0i64, 0i128);
        for (x, s) in vector.iter().zip(&self.sum) {
            let x = i64::from(*x);
            dot += x * s;
            vv += x * x;
            ss += i128::from(*s) * i128::from(*s);
        }
        if vv == 0 || ss == 0 {
            return 0.0;
        }
        #[allow(clippy::cast_precision_loss)]
        let cosine = dot as f64 / ((vv as f64).sqrt() * (ss as f64).sqrt());
        1.0 - cosine.clamp(-1.0, 1.0)
    }

    /// Adds a turn's vector; the oldest leaves when the window is full.
    pub fn push(&mut self, id: u64, vector: &[i16]) {
        self.sum.resize(vector.len(), 0);
        for (s, x) in self.sum.iter_mut().zip(vector) {
            *s += i64::from(*x);
        }
        self.vectors.push_back((id, vector.to_vec()));
        if self.vectors.len() > self.capacity
            && let Some((_, old)) = self.vectors.pop_front()
        {
            for (s, x) in self.sum.iter_mut().zip(&old) {
                *s -= i64::from(*x);
            }
        }
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
            let mut sum = vec![0i64; 3];
            for (_, v) in &w.vectors {
                for (s, x) in sum.iter_mut().zip(v) {
                    *s += i64::from(*x);
                }
            }
            assert_eq!(sum, w.sum);
            assert!(w.vectors.len() <= 3);
        }
    }
}
