//! The engine's vocabulary: turns, facts, states, relations, reports.

mod facts;

pub use facts::{CardFacts, Claim, Cue, Entity, Facts, Signals, TimeExpression};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of a turn within one memory: from 0, dense at birth, never reused.
pub type InteractionId = u64;

/// Where a turn is (design: every accepted turn is one or the other).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// In the active memory, under the token budget.
    Active,
    /// Evicted from it, kept as a raw record.
    Archived,
}

/// Whether what a turn or card says still stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// Nothing newer contradicts it.
    Current,
    /// A newer statement on the same topic replaced it.
    Superseded,
    /// A newer statement corrected it.
    Corrected,
    /// It was declared void.
    Invalidated,
}

/// How one turn relates to an older one (paper, section 9.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// The newer states another value of the same topic.
    Supersedes,
    /// The two disagree, and neither wins.
    ConflictsWith,
    /// The newer names the older's value as wrong.
    Corrects,
    /// The newer declares the older void.
    Invalidates,
}

impl Relation {
    /// Every relation, in the order of their stored numbers.
    pub const ALL: [Relation; 4] = [
        Self::Supersedes,
        Self::ConflictsWith,
        Self::Corrects,
        Self::Invalidates,
    ];

    /// The name users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supersedes => "supersedes",
            Self::ConflictsWith => "conflicts_with",
            Self::Corrects => "corrects",
            Self::Invalidates => "invalidates",
        }
    }

    /// The relation of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == name)
    }

    /// What the older side becomes, if the relation suppresses it.
    pub fn suppresses(self) -> Option<Validity> {
        match self {
            Self::Supersedes => Some(Validity::Superseded),
            Self::Corrects => Some(Validity::Corrected),
            Self::Invalidates => Some(Validity::Invalidated),
            Self::ConflictsWith => None,
        }
    }
}

/// A point in time as the caller gave it, and in UTC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The caller's own words.
    pub given: String,
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub utc_micros: i64,
    /// Whether the caller named no zone and UTC was assumed.
    pub naive: bool,
}

/// Structured provenance (paper, eq. 10 and section 9.2). All optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Provenance {
    /// Role of the source, where it differs from the turn's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Session of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The caller's own name of the source turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_turn: Option<String>,
    /// When the source was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The user corrects something here.
    pub is_user_correction: bool,
    /// The user changes a preference here.
    pub is_preference_update: bool,
    /// The turn sets a constraint.
    pub is_constraint: bool,
    /// A model wrote it.
    pub derived_from_model: bool,
    /// The user corrected it later.
    pub corrected_by_user: bool,
}

/// A turn as a caller gives it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewTurn {
    /// Raw text, kept byte for byte.
    pub text: String,
    /// `user`, `assistant`, `system`, `tool` or another label.
    pub role: String,
    /// Speaker's name.
    pub speaker: Option<String>,
    /// When it was said.
    pub timestamp: Option<Stamp>,
    /// Conversation session.
    pub session_id: Option<String>,
    /// The caller's own id; the same id twice is one turn.
    pub external_id: Option<String>,
    /// Structured provenance.
    pub provenance: Option<Provenance>,
    /// Anything else, as a JSON object.
    pub metadata: Option<String>,
    /// Wall clock at receipt, microseconds; no part of the logical state.
    pub received_at: i64,
}

/// One window of a turn's text with its vectors, quantised (see `score::vector`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Passage {
    /// First character.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
    /// Unit vector as 16-bit integers.
    pub vector: Vec<i16>,
    /// Token unit vectors as 8-bit integers, one after the other.
    pub tokens: Vec<i8>,
}

/// How long what a turn says matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// Not beyond the moment: utility 0.
    Transient,
    /// Days to weeks.
    ShortTerm,
    /// Months, or for good.
    Persistent,
}

impl Lifecycle {
    /// Every lifecycle, in the order of their stored numbers.
    pub const ALL: [Lifecycle; 3] = [Self::Transient, Self::ShortTerm, Self::Persistent];

    /// By its name in a model's reply.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "transient" => Some(Self::Transient),
            "short_term" => Some(Self::ShortTerm),
            "persistent" => Some(Self::Persistent),
            _ => None,
        }
    }
}

/// What a language model's part cost, logically: replies from a cache at what they once cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Replies.
    pub calls: u64,
    /// Prompt and completion tokens.
    pub tokens: u64,
}

/// What a language model said of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// How long it matters and its utility in [0, 1]; or why the rules decide instead.
    pub said: Result<(Lifecycle, f64), String>,
    /// What that cost.
    pub cost: Cost,
}

/// A turn with everything the engine needs to store and judge it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AnalysedTurn {
    /// The turn.
    pub turn: NewTurn,
    /// Its facts.
    pub facts: Facts,
    /// Its passages; one for most turns.
    pub passages: Vec<Passage>,
    /// Vectors of its cards, in the order of `facts.cards`.
    pub card_vectors: Vec<Vec<i16>>,
    /// What a language model said of its utility, where one was asked.
    pub assessment: Option<Assessment>,
}

/// A turn as the store holds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredTurn {
    /// Number within the memory.
    pub interaction_id: InteractionId,
    /// Derived id, equal wherever the same turn went in at the same place.
    pub record_id: String,
    /// Raw text.
    pub text: String,
    /// Role.
    pub role: String,
    /// Speaker's name.
    pub speaker: Option<String>,
    /// Timestamp as given.
    pub timestamp: Option<String>,
    /// Timestamp in microseconds since the epoch, UTC.
    pub utc_micros: Option<i64>,
    /// Whether UTC was assumed.
    pub naive_timestamp: bool,
    /// Session.
    pub session_id: Option<String>,
    /// The caller's own id.
    pub external_id: Option<String>,
    /// Structured provenance.
    pub provenance: Option<Provenance>,
    /// Metadata as JSON text.
    pub metadata: Option<String>,
    /// Tokens by the memory's counter.
    pub tokens: u32,
    /// Active or archived.
    pub state: State,
    /// Whether it still stands.
    pub validity: Validity,
}

/// The terms of one Survival Score (eq. 8-12, 29).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// Divergence from the window (eq. 7).
    pub divergence: f64,
    /// Content channel (eq. 8).
    pub z_content: f64,
    /// Operational channel (eq. 9).
    pub z_op: f64,
    /// Provenance channel (eq. 10).
    pub z_prov: f64,
    /// Before the social floor (eq. 12).
    pub omega_raw: f64,
    /// Survival Score (eq. 29).
    pub omega: f64,
}

/// One eviction, as reported to the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Eviction {
    /// The evicted turn.
    pub interaction_id: InteractionId,
    /// `hard_kill`, `budget` or `skip`.
    pub reason: &'static str,
}

/// What one write did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WriteReport {
    /// Turns stored.
    pub accepted: u64,
    /// Turns already known by their external id.
    pub duplicates: u64,
    /// Turns archived, in order.
    pub evicted: Vec<Eviction>,
    /// Turns that stopped being current, in order.
    pub superseded: Vec<InteractionId>,
    /// Active turns by tier, after the write.
    pub tiers: BTreeMap<&'static str, u64>,
    /// Tokens in the active memory, after the write.
    pub active_tokens: u64,
    /// Tokens over the budget that no rule may evict, after the write.
    pub over_budget_tokens: u64,
    /// Insertions in the batch after which the budget stayed exceeded.
    pub over_budget_turns: u64,
}

/// One decision of the engine, as the trace keeps it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// The turn decided on.
    pub interaction_id: InteractionId,
    /// The newest turn when it was taken.
    pub at: InteractionId,
    /// `tier`, `evict_kill`, `evict_budget`, `over_budget`, `supersede`, `relate`, `overruled`;
    /// of the gate `skip`, `construct`, `evolve`; of recurrence consolidation `merge`,
    /// `consolidate`.
    pub kind: String,
    /// Inputs and terms, as JSON.
    pub detail: serde_json::Value,
}
