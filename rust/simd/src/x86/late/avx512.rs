//! Four question tokens a register, sixteen numbers of each.
//!
//! Each lane of 32 bits sums the products of four numbers.

use super::super::super::packed::row_bytes;
use super::super::super::{Line, Question, STEP, TOGETHER, portable, steps_of};
use super::{ANY, BYTES, FEW, GROUPS, KNOWN, STEPS, row_or_last};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Rows that are compared at once: each sum needs the one before it, and a few sums alone
/// keep the processor waiting.
const ROWS: usize = 8;
/// Fours of tokens whose sums with [`ROWS`] rows the registers hold.
const FEW_GROUPS: usize = 3;

/// Bytes from what is read to what is asked for: the memory brings little unasked where rows
/// lie in several pages.
const AHEAD: usize = 2048;

/// Unpacked rows, each number 8 more than it is.
type Unpacked = Line<[MaybeUninit<[u8; STEP]>; ROWS * STEPS]>;

#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
pub fn best(question: &Question, rows: &[u8], out: &mut [i32]) {
    match question.dimension {
        KNOWN => best_in::<KNOWN>(question, rows, out),
        d if steps_of(d) <= STEPS => best_in::<ANY>(question, rows, out),
        _ => portable::best(question, rows, out),
    }
}

/// The best where rows are of dimension `D`, or [`ANY`].
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn best_in<const D: usize>(question: &Question, rows: &[u8], out: &mut [i32]) {
    let steps = steps_of(question.dimension);
    let lines = question.lines.chunks(GROUPS * steps);
    let excess = question.excess.chunks(GROUPS);
    let parts = lines.zip(excess).zip(out.chunks_mut(GROUPS * TOGETHER));
    for ((lines, excess), out) in parts {
        let compare = match excess.len() {
            1 => best_of::<1, D>,
            2 => best_of::<2, D>,
            3 => best_of::<3, D>,
            4 => best_of::<4, D>,
            5 => best_of::<5, D>,
            _ => best_of::<GROUPS, D>,
        };
        compare(lines, excess, rows, question.dimension, out);
    }
}

/// The best of `G` fours of tokens.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn best_of<const G: usize, const D: usize>(
    lines: &[Line<[i8; BYTES]>],
    excess: &[Line<[i32; 4 * TOGETHER]>],
    rows: &[u8],
    d: usize,
    out: &mut [i32],
) {
    let mut room: Unpacked = Line([MaybeUninit::uninit(); ROWS * STEPS]);
    let mut most = [_mm512_set1_epi32(i32::MIN); G];
    let row = row_bytes(d);
    let mut rest = rows;
    while G <= FEW_GROUPS && rest.len() > FEW * row {
        let (now, later) = rest.split_at(rest.len().min(ROWS * row));
        compare::<G, ROWS, D>(lines, excess, now, d, &mut room, &mut most);
        rest = later;
    }
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(FEW * row));
        compare::<G, FEW, D>(lines, excess, now, d, &mut room, &mut most);
        rest = later;
    }
    for (out, most) in out.chunks_mut(TOGETHER).zip(most) {
        let most = _mm512_max_epi32(most, _mm512_shuffle_epi32::<0b01_00_11_10>(most));
        let most = _mm512_max_epi32(most, _mm512_shuffle_epi32::<0b10_11_00_01>(most));
        let mut found = [0i32; BYTES / 4];
        // SAFETY: 64 writable bytes; the store asks for no alignment.
        unsafe { _mm512_storeu_si512(found.as_mut_ptr().cast(), most) };
        for (o, found) in out.iter_mut().zip(found.iter().step_by(FEW)) {
            *o = *found;
        }
    }
}

/// Up to `R` rows with `G` fours of tokens.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn compare<const G: usize, const R: usize, const D: usize>(
    lines: &[Line<[i8; BYTES]>],
    excess: &[Line<[i32; 4 * TOGETHER]>],
    rows: &[u8],
    d: usize,
    room: &mut Unpacked,
    most: &mut [__m512i; G],
) {
    let d = if D == ANY { d } else { D };
    let (steps, bytes) = (steps_of(d), row_bytes(d));
    assert!(lines.len() == G * steps && excess.len() == G && R * steps <= room.0.len());
    let mut weights = [0; R];
    for (r, weight) in weights.iter_mut().enumerate() {
        let (of_row, halves) = row_or_last(rows, r, bytes);
        *weight = of_row;
        unpack_row(halves, &mut room.0[r * steps..][..steps]);
        for line in (0..bytes).step_by(BYTES) {
            // The address is only asked for, whatever lies there.
            _mm_prefetch::<_MM_HINT_T0>(halves.as_ptr().wrapping_add(AHEAD + line).cast());
        }
    }
    let (q, written) = (lines.as_ptr(), room.0.as_ptr());
    let mut sums = [[_mm512_setzero_si512(); G]; R];
    for at in 0..steps {
        let mut tokens = [_mm512_setzero_si512(); G];
        for (g, token) in tokens.iter_mut().enumerate() {
            // SAFETY: there are `G * steps` lines; each has 64 bytes, aligned to as many.
            *token = unsafe { _mm512_load_si512(q.add(g * steps + at).cast()) };
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            // SAFETY: 16 bytes of each of `R * steps` steps were written above.
            let row = unsafe { _mm_loadu_si128(written.add(r * steps + at).cast()) };
            let row = _mm512_broadcast_i32x4(row);
            for (sum, token) in sums.iter_mut().zip(tokens) {
                *sum = _mm512_dpbusd_epi32(*sum, row, token);
            }
        }
    }
    let (sums, _) = sums.as_chunks::<FEW>();
    let (weights, _) = weights.as_chunks::<FEW>();
    for (sums, weights) in sums.iter().zip(weights) {
        // SAFETY: 16 readable bytes; the load asks for no alignment.
        let weights = unsafe { _mm_loadu_si128(weights.as_ptr().cast()) };
        let weights = _mm512_broadcast_i32x4(weights);
        for g in 0..G {
            // SAFETY: 64 readable bytes, aligned to as many.
            let excess = unsafe { _mm512_load_si512((&raw const excess[g]).cast()) };
            let sums = add_up([sums[0][g], sums[1][g], sums[2][g], sums[3][g]]);
            let products = _mm512_mullo_epi32(_mm512_add_epi32(sums, excess), weights);
            most[g] = _mm512_max_epi32(most[g], products);
        }
    }
}

/// Writes all of `out`: whole steps of a row's lower halves of bytes, then of the upper
/// ones.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn unpack_row(halves: &[u8], out: &mut [MaybeUninit<[u8; STEP]>]) {
    let (low, high) = out.split_at_mut(out.len() / 2);
    let (whole, rest) = halves.as_chunks::<BYTES>();
    let (lows, low) = low.split_at_mut(whole.len() * BYTES / STEP);
    let (highs, high) = high.split_at_mut(whole.len() * BYTES / STEP);
    let eights = _mm512_set1_epi8(0x88u8.cast_signed());
    let fifteens = _mm512_set1_epi8(0x0f);
    let apart = |x| {
        let x = _mm512_xor_si512(x, eights);
        let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(x), fifteens);
        (_mm512_and_si512(x, fifteens), upper)
    };
    let places = { lows.chunks_mut(BYTES / STEP) }.zip(highs.chunks_mut(BYTES / STEP));
    for (part, (low, high)) in whole.iter().zip(places) {
        // SAFETY: 64 readable bytes, and as many writable ones in each half; loads and stores
        // ask for no alignment.
        unsafe {
            let (lower, upper) = apart(_mm512_loadu_si512(part.as_ptr().cast()));
            _mm512_storeu_si512(low.as_mut_ptr().cast(), lower);
            _mm512_storeu_si512(high.as_mut_ptr().cast(), upper);
        }
    }
    if !rest.is_empty() {
        let there = u64::MAX >> (BYTES - rest.len());
        let places = u64::MAX >> (BYTES - low.len() * STEP);
        // SAFETY: the masks read no byte past the rest, and write none past the places.
        unsafe {
            let (lower, upper) = apart(_mm512_maskz_loadu_epi8(there, rest.as_ptr().cast()));
            _mm512_mask_storeu_epi8(low.as_mut_ptr().cast(), places, lower);
            _mm512_mask_storeu_epi8(high.as_mut_ptr().cast(), places, upper);
        }
    }
}

/// Adds up the four lanes of each token: of each the first row's, the second's, the
/// third's, the fourth's.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_up([a, b, c, d]: [__m512i; FEW]) -> __m512i {
    let pairs = |x, y| _mm512_add_epi32(_mm512_unpacklo_epi32(x, y), _mm512_unpackhi_epi32(x, y));
    let (first, second) = (pairs(a, b), pairs(c, d));
    let low = _mm512_unpacklo_epi64(first, second);
    _mm512_add_epi32(low, _mm512_unpackhi_epi64(first, second))
}
