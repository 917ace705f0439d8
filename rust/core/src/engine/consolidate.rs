//! Recurrence consolidation at work: an arriving unit is merged, consolidated or left,
//! in the transaction of the turn that completes it.

use super::Engine;
use super::decisions::Trace;
use crate::error::Result;
use crate::policy::recurrence::facts::{self, Detail, Wording};
use crate::policy::recurrence::trigger::{self, Verdict};
use crate::policy::recurrence::units::{self, Side};
use crate::policy::recurrence::{Episode, Fact, Recurrence, Sentence, Unit, episodes, number};
use crate::policy::recurrence::{sentences, state};
use crate::store::Store;
use crate::text::fold;
use crate::types::{Facts, InteractionId, StoredTurn};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// A turn as consolidation reads it.
pub(super) struct Source {
    pub(super) turn: StoredTurn,
    pub(super) facts: Facts,
    pub(super) sentences: Vec<Sentence>,
}

impl Engine {
    pub(super) fn recurs(&self) -> bool {
        self.config.policy.consolidation == "recurrence"
    }

    /// What a turn that was just taken in completes: perhaps a unit, perhaps an episode.
    pub(super) fn consolidate(
        &mut self,
        store: &Store,
        id: InteractionId,
        trace: &mut Trace<'_>,
    ) -> Result<()> {
        if !self.recurs() {
            return Ok(());
        }
        let Some(unit) = self.arriving_unit(id) else {
            return Ok(());
        };
        let p = &self.config.policy.recurrence;
        let verdict = trigger::judge(
            &unit,
            self.recurrence.unit_vectors(),
            |id| self.recurrence.is_promoted(id),
            self.recurrence.episodes().values(),
            p,
        );
        store.insert_unit(&self.namespace, unit.id, &unit.turns)?;
        self.recurrence.push_unit(unit.clone());
        match verdict {
            Verdict::Merge { episode, cosine } => {
                let detail = json!({
                    "episode": episode,
                    "cosine": cosine,
                    "threshold": p.similarity(),
                });
                for turn in &unit.turns {
                    trace.add(*turn, "merge", detail.clone())?;
                }
                self.merge(store, id, &unit, episode)
            }
            Verdict::Consolidate { relevant } => self.gather(store, id, &unit, &relevant, trace),
            Verdict::Wait { .. } => Ok(()),
        }
    }

    /// The unit that turn `id` completes: with the turn before, which it answers, or
    /// that turn alone, which it does not. The newest turn waits for an answer.
    fn arriving_unit(&self, id: InteractionId) -> Option<Unit> {
        let own = self.turns.get(&id).filter(|m| units::speaks(&m.role))?;
        let (before, meta) = self
            .turns
            .before(id)
            .find(|(_, m)| units::speaks(&m.role))?;
        if self.recurrence.unit_of(*before).is_some() {
            return None;
        }
        let answered = units::answers(side(meta), side(own));
        let turns = if answered {
            vec![*before, id]
        } else {
            vec![*before]
        };
        let vector = self.mean_of(&turns);
        Some(Unit {
            id: *before,
            turns,
            vector,
        })
    }

    /// Unit mean of turns, each by the unit mean of its passages.
    fn mean_of(&self, turns: &[InteractionId]) -> Vec<i16> {
        let dimension = self.flat.dimension().max(1);
        let own: Vec<Vec<i16>> = turns
            .iter()
            .map(|t| units::mean(self.flat.vectors_of(*t).chunks_exact(dimension)))
            .collect();
        units::mean(own.iter().map(Vec::as_slice))
    }

    /// Extends an episode by a unit and refines it again (eq. 6).
    fn merge(&mut self, store: &Store, at: InteractionId, unit: &Unit, id: u64) -> Result<()> {
        let Some(old) = self.recurrence.episodes().get(&id).cloned() else {
            return Ok(());
        };
        let mut candidates = self.sentences_at(store, &old)?;
        let sources = self.sources(store, &unit.turns)?;
        candidates.extend(sources.iter().flat_map(|s| s.sentences.iter().cloned()));
        let mut behind: BTreeSet<InteractionId> = old.sources.iter().copied().collect();
        behind.extend(&unit.turns);
        let behind: Vec<InteractionId> = behind.into_iter().collect();
        let past = self.asks().then(|| self.told_by(store, &old)).transpose()?;
        let (vector, cohesion) = self.recurrence.centre(&behind);
        let chosen = self.choose(&mut candidates, &vector);
        let episode = Episode {
            version: old.version.saturating_add(1),
            text: None,
            at,
            sources: behind,
            sentences: chosen.unwrap_or(old.sentences),
            vector,
            cohesion,
            ..old
        };
        self.keep_episode(store, episode, past, &candidates, sources)
    }

    /// Makes episodes of a cluster, one for each of its sub-topics (eq. 7).
    fn gather(
        &mut self,
        store: &Store,
        at: InteractionId,
        unit: &Unit,
        relevant: &[(InteractionId, f64)],
        trace: &mut Trace<'_>,
    ) -> Result<()> {
        let p = self.config.policy.recurrence.clone();
        let mut cluster = vec![unit.clone()];
        cluster.extend(
            relevant
                .iter()
                .filter_map(|(id, _)| self.recurrence.unit(*id).cloned()),
        );
        let groups = trigger::sub_topics(&cluster, p.similarity(), p.max_episodes);
        for (index, group) in groups.iter().enumerate() {
            let turns: BTreeSet<InteractionId> =
                group.iter().flat_map(|u| u.turns.iter().copied()).collect();
            let turns: Vec<InteractionId> = turns.into_iter().collect();
            let sources = self.sources(store, &turns)?;
            let mut candidates: Vec<Sentence> = sources
                .iter()
                .flat_map(|s| s.sentences.iter().cloned())
                .collect();
            let (vector, cohesion) = self.recurrence.centre(&turns);
            let chosen = self.choose(&mut candidates, &vector);
            // One unit is no recurrence, and one message no episode.
            let Some(chosen) = chosen.filter(|_| group.len() > 1) else {
                continue;
            };
            let id = number(at, index);
            for turn in &turns {
                let detail = json!({
                    "episode": id,
                    "relevant": relevant.len(),
                    "needed": p.count(),
                    "threshold": p.similarity(),
                });
                trace.add(*turn, "consolidate", detail)?;
            }
            let episode = Episode {
                id,
                version: 1,
                at,
                sources: turns,
                sentences: chosen,
                vector,
                cohesion,
                text: None,
            };
            self.keep_episode(store, episode, None, &candidates, sources)?;
        }
        Ok(())
    }

    /// The best sentences, with each candidate's likeness to the episode set.
    fn choose(
        &self,
        candidates: &mut [Sentence],
        vector: &[i16],
    ) -> Option<Vec<crate::policy::recurrence::Span>> {
        let p = &self.config.policy.recurrence;
        for c in candidates.iter_mut() {
            c.centroid = self.flat.similarity(vector, c.span.turn);
        }
        episodes::choose(candidates, p.max_sentences, p.mmr_lambda, &|s| {
            self.bm25.idf(s)
        })
    }

    /// Writes an episode, and the facts that it leaves out of `sources` (eq. 9), or has
    /// a language model asked for both.
    fn keep_episode(
        &mut self,
        store: &Store,
        episode: Episode,
        past: Option<String>,
        candidates: &[Sentence],
        sources: Vec<Source>,
    ) -> Result<()> {
        store.put_episode(&self.namespace, &episode)?;
        self.recurrence.put_episode(episode.clone());
        if self.asks() {
            let fresh = sources.iter().map(|s| s.turn.interaction_id).collect();
            return self.ask_for(store, &episode, past, fresh);
        }
        self.extract(store, &episode, candidates, sources)
    }

    /// Keeps the facts that an episode leaves out of `sources`, by the rules.
    pub(super) fn extract(
        &mut self,
        store: &Store,
        episode: &Episode,
        candidates: &[Sentence],
        sources: Vec<Source>,
    ) -> Result<()> {
        let told: BTreeSet<&str> = candidates
            .iter()
            .filter(|c| episode.sentences.contains(&c.span))
            .flat_map(|c| c.stems.iter().map(String::as_str))
            .collect();
        let mut details: Vec<Detail> = Vec::new();
        for s in sources {
            let speaker = fold(s.turn.speaker.as_deref().unwrap_or(&s.turn.role));
            let left = s
                .sentences
                .into_iter()
                .filter(|x| !episode.sentences.contains(&x.span))
                .collect();
            details.extend(facts::details(left, &s.facts, &speaker, &s.turn.role));
        }
        for detail in self.refine(details, episode, &told) {
            self.keep_fact(store, episode, detail, None)?;
        }
        Ok(())
    }

    fn refine(
        &self,
        details: Vec<Detail>,
        episode: &Episode,
        told: &BTreeSet<&str>,
    ) -> Vec<Detail> {
        let p = &self.config.policy.recurrence;
        let near = |turn| self.flat.similarity(&episode.vector, turn);
        let mut known = self.recurrence.nearest_facts(p.fact_neighbours, near);
        let every = self.recurrence.facts().values();
        known.extend(every.filter(|f| details.iter().any(|d| facts::contradicts(f, &d.held))));
        facts::refine(details, told, &known, p, &|s| self.bm25.idf(s))
    }

    pub(super) fn keep_fact(
        &mut self,
        store: &Store,
        episode: &Episode,
        detail: Detail,
        wording: Option<Wording>,
    ) -> Result<()> {
        let at = episode.at;
        let made = self.recurrence.facts().range(number(at, 0)..).count();
        let (span, mut held) = (detail.sentence.span, detail.held);
        let id = number(at, made);
        for changed in facts::supersede(self.recurrence.facts_mut(), id, span.turn, &held) {
            store.put_fact(&self.namespace, &self.recurrence.facts()[&changed])?;
        }
        facts::replaced_already(self.recurrence.facts().values(), span.turn, &mut held);
        let fact = Fact {
            id,
            episode: episode.id,
            span,
            reasons: detail.reasons.into_iter().map(str::to_owned).collect(),
            held,
            stems: detail.sentence.stems,
            wording,
        };
        store.put_fact(&self.namespace, &fact)?;
        if let Some(w) = &fact.wording {
            store.put_wording(&self.namespace, id, &w.text, &w.drawn)?;
        }
        self.recurrence.put_fact(fact);
        Ok(())
    }

    /// Turns with their telling sentences.
    pub(super) fn sources(&self, store: &Store, turns: &[InteractionId]) -> Result<Vec<Source>> {
        let mut found = Vec::new();
        for id in turns {
            let turn = store.turn(&self.namespace, *id)?;
            let derived = store.derived(&self.namespace, *id)?;
            if let (Some(turn), Some(derived)) = (turn, derived) {
                let unit = self.recurrence.unit_of(*id).map_or(*id, |u| u.id);
                let sentences =
                    sentences::telling(*id, unit, &turn.text, &derived.facts, derived.score.omega);
                found.push(Source {
                    turn,
                    facts: derived.facts,
                    sentences,
                });
            }
        }
        Ok(found)
    }

    pub(super) fn sentences_at(&self, store: &Store, episode: &Episode) -> Result<Vec<Sentence>> {
        let turns: BTreeSet<InteractionId> = episode.sentences.iter().map(|s| s.turn).collect();
        let turns: Vec<InteractionId> = turns.into_iter().collect();
        let every = self.sources(store, &turns)?;
        let mut found: Vec<Sentence> = every.into_iter().flat_map(|s| s.sentences).collect();
        found.retain(|s| episode.sentences.contains(&s.span));
        Ok(found)
    }

    /// Takes erased turns, given in id order, out of what was gathered: episodes are made
    /// anew of what is left of their sources, and go where that is one unit.
    pub(super) fn ungather(&mut self, store: &Store, ids: &[InteractionId]) -> Result<()> {
        if !self.recurs() {
            return Ok(());
        }
        let touched = self.recurrence.consolidated_in(ids);
        let mut state = std::mem::take(&mut self.recurrence);
        state.forget_turns(ids, |turns| self.mean_of(turns));
        let gone = state.forget_facts_of(ids);
        self.recurrence = state;
        store.erase_facts(&self.namespace, &gone)?;
        for number in touched {
            self.remake(store, number, ids)?;
        }
        for changed in self.recurrence.settle() {
            store.put_fact(&self.namespace, &self.recurrence.facts()[&changed])?;
        }
        Ok(())
    }

    /// The version counts the sources that went, as if each had gone alone.
    fn remake(&mut self, store: &Store, number: u64, without: &[InteractionId]) -> Result<()> {
        let Some(mut episode) = self.recurrence.episodes().get(&number).cloned() else {
            return Ok(());
        };
        let gone = { &mut episode.sources }.extract_if(.., |t| without.binary_search(t).is_ok());
        let gone = u32::try_from(gone.count()).unwrap_or(u32::MAX);
        let of = |t: &InteractionId| self.recurrence.unit_of(*t).map(|u| u.id);
        let behind: BTreeSet<InteractionId> = episode.sources.iter().filter_map(of).collect();
        (episode.vector, episode.cohesion) = self.recurrence.centre(&episode.sources);
        let sources = self.sources(store, &episode.sources)?;
        let mut candidates: Vec<Sentence> = sources.into_iter().flat_map(|s| s.sentences).collect();
        let chosen = self.choose(&mut candidates, &episode.vector);
        let Some(chosen) = chosen.filter(|_| behind.len() > 1) else {
            let gone = self.recurrence.forget_episode(number);
            store.erase_facts(&self.namespace, &gone)?;
            return store.erase_episode(&self.namespace, number);
        };
        episode.sentences = chosen;
        // Whatever was written may tell of the erased turn.
        episode.text = None;
        episode.version = episode.version.saturating_add(gone);
        store.put_episode(&self.namespace, &episode)?;
        self.recurrence.put_episode(episode);
        Ok(())
    }

    /// What was gathered, as the store holds it.
    pub(super) fn load_recurrence(&mut self, store: &Store) -> Result<()> {
        self.recurrence = Recurrence::default();
        if !self.recurs() || !store.gathers()? {
            return Ok(());
        }
        for (id, turns) in store.units(&self.namespace)? {
            let vector = self.mean_of(&turns);
            self.recurrence.push_unit(Unit { id, turns, vector });
        }
        let mut texts = store.texts(&self.namespace)?;
        for mut episode in store.episodes(&self.namespace)? {
            episode.text = texts.remove(&(episode.id, episode.version));
            (episode.vector, episode.cohesion) = self.recurrence.centre(&episode.sources);
            if state::stands(&episode) {
                self.recurrence.put_episode(episode);
            }
        }
        let mut telling: BTreeMap<InteractionId, Vec<Sentence>> = BTreeMap::new();
        let mut wordings = store.wordings(&self.namespace)?;
        for mut fact in store.facts(&self.namespace)? {
            let turn = fact.span.turn;
            if let std::collections::btree_map::Entry::Vacant(slot) = telling.entry(turn) {
                let every = self.sources(store, &[turn])?;
                slot.insert(every.into_iter().flat_map(|s| s.sentences).collect());
            }
            let own = telling[&turn].iter().find(|s| s.span == fact.span);
            fact.stems = own.map(|s| s.stems.clone()).unwrap_or_default();
            if let Some((text, drawn)) = wordings.remove(&fact.id) {
                fact.stems = self.stems_in(store, turn, &text)?;
                fact.wording = Some(Wording { text, drawn });
            }
            if self.recurrence.episodes().contains_key(&fact.episode) {
                self.recurrence.put_fact(fact);
            }
        }
        Ok(())
    }
}

fn side(meta: &super::TurnMeta) -> Side<'_> {
    Side {
        role: &meta.role,
        speaker: meta.speaker.as_deref(),
        session: meta.session.as_deref(),
    }
}
