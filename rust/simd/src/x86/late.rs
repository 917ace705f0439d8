//! Late interaction with AVX-512 VNNI.
//!
//! A register holds four question tokens, sixteen numbers of each, and meets sixteen
//! numbers of a row, four times over: each lane of 32 bits sums the products of four
//! numbers. Only at the end of the row the four lanes of a token are added up, four rows
//! together. So few tokens leave few lanes idle, and few rows likewise.

use super::super::packed::{row_bytes, weight_and_halves};
use super::super::{Line, Question, STEP, TOGETHER, portable, steps_of};
use std::arch::x86_64::*;
use std::array::from_fn;
use std::mem::MaybeUninit;

/// Bytes of a register.
const BYTES: usize = 64;
/// Rows that are compared at once.
const ROWS: usize = 4;
/// Steps of the longest row there is room for: 1,024 numbers.
const STEPS: usize = 64;
/// Fours of tokens that are compared at once: their sums with four rows fill 24 of the 32
/// registers.
const GROUPS: usize = 6;

/// Unpacked rows, each number 8 more than it is.
type Unpacked = Line<[MaybeUninit<[u8; STEP]>; ROWS * STEPS]>;

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
pub fn best(question: &Question, rows: &[u8], out: &mut [i32]) {
    let steps = steps_of(question.dimension);
    if steps > STEPS {
        return portable::best(question, rows, out);
    }
    let lines = question.lines.chunks(GROUPS * steps);
    let excess = question.excess.chunks(GROUPS);
    let parts = lines.zip(excess).zip(out.chunks_mut(GROUPS * TOGETHER));
    for ((lines, excess), out) in parts {
        let compare = match excess.len() {
            1 => best_of::<1>,
            2 => best_of::<2>,
            3 => best_of::<3>,
            4 => best_of::<4>,
            5 => best_of::<5>,
            _ => best_of::<GROUPS>,
        };
        compare(lines, excess, rows, question.dimension, out);
    }
}

/// The best of `G` fours of tokens.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn best_of<const G: usize>(
    lines: &[Line<[i8; BYTES]>],
    excess: &[Line<[i32; 4 * TOGETHER]>],
    rows: &[u8],
    d: usize,
    out: &mut [i32],
) {
    let steps = steps_of(d);
    let groups: [&[Line<[i8; BYTES]>]; G] = from_fn(|g| &lines[g * steps..(g + 1) * steps]);
    let mut room: Unpacked = Line([MaybeUninit::uninit(); ROWS * STEPS]);
    let mut most = [_mm512_set1_epi32(i32::MIN); G];
    for rows in rows.chunks(ROWS * row_bytes(d)) {
        let (weights, rows) = unpack(rows, d, &mut room);
        let mut sums = [[_mm512_setzero_si512(); ROWS]; G];
        for at in 0..steps {
            let rows: [__m512i; ROWS] = from_fn(|r| four_times(&rows[r * steps + at]));
            for (sums, group) in sums.iter_mut().zip(groups) {
                // SAFETY: 64 readable bytes, aligned to as many.
                let q = unsafe { _mm512_load_si512((&raw const group[at]).cast()) };
                for (sum, row) in sums.iter_mut().zip(rows) {
                    *sum = _mm512_dpbusd_epi32(*sum, row, q);
                }
            }
        }
        for ((most, sums), excess) in most.iter_mut().zip(sums).zip(excess) {
            // SAFETY: 64 readable bytes, aligned to as many.
            let excess = unsafe { _mm512_load_si512((&raw const *excess).cast()) };
            let products = _mm512_add_epi32(add_up(sums), excess);
            *most = _mm512_max_epi32(*most, _mm512_mullo_epi32(products, weights));
        }
    }
    for (out, most) in out.chunks_mut(TOGETHER).zip(most) {
        let most = _mm512_max_epi32(most, _mm512_shuffle_epi32::<0b01_00_11_10>(most));
        let most = _mm512_max_epi32(most, _mm512_shuffle_epi32::<0b10_11_00_01>(most));
        let mut found = [0i32; BYTES / 4];
        // SAFETY: 64 writable bytes; the store asks for no alignment.
        unsafe { _mm512_storeu_si512(found.as_mut_ptr().cast(), most) };
        for (o, found) in out.iter_mut().zip(found.iter().step_by(ROWS)) {
            *o = *found;
        }
    }
}

/// Unpacks up to [`ROWS`] rows; the rest is filled up with the last: a maximum does not
/// mind. Returns their weights, once a token, and their steps.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn unpack<'a>(rows: &[u8], d: usize, room: &'a mut Unpacked) -> (__m512i, &'a [[u8; STEP]]) {
    let steps = steps_of(d);
    let last = rows.len() / row_bytes(d) - 1;
    let mut weights = [0; ROWS];
    for (r, weight) in weights.iter_mut().enumerate() {
        let at = r.min(last) * row_bytes(d);
        let (of_row, halves) = weight_and_halves(&rows[at..at + row_bytes(d)]);
        *weight = of_row;
        unpack_row(halves, &mut room.0[r * steps..(r + 1) * steps]);
    }
    let written = &room.0[..ROWS * steps];
    // SAFETY: each of the steps of each row was written above.
    let written = unsafe { &*(&raw const *written as *const [[u8; STEP]]) };
    // SAFETY: 16 readable bytes; the load asks for no alignment.
    let weights = unsafe { _mm_loadu_si128(weights.as_ptr().cast()) };
    (_mm512_broadcast_i32x4(weights), written)
}

/// Writes all of `out`: whole steps of a row's lower halves of bytes, then of the upper
/// ones.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn unpack_row(halves: &[u8], out: &mut [MaybeUninit<[u8; STEP]>]) {
    let (low, high) = out.split_at_mut(out.len() / 2);
    let eights = _mm512_set1_epi8(0x88u8.cast_signed());
    let fifteens = _mm512_set1_epi8(0x0f);
    let parts = halves.chunks(BYTES);
    let places = low
        .chunks_mut(BYTES / STEP)
        .zip(high.chunks_mut(BYTES / STEP));
    for (part, (low, high)) in parts.zip(places) {
        let there = u64::MAX >> (BYTES - part.len());
        let whole = u64::MAX >> (BYTES - low.len() * STEP);
        // SAFETY: the masks read no byte past the part, and write none past the places.
        unsafe {
            let x = _mm512_maskz_loadu_epi8(there, part.as_ptr().cast());
            let x = _mm512_xor_si512(x, eights);
            let lower = _mm512_and_si512(x, fifteens);
            let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(x), fifteens);
            _mm512_mask_storeu_epi8(low.as_mut_ptr().cast(), whole, lower);
            _mm512_mask_storeu_epi8(high.as_mut_ptr().cast(), whole, upper);
        }
    }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn four_times(step: &[u8; STEP]) -> __m512i {
    // SAFETY: 16 readable bytes; the load asks for no alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(step.as_ptr().cast()) })
}

/// Adds up the four lanes of each token: of each the first row's, the second's, the
/// third's, the fourth's.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_up([a, b, c, d]: [__m512i; ROWS]) -> __m512i {
    let pairs = |x, y| _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
    let (first, second) = (pairs(a, b), pairs(c, d));
    let low = _mm512_unpacklo_epi64(first, second);
    _mm512_add_epi32(low, _mm512_unpackhi_epi64(first, second))
}
