//! Policies: what becomes of turns beyond their score. Pure rules; the engine acts on them.

pub mod recurrence;
