//! Entities: every token begins one, is in it, ends it, is one, or is outside.

use crate::scorer::{Room, Vectors, best};
use crate::{Misfit, Scorer, Texts, Token};

/// Where a token stands in an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is the first of several.
    Begin,
    /// It stands between the first and the last.
    In,
    /// It is the last of several.
    Last,
    /// It is an entity by itself.
    Unit,
    /// It is in none.
    Out,
}

/// A move: the next token's place, and the label of its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityMove {
    /// The token's place.
    pub place: Place,
    /// The entity's label; 0 for none.
    pub label: u64,
}

/// What a token was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tagged {
    /// Whether it is the first of its entity; `None` outside.
    pub first: Option<bool>,
    /// Its entity's label; 0 outside.
    pub label: u64,
}

const OUTSIDE: Tagged = Tagged {
    first: None,
    label: 0,
};

/// An entity that has begun.
#[derive(Debug, Clone, Copy)]
struct Open {
    first: usize,
    label: u64,
}

/// Finds entities.
#[derive(Debug)]
pub struct Entities {
    scorer: Scorer,
    moves: Vec<EntityMove>,
}

impl Entities {
    /// Tokens that a state looks at: the next, the first of the entity that is open, and the
    /// one before the next where one is.
    pub const LOOKED_AT: usize = 3;

    /// With those moves, in the order of their scores.
    ///
    /// # Errors
    /// The scorer has another number of moves, or does not look at three tokens.
    pub fn new(scorer: Scorer, moves: Vec<EntityMove>) -> Result<Self, Misfit> {
        scorer.check(moves.len(), Self::LOOKED_AT)?;
        Ok(Self { scorer, moves })
    }

    /// What each token is, text after text.
    ///
    /// # Errors
    /// The vectors or the lengths do not fit the tokens.
    pub fn find(&self, texts: Texts<'_>) -> Result<Vec<Tagged>, Misfit> {
        let mut found = Vec::with_capacity(texts.tokens.len());
        let mut room = Room::default();
        for (vectors, tokens) in texts.of(&self.scorer)? {
            let from = found.len();
            found.resize(from + tokens.len(), OUTSIDE);
            self.tag(vectors, tokens, &mut room, &mut found[from..]);
        }
        Ok(found)
    }

    fn tag(&self, vectors: Vectors<'_>, tokens: &[Token], room: &mut Room, out: &mut [Tagged]) {
        let mut open: Option<Open> = None;
        for next in 0..tokens.len() {
            let before = open.and_then(|_| next.checked_sub(1));
            let looked_at: [_; Self::LOOKED_AT] = [Some(next), open.map(|o| o.first), before];
            let scores = self.scorer.scores(vectors, &looked_at, room);
            let allowed = Allowed::at(tokens, next, open);
            // Nothing is allowed: what was found before stays.
            let Some(made) = best(scores, |i| allowed.allows(self.moves[i])) else {
                return;
            };
            let EntityMove { place, label } = self.moves[made];
            match place {
                Place::Begin => open = Some(Open { first: next, label }),
                Place::In | Place::Out => {}
                Place::Last => {
                    if let Some(open) = open.take() {
                        close(&mut out[open.first..=next], open.label);
                    }
                }
                Place::Unit => close(&mut out[next..=next], label),
            }
        }
    }
}

/// Marks the tokens of an entity.
fn close(tokens: &mut [Tagged], label: u64) {
    for (i, tagged) in tokens.iter_mut().enumerate() {
        *tagged = Tagged {
            first: Some(i == 0),
            label,
        };
    }
}

/// Which moves a state allows.
struct Allowed {
    open: Option<u64>,
    /// An entity may go on past this token: another follows, in the same sentence.
    goes_on: bool,
    /// An entity may start with this token.
    starts: bool,
}

impl Allowed {
    fn at(tokens: &[Token], next: usize, open: Option<Open>) -> Self {
        let after = tokens.get(next + 1);
        Self {
            open: open.map(|o| o.label),
            goes_on: after.is_some_and(|t| t.starts_sentence != Some(true)),
            starts: !tokens[next].is_space,
        }
    }

    fn allows(&self, EntityMove { place, label }: EntityMove) -> bool {
        match (place, self.open) {
            (Place::Out, open) => open.is_none(),
            // For tokens that an earlier component has marked: here there are none.
            _ if label == 0 => false,
            (Place::Begin, None) => self.starts && self.goes_on,
            (Place::Unit, None) => self.starts,
            (Place::In, Some(open)) => open == label && self.goes_on,
            (Place::Last, Some(open)) => open == label,
            _ => false,
        }
    }
}
