//! The arithmetic of the DMF paper: survival, decay, tiers, pruning, divergence.
//! Pure functions over plain numbers; `libm` for everything transcendental, sums
//! in a fixed order, integers for vectors.

pub mod decay;
pub mod divergence;
pub mod lexical;
pub mod prune;
pub mod survival;
pub mod vector;
