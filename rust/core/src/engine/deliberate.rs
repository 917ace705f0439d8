//! Quality-gated deliberation (the D-Mem paper): the usual recall is System 1; where
//! its evidence does not pass the gates, the whole history is scanned (System 2) and
//! both are ranked together.

use super::read::{Candidate, Channels, DELIBERATION, FIRST_STAGE, Recall, RecallOptions};
use super::scan::{Scan, best_by_turn};
use super::terms::Term;
use super::{Engine, TurnMeta};
use crate::calendar;
use crate::config::Config;
use crate::error::Result;
use crate::order::best_first;
use crate::retrieve::deliberation::gates::{self, Check, Needs, Seen};
use crate::retrieve::deliberation::select::Sentence;
use crate::retrieve::deliberation::vote::{self, Ballot, Pair};
use crate::retrieve::ledger::{self, Entry, Fact};
use crate::retrieve::{Query, cards, features};
use crate::text::fold;
use crate::types::{InteractionId, Relation, Validity};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What somebody else, such as a language model, decided in the gates' or the scan's
/// place.
#[derive(Debug, Clone, Default)]
pub struct Overruled {
    /// Whether to deliberate; none: the gates decide.
    pub escalate: Option<bool>,
    /// The sentences of a scan of its own, each a turn with a score from 0 to 10.
    pub facts: Option<Vec<(InteractionId, f64)>>,
    /// An answer that the evidence must bear out.
    pub answer: Option<String>,
}

/// Why a question is answered again, or not.
struct Verdict {
    escalate: bool,
    checks: Vec<Check>,
    votes: Vec<Pair>,
    ballots: Vec<Ballot>,
    facts: Vec<Value>,
}

impl Engine {
    /// The policy's whole course for one question.
    pub(super) fn deliberate(
        &self,
        query: &Query,
        options: &RecallOptions,
        config: &Config,
    ) -> Result<Recall> {
        let overruled = &options.overruled;
        let first = self.ranked(query, options, config, 0, None)?;
        let verdict = self.verdict(&first.pool, query, options, config)?;
        let escalate = overruled.escalate.unwrap_or(verdict.escalate);
        let mut report = json!({
            "policy": config.policy.deliberation,
            "escalated": escalate,
            "overruled": overruled.escalate.is_some(),
            "gates": verdict.checks,
            "votes": verdict.votes,
            "ballots": verdict.ballots.iter().cloned().collect::<BTreeMap<_, _>>(),
            "facts": verdict.facts,
        });
        if !escalate {
            let reused = self.reaches_no_further(options, config).then_some(first);
            let mut recall = self.search(query, options, config, None, reused)?;
            recall.deliberation = Some(report);
            return Ok(recall);
        }
        let scan = match &overruled.facts {
            Some(facts) => self.given(facts, config)?,
            None => self.full_deliberation(query, config, &options.filters)?,
        };
        let mut recall = self.search(query, options, config, Some(&scan), None)?;
        report["scan"] = json!(scan);
        report["scan"]["kept"] = scan.kept.iter().map(sentence_row).collect();
        recall.deliberation = Some(report);
        Ok(recall)
    }

    /// Whether a call's own limit reads no more candidates than the gates have seen.
    fn reaches_no_further(&self, options: &RecallOptions, config: &Config) -> bool {
        let reach = options.limit.map_or(0, |l| 2 * l);
        let r = &config.retrieval;
        reach <= r.late_interaction_k && reach <= r.raw_prefetch_k
    }

    /// The sentences of somebody else's scan: whole turns, with its scores. A turn that was
    /// erased while it read, or that this memory never had, is left out.
    fn given(&self, facts: &[(InteractionId, f64)], config: &Config) -> Result<Scan> {
        let mut scan = Scan::default();
        for (id, points) in facts {
            if !self.knows(*id) {
                continue;
            }
            let Some(turn) = self.store().turn(&self.namespace, *id)? else {
                continue;
            };
            scan.kept.push(Sentence {
                turn: *id,
                from: 0,
                to: turn.text.chars().count(),
                score: crate::retrieve::deliberation::score::threshold(points.clamp(0.0, 10.0)),
            });
        }
        scan.emitted = scan.kept.len() as u64;
        scan.low_confidence = facts
            .iter()
            .all(|(_, p)| *p <= config.deliberation.keep_score);
        scan.kept.sort_by(Sentence::best_first);
        scan.scores = best_by_turn(&scan.kept);
        Ok(scan)
    }

    fn verdict(
        &self,
        pool: &[Candidate],
        query: &Query,
        options: &RecallOptions,
        config: &Config,
    ) -> Result<Verdict> {
        let mut verdict = Verdict {
            escalate: false,
            checks: Vec::new(),
            votes: Vec::new(),
            ballots: Vec::new(),
            facts: Vec::new(),
        };
        match config.policy.deliberation.as_str() {
            "quality" => {
                let best = self.best_of(pool, config.deliberation.gate_evidence);
                (verdict.checks, verdict.facts) = self.quality(&best, query, options, config);
                verdict.escalate = verdict.checks.iter().any(|c| !c.passed);
            }
            policy => {
                verdict.ballots = self.ballots(pool, query, options, config)?;
                verdict.votes = vote::pairs(&verdict.ballots);
                let agreed = match policy {
                    "majority" => vote::majority(&verdict.votes),
                    _ => vote::consensus(&verdict.votes),
                };
                verdict.escalate = !agreed;
            }
        }
        Ok(verdict)
    }

    /// The first candidates of a ranking, one a turn and each text once.
    fn best_of<'a>(&self, pool: &'a [Candidate], count: usize) -> Vec<&'a Candidate> {
        let mut best: Vec<&Candidate> = Vec::new();
        for c in pool.iter().filter(|c| c.dropped.is_none()) {
            if best.len() == count {
                break;
            }
            if !best.iter().any(|b| b.id == c.id || self.same_words(b, c)) {
                best.push(c);
            }
        }
        best
    }

    /// The three gates, and the facts that the second one looked at.
    fn quality(
        &self,
        best: &[&Candidate],
        query: &Query,
        options: &RecallOptions,
        config: &Config,
    ) -> (Vec<Check>, Vec<Value>) {
        let d = &config.deliberation;
        let answer = options.overruled.answer.as_deref();
        let conditions = self.conditions(&options.filters);
        let admit = |id: InteractionId| self.may_answer(id, &conditions);
        let needs = Needs {
            answerability: d.least_answerability,
            specificity: d.least_specificity,
            coverage: d.least_coverage,
            list_sources: d.list_sources,
        };
        let seen: Vec<Seen> = best.iter().map(|c| self.seen(c, config)).collect();
        let (facts, conflicts) = self.facts_of(best, d.same_fact_cosine, &admit);
        let mut checks = gates::relevance(&seen, &needs);
        checks.extend(gates::faithfulness(&seen, conflicts, answer));
        let idf = |t: &str| self.lexical.idf(t);
        checks.extend(gates::completeness(&seen, &query.frame, &needs, idf));
        (checks, facts)
    }

    fn seen(&self, c: &Candidate, config: &Config) -> Seen {
        let r = &config.retrieval;
        let most: f64 = r.answerability_weights.iter().sum();
        let meta = self.turns.get(&c.id);
        let mut dates = meta
            .and_then(TurnMeta::local_micros)
            .map(calendar::long_form)
            .unwrap_or_default();
        for time in &c.known.facts.times {
            dates.push(' ');
            dates.push_str(&time.words);
        }
        let f = &c.answerability.features;
        Seen {
            text: c.known.text.clone(),
            speaker: meta.and_then(|m| m.speaker.as_deref()).map(str::to_owned),
            terms: c.known.facts.terms.clone(),
            dates: fold(&dates),
            answerability: c
                .answerability
                .score(&r.answerability_weights, &r.answerability_penalties)
                / most,
            specificity: f[4],
            answers: f[8] > features::NEUTRAL,
            stands: c.answerability.penalties[0] == 0.0,
        }
    }

    /// The facts on the keys of the evidence, by ADD, UPDATE, DELETE and NOOP; and, in
    /// words, those that contradict each other and still stand. Only of turns that the caller
    /// may see.
    fn facts_of(
        &self,
        best: &[&Candidate],
        near: f64,
        admit: &impl Fn(InteractionId) -> bool,
    ) -> (Vec<Value>, Vec<String>) {
        let ids: BTreeSet<InteractionId> = best.iter().map(|c| c.id).collect();
        let mut groups: BTreeMap<(&str, &str), Vec<Fact<'_>>> = ids
            .iter()
            .flat_map(|id| self.cards.of(*id))
            .map(|(_, card)| (ledger::key(card), Vec::new()))
            .collect();
        let seen = |number: u64| admit(cards::split(number).0);
        for (number, card) in self.cards.iter().filter(|(number, _)| seen(*number)) {
            if let Some(group) = groups.get_mut(&ledger::key(card)) {
                let role = self.turns.get(&cards::split(number).0).map(|m| &*m.role);
                group.push(Fact {
                    number,
                    by_assistant: role == Some("assistant"),
                    card,
                });
            }
        }
        let among = |number: u64| ids.contains(&cards::split(number).0);
        let cosine = |a: u64, b: u64| self.turn_cosine(cards::split(a).0, cards::split(b).0);
        let (mut rows, mut conflicts) = (Vec::new(), self.declared_conflicts(&ids, admit));
        for facts in groups.values() {
            let entries = ledger::keep(facts, cosine, near);
            rows.extend(
                facts
                    .iter()
                    .zip(&entries)
                    .filter(|(f, _)| among(f.number))
                    .map(|(f, e)| fact_row(f, e)),
            );
            for (older, newer) in ledger::conflicts(facts, &entries) {
                // What lineage has settled is no open conflict.
                let settled = [older, newer]
                    .iter()
                    .any(|n| self.lineage.validity(cards::split(*n).0) != Validity::Current);
                if !settled && (among(older) || among(newer)) {
                    conflicts.push(self.conflict(older, newer));
                }
            }
        }
        (rows, conflicts)
    }

    /// Conflicts that the caller declared between turns of the evidence and others.
    fn declared_conflicts(
        &self,
        ids: &BTreeSet<InteractionId>,
        admit: &impl Fn(InteractionId) -> bool,
    ) -> Vec<String> {
        let edges = ids.iter().flat_map(|id| {
            self.lineage
                .newer(*id)
                .iter()
                .chain(self.lineage.older(*id))
        });
        let open: BTreeSet<(InteractionId, InteractionId)> = edges
            .filter(|e| e.relation == Relation::ConflictsWith)
            .filter(|e| {
                [e.older, e.newer]
                    .iter()
                    .all(|id| admit(*id) && self.lineage.validity(*id) == Validity::Current)
            })
            .map(|e| (e.older, e.newer))
            .collect();
        open.iter()
            .map(|(older, newer)| format!("turn {older} / turn {newer}"))
            .collect()
    }

    fn conflict(&self, older: u64, newer: u64) -> String {
        let (Some(o), Some(n)) = (self.cards.get(older), self.cards.get(newer)) else {
            return String::new();
        };
        let (subject, about) = ledger::key(n);
        format!("{subject} {about}: {} / {}", o.object, n.object)
    }

    /// Cosine of two turns by their first passages.
    pub(super) fn turn_cosine(&self, a: InteractionId, b: InteractionId) -> f64 {
        let first = self.flat.vectors_of(a);
        let first = first.get(..self.flat.dimension()).unwrap_or(&[]);
        self.flat.similarity(first, b)
    }

    /// The best turns of dense search, of BM25 and by answerability.
    fn ballots(
        &self,
        pool: &[Candidate],
        query: &Query,
        options: &RecallOptions,
        config: &Config,
    ) -> Result<Vec<Ballot>> {
        let depth = config.deliberation.vote_depth;
        let conditions = self.conditions(&options.filters);
        let admit = |id: InteractionId| self.may_answer(id, &conditions);
        let ids = |hits: Vec<(InteractionId, f64)>| hits.into_iter().map(|(id, _)| id).collect();
        let r = &config.retrieval;
        let by_turn = |c: &Candidate| {
            let a = &c.answerability;
            (
                c.id,
                a.score(&r.answerability_weights, &r.answerability_penalties),
            )
        };
        let mut judged: Vec<(InteractionId, f64)> = pool
            .iter()
            .filter(|c| c.dropped.is_none())
            .map(by_turn)
            .collect();
        judged.sort_by(|a, b| best_first((a.1, a.0), (b.1, b.0)));
        judged.dedup_by_key(|(id, _)| *id);
        judged.truncate(depth);
        let stems = self.query_stems(&query.frame);
        Ok(vec![
            (
                "dense",
                ids(self.flat.search(&query.vector, depth, -1.0, admit)),
            ),
            ("bm25", ids(self.bm25.bm25(&stems, depth, admit))),
            ("answerability", ids(judged)),
        ])
    }

    /// Takes what a scan found into the candidates of a recall: its score of each turn
    /// among them, and the turns of kept sentences that no channel found or the first
    /// stage left out.
    pub(super) fn take_in(&self, pool: &mut Vec<Candidate>, scan: &Scan) {
        let kept = best_by_turn(&scan.kept);
        for c in pool.iter_mut().filter(|c| c.card.is_none()) {
            if let Some(score) = scan.scores.get(&c.id) {
                c.channels.set(DELIBERATION, *score);
            }
            if c.dropped == Some(FIRST_STAGE) && kept.contains_key(&c.id) {
                c.dropped = None;
            }
        }
        let known: BTreeSet<InteractionId> = pool
            .iter()
            .filter(|c| c.card.is_none())
            .map(|c| c.id)
            .collect();
        for (id, score) in kept.into_iter().filter(|(id, _)| !known.contains(id)) {
            let channels = Channels::of(DELIBERATION, score);
            pool.push(Candidate::new(id, None, channels));
        }
    }
}

/// Adds what the scan found to the scores: its share of ten, times the weight, times
/// the best score there is, so that it counts alike in every preset.
pub(super) fn add_deliberation(pool: &mut [Candidate], weight: f64) {
    let kept = pool.iter().filter(|c| c.dropped.is_none());
    let top = kept.map(|c| c.score).fold(0.0, f64::max);
    for c in pool.iter_mut().filter(|c| c.dropped.is_none()) {
        if let Some(score) = c.channels.get(DELIBERATION) {
            let term = weight * top * score / 10.0;
            c.terms[Term::Deliberation] = term;
            c.score += term;
        }
    }
}

fn sentence_row(s: &Sentence) -> Value {
    json!({
        "interaction_id": s.turn,
        "start": s.from,
        "end": s.to,
        "score": f64::from(s.score) / 1000.0,
    })
}

fn fact_row(fact: &Fact<'_>, entry: &Entry) -> Value {
    let (subject, about) = ledger::key(fact.card);
    json!({
        "interaction_id": cards::split(fact.number).0,
        "subject": subject,
        "about": about,
        "value": fact.card.object,
        "operation": entry.operation,
        "target": entry.target.map(|t| cards::split(t).0),
        "stands": entry.stands,
    })
}
