//! Structured recall (paper, section 9.3): pure functions from a question's frame
//! and the facts of candidates to features, scores and reasons. The engine reads
//! the indexes and the disk; nothing here does.

pub mod cards;
pub mod deliberation;
pub mod features;
pub mod late;
pub mod ledger;
pub mod query;
pub mod words;

pub use query::{Filters, Query, QueryFrame};

/// What the places of each list of weights in `[retrieval]` weigh, by the list's key.
pub const WEIGHED: [(&str, &[&str]); 3] = [
    ("answerability_weights", &features::FEATURES),
    ("answerability_penalties", &features::PENALTIES),
    ("symbolic_weights", &cards::PARTS),
];
