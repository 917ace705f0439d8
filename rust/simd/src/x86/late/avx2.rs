//! Two question tokens a register, sixteen numbers of each.
//!
//! There is no instruction that adds up the products of four bytes, only one for two, in
//! lanes of 16 bits: they hold the sums of a few steps, which then go to lanes of 32.

use super::super::super::packed::row_bytes;
use super::super::super::{Line, Question, STEP, TOGETHER, portable, steps_of};
use super::{ANY, BYTES, FEW, GROUPS, KNOWN, STEPS, row_or_last};
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Bytes of a register.
const WIDE: usize = BYTES / 2;
/// Steps whose products a lane of 16 bits holds: two a step, each at most 15 times 128.
const SPAN: usize = 8;
const _: () = assert!(SPAN * 2 * 15 * 128 <= i16::MAX as usize);

/// Unpacked rows, each number 8 more than it is.
type Unpacked = Line<[MaybeUninit<[u8; STEP]>; FEW * STEPS]>;

/// For each four tokens the greatest with each of four rows: of two tokens, of two more.
type Most = [[__m256i; 2]; GROUPS];

#[target_feature(enable = "avx2")]
pub fn best(question: &Question, rows: &[u8], out: &mut [i32]) {
    match question.dimension {
        KNOWN => best_in::<KNOWN>(question, rows, out),
        d if steps_of(d) <= STEPS => best_in::<ANY>(question, rows, out),
        _ => portable::best(question, rows, out),
    }
}

/// The best where rows are of dimension `D`, or [`ANY`].
#[target_feature(enable = "avx2")]
fn best_in<const D: usize>(question: &Question, rows: &[u8], out: &mut [i32]) {
    let d = if D == ANY { question.dimension } else { D };
    let (steps, bytes) = (steps_of(d), row_bytes(d));
    let mut room: Unpacked = Line([MaybeUninit::uninit(); FEW * STEPS]);
    let lines = question.lines.chunks(GROUPS * steps);
    let excess = question.excess.chunks(GROUPS);
    let parts = lines.zip(excess).zip(out.chunks_mut(GROUPS * TOGETHER));
    for ((lines, excess), out) in parts {
        let mut most: Most = [[_mm256_set1_epi32(i32::MIN); 2]; GROUPS];
        for rows in rows.chunks(FEW * bytes) {
            let weights = unpack(rows, bytes, steps, &mut room);
            let groups = lines.chunks_exact(steps).zip(excess);
            for ((line, excess), most) in groups.zip(&mut most) {
                // SAFETY: four rows were unpacked above.
                let sums = unsafe { compare::<D>(line, &room, d) };
                for (half, most) in most.iter_mut().enumerate() {
                    let sums = sums.map(|of_row| of_row[half]);
                    let excess = &excess.0[half * WIDE / 4..][..WIDE / 4];
                    // SAFETY: 32 readable bytes; the load asks for no alignment.
                    let excess = unsafe { _mm256_loadu_si256(excess.as_ptr().cast()) };
                    let products = _mm256_add_epi32(add_up(sums), excess);
                    *most = _mm256_max_epi32(*most, _mm256_mullo_epi32(products, weights));
                }
            }
        }
        for (out, most) in out.chunks_mut(WIDE / STEP).zip(most.into_iter().flatten()) {
            let most = _mm256_max_epi32(most, _mm256_shuffle_epi32::<0b01_00_11_10>(most));
            let most = _mm256_max_epi32(most, _mm256_shuffle_epi32::<0b10_11_00_01>(most));
            let mut found = [0i32; WIDE / 4];
            // SAFETY: 32 writable bytes; the store asks for no alignment.
            unsafe { _mm256_storeu_si256(found.as_mut_ptr().cast(), most) };
            for (o, found) in out.iter_mut().zip(found.iter().step_by(FEW)) {
                *o = *found;
            }
        }
    }
}

/// Sums of each of four rows with two tokens, and with two more.
///
/// # Safety
/// The rows must have been [unpacked](unpack) into the room.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn compare<const D: usize>(
    lines: &[Line<[i8; BYTES]>],
    room: &Unpacked,
    d: usize,
) -> [[__m256i; 2]; FEW] {
    let steps = steps_of(if D == ANY { d } else { D });
    assert!(lines.len() == steps && FEW * steps <= room.0.len());
    let (q, rows) = (lines.as_ptr(), room.0.as_ptr());
    let mut sums = [[_mm256_setzero_si256(); 2]; FEW];
    let ones = _mm256_set1_epi16(1);
    for from in (0..steps).step_by(SPAN) {
        let mut pairs = [[_mm256_setzero_si256(); 2]; FEW];
        for at in from..steps.min(from + SPAN) {
            // SAFETY: there are `steps` lines of 64 bytes, aligned to as many.
            let tokens = unsafe {
                let line: *const __m256i = q.add(at).cast();
                [_mm256_load_si256(line), _mm256_load_si256(line.add(1))]
            };
            for (r, pairs) in pairs.iter_mut().enumerate() {
                // SAFETY: 16 bytes of each of `FEW * steps` steps were written before.
                let row = unsafe { _mm_loadu_si128(rows.add(r * steps + at).cast()) };
                let row = _mm256_broadcastsi128_si256(row);
                for (pair, token) in pairs.iter_mut().zip(tokens) {
                    *pair = _mm256_add_epi16(*pair, _mm256_maddubs_epi16(row, token));
                }
            }
        }
        for (sums, pairs) in sums.iter_mut().zip(pairs) {
            for (sum, pair) in sums.iter_mut().zip(pairs) {
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pair, ones));
            }
        }
    }
    sums
}

/// Unpacks up to four rows. Returns their weights, once a token.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack(rows: &[u8], bytes: usize, steps: usize, room: &mut Unpacked) -> __m256i {
    let mut weights = [0; FEW];
    for (r, weight) in weights.iter_mut().enumerate() {
        let (of_row, halves) = row_or_last(rows, r, bytes);
        *weight = of_row;
        unpack_row(halves, &mut room.0[r * steps..][..steps]);
    }
    // SAFETY: 16 readable bytes; the load asks for no alignment.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(weights.as_ptr().cast()) })
}

/// Writes all of `out`: whole steps of a row's lower halves of bytes, then of the upper
/// ones.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack_row(halves: &[u8], out: &mut [MaybeUninit<[u8; STEP]>]) {
    let (low, high) = out.split_at_mut(out.len() / 2);
    let (whole, rest) = halves.as_chunks::<STEP>();
    for ((step, low), high) in whole.iter().zip(&mut *low).zip(&mut *high) {
        unpack_step(step, low, high);
    }
    if !rest.is_empty() {
        let mut last = [0; STEP];
        last[..rest.len()].copy_from_slice(rest);
        unpack_step(&last, &mut low[whole.len()], &mut high[whole.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn unpack_step(
    halves: &[u8; STEP],
    low: &mut MaybeUninit<[u8; STEP]>,
    high: &mut MaybeUninit<[u8; STEP]>,
) {
    let fifteens = _mm_set1_epi8(0x0f);
    // SAFETY: 16 readable and twice 16 writable bytes; nothing asks for alignment.
    unsafe {
        let x = _mm_loadu_si128(halves.as_ptr().cast());
        let x = _mm_xor_si128(x, _mm_set1_epi8(0x88u8.cast_signed()));
        let upper = _mm_and_si128(_mm_srli_epi16::<4>(x), fifteens);
        _mm_storeu_si128(low.as_mut_ptr().cast(), _mm_and_si128(x, fifteens));
        _mm_storeu_si128(high.as_mut_ptr().cast(), upper);
    }
}

/// Adds up the four lanes of each token: of each the first row's, the second's, the
/// third's, the fourth's.
#[inline]
#[target_feature(enable = "avx2")]
fn add_up([a, b, c, d]: [__m256i; FEW]) -> __m256i {
    let pairs = |x, y| _mm256_add_epi32(_mm256_unpacklo_epi32(x, y), _mm256_unpackhi_epi32(x, y));
    let (first, second) = (pairs(a, b), pairs(c, d));
    let low = _mm256_unpacklo_epi64(first, second);
    _mm256_add_epi32(low, _mm256_unpackhi_epi64(first, second))
}
