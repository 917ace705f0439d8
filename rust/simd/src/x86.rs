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
        let shifted = interleaved(rows, d / STEP);
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

    /// Rows whose sums grow side by side: an addition waits five cycles for the one
    /// before, and two can start in each.
    const ROWS: usize = 8;

    /// Four bytes of eight rows at a time, each plus 128, as eight lanes. The last rows
    /// are filled up with the first of them: a maximum does not mind.
    fn interleaved(rows: &[i8], steps: usize) -> Vec<[i32; ROWS]> {
        let (bytes, _) = rows.as_chunks::<STEP>();
        let count = bytes.len() / steps;
        let blocks = count.div_ceil(ROWS);
        let mut out = vec![[0; ROWS]; blocks * steps];
        for (block, out) in out.chunks_exact_mut(steps).enumerate() {
            for lane in 0..ROWS {
                let row = block * ROWS + lane;
                let row = if row < count { row } else { block * ROWS };
                let from = &bytes[row * steps..(row + 1) * steps];
                for (o, four) in out.iter_mut().zip(from) {
                    let four = i32::from_le_bytes(four.map(i8::cast_unsigned));
                    o[lane] = four ^ 0x8080_8080_u32.cast_signed();
                }
            }
        }
        out
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn best_of_sixteen(steps: &[[i8; BYTES]], rows: &[[i32; ROWS]]) -> __m512i {
        let mut most = _mm512_set1_epi32(i32::MIN);
        for block in rows.chunks_exact(steps.len()) {
            let mut sums = [_mm512_setzero_si512(); ROWS];
            for (step, lanes) in steps.iter().zip(block) {
                let q = load(step);
                for (sum, x) in sums.iter_mut().zip(lanes) {
                    *sum = _mm512_dpbusd_epi32(*sum, _mm512_set1_epi32(*x), q);
                }
            }
            for sum in sums {
                most = _mm512_max_epi32(most, sum);
            }
        }
        most
    }
}
