//! spaCy's networks, read by the weights of its models.
//!
//! [`Windows`] lets token vectors know their neighbours; [`Arcs`] and [`Entities`] go through
//! a text move by move, the best that is allowed. Networks and rules are those of spaCy's
//! `MaxoutWindowEncoder`, of its dependency parser (arc-eager, with sentence breaks and
//! reattachment: Honnibal and Johnson 2015) and of its entity recogniser (BILUO). spaCy sums
//! the scores of a move in an order that depends on the processor, and takes Python's lock some
//! two hundred times a token; here every sum has one order, and no lock is taken.

mod arcs;
mod entities;
mod scorer;
mod windows;

pub use arcs::{ArcMove, Arcs, Attached};
pub use entities::{Entities, EntityMove, Place, Tagged};
pub use scorer::{Numbers, Scorer};
pub use windows::{LayerNumbers, Windows};

use scorer::Vectors;
use std::fmt;

/// What is known of a token before any move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Token {
    /// Whether a sentence starts here; `None` where that is not known.
    pub starts_sentence: Option<bool>,
    /// Whether it is white space.
    pub is_space: bool,
}

/// Numbers that do not fit each other, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit(pub String);

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misfit {}

/// Texts that are read one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Texts<'a> {
    /// [`Scorer::row`] numbers for no token, then as many for each token of each text.
    pub vectors: &'a [f32],
    /// The tokens of all texts.
    pub tokens: &'a [Token],
    /// Tokens of each text.
    pub lengths: &'a [usize],
}

impl<'a> Texts<'a> {
    /// The vectors and the tokens of each text.
    fn of(
        self,
        scorer: &Scorer,
    ) -> Result<impl Iterator<Item = (Vectors<'a>, &'a [Token])>, Misfit> {
        let (count, row) = (self.tokens.len(), scorer.row());
        let (told, given) = (self.lengths.iter().sum::<usize>(), self.vectors.len());
        if told != count || given != (count + 1) * row {
            return Err(Misfit(format!(
                "{count} tokens are to have lengths that add up to them, not to {told}, and {row} numbers each and for none, not {given}"
            )));
        }
        let mut from = 0;
        Ok(self.lengths.iter().map(move |length| {
            let to = from + length;
            let vectors = Vectors {
                none: &self.vectors[..row],
                tokens: &self.vectors[(from + 1) * row..(to + 1) * row],
            };
            let tokens = &self.tokens[from..to];
            from = to;
            (vectors, tokens)
        }))
    }
}
