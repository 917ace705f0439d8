//! A question as the engine receives it.

use serde::{Deserialize, Serialize};

/// An entity that the question names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryEntity {
    /// Surface text.
    pub text: String,
    /// Recogniser's label, or `QUOTED` / `NAME`.
    #[serde(default)]
    pub label: String,
}

/// What the question asks for (paper, section 9.3, step 1).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueryFrame {
    /// The question.
    pub text: String,
    /// Entities it names.
    pub entities: Vec<QueryEntity>,
    /// Other names of the same entities, one list an entity.
    pub aliases: Vec<Vec<String>>,
    /// Known speakers it names, lower case.
    pub speakers: Vec<String>,
    /// Whom or what it is about.
    pub subject_focus: Option<String>,
    /// Canonical predicate.
    pub predicate_canonical: Option<String>,
    /// Lemmas that express the predicate.
    pub predicate_lemmas: Vec<String>,
    /// `person`, `place`, `time`, `quantity`, `reason`, `list`, `boolean`, `fact`, `unknown`.
    pub answer_type: String,
    /// `none`, `point`, `range`, `before`, `after`, `order`, `duration`.
    pub temporal_intent: String,
    /// First day of the range it names, `YYYY-MM-DD`.
    pub first: Option<String>,
    /// Last day of it, inclusive.
    pub last: Option<String>,
    /// The days are counted from when it is asked ("a week ago").
    pub counts_back: bool,
    /// Words of the event it is relative to ("after the move").
    pub anchor_event: Option<String>,
    /// `current`, `historical`, `mixed`, `unspecified`.
    pub currentness: String,
    /// It asks for the first or original statement.
    pub wants_first: bool,
    /// `positive` or `negative`.
    pub polarity: String,
    /// Content lemmas, once each.
    pub terms: Vec<String>,
    /// The same without the speakers' names.
    pub name_free_terms: Vec<String>,
    /// Sub-questions of a question in several parts.
    pub parts: Vec<String>,
    /// The role whose turns it asks for.
    pub role_hint: Option<String>,
    /// It asks about the one who asks.
    pub is_first_person: bool,
    /// Asks about the present: nothing in it is past.
    pub is_present: bool,
    /// Asks for one value: a place, a person, a number, "which room".
    pub is_single: bool,
}

impl QueryFrame {
    /// Whether it names days.
    pub fn names_days(&self) -> bool {
        self.first.is_some() || self.last.is_some()
    }

    /// Whether the past is asked about, alone or too.
    pub fn historical(&self) -> bool {
        matches!(self.currentness.as_str(), "historical" | "mixed")
    }
}

/// A question with its vectors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Query {
    /// Its frame.
    pub frame: QueryFrame,
    /// Unit vector as 16-bit integers.
    pub vector: Vec<i16>,
    /// Token unit vectors as 8-bit integers, one after the other.
    pub tokens: Vec<i8>,
    /// For each token the lemma of its word; none for stop words and punctuation.
    pub token_terms: Vec<Option<String>>,
}

/// Conditions that a recalled turn must meet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filters {
    /// Role.
    pub role: Option<String>,
    /// Speaker, whatever the case.
    pub speaker: Option<String>,
    /// Session.
    pub session_id: Option<String>,
    /// Earliest time, microseconds since the epoch.
    pub since: Option<i64>,
    /// Latest time, inclusive.
    pub until: Option<i64>,
    /// Metadata fields that must have these values.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
}
