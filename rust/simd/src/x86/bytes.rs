//! The registers that products of bytes run in.

use crate::bytes::{ByteWeights, DEPTH, PANEL, Step, Sums};
use std::arch::x86_64::*;

/// Four numbers of a row, as they lie.
type Four = [u8; DEPTH];

/// Rows that share the weights in a register of 32 bytes: eight sums and all that they need
/// fit the sixteen of them.
const NARROW: usize = 4;
/// Rows that share the weights in a register of 64 bytes, of which there are twice as many.
const WIDE: usize = 8;

/// A block with registers of 32 bytes, panel after panel. The last lines say how products are
/// added: to sums, of unsigned with signed bytes.
macro_rules! narrow {
    ($(#[$doc:meta])* $name:ident, $panel:ident, $features:literal,
     ($sum:ident, $x:ident, $w:ident) => $added:expr) => {
        $(#[$doc])*
        #[target_feature(enable = $features)]
        pub fn $name(weights: &ByteWeights, column: usize, x: &[u8], count: usize, sums: &mut Sums) {
            let (left, right) = weights.panels_at(column);
            for (x, sums) in groups::<NARROW>(weights.inner, x, count, sums) {
                let x = rows::<NARROW>(weights.inner, x);
                for (p, panel) in [left, right].into_iter().enumerate() {
                    let lanes = $panel(panel, x);
                    for (lanes, sums) in lanes.iter().zip(&mut *sums) {
                        let (low, high) = sums[p * PANEL..][..PANEL].split_at_mut(PANEL / 2);
                        // SAFETY: eight writable numbers each; the stores ask for no alignment.
                        unsafe {
                            _mm256_storeu_si256(low.as_mut_ptr().cast(), lanes[0]);
                            _mm256_storeu_si256(high.as_mut_ptr().cast(), lanes[1]);
                        }
                    }
                }
            }
        }

        #[target_feature(enable = $features)]
        fn $panel(panel: &[Step], x: [&[Four]; NARROW]) -> [[__m256i; 2]; NARROW] {
            let mut lanes = [[_mm256_setzero_si256(); 2]; NARROW];
            assert!(x.iter().all(|x| x.len() == panel.len()));
            for (k, step) in panel.iter().enumerate() {
                let (low, high) = step.0.split_at(32);
                // SAFETY: 32 readable bytes each; the loads ask for no alignment.
                let halves = unsafe {
                    [
                        _mm256_loadu_si256(low.as_ptr().cast()),
                        _mm256_loadu_si256(high.as_ptr().cast()),
                    ]
                };
                for (lanes, x) in lanes.iter_mut().zip(x) {
                    // SAFETY: each row has as many steps as the panel.
                    let $x = _mm256_set1_epi32(unsafe { at(x, k) });
                    for (lane, $w) in lanes.iter_mut().zip(halves) {
                        let $sum = *lane;
                        *lane = $added;
                    }
                }
            }
            lanes
        }
    };
}

narrow!(
    /// A block with AVX2: two products are added in 16 bits, which weights of up to 64 never
    /// fill.
    avx2, panel_avx2, "avx2",
    (sum, x, w) => {
        let pairs = _mm256_maddubs_epi16(x, w);
        _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
    }
);
narrow!(
    /// A block with AVX-VNNI, which many processors without AVX-512 have.
    avx_vnni, panel_avx_vnni, "avx2,avxvnni",
    (sum, x, w) => _mm256_dpbusd_avx_epi32(sum, x, w)
);

/// Groups of `R` rows with their sums, the last of which may reach beyond the count.
fn groups<'a, const R: usize>(
    inner: usize,
    x: &'a [u8],
    count: usize,
    sums: &'a mut Sums,
) -> impl Iterator<Item = (&'a [u8], &'a mut [[i32; 2 * PANEL]])> {
    let groups = x.chunks_exact(R * inner).zip(sums.chunks_exact_mut(R));
    groups.take(count.div_ceil(R))
}

/// Each row's numbers, in steps.
#[inline(always)]
fn rows<const R: usize>(inner: usize, x: &[u8]) -> [&[Four]; R] {
    std::array::from_fn(|r| x[r * inner..][..inner].as_chunks().0)
}

/// A step of a row, unchecked: the checks of eight rows would take as long as their products.
///
/// # Safety
/// The row has that step.
#[inline(always)]
unsafe fn at(x: &[Four], k: usize) -> i32 {
    // SAFETY: as the caller says.
    i32::from_le_bytes(unsafe { *x.get_unchecked(k) })
}

/// A block with AVX-512.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
pub fn avx512(weights: &ByteWeights, column: usize, x: &[u8], count: usize, sums: &mut Sums) {
    let (left, right) = weights.panels_at(column);
    // The panels after these may come from far, and take as long as the products of a block:
    // each group of rows asks for its share of them meanwhile.
    let mut next = right.as_ptr_range().end;
    let share = 2 * left.len() / count.div_ceil(WIDE).max(1);
    for (x, sums) in groups::<WIDE>(weights.inner, x, count, sums) {
        let lanes = panels(left, right, rows(weights.inner, x), (next, share));
        for (lanes, sums) in lanes.iter().zip(sums) {
            for (sum, out) in lanes.iter().zip(sums.chunks_exact_mut(PANEL)) {
                // SAFETY: sixteen writable numbers; the stores ask for no alignment.
                unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), *sum) };
            }
        }
        next = next.wrapping_add(share);
    }
}

/// Sums of the columns of two panels; meanwhile asks for so many steps from a place on, at most
/// two for each that is multiplied.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vnni")]
fn panels(
    left: &[Step],
    right: &[Step],
    x: [&[Four]; WIDE],
    (next, share): (*const Step, usize),
) -> [[__m512i; 2]; WIDE] {
    let mut lanes = [[_mm512_setzero_si512(); 2]; WIDE];
    assert!(x.iter().all(|x| x.len() == left.len()));
    for (k, (l, r)) in left.iter().zip(right).enumerate() {
        for step in [k, k + left.len()] {
            if step < share {
                // The address is only asked for, whatever lies there.
                _mm_prefetch::<_MM_HINT_T1>(next.wrapping_add(step).cast());
            }
        }
        // SAFETY: 64 readable bytes each; the loads ask for no alignment.
        let both = unsafe {
            [
                _mm512_loadu_si512(l.0.as_ptr().cast()),
                _mm512_loadu_si512(r.0.as_ptr().cast()),
            ]
        };
        for (lanes, x) in lanes.iter_mut().zip(x) {
            // SAFETY: each row has as many steps as a panel.
            let four = _mm512_set1_epi32(unsafe { at(x, k) });
            for (sum, w) in lanes.iter_mut().zip(both) {
                *sum = _mm512_dpbusd_epi32(*sum, four, w);
            }
        }
    }
    lanes
}
