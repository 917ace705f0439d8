//! Tiles (AMX): sixteen rows by sixteen columns of sums in one instruction.
//!
//! Stable Rust has no functions for them, so they are written as instructions. A tile's shape
//! belongs to the thread; it is set before a product and let go after it, since others in the
//! process (ONNX Runtime, for one) set their own.

use crate::bytes::{ByteWeights, SIDE, Sums};
use crate::{Kind, Level};
use std::arch::asm;
use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

/// Rows of a tile, and bytes of each.
const ROWS: usize = 16;
const BYTES: usize = Tiles::BYTES;

/// Whether this process may use tiles.
pub fn allowed() -> bool {
    static ALLOWED: OnceLock<bool> = OnceLock::new();
    *ALLOWED.get_or_init(|| has_tiles() && ask())
}

/// Whether processor and system know tiles of bytes.
fn has_tiles() -> bool {
    const TILE_AND_BYTES: u32 = 0b11 << 24;
    const SAVED: u64 = 0b11 << 17;
    if !is_x86_feature_detected!("xsave") {
        return false;
    }
    // SAFETY: leaf 7 exists wherever AVX-512 does; the system saves registers (`xsave`).
    unsafe {
        __cpuid_count(7, 0).edx & TILE_AND_BYTES == TILE_AND_BYTES && saved() & SAVED == SAVED
    }
}

#[target_feature(enable = "xsave")]
fn saved() -> u64 {
    // SAFETY: register 0 exists wherever the instruction does.
    unsafe { _xgetbv(0) }
}

/// Asks the system for the room that tiles take when threads are switched.
#[cfg(target_os = "linux")]
fn ask() -> bool {
    const REQUEST: libc::c_long = 0x1023;
    const TILE_DATA: libc::c_long = 18;
    // SAFETY: `arch_prctl` with two numbers touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST, TILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn ask() -> bool {
    false
}

/// What `ldtilecfg` reads: eight tiles of whole size.
#[repr(C, align(64))]
struct Shape([u8; 64]);

static SHAPE: Shape = {
    let mut shape = [0; 64];
    shape[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        shape[16 + 2 * tile] = BYTES as u8;
        shape[48 + tile] = ROWS as u8;
        tile += 1;
    }
    Shape(shape)
};

/// Tiles that are ready for use by this thread until it is dropped.
pub struct Tiles(PhantomData<*const ()>);

impl Tiles {
    /// Bytes of a row of a tile: what is multiplied in a step.
    pub const BYTES: usize = 64;

    /// Makes them ready where the weights fill whole ones and the processor has any.
    pub fn ready(level: Level, weights: &ByteWeights) -> Option<Self> {
        let whole = weights.inner.is_multiple_of(BYTES);
        if level.0 != Kind::Avx512 || !whole || !allowed() {
            return None;
        }
        // SAFETY: `allowed` has said that there are tiles.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const SHAPE, options(nostack, readonly)) };
        Some(Self(PhantomData))
    }

    /// Sums nothing yet.
    pub fn begin(&mut self) {
        // SAFETY: tiles are ready, and nobody else's; so below.
        unsafe {
            asm!(
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                options(nostack, nomem),
            );
        }
    }

    /// Adds some steps, of a tile's bytes each, of the products of a block's rows and two panels.
    pub fn add(&mut self, weights: &ByteWeights, column: usize, x: &[u8], steps: Range<usize>) {
        let inner = weights.inner;
        let (left, right) = weights.panels_at(column);
        assert!(x.len() == SIDE * inner && steps.end * BYTES <= inner);
        if steps.is_empty() {
            return;
        }
        let (lines, from) = (ROWS * steps.start, BYTES * steps.start);
        // SAFETY: read are of 32 rows of `inner` bytes in `x`, and of both panels' `inner / 64`
        // tiles of 1,024 bytes, those of the steps.
        unsafe {
            asm!(
                "2:",
                "tileloadd tmm4, [{upper} + {row}]",
                "tileloadd tmm6, [{left} + {line}]",
                "tdpbusd tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{right} + {line}]",
                "tdpbusd tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{lower} + {row}]",
                "tdpbusd tmm2, tmm5, tmm6",
                "tdpbusd tmm3, tmm5, tmm7",
                "add {upper}, 64",
                "add {lower}, 64",
                "add {left}, 1024",
                "add {right}, 1024",
                "dec {tiles}",
                "jnz 2b",
                upper = inout(reg) x.as_ptr().add(from) => _,
                lower = inout(reg) x.as_ptr().add(ROWS * inner + from) => _,
                row = in(reg) inner,
                left = inout(reg) left.as_ptr().add(lines) => _,
                right = inout(reg) right.as_ptr().add(lines) => _,
                line = in(reg) BYTES,
                tiles = inout(reg) steps.len() => _,
                options(nostack, readonly),
            );
        }
    }

    /// What was summed since [`Tiles::begin`].
    pub fn end(&mut self, sums: &mut Sums) {
        // SAFETY: written are the 32 rows of 32 sums.
        unsafe {
            asm!(
                "tilestored [{above} + {out}], tmm0",
                "tilestored [{above} + {out} + 64], tmm1",
                "tilestored [{below} + {out}], tmm2",
                "tilestored [{below} + {out} + 64], tmm3",
                above = in(reg) sums.as_mut_ptr(),
                below = in(reg) sums.as_mut_ptr().add(ROWS),
                out = in(reg) size_of::<[i32; SIDE]>(),
                options(nostack),
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: who made this has tiles; none is needed any more.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}
