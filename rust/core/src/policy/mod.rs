//! Policies: what becomes of a turn beyond its score. Pure rules; the engine acts on them.

pub mod assessment;
pub mod recurrence;
pub mod rpe;
pub mod utility;
