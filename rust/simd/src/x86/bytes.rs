//! The registers that products of bytes run in.

use crate::bytes::{ByteWeights, DEPTH, PANEL, Step, Sums};
use std::arch::x86_64::*;

/// Rows that share the weights in a register.
const ROWS: usize = 4;

/// A block with AVX2: two products are added in 16 bits, which weights of up to 64 never fill.
#[target_feature(enable = "avx2")]
pub fn avx2(weights: &ByteWeights, column: usize, x: &[u8], count: usize, sums: &mut Sums) {
    let (left, right) = weights.panels_at(column);
    let inner = weights.inner;
    for (x, sums) in x
        .chunks_exact(ROWS * inner)
        .zip(sums.chunks_exact_mut(ROWS))
        .take(count.div_ceil(ROWS))
    {
        for (p, panel) in [left, right].into_iter().enumerate() {
            let mut lanes = [[_mm256_setzero_si256(); 2]; ROWS];
            for (k, step) in panel.iter().enumerate() {
                let (low, high) = step.0.split_at(32);
                // SAFETY: 32 readable bytes each; the loads ask for no alignment.
                let halves = unsafe {
                    [
                        _mm256_loadu_si256(low.as_ptr().cast()),
                        _mm256_loadu_si256(high.as_ptr().cast()),
                    ]
                };
                for (r, lanes) in lanes.iter_mut().enumerate() {
                    let four = _mm256_set1_epi32(four(x, r * inner + k * DEPTH));
                    for (sum, half) in lanes.iter_mut().zip(halves) {
                        let pairs = _mm256_maddubs_epi16(four, half);
                        let fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                        *sum = _mm256_add_epi32(*sum, fours);
                    }
                }
            }
            for (lanes, sums) in lanes.iter().zip(&mut *sums) {
                let out = &mut sums[p * PANEL..][..PANEL];
                // SAFETY: sixteen writable numbers; the stores ask for no alignment.
                unsafe {
                    _mm256_storeu_si256(out.as_mut_ptr().cast(), lanes[0]);
                    _mm256_storeu_si256(out[PANEL / 2..].as_mut_ptr().cast(), lanes[1]);
                }
            }
        }
    }
}

/// Four bytes of a row, as they lie.
#[inline(always)]
fn four(x: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(std::array::from_fn(|i| x[at + i]))
}

/// A block with AVX-512.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
pub fn avx512(weights: &ByteWeights, column: usize, x: &[u8], count: usize, sums: &mut Sums) {
    let (left, right) = weights.panels_at(column);
    let inner = weights.inner;
    for (x, sums) in x
        .chunks_exact(ROWS * inner)
        .zip(sums.chunks_exact_mut(ROWS))
        .take(count.div_ceil(ROWS))
    {
        rows(inner, left, right, x, sums);
    }
}

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn rows(inner: usize, left: &[Step], right: &[Step], x: &[u8], sums: &mut [[i32; 2 * PANEL]]) {
    let mut lanes = [[_mm512_setzero_si512(); 2]; ROWS];
    for (k, (left, right)) in left.iter().zip(right).enumerate() {
        // SAFETY: 64 readable bytes each; the loads ask for no alignment.
        let both = unsafe {
            [
                _mm512_loadu_si512(left.0.as_ptr().cast()),
                _mm512_loadu_si512(right.0.as_ptr().cast()),
            ]
        };
        for (r, lanes) in lanes.iter_mut().enumerate() {
            let four = _mm512_set1_epi32(four(x, r * inner + k * DEPTH));
            for (sum, w) in lanes.iter_mut().zip(both) {
                *sum = _mm512_dpbusd_epi32(*sum, four, w);
            }
        }
    }
    for (lanes, sums) in lanes.iter().zip(sums) {
        for (sum, out) in lanes.iter().zip(sums.chunks_exact_mut(PANEL)) {
            // SAFETY: sixteen writable numbers; the stores ask for no alignment.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), *sum) };
        }
    }
}
