//! What the analysis found in a turn.

use serde::{Deserialize, Serialize};

/// The conversational signals of eq. 5 as a bit set, in the paper's order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signals(pub u8);

impl Signals {
    /// Names, bit 0 first.
    pub const NAMES: [&'static str; 8] = [
        "constraint",
        "preference",
        "current_state",
        "past_state",
        "correction",
        "replacement",
        "query_like",
        "ack_like",
    ];
    /// A rule that binds future behaviour.
    pub const CONSTRAINT: u8 = 1;
    /// A like, dislike or choice.
    pub const PREFERENCE: u8 = 1 << 1;
    /// Something that holds now.
    pub const CURRENT_STATE: u8 = 1 << 2;
    /// Something that held once.
    pub const PAST_STATE: u8 = 1 << 3;
    /// Something said before was wrong.
    pub const CORRECTION: u8 = 1 << 4;
    /// One value takes another's place.
    pub const REPLACEMENT: u8 = 1 << 5;
    /// It asks.
    pub const QUERY_LIKE: u8 = 1 << 6;
    /// It merely acknowledges.
    pub const ACK_LIKE: u8 = 1 << 7;

    /// Whether any of the given bits is set.
    pub fn has(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    /// 1.0 where the bit is set, else 0.0: the indicator of eq. 9 and 23.
    pub fn indicator(self, bit: u8) -> f64 {
        f64::from(u8::from(self.has(bit)))
    }

    /// The set with that name added; `None` for an unknown name.
    pub fn with(self, name: &str) -> Option<Self> {
        let bit = Self::NAMES.iter().position(|n| *n == name)?;
        Some(Self(self.0 | 1 << bit))
    }

    /// Names of the set bits, in the paper's order.
    pub fn names(self) -> Vec<&'static str> {
        (0..8)
            .filter(|b| self.0 >> b & 1 == 1)
            .map(|b| Self::NAMES[b])
            .collect()
    }
}

/// A named entity of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Surface text.
    pub text: String,
    /// Recogniser's label.
    pub label: String,
    /// First character.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
}

/// Why a signal fired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cue {
    /// The signal's name.
    pub signal: String,
    /// The matched words.
    pub text: String,
    /// First character.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
    /// The rule that matched.
    pub rule: String,
}

/// A (topic identity, topic value) pair (paper, section 4.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// `preference`, `constraint`, `current_state`, `past_state`, `correction`, or `rest`: that
    /// the turn says more than its claims.
    pub kind: String,
    /// Whom it is about, normalised.
    pub subject: String,
    /// What the value is a value of; empty where only the old value says so.
    pub identity: String,
    /// The value, normalised.
    pub value: String,
    /// The value it replaces.
    pub old_value: Option<String>,
    /// Whether the value is denied.
    pub negated: bool,
}

/// A time expression resolved against the turn's own date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeExpression {
    /// Surface words.
    pub text: String,
    /// First character.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
    /// First day covered, `YYYY-MM-DD`; none: open.
    pub first: Option<String>,
    /// Last day covered, inclusive; none: open.
    pub last: Option<String>,
    /// `day`, `week`, `weekend`, `month`, `season`, `year` or `span`.
    pub grain: String,
    /// The dates in words, as rendered in brackets.
    pub words: String,
}

/// A subject-predicate-object projection of a turn (eq. 31).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CardFacts {
    /// `preference`, `constraint`, `correction`, `current_state`, `relation`, `event` or `fact`.
    pub kind: String,
    /// Whom or what it is about, normalised.
    pub subject: String,
    /// Canonical predicate.
    pub predicate: String,
    /// Surface object.
    pub object: String,
    /// Whether the sentence denies it.
    pub negated: bool,
    /// `current`, `past`, `future` or `none`.
    pub temporal: String,
    /// First character of its sentence.
    pub start: u32,
    /// One past the last character of its sentence.
    pub end: u32,
    /// Identity of the claim it projects.
    pub identity: Option<String>,
    /// First day of the event.
    pub first: Option<String>,
    /// Last day of the event.
    pub last: Option<String>,
    /// Lemmas of subject, predicate and object, for the symbolic channel.
    pub terms: Vec<String>,
}

/// What the analysis found in one turn: the engine's only view of language.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Information density (eq. 1), in [0, 1].
    pub density: f64,
    /// Sentiment magnitude (eq. 2), in [0, 1].
    pub sentiment: f64,
    /// Named entities (eq. 3).
    pub entity_count: u32,
    /// The entities, in text order.
    pub entities: Vec<Entity>,
    /// Conversational signals (eq. 5).
    pub signals: Signals,
    /// Their evidence.
    pub cues: Vec<Cue>,
    /// Topic pairs.
    pub claims: Vec<Claim>,
    /// Phatic (eq. 28).
    pub social: bool,
    /// Content lemmas in text order.
    pub terms: Vec<String>,
    /// Resolved time expressions.
    pub times: Vec<TimeExpression>,
    /// Projected cards.
    pub cards: Vec<CardFacts>,
}
