//! The episodic and the semantic tier beside the raw one: reading, recall, digest.

use super::Engine;
use super::digest::field;
use super::read::RecallOptions;
use crate::error::Result;
use crate::order::best_first;
use crate::policy::recurrence::sentences::share;
use crate::policy::recurrence::{Episode, Fact, Span};
use crate::render::{self, Line};
use crate::retrieve::Query;
use crate::score::vector::{cosine, dot};
use crate::store::Store;
use crate::types::{InteractionId, Validity};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Added for a speaker whom the question names.
const SPEAKER: f64 = 0.2;

/// One sentence of a turn, as episodes and facts show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// The turn.
    pub interaction_id: InteractionId,
    /// First character.
    pub start: u32,
    /// One past the last character.
    pub end: u32,
    /// `[8 May 2023 Ana] sentence`.
    pub text: String,
}

/// An episode with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EpisodeText {
    /// Number.
    pub id: u64,
    /// How often it was made anew, from 1.
    pub version: u32,
    /// The turn whose arrival made this version.
    pub at: InteractionId,
    /// Every turn behind it.
    pub sources: Vec<InteractionId>,
    /// Its sentences, chronological.
    pub sentences: Vec<Excerpt>,
    /// What a language model made of it, in place of them.
    pub written: Option<String>,
}

/// A fact with its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FactText {
    /// Number.
    pub id: u64,
    /// The episode whose refinement found it.
    pub episode: u64,
    /// Its sentence.
    pub excerpt: Excerpt,
    /// Why it was kept.
    pub reasons: Vec<String>,
    /// `topic: value` of each topic that it gives a value.
    pub topics: Vec<String>,
    /// The fact that superseded it.
    pub superseded_by: Option<u64>,
    /// How a language model put it, in place of the sentence.
    pub written: Option<String>,
}

/// Episodes and facts that a context may show, nearest first.
#[derive(Debug, Default)]
pub(super) struct Tiers {
    pub(super) episodes: Vec<u64>,
    pub(super) facts: Vec<u64>,
}

impl Tiers {
    pub(super) fn is_empty(&self) -> bool {
        self.episodes.is_empty() && self.facts.is_empty()
    }
}

impl Engine {
    /// Every episode, by number.
    pub fn episodes(&self) -> Result<Vec<EpisodeText>> {
        self.open_only()?;
        let every = self.recurrence.episodes().values();
        every
            .filter_map(|e| self.episode_text(e).transpose())
            .collect()
    }

    /// Every fact, superseded ones included, by number.
    pub fn facts(&self) -> Result<Vec<FactText>> {
        self.open_only()?;
        let every = self.recurrence.facts().values();
        every
            .filter_map(|f| self.fact_text(f).transpose())
            .collect()
    }

    /// Cosine of every pair of units, by the earlier and then the later one: what
    /// thresholds are calibrated with.
    pub fn unit_cosines(&self) -> Result<Vec<f64>> {
        self.open_only()?;
        let units: Vec<&[i16]> = self
            .recurrence
            .units()
            .map(|u| u.vector.as_slice())
            .collect();
        let later = |i: usize| units[i + 1..].iter().map(move |v| (i, v));
        Ok((0..units.len())
            .flat_map(later)
            .map(|(i, v)| cosine(dot(units[i], v)))
            .collect())
    }

    /// An episode with its text; `None` where what it tells of was erased since this reader was
    /// opened.
    fn episode_text(&self, e: &Episode) -> Result<Option<EpisodeText>> {
        if e.text.is_some() && !self.still_there(&e.sources)? {
            return Ok(None);
        }
        let sentences = self.store().reading(|store| {
            let each = e.sentences.iter();
            each.filter_map(|span| self.excerpt_in(store, span).transpose())
                .collect::<Result<Vec<Excerpt>>>()
        })?;
        if sentences.is_empty() {
            return Ok(None);
        }
        Ok(Some(EpisodeText {
            id: e.id,
            version: e.version,
            at: e.at,
            sources: e.sources.clone(),
            sentences,
            written: e.text.clone(),
        }))
    }

    /// The same of a fact.
    fn fact_text(&self, f: &Fact) -> Result<Option<FactText>> {
        let drawn = f.wording.as_ref().map_or(&[][..], |w| &w.drawn);
        let Some(excerpt) = self.excerpt(&f.span)? else {
            return Ok(None);
        };
        if !self.still_there(drawn)? {
            return Ok(None);
        }
        let topic = |topic: &str| topic.replace('\u{1f}', " ");
        Ok(Some(FactText {
            id: f.id,
            episode: f.episode,
            excerpt,
            reasons: f.reasons.clone(),
            topics: f
                .held
                .iter()
                .map(|h| format!("{}: {}", topic(&h.topic), h.value))
                .collect(),
            superseded_by: f.superseded_by(),
            written: f.wording.as_ref().map(|w| w.text.clone()),
        }))
    }

    /// Whether a writer erased none of these turns since this reader was opened.
    fn still_there(&self, ids: &[InteractionId]) -> Result<bool> {
        let store = self.store();
        if !store.read_only() {
            // What is gathered goes with what it was gathered from.
            return Ok(true);
        }
        for id in ids {
            if store.turn(&self.namespace, *id)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn excerpt(&self, span: &Span) -> Result<Option<Excerpt>> {
        self.store().reading(|store| self.excerpt_in(store, span))
    }

    /// The same within a transaction.
    pub(super) fn excerpt_in(&self, store: &Store, span: &Span) -> Result<Option<Excerpt>> {
        let turn = store.turn(&self.namespace, span.turn)?;
        let read = store.text_and_facts(&self.namespace, span.turn)?;
        let times = read.map(|(_, facts)| facts.times).unwrap_or_default();
        Ok(turn.map(|t| {
            let turn = self.complete(t);
            let line = Line {
                turn: &turn,
                times: &times,
                cut: Some((span.start as usize, span.end as usize)),
            };
            Excerpt {
                interaction_id: span.turn,
                start: span.start,
                end: span.end,
                text: render::sentence(&line, true),
            }
        }))
    }

    /// The episodes and facts nearest to a question, all of whose turns it may see.
    pub(super) fn recall_tiers(&self, query: &Query, options: &RecallOptions) -> Result<Tiers> {
        if self.recurrence.episodes().is_empty() {
            return Ok(Tiers::default());
        }
        let conditions = self.conditions(&options.filters);
        let admit = |id: InteractionId| self.may_answer(id, &conditions);
        let stems = self.query_stems(&query.frame);
        let terms = self.bm25.terms(&stems);
        let shared = |id: InteractionId| terms.coverage(id) + self.named(query, id);
        let episodes = self.recurrence.episodes().values();
        let mut ranked: Vec<(f64, u64)> = episodes
            .filter(|e| e.sentences.iter().all(|s| admit(s.turn)))
            .filter(|e| e.text.is_none() || e.sources.iter().all(|t| admit(*t)))
            .map(|e| {
                let best = e.sentences.iter().map(|s| shared(s.turn));
                let best = best.fold(0.0, f64::max);
                (cosine(dot(&query.vector, &e.vector)) + best, e.id)
            })
            .collect();
        ranked.sort_by(|a, b| best_first(*a, *b));
        let weights: Vec<f64> = stems.iter().map(|s| self.bm25.idf(s)).collect();
        let past = query.frame.historical();
        let standing = |f: &&Fact| {
            let current = self.lineage.validity(f.span.turn) == Validity::Current;
            let drawn = f.wording.iter().flat_map(|w| &w.drawn);
            { drawn }.all(|t| admit(*t))
                && admit(f.span.turn)
                && (past || (current && f.superseded_by().is_none()))
        };
        let mut facts: Vec<(f64, u64)> = self
            .recurrence
            .facts()
            .values()
            .filter(standing)
            .map(|f| {
                let near = self.flat.similarity(&query.vector, f.span.turn);
                let held = share(&stems, &weights, |s| f.stems.iter().any(|own| own == s));
                (near + held + self.named(query, f.span.turn), f.id)
            })
            .collect();
        facts.sort_by(|a, b| best_first(*a, *b));
        let numbers = |scored: Vec<(f64, u64)>| scored.into_iter().map(|(_, id)| id).collect();
        Ok(Tiers {
            episodes: numbers(ranked),
            facts: numbers(facts),
        })
    }

    /// An episode by number, with its text.
    pub(super) fn episode(&self, id: u64) -> Result<Option<EpisodeText>> {
        let found = self.recurrence.episodes().get(&id);
        found.map_or(Ok(None), |e| self.episode_text(e))
    }

    /// A fact by number, with its text.
    pub(super) fn fact(&self, id: u64) -> Result<Option<FactText>> {
        let found = self.recurrence.facts().get(&id);
        found.map_or(Ok(None), |f| self.fact_text(f))
    }

    /// Turns whose sentences an episode shows, or that its text may tell of.
    pub(super) fn quoted(&self, id: u64) -> Vec<InteractionId> {
        let found = self.recurrence.episodes().get(&id);
        found.map_or(Vec::new(), |e| match e.text {
            Some(_) => e.sources.clone(),
            None => e.sentences.iter().map(|s| s.turn).collect(),
        })
    }

    /// The turn that a fact stands in.
    pub(super) fn stated_in(&self, id: u64) -> Option<InteractionId> {
        self.recurrence.facts().get(&id).map(|f| f.span.turn)
    }

    /// A little for a turn by a speaker whom the question names, as in the first stage.
    fn named(&self, query: &Query, id: InteractionId) -> f64 {
        let speaker = self.turns.get(&id).and_then(|m| m.speaker.as_deref());
        let named = speaker.is_some_and(|s| query.frame.speakers.iter().any(|x| x == s));
        if named { SPEAKER } else { 0.0 }
    }

    /// Feeds units, episodes and facts; nothing while the policy is off.
    pub(super) fn digest_recurrence(&self, hash: &mut Sha256) {
        if !self.recurs() {
            return;
        }
        let span = |hash: &mut Sha256, s: &Span| {
            hash.update(s.turn.to_le_bytes());
            hash.update(s.start.to_le_bytes());
            hash.update(s.end.to_le_bytes());
        };
        let ids = |hash: &mut Sha256, ids: &[InteractionId]| {
            hash.update((ids.len() as u64).to_le_bytes());
            for id in ids {
                hash.update(id.to_le_bytes());
            }
        };
        for unit in self.recurrence.units() {
            hash.update(unit.id.to_le_bytes());
            ids(hash, &unit.turns);
        }
        for e in self.recurrence.episodes().values() {
            ids(hash, &[e.id, u64::from(e.version), e.at]);
            ids(hash, &e.sources);
            for s in &e.sentences {
                span(hash, s);
            }
            if let Some(text) = &e.text {
                field(hash, Some(text.as_bytes()));
            }
        }
        for f in self.recurrence.facts().values() {
            ids(hash, &[f.id, f.episode]);
            span(hash, &f.span);
            if let Some(w) = &f.wording {
                field(hash, Some(w.text.as_bytes()));
            }
            for h in &f.held {
                field(hash, Some(h.topic.as_bytes()));
                field(hash, Some(h.value.as_bytes()));
                field(
                    hash,
                    h.replaced_by.map(u64::to_le_bytes).as_ref().map(|b| &b[..]),
                );
            }
        }
    }

    /// Where a turn was gathered; `None` while the policy is off.
    pub(super) fn explain_recurrence(&self, id: InteractionId) -> Option<Value> {
        let facts = self.recurrence.facts().values();
        self.recurs().then(|| {
            json!({
                "unit": self.recurrence.unit_of(id).map(|u| &u.turns),
                "consolidated_in": self.recurrence.consolidated_in(&[id]),
                "facts": facts
                    .filter(|f| f.span.turn == id)
                    .map(|f| f.id)
                    .collect::<Vec<_>>(),
            })
        })
    }

    /// Counts; `None` while the policy is off.
    pub(super) fn recurrence_stats(&self) -> Option<Value> {
        let state = &self.recurrence;
        let behind: BTreeSet<InteractionId> = state
            .episodes()
            .values()
            .flat_map(|e| e.sources.iter().copied())
            .collect();
        let superseded = state.facts().values();
        let superseded = superseded.filter(|f| f.superseded_by().is_some()).count();
        self.recurs().then(|| {
            json!({
                "units": state.units().count(),
                "episodes": state.episodes().len(),
                "facts": state.facts().len(),
                "superseded_facts": superseded,
                "consolidated_turns": behind.len(),
            })
        })
    }
}
