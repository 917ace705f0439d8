//! The forms for x86-64. AVX2's are the portable ones, compiled for wider registers;
//! AVX-512's multiply and add four bytes in one step (VNNI).

#![allow(unsafe_code)]

use super::{Digits, Question, portable};

/// The portable forms: the compiler turns their sums of products into `vpmaddwd`.
pub mod avx2 {
    use super::{Digits, Question, portable};

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

    #[target_feature(enable = "avx2")]
    pub fn best(question: &Question, rows: &[i8]) -> Vec<i32> {
        portable::best(question, rows)
    }
}

/// AVX-512 with VNNI. `vpdpbusd` multiplies unsigned with signed bytes: the rows are
/// made unsigned by adding 128, and 128 times the query's sum is taken off again.
pub mod avx512 {
    use super::super::{LANES, STEP};
    use super::{Digits, Question, portable};
    use std::arch::x86_64::*;

    const BYTES: usize = 64;

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn dot(a: &[i16], b: &[i16]) -> i32 {
        portable::dot(a, b)
    }

    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn dot_split(query: &[i16], high: &[i8], low: &[u8], step: i16) -> i32 {
        portable::dot_split(query, high, low, step)
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(bytes: &[i8; BYTES]) -> __m512i {
        // SAFETY: 64 readable bytes; the load asks for no alignment.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load_sums(sums: &[i32; LANES]) -> __m512i {
        // SAFETY: 64 readable bytes; the load asks for no alignment.
        unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) }
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
                let x = _mm512_xor_si512(load(x), sign);
                high = _mm512_dpbusd_epi32(high, x, load(h));
                low = _mm512_dpbusd_epi32(low, x, load(l));
            }
            let both = _mm512_add_epi32(_mm512_slli_epi32::<8>(high), low);
            *o = _mm512_reduce_add_epi32(both).wrapping_sub(correction);
        }
    }

    /// Sixteen question tokens side by side in the lanes of a register; each step adds
    /// the products of four dimensions. The maximum over the rows needs no sum across
    /// lanes, and the correction, the same for every row, comes after it.
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn best(question: &Question, rows: &[i8]) -> Vec<i32> {
        let d = question.dimension;
        if !d.is_multiple_of(STEP) {
            return portable::best(question, rows);
        }
        let shifted: Vec<i32> = rows.as_chunks::<STEP>().0.iter().map(biased).collect();
        let mut found = Vec::with_capacity(question.sums.len());
        let block = d / STEP * LANES * STEP;
        let (sums, _) = question.sums.as_chunks::<LANES>();
        for (lanes, sums) in question.lanes.chunks_exact(block).zip(sums) {
            let (steps, _) = lanes.as_chunks::<BYTES>();
            let most = best_of_sixteen(steps, &shifted);
            let correction = _mm512_slli_epi32::<7>(load_sums(sums));
            let mut out = [0i32; LANES];
            // SAFETY: 64 writable bytes; the store asks for no alignment.
            unsafe {
                _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_sub_epi32(most, correction));
            }
            found.extend(out);
        }
        found.truncate(question.count);
        found
    }

    /// Four bytes of a row, each plus 128, as one lane.
    #[inline(always)]
    fn biased(bytes: &[i8; STEP]) -> i32 {
        i32::from_le_bytes(bytes.map(i8::cast_unsigned)) ^ 0x8080_8080_u32.cast_signed()
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn best_of_sixteen(steps: &[[i8; BYTES]], rows: &[i32]) -> __m512i {
        let n = steps.len();
        let mut most = _mm512_set1_epi32(i32::MIN);
        let mut fours = rows.chunks_exact(4 * n);
        for four in &mut fours {
            let (a, rest) = four.split_at(n);
            let (b, rest) = rest.split_at(n);
            let (c, e) = rest.split_at(n);
            let mut sums = [_mm512_setzero_si512(); 4];
            for i in 0..n {
                let q = load(&steps[i]);
                sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_set1_epi32(a[i]), q);
                sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_set1_epi32(b[i]), q);
                sums[2] = _mm512_dpbusd_epi32(sums[2], _mm512_set1_epi32(c[i]), q);
                sums[3] = _mm512_dpbusd_epi32(sums[3], _mm512_set1_epi32(e[i]), q);
            }
            for sum in sums {
                most = _mm512_max_epi32(most, sum);
            }
        }
        for row in fours.remainder().chunks_exact(n) {
            let mut sum = _mm512_setzero_si512();
            for (step, x) in steps.iter().zip(row) {
                sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(*x), load(step));
            }
            most = _mm512_max_epi32(most, sum);
        }
        most
    }
}
