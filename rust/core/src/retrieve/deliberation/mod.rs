//! Quality-gated deliberation (the D-Mem paper) as pure functions: when a question's
//! evidence is not good enough, and what a scan of the whole history makes of a
//! sentence. The engine reads the turns; nothing here does.

pub mod gates;
pub mod score;
pub mod select;
pub mod vote;
