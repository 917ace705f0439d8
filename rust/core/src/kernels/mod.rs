//! The engine's arithmetic over arrays: the same functions, many rows in one call.
//!
//! Everything here checks its input, then runs what `score` runs turn by turn, so a
//! number does not depend on which way it was computed. Results are written in the
//! order of the rows; rankings are ordered by score, then by row.

mod decay;
mod divergence;
mod lexical;
mod prune;
mod search;

pub use decay::decay;
pub use divergence::divergence;
pub use lexical::{Postings, bm25, overlap};
pub use prune::{Evicted, prune};
pub use search::cosine_top_k;

use crate::error::{Code, Error, Result};

fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::InputFacts, message))
}

/// An error unless two arrays that belong together have the same length.
fn same_length(name: &str, length: usize, other: &str, wanted: usize) -> Result<()> {
    if length == wanted {
        return Ok(());
    }
    refuse(format!(
        "{name} has {length} rows and {other} has {wanted}; give one for each"
    ))
}

/// An error that names the first number that is not finite.
fn finite(name: &str, values: &[f64]) -> Result<()> {
    // One pass without a branch; the place is looked for only where there is one.
    let sound = values.iter().fold(true, |sound, x| sound & x.is_finite());
    if sound {
        return Ok(());
    }
    let at = values.iter().position(|x| !x.is_finite()).unwrap_or(0);
    refuse(format!(
        "{name}[{at}] is {}; every number must be finite",
        values[at]
    ))
}

/// Rows of a matrix, or an error where the width does not divide the length.
fn rows<'a>(name: &str, data: &'a [i16], width: usize) -> Result<std::slice::ChunksExact<'a, i16>> {
    if width == 0 || !data.len().is_multiple_of(width) {
        return refuse(format!(
            "{name} must be a matrix with at least one column, not {} numbers in rows of {width}",
            data.len()
        ));
    }
    Ok(data.chunks_exact(width))
}
