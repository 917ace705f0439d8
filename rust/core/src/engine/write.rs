//! Writing: journal, score, lineage, active memory, archive, in one transaction.

use super::Engine;
use super::decisions::{BudgetDetail, TierDetail, Trace, overruled, related};
use crate::active::{Entry, Step};
use crate::config::Archive;
use crate::error::{Code, Error, Result};
use crate::lineage::Edge;
use crate::policy::{assessment, rpe};
use crate::score::survival;
use crate::store::{Derived, IDS, STATED, Store, TurnRow, append_raw_record};
use crate::types::{
    AnalysedTurn, Eviction, InteractionId, NewTurn, Relation, Score, State, StoredTurn, Validity,
    WriteReport,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::panic::{self, AssertUnwindSafe};

impl Engine {
    /// Stores analysed turns in order: each is scored, related, inserted, and the
    /// memory decays and is pruned after each. One transaction: when this
    /// returns, all of them survive a killed process; on an error, none was taken.
    pub fn add(&mut self, batch: Vec<AnalysedTurn>) -> Result<WriteReport> {
        for analysed in &batch {
            self.check(analysed)?;
        }
        if !self.pending.is_empty() {
            return Err(Error::new(
                Code::InputFacts,
                "earlier turns still wait for their analysis; finish them first",
            ));
        }
        self.write(|engine, store, report| {
            for analysed in batch {
                if let Some((id, tokens)) = engine.journal_one(store, &analysed.turn, report)? {
                    engine.apply(store, id, tokens, analysed, report)?;
                }
            }
            Ok(())
        })
    }

    /// Journals raw turns whose analysis comes later, through `complete_pending`.
    /// Returns their ids; a known external id gives none.
    pub fn journal(&mut self, turns: &[NewTurn]) -> Result<(Vec<InteractionId>, WriteReport)> {
        let mut ids = Vec::new();
        let report = self.write(|engine, store, report| {
            for turn in turns {
                if let Some((id, _)) = engine.journal_one(store, turn, report)? {
                    engine.pending.insert(id);
                    ids.push(id);
                }
            }
            Ok(())
        })?;
        Ok((ids, report))
    }

    /// Analyses of journalled turns: the oldest pending ones, in id order. Those of turns that
    /// wait no longer, erased or taken in meanwhile, are passed over.
    pub fn complete_pending(
        &mut self,
        mut batch: Vec<(InteractionId, AnalysedTurn)>,
    ) -> Result<WriteReport> {
        batch.retain(|(id, _)| self.pending.contains(id));
        let mut waiting = self.pending.iter();
        for (id, analysed) in &batch {
            self.check(analysed)?;
            let next = waiting.next();
            if next != Some(id) {
                let message = match next {
                    Some(next) => format!("turn {next} waits for its analysis before turn {id}"),
                    None => format!("turn {id} comes twice, and waits for one analysis"),
                };
                return Err(Error::new(Code::InputFacts, message));
            }
        }
        self.write(|engine, store, report| {
            for (id, analysed) in batch {
                engine.pending.remove(&id);
                let text = &analysed.turn.text;
                let tokens = engine.counter.count(text);
                store.set_tokens(&engine.namespace, id, tokens)?;
                engine.apply(store, id, tokens, analysed, report)?;
                engine.enforce_stated();
            }
            if engine.pending.is_empty() {
                // The last turns may have been erased, and count as after a restart.
                engine.active.settle(engine.newest(), &engine.config);
            }
            Ok(())
        })
    }

    /// Runs `work` in a transaction; on failure, also after a panic, memory is brought back to
    /// what the store holds.
    pub(super) fn write(
        &mut self,
        work: impl FnOnce(&mut Self, &Store, &mut WriteReport) -> Result<()>,
    ) -> Result<WriteReport> {
        self.open_only()?;
        let shared = self.store.clone();
        let mut report = WriteReport::default();
        let done = panic::catch_unwind(AssertUnwindSafe(|| {
            let mut store = shared.lock();
            store.transaction(|store| {
                work(self, store, &mut report)?;
                self.namespace.analyser.clone_from(&self.analyser);
                self.namespace
                    .token_counter
                    .clone_from(&self.config.capacity.token_counter);
                store.update_namespace(&self.namespace)
            })
        }));
        let done = done.unwrap_or_else(|cause| {
            // Rolled back in the store, and half done in memory. The panic is what to report.
            let _ = self.reload();
            panic::resume_unwind(cause)
        });
        if let Err(error) = done {
            if !shared.lock().read_only() {
                // What went wrong first is what to report.
                let _ = self.reload();
            }
            return Err(error);
        }
        report.tiers = self.active.tiers();
        report.active_tokens = self.active.tokens();
        report.over_budget_tokens = self
            .active
            .tokens()
            .saturating_sub(self.config.capacity.token_budget);
        Ok(report)
    }

    fn check(&self, analysed: &AnalysedTurn) -> Result<()> {
        analysed
            .assessment
            .as_ref()
            .map_or(Ok(()), assessment::check)?;
        let f = &analysed.facts;
        for (name, value, most) in [("density", f.density, 1.0), ("sentiment", f.sentiment, 1.0)] {
            if !(0.0..=most).contains(&value) {
                return Err(Error::new(
                    Code::InputFacts,
                    format!("{name} must lie in [0, {most}], not {value}"),
                ));
            }
        }
        let dimension = self.config.nlp.vector_dim as usize;
        if analysed.passages.is_empty() {
            return Err(Error::new(
                Code::InputFacts,
                "a turn needs at least one passage vector",
            ));
        }
        let vectors = analysed
            .passages
            .iter()
            .map(|p| &p.vector)
            .chain(&analysed.card_vectors);
        for vector in vectors {
            if vector.len() != dimension {
                return Err(Error::new(
                    Code::InputFacts,
                    format!(
                        "a vector has {} numbers, the memory's have {dimension}",
                        vector.len()
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Writes the raw turn; `None` where its external id is known already.
    fn journal_one(
        &mut self,
        store: &Store,
        turn: &NewTurn,
        report: &mut WriteReport,
    ) -> Result<Option<(InteractionId, u32)>> {
        let id = self.namespace.next_id;
        if id >= IDS {
            // Its key would be one of another memory's.
            return Err(Error::new(
                Code::StoreCorrupt,
                format!(
                    "the memory's counter, {id}, is past every id that a turn can have: the file was damaged; `ebbtide doctor --repair` puts the counter right"
                ),
            ));
        }
        if let Some(external) = &turn.external_id
            && !store.insert_external(&self.namespace, external, id)?
        {
            report.duplicates += 1;
            return Ok(None);
        }
        let tokens = self.counter.count(&turn.text);
        let record_id = record_id(id, turn);
        store.insert_turn(
            &self.namespace,
            &TurnRow {
                id,
                record_id: &record_id,
                tokens,
                turn,
            },
        )?;
        self.metadata.insert(id, turn.metadata.as_deref());
        self.namespace.next_id += 1;
        report.accepted += 1;
        Ok(Some((id, tokens)))
    }

    /// Takes an analysed turn into the memory (paper, section 9.1).
    fn apply(
        &mut self,
        store: &Store,
        id: InteractionId,
        tokens: u32,
        analysed: AnalysedTurn,
        report: &mut WriteReport,
    ) -> Result<()> {
        let vector = &analysed.passages[0].vector;
        let divergence = self.window.divergence(vector);
        let turn = &analysed.turn;
        let facts = &analysed.facts;
        let score = survival::score(
            &self.config.scoring_weights,
            facts,
            turn.provenance.as_ref(),
            divergence,
        );
        store.insert_derived(
            &self.namespace,
            id,
            &analysed,
            &score,
            self.config.store.token_vectors,
        )?;
        let mut trace = Trace::new(store, self, id);
        let edges = self
            .lineage
            .detect(id, &turn.role, facts.signals, &facts.claims);
        let model = self.assessment_of(store, id, analysed.assessment.as_ref())?;
        let model = model.as_ref();
        if let Some(verdict) = self.verdict_on(id, &analysed, model, !edges.is_empty()) {
            let detail = self.keep_verdict(store, id, verdict, model, vector)?;
            trace.add(id, verdict.tier.decision(), detail)?;
            if verdict.tier == rpe::Tier::Skip {
                let (stored, derived) = split(id, tokens, analysed, score);
                return self.skip(store, &stored, &derived, &mut trace, report);
            }
        }
        self.window.push(id, vector);
        self.lineage.register(id, &turn.role, &facts.claims);
        for edge in edges {
            self.relate_edge(store, edge, &mut trace, report)?;
        }
        let entry = Entry::new(id, tokens, score.omega, facts.signals, &self.config);
        let lineage = &self.lineage;
        let step = self.active.insert(entry, &self.config, |id| {
            lineage.validity(id) != Validity::Current
        });
        let (stored, derived) = split(id, tokens, analysed, score);
        self.index(&stored, &derived);
        self.consolidate(store, id, &mut trace)?;
        self.record(store, &step, &mut trace, report)
    }

    /// Keeps a turn out: archived at once, in no index; the others age by one turn.
    fn skip(
        &mut self,
        store: &Store,
        turn: &StoredTurn,
        derived: &Derived,
        trace: &mut Trace<'_>,
        report: &mut WriteReport,
    ) -> Result<()> {
        let id = turn.interaction_id;
        self.put_in_shadow(turn, derived);
        report.evicted.push(Eviction {
            interaction_id: id,
            reason: "skip",
        });
        let lineage = &self.lineage;
        let step = self.active.advance(id, &self.config, |id| {
            lineage.validity(id) != Validity::Current
        });
        // Archiving may discard the turn, and with it what was decided on it.
        self.record(store, &step, trace, report)?;
        self.archive(store, &[id])
    }

    fn relate_edge(
        &mut self,
        store: &Store,
        edge: Edge,
        trace: &mut Trace<'_>,
        report: &mut WriteReport,
    ) -> Result<()> {
        let before = self.lineage.validity(edge.older);
        if let Err(error) = self.lineage.add(edge.clone()) {
            if edge.by_caller {
                return Err(error);
            }
            // The caller has said the contrary, and the caller knows.
            return trace.add(edge.older, "overruled", overruled(&edge));
        }
        store.insert_edge(&self.namespace, &edge)?;
        let after = self.lineage.validity(edge.older);
        let kind = if edge.by_caller {
            "relate"
        } else {
            "supersede"
        };
        trace.add(edge.older, kind, related(&edge, after))?;
        if before == Validity::Current && after != Validity::Current {
            report.superseded.push(edge.older);
        }
        Ok(())
    }

    /// Carries out and writes down what an insertion did to the active memory.
    fn record(
        &mut self,
        store: &Store,
        step: &Step,
        trace: &mut Trace<'_>,
        report: &mut WriteReport,
    ) -> Result<()> {
        for (id, from, to, effective) in &step.tiers {
            let detail = TierDetail {
                from: *from,
                to: *to,
                effective: *effective,
            };
            trace.add(*id, "tier", detail)?;
        }
        let floor = self.config.temporal_decay.hard_kill_threshold;
        for (id, effective) in &step.killed {
            trace.add(
                *id,
                "evict_kill",
                json!({"effective": effective, "threshold": floor}),
            )?;
            report.evicted.push(Eviction {
                interaction_id: *id,
                reason: "hard_kill",
            });
        }
        for p in &step.pruned {
            let detail = BudgetDetail {
                effective: p.effective,
                bonus: p.bonus,
                penalty: p.penalty,
                score: p.score,
                budget: self.config.capacity.token_budget,
            };
            trace.add(p.id, "evict_budget", detail)?;
            report.evicted.push(Eviction {
                interaction_id: p.id,
                reason: "budget",
            });
        }
        if step.over_budget > 0 {
            report.over_budget_turns += 1;
            trace.add(trace.at, "over_budget", json!({"tokens": step.over_budget}))?;
        }
        let gone = step
            .killed
            .iter()
            .map(|k| k.0)
            .chain(step.pruned.iter().map(|p| p.id));
        self.archive(store, &gone.collect::<Vec<_>>())
    }

    fn archive(&mut self, store: &Store, ids: &[InteractionId]) -> Result<()> {
        if self.config.ltm.archive() == Archive::Discarded {
            for id in ids {
                store.keep_external(&self.namespace, *id)?;
            }
            return self.erase(store, ids);
        }
        for id in ids {
            if self.config.ltm.archive() == Archive::WriteOnly {
                self.file(store, *id)?;
            }
            store.archive_turn(&self.namespace, *id)?;
            self.turns.set_archived(*id);
        }
        Ok(())
    }

    /// Appends a turn to the archive file, unless it is there.
    fn file(&self, store: &Store, id: InteractionId) -> Result<()> {
        let turn = store.turn(&self.namespace, id)?;
        match turn.filter(|turn| !self.filed.contains(&turn.record_id)) {
            Some(turn) => append_raw_record(&self.config.ltm.storage_path, &turn),
            None => Ok(()),
        }
    }

    /// Relates two turns as the caller says (paper, section 9.4).
    pub fn relate(
        &mut self,
        newer: InteractionId,
        relation: Relation,
        older: InteractionId,
    ) -> Result<WriteReport> {
        self.get(newer)?;
        self.get(older)?;
        let at = self.newest();
        let edge = Edge {
            older,
            newer,
            relation,
            topic: String::new(),
            by_caller: true,
        };
        // Before anything is begun: an error after that reads the whole memory anew.
        self.lineage.possible(&edge)?;
        self.write(|engine, store, report| {
            // Behind all that the insertion decides, now or when it is done again.
            let last = store.last_decision(&engine.namespace, older, at)?;
            let mut trace = Trace::behind(store, engine, at, last.max(STATED));
            engine.relate_edge(store, edge, &mut trace, report)
        })
    }
}

/// Derived, never random: the same turn at the same place has the same id.
fn record_id(id: InteractionId, turn: &NewTurn) -> String {
    let mut hash = Sha256::new();
    for field in [
        Some(id.to_string().as_str()),
        Some(&turn.role),
        turn.speaker.as_deref(),
        turn.timestamp.as_ref().map(|t| t.given.as_str()),
        turn.external_id.as_deref(),
        Some(&turn.text),
    ] {
        super::digest::field(&mut hash, field.map(str::as_bytes));
    }
    let mut hex = String::with_capacity(24);
    for b in &hash.finalize()[..12] {
        for half in [b >> 4, b & 15] {
            hex.push(char::from(b"0123456789abcdef"[usize::from(half)]));
        }
    }
    hex
}

/// A turn that has been written, as the indexes take it; nothing is copied.
fn split(
    id: InteractionId,
    tokens: u32,
    analysed: AnalysedTurn,
    score: Score,
) -> (StoredTurn, Derived) {
    let AnalysedTurn {
        turn,
        facts,
        mut passages,
        card_vectors,
        assessment: _,
    } = analysed;
    let (given, utc_micros, naive) = match turn.timestamp {
        Some(s) => (Some(s.given), Some(s.utc_micros), s.naive),
        None => (None, None, false),
    };
    let stored = StoredTurn {
        interaction_id: id,
        record_id: String::new(), // only the store's own copy carries it
        text: turn.text,
        role: turn.role,
        speaker: turn.speaker,
        timestamp: given,
        utc_micros,
        naive_timestamp: naive,
        session_id: turn.session_id,
        external_id: turn.external_id,
        provenance: turn.provenance,
        metadata: turn.metadata,
        tokens,
        state: State::Active,
        validity: Validity::Current,
    };
    let derived = Derived {
        facts,
        score,
        spans: passages.iter().map(|p| (p.start, p.end)).collect(),
        vectors: match passages.as_mut_slice() {
            [one] => std::mem::take(&mut one.vector),
            many => many.iter().flat_map(|p| &p.vector).copied().collect(),
        },
        card_vectors: card_vectors.concat(),
    };
    (stored, derived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::engine::MemoryOptions;
    use crate::store::SharedStore;
    use std::collections::BTreeMap;

    #[test]
    fn a_panic_leaves_the_memory_as_it_was() {
        let options = MemoryOptions {
            namespace: "ana".into(),
            config: config::load("default", "").unwrap(),
            presets: BTreeMap::new(),
            analyser: "x".into(),
            reindexing: false,
        };
        let store = SharedStore::new(Store::in_memory).unwrap();
        let mut engine = Engine::open(store, options).unwrap();
        let turn = NewTurn {
            text: "one".into(),
            role: "user".into(),
            ..NewTurn::default()
        };
        let broken = panic::catch_unwind(AssertUnwindSafe(|| {
            engine.write(|engine, store, report| {
                engine.journal_one(store, &turn, report)?;
                panic!("half done")
            })
        }));
        assert!(broken.is_err());
        let (ids, _) = engine.journal(std::slice::from_ref(&turn)).unwrap();
        assert_eq!(ids, [0]);
        assert_eq!(engine.get(0).unwrap().text, "one");
    }
}
