//! The terms that a candidate's score is the sum of.

use serde::{Serialize, Serializer};
use std::ops::{Index, IndexMut};

/// A term, in the order of names: that of a printed trace, and that in which scores
/// are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Term {
    Anchor,
    Answer,
    Answerability,
    Bm25,
    Bm25Neighbours,
    Current,
    DateRange,
    Deliberation,
    Dense,
    Entities,
    Former,
    Hedged,
    Inherited,
    LateOwn,
    LatePrevious,
    LateWindow,
    Length,
    Original,
    Outdated,
    Owner,
    Polarity,
    Question,
    Remark,
    Reply,
    Role,
    Rrf,
    Social,
    Speaker,
    Stale,
    SystemOrTool,
    Time,
    Update,
}

const NAMES: [&str; 32] = [
    "anchor",
    "answer",
    "answerability",
    "bm25",
    "bm25_neighbours",
    "current",
    "date_range",
    "deliberation",
    "dense",
    "entities",
    "former",
    "hedged",
    "inherited",
    "late_own",
    "late_previous",
    "late_window",
    "length",
    "original",
    "outdated",
    "owner",
    "polarity",
    "question",
    "remark",
    "reply",
    "role",
    "rrf",
    "social",
    "speaker",
    "stale",
    "system_or_tool",
    "time",
    "update",
];

/// The terms of one candidate; a recall has hundreds, so it is a row and no map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Terms([f64; NAMES.len()]);

impl Default for Terms {
    fn default() -> Self {
        Self([0.0; NAMES.len()])
    }
}

impl Terms {
    /// Their sum, in the order of names.
    pub(super) fn sum(&self) -> f64 {
        self.0.iter().sum()
    }

    /// Those that are not zero, by name.
    pub(super) fn named(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let all = NAMES.into_iter().zip(self.0);
        all.filter(|(_, value)| *value != 0.0)
    }
}

impl Index<Term> for Terms {
    type Output = f64;

    fn index(&self, term: Term) -> &f64 {
        &self.0[term as usize]
    }
}

impl IndexMut<Term> for Terms {
    fn index_mut(&mut self, term: Term) -> &mut f64 {
        &mut self.0[term as usize]
    }
}

impl Serialize for Terms {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.named())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_and_belong_to_their_terms() {
        assert!(NAMES.is_sorted());
        assert_eq!(Term::Update as usize + 1, NAMES.len());
        for (at, name) in NAMES.iter().enumerate() {
            let mut terms = Terms::default();
            terms.0[at] = 2.0;
            assert_eq!(terms.named().collect::<Vec<_>>(), [(*name, 2.0)]);
        }
        let mut terms = Terms::default();
        terms[Term::LateOwn] = 1.0;
        terms[Term::SystemOrTool] = -0.5;
        let printed = serde_json::to_string(&terms).expect("a map");
        assert_eq!(printed, r#"{"late_own":1.0,"system_or_tool":-0.5}"#);
        assert_eq!(terms.sum().to_bits(), 0.5f64.to_bits());
    }
}
