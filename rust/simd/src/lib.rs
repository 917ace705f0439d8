//! Arithmetic of the core as wide as the processor allows, with the same bits.

pub mod exp;
pub mod sums;
