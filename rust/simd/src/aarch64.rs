//! The form for 64-bit ARM with dot products of bytes (`sdot`): every processor since 2019,
//! Apple's among them. All else is left to the compiler, which has its registers of 16 bytes
//! everywhere.

#![allow(unsafe_code)]

/// `sdot` multiplies signed bytes: what is unsigned has 128 taken off, and 128 times the
/// weights' sum is where each sum begins.
pub mod dotprod {
    pub use crate::portable::{attend, best, dot, dot_split, dots, multiply};

    use crate::bytes::{ByteWeights, DEPTH, PANEL, Step, Sums, block_portable};
    use std::arch::aarch64::*;
    use std::arch::asm;

    /// Rows that share the weights in a register.
    const ROWS: usize = 4;
    /// Bytes of a register, steps of a row in it, and registers of a panel's sums.
    const BYTES: usize = 16;
    const STEPS: usize = BYTES / DEPTH;
    const QUARTERS: usize = PANEL / 4;

    /// A block.
    #[target_feature(enable = "neon,dotprod")]
    pub fn bytes_block(
        weights: &ByteWeights,
        column: usize,
        x: &[u8],
        count: usize,
        sums: &mut Sums,
    ) {
        let inner = weights.inner;
        if !inner.is_multiple_of(BYTES) {
            return block_portable(weights, column, x, count, sums);
        }
        let (left, right) = weights.panels_at(column);
        let begin = &weights.sums[column..][..2 * PANEL];
        for (x, sums) in x
            .chunks_exact(ROWS * inner)
            .zip(sums.chunks_exact_mut(ROWS))
            .take(count.div_ceil(ROWS))
        {
            for (p, panel) in [left, right].into_iter().enumerate() {
                let at = p * PANEL..(p + 1) * PANEL;
                let lanes = rows(inner, panel, &begin[at.clone()], x);
                for (lanes, sums) in lanes.iter().zip(&mut *sums) {
                    for (lane, out) in lanes.iter().zip(sums[at.clone()].chunks_exact_mut(4)) {
                        // SAFETY: four writable numbers.
                        unsafe { vst1q_s32(out.as_mut_ptr(), *lane) };
                    }
                }
            }
        }
    }

    /// Sums of four rows and the columns of a panel.
    #[target_feature(enable = "neon,dotprod")]
    fn rows(
        inner: usize,
        panel: &[Step],
        begin: &[i32],
        x: &[u8],
    ) -> [[int32x4_t; QUARTERS]; ROWS] {
        let begin: [int32x4_t; QUARTERS] = std::array::from_fn(|q| {
            // SAFETY: four readable numbers.
            let sums = unsafe { vld1q_s32(begin[4 * q..][..4].as_ptr()) };
            vshlq_n_s32::<7>(sums)
        });
        let mut lanes = [begin; ROWS];
        let (steps, _) = panel.as_chunks::<STEPS>();
        for (k, steps) in steps.iter().enumerate() {
            let x: [int8x16_t; ROWS] = std::array::from_fn(|r| {
                let bytes = &x[r * inner + k * BYTES..][..BYTES];
                // SAFETY: sixteen readable bytes.
                let bytes = unsafe { vld1q_u8(bytes.as_ptr()) };
                vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(128)))
            });
            step::<0>(&mut lanes, &steps[0], &x);
            step::<1>(&mut lanes, &steps[1], &x);
            step::<2>(&mut lanes, &steps[2], &x);
            step::<3>(&mut lanes, &steps[3], &x);
        }
        lanes
    }

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    fn step<const AT: usize>(
        lanes: &mut [[int32x4_t; QUARTERS]; ROWS],
        step: &Step,
        x: &[int8x16_t; ROWS],
    ) {
        let (columns, _) = step.0.as_chunks::<BYTES>();
        for (q, columns) in columns.iter().enumerate() {
            // SAFETY: sixteen readable bytes.
            let weights = unsafe { vld1q_s8(columns.as_ptr()) };
            for (lanes, x) in lanes.iter_mut().zip(x) {
                lanes[q] = sdot::<AT>(lanes[q], weights, *x);
            }
        }
    }

    /// Adds to each sum the products of its column's four bytes with four of `x`. Stable Rust
    /// has no function for it.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    fn sdot<const AT: usize>(sums: int32x4_t, columns: int8x16_t, x: int8x16_t) -> int32x4_t {
        let mut out = sums;
        // SAFETY: it reads and writes the registers named, and nothing else.
        unsafe {
            asm!(
                "sdot {sums:v}.4s, {columns:v}.16b, {x:v}.4b[{at}]",
                sums = inout(vreg) out,
                columns = in(vreg) columns,
                x = in(vreg) x,
                at = const AT,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        out
    }
}
