//! The forms for x86-64. AVX2's are the portable ones, compiled for wider registers, but for
//! late interaction; AVX-512's and AVX-VNNI's multiply and add four bytes in one step.

#![allow(unsafe_code)]

mod bytes;
mod late;
pub mod tiles;
mod weights;

use super::{Digits, portable};
use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Asks for the line of the cache in which the numbers begin.
#[inline]
pub fn prefetch<T>(line: &[T]) {
    // SAFETY: every x86-64 processor has the instruction, and it faults nowhere.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
}

/// The portable forms: the compiler turns their sums of products into `vpmaddwd`.
pub mod avx2 {
    pub use super::bytes::avx2 as bytes_block;
    pub use super::late::avx2::best;
    pub use super::weights::{attend_avx2 as attend, avx2 as multiply};
    use super::{Digits, portable};

    #[target_feature(enable = "avx2")]
    pub fn dot(a: &[i16], b: &[i16]) -> i32 {
        portable::dot(a, b)
    }

    #[target_feature(enable = "avx2")]
    pub fn dot_split(query: &[i16], high: &[i8], low: &[u8], step: i16) -> i32 {
        portable::dot_split(query, high, low, step)
    }

    #[target_feature(enable = "avx2")]
    pub fn dots(query: &Digits, rows: &[i8], out: &mut [i32]) {
        portable::dots(query, rows, out);
    }
}

/// AVX2's, but for products of bytes.
pub mod avx_vnni {
    pub use super::avx2::{attend, best, dot, dot_split, dots, multiply};
    pub use super::bytes::avx_vnni as bytes_block;
}

/// AVX-512 with VNNI. `vpdpbusd` multiplies unsigned with signed bytes: one side is made
/// unsigned by adding 128, and 128 times the other side's sum is taken off again.
pub mod avx512 {
    pub use super::bytes::avx512 as bytes_block;
    pub use super::late::avx512::best;
    pub use super::weights::{attend_avx512 as attend, avx512 as multiply};
    use super::{Digits, portable};
    use std::arch::x86_64::*;

    /// Rows are read faster than the memory brings them unasked: bytes from what is read to
    /// what is asked for.
    const AHEAD: usize = 16_384;
    /// Bytes of a register, and 16-bit numbers.
    const BYTES: usize = 64;
    const WIDE: usize = 32;

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn dot(a: &[i16], b: &[i16]) -> i32 {
        portable::dot(a, b)
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn dot_split(query: &[i16], high: &[i8], low: &[u8], step: i16) -> i32 {
        if !query.len().is_multiple_of(WIDE) {
            return portable::dot_split(query, high, low, step);
        }
        let step = _mm512_set1_epi16(step);
        let mut sum = _mm512_setzero_si512();
        let (queries, _) = query.as_chunks::<WIDE>();
        let (highs, _) = high.as_chunks::<WIDE>();
        let (lows, _) = low.as_chunks::<WIDE>();
        for ((q, h), l) in queries.iter().zip(highs).zip(lows) {
            // SAFETY: 64, 32 and 32 readable bytes; the loads ask for no alignment.
            let (q, h, l) = unsafe {
                (
                    _mm512_loadu_si512(q.as_ptr().cast()),
                    _mm256_loadu_si256(h.as_ptr().cast()),
                    _mm256_loadu_si256(l.as_ptr().cast()),
                )
            };
            let x = _mm512_mullo_epi16(_mm512_cvtepi8_epi16(h), step);
            let x = _mm512_add_epi16(x, _mm512_cvtepu8_epi16(l));
            sum = _mm512_dpwssd_epi32(sum, q, x);
        }
        _mm512_reduce_add_epi32(sum)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(bytes: &[i8; BYTES]) -> __m512i {
        // SAFETY: 64 readable bytes; the load asks for no alignment.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn dots(query: &Digits, rows: &[i8], out: &mut [i32]) {
        let d = query.query.len();
        if !d.is_multiple_of(BYTES) {
            return portable::dots(query, rows, out);
        }
        let sign = _mm512_set1_epi8(i8::MIN);
        let (highs, _) = query.high.as_chunks::<BYTES>();
        let (lows, _) = query.low.as_chunks::<BYTES>();
        let correction = query.sum.wrapping_mul(128);
        for (row, o) in rows.chunks_exact(d).zip(out) {
            let (chunks, _) = row.as_chunks::<BYTES>();
            let (mut high, mut low) = (_mm512_setzero_si512(), _mm512_setzero_si512());
            for ((x, h), l) in chunks.iter().zip(highs).zip(lows) {
                // The address is only asked for, whatever lies there.
                _mm_prefetch::<_MM_HINT_T0>(x.as_ptr().wrapping_add(AHEAD));
                let x = _mm512_xor_si512(load(x), sign);
                high = _mm512_dpbusd_epi32(high, x, load(h));
                low = _mm512_dpbusd_epi32(low, x, load(l));
            }
            let both = _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low);
            *o = _mm512_reduce_add_epi32(both).wrapping_sub(correction);
        }
    }
}
