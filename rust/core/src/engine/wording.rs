//! Episodes and facts in a language model's words (RecMem, eq. 6, 7 and 9).
//!
//! Which units an episode gathers is decided by the rules, in the transaction of the
//! turn. That transaction also notes down what is to be written; whoever holds the
//! memory asks the model, outside of it, and brings the result back. A killed process
//! leaves the note, so the next one goes on with it; where the model fails, the episode
//! stays its sentences and the rules choose the facts. As nothing that a model writes
//! bears on what is gathered next, a failing one changes words only.

use super::Engine;
use super::decisions::Trace;
use crate::error::Result;
use crate::policy::recurrence::facts::{self, Detail, Wording};
use crate::policy::recurrence::sentences::{content, content_stems, likeness};
use crate::policy::recurrence::{Episode, Sentence, Span};
use crate::store::{Store, Writing, Written};
use crate::types::InteractionId;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;

/// Decisions of one moment that may come before what was written in it.
const BEHIND: u32 = 1_000_000;
/// Why a fact was kept that a model wrote.
const REASON: &str = "model";

/// What a language model is to write, with all it may read for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assignment {
    /// The episode.
    pub episode: u64,
    /// Its version.
    pub version: u32,
    /// What the version before told; none for a new episode.
    pub past: Option<String>,
    /// The turns that are new in it, in order.
    pub messages: Vec<Message>,
    /// Stored facts near to it, nearest first (eq. 8).
    pub known: Vec<String>,
}

/// One turn as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// The turn.
    pub interaction_id: InteractionId,
    /// Its timestamp as given.
    pub timestamp: Option<String>,
    /// Who said it: the speaker, else the role.
    pub speaker: String,
    /// What was said.
    pub text: String,
}

impl Engine {
    /// Whether a language model writes.
    pub(super) fn asks(&self) -> bool {
        self.config.policy.recurrence.writer == "llm"
    }

    /// Notes down what is to be written; what was written of the same turns before a
    /// rebuild is taken instead.
    pub(super) fn ask_for(
        &mut self,
        store: &Store,
        episode: &Episode,
        past: Option<String>,
        fresh: Vec<InteractionId>,
    ) -> Result<()> {
        let sources = episode.sources.clone();
        let former = store.writing(&self.namespace, episode.id, episode.version)?;
        let former = former.filter(|w| w.sources == sources && w.fresh == fresh);
        let writing = Writing {
            episode: episode.id,
            version: episode.version,
            at: episode.at,
            drawn: sources.clone(),
            sources,
            fresh,
            past,
            outcome: None,
        };
        let done = former.and_then(|w| Some((w.drawn, w.outcome?)));
        match done.filter(|(_, outcome)| outcome.failed.is_none()) {
            Some((drawn, outcome)) => self.write_down(store, Writing { drawn, ..writing }, outcome),
            None => store.put_writing(&self.namespace, &writing),
        }
    }

    /// What is to be written next; the order is that of the turns.
    pub fn unwritten(&self) -> Result<Option<Assignment>> {
        self.open_only()?;
        if !self.recurs() {
            return Ok(None);
        }
        let store = self.store();
        let Some(next) = store.next_writing(&self.namespace)? else {
            return Ok(None);
        };
        let mut messages = Vec::new();
        // An erased turn takes the former text with it: all that is left is read again.
        let read = if next.past.is_some() {
            &next.fresh
        } else {
            &next.sources
        };
        for id in read {
            messages.extend(store.turn(&self.namespace, *id)?.map(|t| Message {
                interaction_id: t.interaction_id,
                timestamp: t.timestamp,
                speaker: t.speaker.unwrap_or(t.role),
                text: t.text,
            }));
        }
        let mut known = Vec::new();
        for fact in self.known_to(next.episode) {
            known.push(match &fact.wording {
                Some(w) => w.text.clone(),
                None => self.told_at(&store, &fact.span)?,
            });
        }
        Ok(Some(Assignment {
            episode: next.episode,
            version: next.version,
            past: next.past,
            messages,
            known,
        }))
    }

    /// Takes what was written of the next assignment.
    pub fn written(&mut self, episode: u64, version: u32, outcome: Written) -> Result<()> {
        self.write(|engine, store, _| {
            let found = store.writing(&engine.namespace, episode, version)?;
            match found.filter(|w| w.outcome.is_none()) {
                Some(writing) => engine.write_down(store, writing, outcome),
                // Somebody else was faster.
                None => Ok(()),
            }
        })?;
        Ok(())
    }

    fn write_down(&mut self, store: &Store, mut writing: Writing, outcome: Written) -> Result<()> {
        let found = self.recurrence.episodes().get(&writing.episode);
        let Some(mut episode) = found.cloned() else {
            return store.drop_writing(&self.namespace, writing.episode, writing.version);
        };
        writing.drawn = self.drawn(&writing);
        writing.past = None;
        if let Some(text) = &outcome.text {
            episode.text = Some(text.clone());
            self.recurrence.put_episode(episode.clone());
        }
        match &outcome.facts {
            Some(facts) => self.keep_written(store, &episode, facts, &writing.drawn)?,
            None => {
                let candidates = self.sentences_at(store, &episode)?;
                let sources = self.sources(store, &writing.fresh)?;
                self.extract(store, &episode, &candidates, sources)?;
            }
        }
        let by = |there: bool| if there { "llm" } else { "extractive" };
        let detail = json!({
            "episode": episode.id,
            "version": episode.version,
            "text": by(outcome.text.is_some()),
            "facts": by(outcome.facts.is_some()),
            "failed": outcome.failed,
            "calls": outcome.cost.calls,
            "tokens": outcome.cost.tokens,
        });
        #[allow(clippy::cast_possible_truncation)]
        let place = BEHIND + (episode.id & 0xff) as u32;
        let mut trace = Trace::behind(store, self, writing.at, place);
        trace.add(writing.at, "write", detail)?;
        // Where an erased turn made the episode anew meanwhile, that is what was written.
        store.drop_writing(&self.namespace, writing.episode, writing.version)?;
        writing.version = episode.version;
        writing.outcome = Some(outcome);
        store.put_writing(&self.namespace, &writing)
    }

    /// Every turn that the model had before it, through other facts too.
    fn drawn(&self, writing: &Writing) -> Vec<InteractionId> {
        let mut drawn: BTreeSet<InteractionId> = writing.drawn.iter().copied().collect();
        drawn.extend(&writing.sources);
        for fact in self.known_to(writing.episode) {
            drawn.insert(fact.span.turn);
            drawn.extend(fact.wording.iter().flat_map(|w| &w.drawn));
        }
        drawn.into_iter().collect()
    }

    fn known_to(&self, episode: u64) -> Vec<&crate::policy::recurrence::Fact> {
        let Some(episode) = self.recurrence.episodes().get(&episode) else {
            return Vec::new();
        };
        let near = |turn| self.flat.similarity(&episode.vector, turn);
        let most = self.config.policy.recurrence.fact_neighbours;
        self.recurrence.nearest_facts(most, near)
    }

    /// Keeps the facts that a model wrote, under the same rules: not what a stored one
    /// tells already, not more than `max_facts`, and a new value supersedes.
    fn keep_written(
        &mut self,
        store: &Store,
        episode: &Episode,
        rows: &[(InteractionId, String)],
        drawn: &[InteractionId],
    ) -> Result<()> {
        let p = self.config.policy.recurrence.clone();
        let mut kept = 0;
        for (turn, text) in rows {
            if kept == p.max_facts {
                break;
            }
            let Some(detail) = self.detail_of(store, *turn, text)? else {
                continue;
            };
            let idf = |s: &str| self.bm25.idf(s);
            let every = self.recurrence.facts().values();
            let updates = { every }.any(|f| facts::contradicts(f, &detail.held));
            let known = self.known_to(episode.id);
            let stored = { known.iter() }.any(|f| facts::tells(f, &detail, p.fact_known, &idf));
            if updates || !stored {
                let wording = Wording {
                    text: text.clone(),
                    drawn: drawn.to_vec(),
                };
                self.keep_fact(store, episode, detail, Some(wording))?;
                kept += 1;
            }
        }
        Ok(())
    }

    /// A fact of a turn, with the sentence of the turn that is most like it.
    fn detail_of(&self, store: &Store, turn: InteractionId, text: &str) -> Result<Option<Detail>> {
        let Some(source) = self.sources(store, &[turn])?.pop() else {
            return Ok(None);
        };
        let stems = content_stems(text, &content(&source.facts));
        let idf = |s: &str| self.bm25.idf(s);
        let like = |s: &Sentence| likeness(&stems, &s.stems, &idf);
        let mut best: Option<(f64, Span)> = None;
        for s in &source.sentences {
            // The first of equals.
            if best.is_none_or(|b| like(s) > b.0) {
                best = Some((like(s), s.span));
            }
        }
        let whole = Span {
            turn,
            start: 0,
            end: u32::try_from(source.turn.text.chars().count()).unwrap_or(u32::MAX),
        };
        let span = best.map_or(whole, |b| b.1);
        let unit = self.recurrence.unit_of(turn).map_or(turn, |u| u.id);
        Ok(Some(Detail {
            held: facts::held(&span, &source.facts, &source.turn.role),
            sentence: Sentence {
                span,
                unit,
                stems,
                omega: 0.0,
                centroid: 0.0,
            },
            reasons: vec![REASON],
        }))
    }

    /// Stems of the words of a fact, as far as they are its turn's.
    pub(super) fn stems_in(
        &self,
        store: &Store,
        turn: InteractionId,
        text: &str,
    ) -> Result<Vec<String>> {
        let derived = store.derived(&self.namespace, turn)?;
        Ok(derived.map_or(Vec::new(), |d| content_stems(text, &content(&d.facts))))
    }

    /// What an episode tells: its text, else its sentences, one line each.
    pub(super) fn told_by(&self, store: &Store, episode: &Episode) -> Result<String> {
        if let Some(text) = &episode.text {
            return Ok(text.clone());
        }
        let lines: Result<Vec<String>> = episode
            .sentences
            .iter()
            .map(|s| self.told_at(store, s))
            .collect();
        Ok(lines?.join("\n"))
    }

    fn told_at(&self, store: &Store, span: &Span) -> Result<String> {
        let found = self.excerpt_in(store, span)?;
        Ok(found.map_or(String::new(), |e| e.text))
    }
}
