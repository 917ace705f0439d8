//! The registers that products with weights run in: a panel's step is two of AVX2's or one of
//! AVX-512's. Compilers spill the portable form's sums; these name what stays in a register.

use crate::network::{self, Head, Room};
use crate::weights::{Lanes, PANEL, Rows, Weights, multiply_with};
use std::arch::x86_64::*;

/// [`Weights::multiply`] with AVX2.
#[target_feature(enable = "avx2,fma")]
pub fn avx2(weights: &Weights, x: Rows<'_>, out: &mut [f32]) {
    multiply_with::<Two, 1>(weights, x, out);
}

/// [`Weights::multiply`] with AVX-512.
#[target_feature(enable = "avx2,fma,avx512f")]
pub fn avx512(weights: &Weights, x: Rows<'_>, out: &mut [f32]) {
    multiply_with::<One, 2>(weights, x, out);
}

/// [`network::attend`] with AVX2.
#[target_feature(enable = "avx2,fma")]
pub fn attend_avx2(scale: f32, head: Head<'_>, room: &mut Room, out: &mut [f32]) {
    network::attend_with::<Two, 4>(scale, head, room, out);
}

/// [`network::attend`] with AVX-512.
#[target_feature(enable = "avx2,fma,avx512f")]
pub fn attend_avx512(scale: f32, head: Head<'_>, room: &mut Room, out: &mut [f32]) {
    network::attend_with::<One, 8>(scale, head, room, out);
}

/// Half of a step's numbers.
const HALF: usize = PANEL / 2;

/// Only [`avx2`] makes any.
#[derive(Clone, Copy)]
struct Two(__m256, __m256);

/// Only [`avx512`] makes any.
#[derive(Clone, Copy)]
struct One(__m512);

impl Lanes for Two {
    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: who made this kind has the instructions; so below.
        unsafe { Self(_mm256_setzero_ps(), _mm256_setzero_ps()) }
    }

    #[inline(always)]
    fn load(step: &[f32; PANEL]) -> Self {
        let (low, high) = step.split_at(HALF);
        // SAFETY: eight readable numbers each; the loads ask for no alignment.
        unsafe {
            Self(
                _mm256_loadu_ps(low.as_ptr()),
                _mm256_loadu_ps(high.as_ptr()),
            )
        }
    }

    #[inline(always)]
    fn fused(self, a: f32, step: Self) -> Self {
        // SAFETY: as for `zero`.
        unsafe {
            let a = _mm256_set1_ps(a);
            Self(
                _mm256_fmadd_ps(a, step.0, self.0),
                _mm256_fmadd_ps(a, step.1, self.1),
            )
        }
    }

    #[inline(always)]
    fn store(self) -> [f32; PANEL] {
        let mut out = [0.0; PANEL];
        let (low, high) = out.split_at_mut(HALF);
        // SAFETY: eight writable numbers each; the stores ask for no alignment.
        unsafe {
            _mm256_storeu_ps(low.as_mut_ptr(), self.0);
            _mm256_storeu_ps(high.as_mut_ptr(), self.1);
        }
        out
    }

    #[inline(always)]
    fn total(self) -> f32 {
        // SAFETY: as for `zero`.
        unsafe { total(_mm256_add_ps(self.0, self.1)) }
    }

    #[inline(always)]
    fn greatest(self) -> f32 {
        // SAFETY: as for `zero`.
        unsafe { greatest(_mm256_max_ps(self.0, self.1)) }
    }
}

/// Makes a function that brings eight numbers together: the halves with each other, until one
/// is left.
macro_rules! together {
    ($(#[$doc:meta])* $name:ident, $with:ident) => {
        $(#[$doc])*
        #[inline]
        #[target_feature(enable = "avx")]
        fn $name(lanes: __m256) -> f32 {
            let four = $with(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
            let two = $with(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32($with(two, _mm_movehdup_ps(two)))
        }
    };
}
together!(
    /// Their sum.
    total, _mm_add_ps
);
together!(
    /// The greatest.
    greatest, _mm_max_ps
);

impl Lanes for One {
    #[inline(always)]
    fn zero() -> Self {
        // SAFETY: who made this kind has the instructions; so below.
        unsafe { Self(_mm512_setzero_ps()) }
    }

    #[inline(always)]
    fn load(step: &[f32; PANEL]) -> Self {
        // SAFETY: sixteen readable numbers; the load asks for no alignment.
        unsafe { Self(_mm512_loadu_ps(step.as_ptr())) }
    }

    #[inline(always)]
    fn fused(self, a: f32, step: Self) -> Self {
        // SAFETY: as for `zero`.
        unsafe { Self(_mm512_fmadd_ps(_mm512_set1_ps(a), step.0, self.0)) }
    }

    #[inline(always)]
    fn store(self) -> [f32; PANEL] {
        let mut out = [0.0; PANEL];
        // SAFETY: sixteen writable numbers; the store asks for no alignment.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), self.0) };
        out
    }

    #[inline(always)]
    fn total(self) -> f32 {
        // SAFETY: as for `zero`.
        unsafe { self.halves().total() }
    }

    #[inline(always)]
    fn greatest(self) -> f32 {
        // SAFETY: as for `zero`.
        unsafe { self.halves().greatest() }
    }
}

impl One {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn halves(self) -> Two {
        let high = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(self.0));
        Two(_mm512_castps512_ps256(self.0), _mm256_castpd_ps(high))
    }
}
