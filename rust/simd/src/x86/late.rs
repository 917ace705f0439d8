//! Late interaction, with AVX-512 VNNI and with AVX2.
//!
//! A register holds some question tokens, sixteen numbers of each, and meets sixteen
//! numbers of a row, as often as it holds tokens. Only at the end of the row the lanes of a
//! token are added up, four rows together. So few tokens leave few lanes idle, and few rows
//! likewise.
//!
//! The innermost loop does little for each load, so that it must not look anything up: the
//! dimension of the model that comes with the package is known to the compiler, and bounds
//! are checked before it.

pub mod avx2;
pub mod avx512;

use super::super::packed::weight_and_halves;

/// Bytes of a line of four tokens.
const BYTES: usize = 64;
/// Rows whose lanes are added up together.
const FEW: usize = 4;
/// The dimension of the model that comes with the package.
const KNOWN: usize = 384;
/// Any dimension.
const ANY: usize = 0;
/// Steps of the longest row there is room for: 1,024 numbers.
const STEPS: usize = 64;
/// Fours of tokens that are compared at once. With AVX-512 their sums with [`FEW`] rows
/// fill 24 of the 32 registers.
const GROUPS: usize = 6;

/// Weight and halves of a row; the last stands for those that are missing, for a maximum does
/// not mind.
#[inline(always)]
fn row_or_last(rows: &[u8], at: usize, bytes: usize) -> (i32, &[u8]) {
    let last = rows.len() / bytes - 1;
    weight_and_halves(&rows[at.min(last) * bytes..][..bytes])
}
