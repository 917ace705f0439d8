//! Recurrence consolidation (RecMem): what comes up again and again is gathered.
//!
//! Turns form units (`units`); a unit that resembles an episode extends it, one that
//! resembles enough earlier units makes one (`trigger`); an episode is the sentences
//! that tell most of its units (`sentences`, `episodes`), and what it leaves out is
//! kept as facts (`facts`). Both are spans of turns, so an erased turn cannot live on in
//! them; where a language model puts them in words of its own, these go with every turn
//! that they may draw on.

pub mod episodes;
pub mod facts;
pub mod sentences;
pub mod state;
pub mod trigger;
pub mod units;

pub use episodes::Episode;
pub use facts::Fact;
pub use sentences::{Sentence, Span};
pub use state::Recurrence;
pub use units::Unit;

use crate::config::MADE_AT_ONCE;
use crate::types::InteractionId;

/// Episodes and facts are numbered by the turn that made them.
const INDEX_BITS: u32 = MADE_AT_ONCE.ilog2();

/// Number of the `index`-th episode or fact made by turn `at`: never used again.
pub fn number(at: InteractionId, index: usize) -> u64 {
    at << INDEX_BITS | index as u64
}
