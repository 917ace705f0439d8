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
    pub fn best(question: &Question, rows: &[u8], out: &mut [i32]) {
        portable::best(question, rows, out);
    }
}

/// AVX-512 with VNNI. `vpdpbusd` multiplies unsigned with signed bytes: one side is made
/// unsigned by adding 128, and 128 times the other side's sum is taken off again.
pub mod avx512 {
    use super::super::packed::{row_bytes, unpack};
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
    /// the products of four dimensions, so that no sum goes across lanes.
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    pub fn best(question: &Question, rows: &[u8], out: &mut [i32]) {
        let d = question.dimension;
        if !d.is_multiple_of(STEP) {
            return portable::best(question, rows, out);
        }
        let block = d / STEP * LANES * STEP;
        let mut unpacked = vec![0i8; ROWS * d];
        out.fill(i32::MIN);
        for rows in rows.chunks(ROWS * row_bytes(d)) {
            let weights = unpack_some(rows, d, &mut unpacked);
            for (lanes, out) in question
                .lanes
                .chunks_exact(block)
                .zip(out.chunks_mut(LANES))
            {
                let (steps, _) = lanes.as_chunks::<BYTES>();
                let most = best_of_sixteen(steps, &unpacked, weights, d);
                let mut found = [0i32; LANES];
                // SAFETY: 64 writable bytes; the store asks for no alignment.
                unsafe { _mm512_storeu_si512(found.as_mut_ptr().cast(), most) };
                for (o, found) in out.iter_mut().zip(found) {
                    *o = (*o).max(found);
                }
            }
        }
    }

    /// Unpacks up to [`ROWS`] rows; the rest is filled up with the last: a maximum does
    /// not mind.
    #[inline]
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    fn unpack_some(rows: &[u8], d: usize, out: &mut [i8]) -> [i32; ROWS] {
        let mut weights = [0; ROWS];
        let last = rows.len() / row_bytes(d) - 1;
        for (i, (weight, out)) in weights.iter_mut().zip(out.chunks_exact_mut(d)).enumerate() {
            let at = i.min(last) * row_bytes(d);
            *weight = unpack(&rows[at..at + row_bytes(d)], out);
        }
        weights
    }

    /// Rows whose sums grow side by side: an addition waits five cycles for the one
    /// before, and two can start in each.
    const ROWS: usize = 8;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    fn sum_of(row: &[i8]) -> i32 {
        let ones = _mm512_set1_epi8(1);
        let mut sum = _mm512_setzero_si512();
        for part in row.chunks(BYTES) {
            let mask = u64::MAX >> (BYTES - part.len());
            // SAFETY: the mask reads no byte past the part.
            let x = unsafe { _mm512_maskz_loadu_epi8(mask, part.as_ptr()) };
            sum = _mm512_dpbusd_epi32(sum, ones, x);
        }
        _mm512_reduce_add_epi32(sum)
    }

    #[inline]
    #[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
    fn best_of_sixteen(
        steps: &[[u8; BYTES]],
        rows: &[i8],
        weights: [i32; ROWS],
        d: usize,
    ) -> __m512i {
        let rows: [&[i8]; ROWS] = std::array::from_fn(|i| &rows[i * d..(i + 1) * d]);
        // Taken off: 128 times the row's sum, for the question's bytes are 128 more.
        let mut sums = [_mm512_setzero_si512(); ROWS];
        for (sum, row) in sums.iter_mut().zip(rows) {
            *sum = _mm512_set1_epi32(-128 * sum_of(row));
        }
        let rows = rows.map(|row| &row.as_chunks::<STEP>().0[..steps.len()]);
        for (at, step) in steps.iter().enumerate() {
            // SAFETY: 64 readable bytes; the load asks for no alignment.
            let q = unsafe { _mm512_loadu_si512(step.as_ptr().cast()) };
            for (sum, row) in sums.iter_mut().zip(rows) {
                let four = row[at].map(i8::cast_unsigned);
                let four = _mm512_set1_epi32(i32::from_le_bytes(four));
                *sum = _mm512_dpbusd_epi32(*sum, q, four);
            }
        }
        let mut most = _mm512_set1_epi32(i32::MIN);
        for (sum, weight) in sums.into_iter().zip(weights) {
            let sum = _mm512_mullo_epi32(sum, _mm512_set1_epi32(weight));
            most = _mm512_max_epi32(most, sum);
        }
        most
    }
}
