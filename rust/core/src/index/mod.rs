//! In-memory indexes over one memory: vectors and words. Rebuilt from the store
//! when a memory is opened; they hold ids, never text.

pub mod flat;
pub mod inverted;
pub(crate) mod rows;
pub mod top;

pub use flat::{Flat, Found};
pub use inverted::Inverted;
