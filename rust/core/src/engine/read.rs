//! Reading: what a recall is, and the order of its stages (paper, section 9.3).

use super::deliberate::{Overruled, add_deliberation};
use super::known::Known;
use super::scan::Scan;
use super::terms::{Term, Terms};
use super::{Engine, TurnMeta};
use crate::config::{Config, Retrieval};
use crate::error::{Code, Error, Result};
use crate::index::Found;
use crate::order::best_first;
use crate::retrieve::features::{Answerability, Judge, Subject};
use crate::retrieve::{Filters, Query, QueryFrame};
use crate::types::{InteractionId, StoredTurn, TimeExpression, Validity};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How a question is answered.
#[derive(Debug, Clone, Default)]
pub struct RecallOptions {
    /// Items to return; none: the preset decides.
    pub limit: Option<usize>,
    /// Preset that answers; none: the memory's own settings.
    pub preset: Option<String>,
    /// Conditions.
    pub filters: Filters,
    /// What graphs over full segments found for the question.
    pub graph: Found,
    /// Keep every candidate with its terms.
    pub trace: bool,
    /// What is decided elsewhere in place of `[policy] deliberation`'s own rules.
    pub overruled: Overruled,
}

/// A turn that supports evidence.
#[derive(Debug, Clone, Serialize)]
pub struct Support {
    /// The turn.
    pub turn: StoredTurn,
    /// `source`, `history`, `newer`, `previous`, `next`, `linked`.
    pub relation: &'static str,
}

/// One answer-bearing turn.
#[derive(Debug, Clone, Serialize)]
pub struct Evidence {
    /// From 1.
    pub rank: usize,
    /// Score it was ranked by.
    pub score: f64,
    /// `raw`, `card`, or `shadow` for a turn that the gate kept out.
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
    pub times: Vec<TimeExpression>,
}

/// Evidence, and the trace where it was asked for.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Recall {
    /// Best first.
    pub evidence: Vec<Evidence>,
    /// Every candidate, best first, with why it was kept or dropped.
    pub candidates: Vec<Value>,
    /// What the policy of deliberation saw and did; none where it is off.
    pub deliberation: Option<Value>,
}

/// A turn or a card that channels found. There may be thousands of them, of which the first
/// stage keeps some; only those become candidates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sighting {
    pub(super) id: InteractionId,
    pub(super) card: Option<u64>,
    pub(super) channels: Channels,
}

/// A candidate on its way through the stages.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) id: InteractionId,
    pub(super) card: Option<u64>,
    pub(super) channels: Channels,
    pub(super) answerability: Answerability,
    pub(super) terms: Terms,
    pub(super) score: f64,
    pub(super) confidence: f64,
    pub(super) dropped: Option<&'static str>,
    pub(super) known: Arc<Known>,
}

impl Candidate {
    /// A candidate that nothing but its channels is known of.
    pub(super) fn new(id: InteractionId, card: Option<u64>, channels: Channels) -> Self {
        Self {
            id,
            card,
            channels,
            answerability: Answerability::default(),
            terms: Terms::default(),
            score: 0.0,
            confidence: 0.0,
            dropped: None,
            known: Arc::default(),
        }
    }
}

/// Score by channel: a row of places and no map.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Channels([Option<f64>; CHANNELS.len()]);

/// In the order of names, which is that of a printed map.
const CHANNELS: [&str; 7] = [
    "bm25",
    "card_semantic",
    "card_symbolic",
    "deliberation",
    "raw_lexical",
    "raw_semantic",
    "shadow",
];
pub(super) const BM25: usize = 0;
pub(super) const CARD_SEMANTIC: usize = 1;
pub(super) const CARD_SYMBOLIC: usize = 2;
pub(super) const DELIBERATION: usize = 3;
pub(super) const RAW_LEXICAL: usize = 4;
pub(super) const RAW_SEMANTIC: usize = 5;
pub(super) const SHADOW: usize = 6;

impl Channels {
    /// Found by one channel.
    pub(super) fn of(channel: usize, score: f64) -> Self {
        let mut channels = Self::default();
        channels.set(channel, score);
        channels
    }

    pub(super) fn set(&mut self, channel: usize, score: f64) {
        self.0[channel] = Some(score);
    }

    pub(super) fn get(&self, channel: usize) -> Option<f64> {
        self.0[channel]
    }

    /// Takes over what another form of the same turn was found by.
    pub(super) fn extend(&mut self, other: &Self) {
        for (own, new) in self.0.iter_mut().zip(other.0) {
            *own = new.or(*own);
        }
    }

    pub(super) fn by_name(&self) -> BTreeMap<&'static str, f64> {
        let named = CHANNELS.iter().zip(self.0);
        named.filter_map(|(n, s)| Some((*n, s?))).collect()
    }
}

/// Why a candidate is not read: there are better ones.
pub(super) const FIRST_STAGE: &str = "first_stage";

/// Candidates in the order of their scores.
pub(super) struct Ranked {
    pub(super) pool: Vec<Candidate>,
    /// Whether every turn that may answer was read.
    all: bool,
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
        self.refresh_recent()?;
        self.comparable(query)?;
        let config = self.settings(options.preset.as_deref())?;
        if config.policy.deliberation == "off" {
            return self.search(query, options, config, None, None);
        }
        self.deliberate(query, options, config)
    }

    /// An error unless a question's vectors can be compared with the memory's.
    fn comparable(&self, query: &Query) -> Result<()> {
        let dimension = self.config.nlp.vector_dim as usize;
        let (vector, tokens) = (query.vector.len(), query.tokens.len());
        let refuse = |message| Err(Error::new(Code::InputFacts, message));
        if vector != dimension {
            return refuse(format!(
                "the question's vector has {vector} numbers, the memory's have {dimension}"
            ));
        }
        if tokens > 0 && tokens != dimension * query.token_terms.len() {
            return refuse(format!(
                "the question's token vectors have {tokens} numbers, and not {dimension} for each of its {} tokens",
                query.token_terms.len()
            ));
        }
        Ok(())
    }

    /// Ranks, and looks further where turns that say the same crowd out the others.
    ///
    /// `scan` is what a scan of the history found; `first` is a ranking made already.
    pub(super) fn search(
        &self,
        query: &Query,
        options: &RecallOptions,
        config: &Config,
        scan: Option<&Scan>,
        mut first: Option<Ranked>,
    ) -> Result<Recall> {
        let r = &config.retrieval;
        let wanted = options.limit.unwrap_or(r.final_recall_limit);
        let mut reach = if options.limit.is_some() {
            wanted.saturating_mul(2)
        } else {
            0
        };
        if r.fusion == "rrf" {
            let recall = self.recall_hybrid(query, config, options)?;
            return self.fall_back(recall, query, config, options);
        }
        loop {
            let ranked = match first.take() {
                Some(ranked) => ranked,
                None => self.ranked(query, options, config, reach, scan)?,
            };
            let all = ranked.all || reach >= self.turns.len();
            let recall = self.assemble(ranked.pool, query, config, options)?;
            // Many turns that say the same may have crowded out the others: look
            // further. The paper never yields more than its prefetches do.
            let short = options.limit.is_some() && recall.evidence.len() < wanted;
            if !short || !r.late_interaction || all {
                return self.fall_back(recall, query, config, options);
            }
            reach = reach.max(r.late_interaction_k).saturating_mul(4);
        }
    }

    /// The candidates of a question with their scores, best first, the dropped ones last.
    pub(super) fn ranked(
        &self,
        query: &Query,
        options: &RecallOptions,
        config: &Config,
        reach: usize,
        scan: Option<&Scan>,
    ) -> Result<Ranked> {
        let r = &config.retrieval;
        let conditions = self.conditions(&options.filters);
        // What the indexes hold are turns; without conditions there is nothing to look up.
        let every = options.filters == Filters::default() && self.all_recallable();
        let admit = |id: InteractionId| every || self.may_answer(id, &conditions);
        // Among the hits of a graph those that meet conditions may be few.
        let graph = if every && reach <= options.graph.owners.len() {
            &options.graph
        } else {
            &Found::default()
        };
        let fused = r.late_interaction || r.enable_bm25;
        let stems = self.query_stems(&query.frame);
        let sightings = self.candidates(query, config, reach, graph, &admit);
        let found = sightings.len();
        let kept = if fused {
            let keep = r.late_interaction_k.max(reach).max(1);
            self.first_stage(&sightings, query, &stems, config, keep)
        } else {
            None
        };
        let out = |id: &InteractionId| kept.as_ref().is_some_and(|k| k.binary_search(id).is_err());
        // A scan may take in what the first stage does not, and a trace shows it.
        let whole = options.trace || scan.is_some();
        let mut pool: Vec<Candidate> = { sightings.into_iter() }
            .filter(|s| whole || !out(&s.id))
            .map(|s| Candidate {
                dropped: out(&s.id).then_some(FIRST_STAGE),
                ..Candidate::new(s.id, s.card, s.channels)
            })
            .collect();
        if let Some(scan) = scan {
            self.take_in(&mut pool, scan);
        }
        let lost = |c: &Candidate| c.dropped == Some(FIRST_STAGE);
        let narrowed = pool.len() < found || pool.iter().any(lost);
        if !options.trace {
            pool.retain(|c| !lost(c));
        }
        self.read_candidates(&mut pool)?;
        let judge = self.judge_of(&query.frame);
        self.filter(&mut pool, &judge, &query.frame, r);
        self.judge(&mut pool, &judge, query);
        if fused {
            self.rank_fused(&mut pool, query, &stems, config)?;
        } else {
            rank_by_answerability(&mut pool, r);
        }
        if scan.is_some() {
            add_deliberation(&mut pool, config.deliberation.weight);
        }
        // A turn may have been found with several cards.
        let turns = || { pool.iter().map(|c| c.id) }.collect::<BTreeSet<_>>().len();
        let all = !narrowed && found >= self.turns.len() && turns() >= self.turns.len();
        Ok(Ranked {
            pool: in_order(pool),
            all,
        })
    }

    pub(super) fn validity_of(&self, c: &Candidate) -> Validity {
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

    /// What is known of a turn, taken in or kept out.
    pub(super) fn meta(&self, id: InteractionId) -> Option<&TurnMeta> {
        let known = self.turns.get(&id);
        known.or_else(|| self.gate.skipped().get(&id))
    }

    pub(super) fn subject<'a>(
        &'a self,
        c: &'a Candidate,
        day: Option<&'a str>,
        cosine: f64,
    ) -> Subject<'a> {
        let meta = self.meta(c.id);
        Subject {
            text: &c.known.text,
            speaker: meta.and_then(|m| m.speaker.as_deref()),
            role: meta.map_or("", |m| &m.role),
            facts: &c.known.facts,
            day,
            validity: self.validity_of(c),
            cosine,
            linked: !self.lineage.newer(c.id).is_empty() || !self.lineage.older(c.id).is_empty(),
            has_card: c.card.is_some(),
        }
    }

    /// The judge of turns for a question.
    pub(super) fn judge_of<'a>(&self, frame: &'a QueryFrame) -> Judge<'a> {
        Judge::new(frame, |term| self.lexical.idf(term))
    }

    pub(super) fn judge(&self, pool: &mut [Candidate], judge: &Judge<'_>, query: &Query) {
        // What a filter drops is judged too: the trace shows why it might have been kept.
        let unread = |c: &&mut Candidate| matches!(c.dropped, Some(FIRST_STAGE | "erased"));
        for c in pool.iter_mut().filter(|c| !unread(c)) {
            let day = judge.day_of(self.meta(c.id).and_then(TurnMeta::local_micros));
            let cosine = self.flat.similarity(&query.vector, c.id);
            c.answerability = judge.judge(&self.subject(c, day.as_deref(), cosine));
        }
    }

    /// A turn and up to `reach` neighbours on each side in its session, in order.
    pub(super) fn neighbours(&self, id: InteractionId, reach: u64) -> Vec<InteractionId> {
        let Some(at) = self.turns.position(id) else {
            return vec![id];
        };
        let reach = usize::try_from(reach).unwrap_or(usize::MAX);
        self.turns.ids(self.turns.around(at, reach)).to_vec()
    }
}

/// Best first, the dropped ones last. Their places are sorted, since candidates are large.
fn in_order(pool: Vec<Candidate>) -> Vec<Candidate> {
    let key = |c: &Candidate| (c.dropped.is_some(), (c.score, c.id), c.card);
    let mut order: Vec<_> = pool.iter().map(key).zip(0..).collect();
    order.sort_by(|((a_dropped, a, a_card), _), ((b_dropped, b, b_card), _)| {
        (a_dropped.cmp(b_dropped))
            .then(best_first(*a, *b))
            .then(a_card.cmp(b_card))
    });
    let mut pool: Vec<Option<Candidate>> = pool.into_iter().map(Some).collect();
    let places = order.into_iter().map(|(_, at): (_, usize)| at);
    places.filter_map(|at| pool[at].take()).collect()
}

/// Ranking of the paper: eq. 34 alone.
fn rank_by_answerability(pool: &mut [Candidate], r: &Retrieval) {
    let most: f64 = r.answerability_weights.iter().sum();
    for c in pool.iter_mut() {
        c.score = c
            .answerability
            .score(&r.answerability_weights, &r.answerability_penalties);
        c.terms[Term::Answerability] = c.score;
        c.confidence = (c.score / most).clamp(0.0, 1.0);
    }
}
