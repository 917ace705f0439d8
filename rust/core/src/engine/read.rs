//! Reading: channels, filters, merge, rerank, evidence (paper, section 9.3).

use super::{Engine, TurnMeta};
use crate::calendar;
use crate::config::{Config, Retrieval};
use crate::error::{Code, Error, Result};
use crate::order::best_first;
use crate::retrieve::features::{self, Answerability, Subject};
use crate::retrieve::{Filters, Query, QueryFrame, cards};
use crate::store::Derived;
use crate::text::{self, fold};
use crate::types::{Facts, InteractionId, Signals, StoredTurn, Validity};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How a question is answered.
#[derive(Debug, Clone, Default)]
pub struct RecallOptions {
    /// Items to return; none: the preset decides.
    pub limit: Option<usize>,
    /// Preset that answers; none: the memory's own settings.
    pub preset: Option<String>,
    /// Conditions.
    pub filters: Filters,
    /// Keep every candidate with its terms.
    pub trace: bool,
}

/// A turn that supports evidence.
#[derive(Debug, Clone, Serialize)]
pub struct Support {
    /// The turn.
    pub turn: StoredTurn,
    /// `source`, `history`, `newer`, `previous`, `next`.
    pub relation: &'static str,
}

/// One answer-bearing turn.
#[derive(Debug, Clone, Serialize)]
pub struct Evidence {
    /// From 1.
    pub rank: usize,
    /// Score it was ranked by.
    pub score: f64,
    /// `raw` or `card`.
    pub kind: &'static str,
    /// The turn.
    pub turn: StoredTurn,
    /// The winning card.
    pub card: Option<Value>,
    /// Score by channel.
    pub channels: BTreeMap<&'static str, f64>,
    /// Value by feature, penalty and ranking term.
    pub features: BTreeMap<&'static str, f64>,
    /// Turns behind it.
    pub support: Vec<Support>,
    /// How sure the engine is that this answers, in [0, 1].
    pub confidence: f64,
    /// Its time expressions.
    #[serde(skip)]
    pub facts: Facts,
}

/// Evidence, and the trace where it was asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Recall {
    /// Best first.
    pub evidence: Vec<Evidence>,
    /// Every candidate, best first, with why it was kept or dropped.
    pub candidates: Vec<Value>,
}

/// A candidate on its way through the stages.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) id: InteractionId,
    pub(super) card: Option<u64>,
    pub(super) channels: BTreeMap<&'static str, f64>,
    pub(super) answerability: Answerability,
    pub(super) terms: BTreeMap<&'static str, f64>,
    pub(super) score: f64,
    pub(super) confidence: f64,
    pub(super) dropped: Option<&'static str>,
    pub(super) facts: Facts,
    pub(super) text: String,
}

pub(super) type Hits = Vec<(InteractionId, f64)>;

impl Engine {
    pub(super) fn settings(&self, preset: Option<&str>) -> Result<&Config> {
        let Some(name) = preset else {
            return Ok(&self.config);
        };
        self.presets.get(name).ok_or_else(|| {
            Error::new(
                Code::ConfigPreset,
                format!("no preset is called {name:?}; there are \"default\" and \"paper\""),
            )
        })
    }

    /// Evidence for a question, best first.
    pub fn recall(&self, query: &Query, options: &RecallOptions) -> Result<Recall> {
        self.open_only()?;
        let config = self.settings(options.preset.as_deref())?;
        let allowed = self.metadata_filter(&options.filters)?;
        let admit = |id: InteractionId| {
            self.turns
                .get(&id)
                .is_some_and(|m| self.admits(m, &options.filters))
                && allowed.as_ref().is_none_or(|set| set.contains(&id))
        };
        let r = &config.retrieval;
        let wanted = options.limit.unwrap_or(r.final_recall_limit);
        let mut reach = if options.limit.is_some() {
            2 * wanted
        } else {
            0
        };
        loop {
            let mut pool = self.candidates(query, config, reach, &admit);
            let found = pool.len();
            self.read_candidates(&mut pool)?;
            self.filter(&mut pool, &query.frame, r);
            self.judge(&mut pool, query);
            if r.late_interaction || r.enable_bm25 {
                self.rank_fused(&mut pool, query, config, reach)?;
            } else {
                rank_by_answerability(&mut pool, r);
            }
            pool.sort_by(|a, b| {
                (a.dropped.is_some().cmp(&b.dropped.is_some()))
                    .then(best_first((a.score, a.id), (b.score, b.id)))
                    .then(a.card.cmp(&b.card))
            });
            let recall = self.assemble(pool, query, config, options)?;
            // Many turns that say the same may have crowded out the others: look
            // further. The paper never yields more than its prefetches do.
            let short = options.limit.is_some() && recall.evidence.len() < wanted;
            let all = found >= self.turns.len() || reach >= self.turns.len();
            if !short || !r.late_interaction || all {
                return Ok(recall);
            }
            reach = 4 * reach.max(r.raw_prefetch_k);
        }
    }

    fn admits(&self, m: &TurnMeta, f: &Filters) -> bool {
        let after = f.since.is_none_or(|s| m.utc_micros.is_some_and(|t| t >= s));
        let before = f.until.is_none_or(|u| m.utc_micros.is_some_and(|t| t <= u));
        self.recallable(m)
            && f.role.as_deref().is_none_or(|r| *m.role == *r)
            && f.speaker
                .as_deref()
                .is_none_or(|s| m.speaker.as_deref() == Some(&fold(s)))
            && f.session_id
                .as_deref()
                .is_none_or(|s| m.session.as_deref() == Some(s))
            && after
            && before
    }

    /// Ids whose metadata has the wanted fields; `None`: no such condition.
    fn metadata_filter(&self, filters: &Filters) -> Result<Option<BTreeSet<InteractionId>>> {
        let Some(wanted) = filters.metadata.as_ref().filter(|m| !m.is_empty()) else {
            return Ok(None);
        };
        let mut ids = BTreeSet::new();
        self.store().for_each_loaded(&self.namespace, 0, |loaded| {
            let metadata: Option<Value> = loaded
                .turn
                .metadata
                .as_deref()
                .and_then(|m| serde_json::from_str(m).ok());
            if metadata.is_some_and(|m| wanted.iter().all(|(k, v)| m.get(k) == Some(v))) {
                ids.insert(loaded.turn.interaction_id);
            }
            Ok(())
        })?;
        Ok(Some(ids))
    }

    /// The channels and their merge by (type, id) (eq. 33).
    fn candidates(
        &self,
        query: &Query,
        config: &Config,
        reach: usize,
        admit: &impl Fn(InteractionId) -> bool,
    ) -> Vec<Candidate> {
        let (r, frame) = (&config.retrieval, &query.frame);
        let k = r
            .raw_prefetch_k
            .max(if r.late_interaction { reach } else { 0 });
        let mut merged: BTreeMap<(Option<u64>, InteractionId), BTreeMap<&'static str, f64>> =
            BTreeMap::new();
        let mut put = |hits: Hits, channel: &'static str| {
            for (id, score) in hits {
                merged.entry((None, id)).or_default().insert(channel, score);
            }
        };
        // Only the paper has a ceiling of distance; the other preset ranks and cuts later.
        let floor = if r.late_interaction {
            -1.0
        } else {
            1.0 - config.ltm.distance_threshold
        };
        if r.enable_raw_semantic {
            put(
                self.flat.search(&query.vector, k, floor, admit),
                "raw_semantic",
            );
        }
        let lexical = self.query_terms(frame);
        if r.enable_raw_lexical {
            put(
                self.lexical.overlap(&lexical, r.raw_prefetch_k, admit),
                "raw_lexical",
            );
        }
        if r.enable_bm25 {
            let stems: Vec<String> = lexical.iter().map(|t| text::stem(t)).collect();
            put(self.bm25.bm25(&stems, k, admit), "bm25");
        }
        if config.ltm.cards_enabled {
            let admit_card = |n: u64| {
                let (id, _) = cards::split(n);
                admit(id) && self.turns.get(&id).is_some_and(|m| m.archived)
            };
            let mut put = |hits: Hits, channel: &'static str| {
                for (n, score) in hits {
                    let id = cards::split(n).0;
                    merged
                        .entry((Some(n), id))
                        .or_default()
                        .insert(channel, score);
                }
            };
            if r.enable_card_symbolic {
                let k = r.symbolic_lookup_k;
                put(
                    self.cards
                        .symbolic(frame, &r.symbolic_weights, k, admit_card),
                    "card_symbolic",
                );
            }
            if r.enable_card_semantic {
                put(
                    self.card_semantic(query, r.card_prefetch_k, floor, &admit_card),
                    "card_semantic",
                );
            }
        }
        merged
            .into_iter()
            .map(|((card, id), channels)| Candidate {
                id,
                card,
                channels,
                answerability: Answerability::default(),
                terms: BTreeMap::new(),
                score: 0.0,
                confidence: 0.0,
                dropped: None,
                facts: Facts::default(),
                text: String::new(),
            })
            .collect()
    }

    /// Over the cards' own vectors; over their turns' where the store has none.
    fn card_semantic(
        &self,
        query: &Query,
        k: usize,
        floor: f64,
        admit: &impl Fn(u64) -> bool,
    ) -> Hits {
        if self.cards.embedded() {
            return self.cards.semantic(&query.vector, k, floor, admit);
        }
        let admit_turn = |id: InteractionId| self.cards.of(id).any(|(n, _)| admit(n));
        let turns = self.flat.search(&query.vector, k, floor, admit_turn);
        let each = |(id, score): (InteractionId, f64)| {
            self.cards
                .of(id)
                .filter(|(n, _)| admit(*n))
                .map(move |(n, _)| (n, score))
                .collect::<Vec<_>>()
        };
        let mut hits: Hits = turns.into_iter().flat_map(each).collect();
        hits.truncate(k);
        hits
    }

    pub(super) fn query_terms(&self, frame: &QueryFrame) -> Vec<String> {
        let mut terms = frame.terms.clone();
        terms.extend(text::cjk_bigrams(&frame.text));
        terms
    }

    fn read_candidates(&self, pool: &mut [Candidate]) -> Result<()> {
        let store = self.store();
        for c in pool {
            if let Some(Derived { facts, .. }) = store.derived(&self.namespace, c.id)? {
                c.facts = facts;
            }
            match store.turn(&self.namespace, c.id)? {
                Some(turn) => c.text = fold(&turn.text),
                // Erased by the writer since this reader was opened.
                None => c.dropped = Some("erased"),
            }
        }
        Ok(())
    }

    /// Hard filters (section 9.3, step 3).
    fn filter(&self, pool: &mut [Candidate], frame: &QueryFrame, r: &Retrieval) {
        for c in pool.iter_mut() {
            let validity = self.validity_of(c);
            let keep_old = frame.historical() && r.include_superseded_when_historical;
            if validity == Validity::Current || keep_old || r.stale_policy != "drop" {
                continue;
            }
            c.dropped = Some(match validity {
                Validity::Corrected => "corrected",
                Validity::Invalidated => "invalidated",
                _ => "superseded",
            });
        }
        if r.stale_policy == "drop" {
            self.filter_mismatches(pool, frame);
        }
    }

    /// Candidates that cannot be evidence: those that name none of the question's
    /// entities, and those that only ask or only acknowledge. Neither filter is
    /// applied where it would leave nothing.
    fn filter_mismatches(&self, pool: &mut [Candidate], frame: &QueryFrame) {
        if !frame.entities.is_empty() {
            drop_unless_all(pool, "entity_mismatch", |c| {
                features::entity_overlap(&self.subject(c, None, 0.0), frame) == 0.0
            });
        }
        drop_unless_all(pool, "evidence_type", |c| {
            c.facts.social
                || (c.facts.signals.has(Signals::QUERY_LIKE) && c.text.trim_end().ends_with('?'))
        });
    }

    fn validity_of(&self, c: &Candidate) -> Validity {
        let card = c.card.and_then(|n| self.cards.get(n));
        match card.and_then(|k| {
            k.identity
                .as_ref()
                .map(|i| crate::lineage::topic_key(&k.subject, i))
        }) {
            Some(topic) => self.lineage.validity_on(c.id, &topic),
            None => self.lineage.validity(c.id),
        }
    }

    fn subject<'a>(&'a self, c: &'a Candidate, day: Option<&'a str>, cosine: f64) -> Subject<'a> {
        let meta = self.turns.get(&c.id);
        Subject {
            text: &c.text,
            speaker: meta.and_then(|m| m.speaker.as_deref()),
            role: meta.map_or("", |m| &m.role),
            facts: &c.facts,
            day,
            validity: self.validity_of(c),
            cosine,
            linked: !self.lineage.newer(c.id).is_empty() || !self.lineage.older(c.id).is_empty(),
            corrects: !self.lineage.older(c.id).is_empty(),
            has_card: c.card.is_some(),
        }
    }

    fn judge(&self, pool: &mut [Candidate], query: &Query) {
        let idf = |t: &str| self.lexical.idf(t);
        for c in pool.iter_mut() {
            let day = self
                .turns
                .get(&c.id)
                .and_then(|m| m.utc_micros)
                .map(calendar::iso_day);
            let cosine = self.flat.similarity(&query.vector, c.id);
            c.answerability =
                features::judge(&self.subject(c, day.as_deref(), cosine), &query.frame, idf);
        }
    }

    /// A turn and up to `reach` neighbours on each side in its session, in order.
    pub(super) fn neighbours(&self, id: InteractionId, reach: u64) -> Vec<InteractionId> {
        let Some(meta) = self.turns.get(&id) else {
            return vec![id];
        };
        #[allow(clippy::cast_possible_truncation)]
        let reach = reach as usize;
        let same = |m: &TurnMeta| m.session == meta.session;
        let before = self
            .turns
            .range(..id)
            .rev()
            .take(reach)
            .take_while(|(_, m)| same(m));
        let after = self
            .turns
            .range(id + 1..)
            .take(reach)
            .take_while(|(_, m)| same(m));
        let mut ids: Vec<InteractionId> = before.map(|(i, _)| *i).collect();
        ids.reverse();
        ids.push(id);
        ids.extend(after.map(|(i, _)| *i));
        ids
    }

    /// One item a source turn, its channels joined, its support attached.
    fn assemble(
        &self,
        pool: Vec<Candidate>,
        query: &Query,
        config: &Config,
        options: &RecallOptions,
    ) -> Result<Recall> {
        let r = &config.retrieval;
        let limit = options.limit.unwrap_or(r.final_recall_limit);
        let mut recall = Recall::default();
        let mut joined: Vec<Candidate> = Vec::new();
        let mut traced = Vec::new();
        for c in pool {
            let mut fate = c.dropped.unwrap_or("kept");
            if c.dropped.is_none() {
                if let Some(first) = joined.iter_mut().find(|j| j.id == c.id) {
                    first
                        .channels
                        .extend(c.channels.iter().map(|(k, v)| (*k, *v)));
                    fate = "joined";
                } else if joined.iter().any(|j| self.same_words(j, &c)) {
                    fate = "duplicate";
                } else {
                    joined.push(c.clone());
                }
            }
            if options.trace {
                traced.push((c, fate));
            }
        }
        let cut = if options.limit.is_none() && r.adaptive_truncation {
            adaptive_length(&joined, r.adaptive_floor).min(limit)
        } else {
            limit
        };
        joined.truncate(cut);
        recall.candidates = traced
            .iter()
            .map(|(c, fate)| self.trace_row(c, fate, &joined))
            .collect();
        for c in joined {
            let evidence = self.evidence(c, recall.evidence.len() + 1, &query.frame, r)?;
            recall.evidence.push(evidence);
        }
        Ok(recall)
    }

    /// Two turns that say the same are shown once.
    fn same_words(&self, a: &Candidate, b: &Candidate) -> bool {
        a.text == b.text
            && self.turns.get(&a.id).map(|m| (&m.role, &m.speaker))
                == self.turns.get(&b.id).map(|m| (&m.role, &m.speaker))
    }

    fn evidence(
        &self,
        c: Candidate,
        rank: usize,
        q: &QueryFrame,
        r: &Retrieval,
    ) -> Result<Evidence> {
        let mut support = Vec::new();
        let mut add = |id: InteractionId, relation: &'static str| -> Result<()> {
            if support.len() < r.max_support_turns_per_card && id != c.id {
                let found = self.store().turn(&self.namespace, id)?;
                support.extend(found.map(|t| Support {
                    turn: self.complete(t),
                    relation,
                }));
            }
            Ok(())
        };
        for edge in self.lineage.newer(c.id) {
            add(edge.newer, "newer")?;
        }
        if q.historical() {
            for edge in self.lineage.older(c.id) {
                add(edge.older, "history")?;
            }
        }
        if r.include_neighbor_turns {
            for id in self.neighbours(c.id, 1) {
                add(id, if id < c.id { "previous" } else { "next" })?;
            }
        }
        let card = c.card.and_then(|n| self.cards.get(n)).map(|k| json!(k));
        let mut features: BTreeMap<&'static str, f64> = BTreeMap::new();
        features.extend(
            features::FEATURES
                .iter()
                .copied()
                .zip(c.answerability.features),
        );
        features.extend(
            features::PENALTIES
                .iter()
                .copied()
                .zip(c.answerability.penalties),
        );
        features.extend(c.terms.iter().map(|(k, v)| (*k, *v)));
        Ok(Evidence {
            rank,
            score: c.score,
            kind: if c.card.is_some() { "card" } else { "raw" },
            turn: self.get(c.id)?,
            card,
            channels: c.channels,
            features,
            support,
            confidence: c.confidence,
            facts: c.facts,
        })
    }

    fn trace_row(&self, c: &Candidate, fate: &str, kept: &[Candidate]) -> Value {
        let shown = kept.iter().position(|k| k.id == c.id && k.card == c.card);
        let fate = if fate == "kept" && shown.is_none() {
            "cut"
        } else {
            fate
        };
        let named = |names: &[&'static str], values: &[f64]| -> BTreeMap<&'static str, f64> {
            names.iter().copied().zip(values.iter().copied()).collect()
        };
        json!({
            "interaction_id": c.id,
            "card": c.card.map(|n| cards::split(n).1),
            "channels": c.channels,
            "features": named(&features::FEATURES, &c.answerability.features),
            "penalties": named(&features::PENALTIES, &c.answerability.penalties),
            "terms": c.terms,
            "score": c.score,
            "confidence": c.confidence,
            "rank": shown.map(|r| r + 1),
            "fate": fate,
        })
    }
}

/// Drops what `mismatches` says, unless nothing would be left.
fn drop_unless_all(
    pool: &mut [Candidate],
    why: &'static str,
    mismatches: impl Fn(&Candidate) -> bool,
) {
    let mismatch: Vec<bool> = pool.iter().map(mismatches).collect();
    if pool
        .iter()
        .zip(&mismatch)
        .any(|(c, m)| c.dropped.is_none() && !m)
    {
        for (c, mismatch) in pool.iter_mut().zip(mismatch) {
            if mismatch && c.dropped.is_none() {
                c.dropped = Some(why);
            }
        }
    }
}

/// Ranking of the paper: eq. 34 alone.
fn rank_by_answerability(pool: &mut [Candidate], r: &Retrieval) {
    let most: f64 = r.answerability_weights.iter().sum();
    for c in pool.iter_mut() {
        c.score = c
            .answerability
            .score(&r.answerability_weights, &r.answerability_penalties);
        c.terms.insert("answerability", c.score);
        c.confidence = (c.score / most).clamp(0.0, 1.0);
    }
}

/// How many items stand above the share `floor` of the best score.
fn adaptive_length(ranked: &[Candidate], floor: f64) -> usize {
    let Some(best) = ranked.first() else { return 0 };
    let least = best.score * floor;
    ranked
        .iter()
        .take_while(|c| c.score >= least)
        .count()
        .max(1)
}
