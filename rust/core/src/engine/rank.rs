//! Ranking of the default preset: a sum of named terms, each weighed by
//! `[ranking]`, over the best candidates of dense and BM25.

use super::Engine;
use super::read::Candidate;
use crate::config::{Config, Ranking, Retrieval};
use crate::error::Result;
use crate::index::inverted::Terms;
use crate::retrieve::cards::contains_words;
use crate::retrieve::features::NEUTRAL;
use crate::retrieve::{Query, QueryFrame, late};
use crate::score::survival::logistic;
use crate::text;
use crate::types::{InteractionId, Signals};
use ebbtide_simd::Question;
use std::collections::BTreeMap;

/// Weight of a stop word or punctuation mark in late interaction.
const STOP_WEIGHT: f64 = 0.15;

/// Share of the stale penalty where the question does not say which time it means.
const UNSAID: f64 = 0.75;

/// Confidence is logistic in these; a feature that has nothing to judge adds nothing.
const SURE_SIMILARITY: f64 = 12.0;
const SURE_FROM: f64 = 0.645;
const SURE_SUBJECT: f64 = 2.0;
const SURE_CONTENT: f64 = 2.5;
const SURE_PREDICATE: f64 = 1.0;
const SURE_ANSWER: f64 = 1.5;

/// Scores of one kind, one a candidate.
type Column = Vec<f64>;

/// Late interaction with the turn, its window, and it with the turn before.
struct Late {
    own: Column,
    window: Column,
    previous: Column,
}

impl Engine {
    /// Scores every candidate that is not dropped.
    pub(super) fn rank_fused(
        &self,
        pool: &mut [Candidate],
        query: &Query,
        stems: &[String],
        c: &Config,
    ) -> Result<()> {
        let (r, w) = (&c.retrieval, &c.ranking);
        let stems = self.bm25.terms(stems);
        let asked = self.lexical.terms(&query.frame.name_free_terms);
        let bm25: Column = pool
            .iter()
            .map(|c| match c.dropped {
                None => stems.score(c.id),
                Some(_) => 0.0,
            })
            .collect();
        let top = bm25.iter().copied().fold(0.0, f64::max);
        let share = |x: f64| if top > 0.0 { (x / top).min(1.0) } else { 0.0 };
        let late = if r.late_interaction {
            self.late_scores(pool, query, r)?
        } else {
            None
        };
        let absolute: Column = match &late {
            Some(l) => l.own.clone(),
            None => pool.iter().map(|c| c.answerability.features[0]).collect(),
        };
        let answerability: Column = pool
            .iter()
            .map(|c| {
                c.answerability
                    .score(&r.answerability_weights, &r.answerability_penalties)
            })
            .collect();
        let similarity = similarity(pool, late, &answerability, w);
        let matches = scaled_over_kept(pool, &absolute);
        let updates = self.updates(pool, &matches, &query.frame);
        let asker = Asker::of(&query.frame);
        for (i, c) in pool.iter_mut().enumerate() {
            if c.dropped.is_some() {
                continue;
            }
            c.terms = similarity[i].clone();
            let near = self.neighbours(c.id, r.late_interaction_window);
            let near = near.iter().filter(|n| **n != c.id);
            let best = near.map(|n| stems.score(*n)).fold(0.0, f64::max);
            c.terms.insert("bm25", w.bm25 * share(bm25[i]));
            c.terms
                .insert("bm25_neighbours", w.bm25_neighbours * share(best));
            let said = self.what_is_said(c, query, &asked, &asker, w);
            c.terms.extend(said);
            let standing = self.what_stands(c, &query.frame, w);
            c.terms.extend(standing);
            let now = if query.frame.is_present { 1.25 } else { 1.0 };
            let changes = [
                ("update", w.update * now * updates.updates[i]),
                ("outdated", -w.outdated * now * updates.outdated[i]),
                ("anchor", -w.anchor * updates.anchored[i]),
            ];
            c.terms.extend(changes);
            // What lineage knows is not counted twice.
            if c.terms.get("stale").is_some_and(|s| *s < 0.0) {
                c.terms.remove("outdated");
            }
            if c.terms.get("current").is_some_and(|s| *s > 0.0) {
                c.terms.remove("update");
            }
            if updates.outdated[i] > 0.0 {
                // The asker's own, but no longer so.
                c.terms.remove("owner");
            }
            if updates.anchored[i] > 0.0 {
                c.terms.remove("former");
            } else if updates.former[i] > 0.0 {
                c.terms.insert("former", w.former);
            }
            c.terms.retain(|_, value| *value != 0.0);
            c.score = c.terms.values().sum();
            c.confidence = self.confidence(c, absolute[i], &query.frame);
        }
        Ok(())
    }

    /// The rarity of the word of each of the question's tokens.
    pub(super) fn token_weights(&self, query: &Query) -> Column {
        let weight = |t: &Option<String>| {
            t.as_ref()
                .map_or(STOP_WEIGHT, |t| self.bm25.idf(&text::stem(t)))
        };
        query.token_terms.iter().map(weight).collect()
    }

    /// `None` where the question or the memory has no token vectors.
    fn late_scores(
        &self,
        pool: &[Candidate],
        query: &Query,
        r: &Retrieval,
    ) -> Result<Option<Late>> {
        let dimension = self.flat.dimension();
        if query.tokens.is_empty() || dimension == 0 {
            return Ok(None);
        }
        let weights = self.token_weights(query);
        let question = Question::new(&query.tokens, dimension);
        let mut matches: BTreeMap<InteractionId, Vec<f64>> = BTreeMap::new();
        let store = self.store();
        let zero = vec![0.0; pool.len()];
        let mut late = Late {
            own: zero.clone(),
            window: zero.clone(),
            previous: zero,
        };
        let mut any = false;
        for (i, c) in pool.iter().enumerate().filter(|(_, c)| c.dropped.is_none()) {
            let mut window: Vec<f64> = Vec::new();
            let near = self.neighbours(c.id, r.late_interaction_window);
            for id in &near {
                if !matches.contains_key(id) {
                    let tokens = self.tokens_of(&store, *id)?;
                    matches.insert(*id, late::best_matches(&question, &tokens));
                    any |= !tokens.is_empty();
                }
                late::merge(&mut window, &matches[id]);
            }
            let mut previous = matches[&c.id].clone();
            if let Some(before) = near.iter().rev().find(|n| **n < c.id) {
                late::merge(&mut previous, &matches[before]);
            }
            late.own[i] = late::score(&matches[&c.id], &weights);
            late.window[i] = late::score(&window, &weights);
            late.previous[i] = late::score(&previous, &weights);
        }
        Ok(any.then_some(late))
    }

    /// Terms of what the turn says, measured against what is asked.
    fn what_is_said(
        &self,
        c: &Candidate,
        query: &Query,
        asked: &Terms<'_>,
        asker: &Asker,
        w: &Ranking,
    ) -> Vec<(&'static str, f64)> {
        let q = &query.frame;
        let Some(meta) = self.turns.get(&c.id) else {
            return Vec::new();
        };
        let one = |yes: bool| f64::from(u8::from(yes));
        let f = &c.answerability.features;
        let by_named = meta
            .speaker
            .as_deref()
            .is_some_and(|s| q.speakers.iter().any(|x| x == s));
        let asks_time =
            q.answer_type == "time" || !matches!(q.temporal_intent.as_str(), "" | "none");
        let denies = q.polarity == "negative";
        let polarity = if !denies {
            0.0
        } else if says_no(&c.known.text) {
            1.0
        } else {
            -1.0
        };
        let entities = f64::from(c.known.facts.entity_count.min(3)) / 3.0;
        let ranged = q.first.is_some() || q.last.is_some();
        let elsewhen = f[5] == 0.0 && c.known.facts.times.iter().any(|t| t.first.is_some());
        let in_range = match (ranged, elsewhen) {
            (false, _) => 0.0,
            // Said outside the range and telling of another day besides.
            (true, true) => -1.5,
            (true, false) => 2.0 * f[5] - 1.0,
        };
        let role = match q.role_hint.as_deref() {
            Some(hint) => w.asked_role * one(*meta.role == *hint),
            None => w.role * one((q.is_first_person || asker.is_the_user) && *meta.role == *"user"),
        };
        // A question is rarely its own answer; one that also states something may be.
        let only_asks =
            meta.signals.has(Signals::QUERY_LIKE) && c.known.text.trim_end().ends_with('?');
        let aside =
            matches!(&*meta.role, "system" | "tool") && q.role_hint.as_deref() != Some(&*meta.role);
        vec![
            ("speaker", w.speaker * one(by_named)),
            ("answer", w.answer * one(f[8] > 0.75)),
            (
                "time",
                w.time * one(asks_time && !c.known.facts.times.is_empty()),
            ),
            ("entities", w.entities * entities),
            ("reply", w.reply * self.asked_before(c.id, asked)),
            ("date_range", w.date_range * in_range),
            ("role", role),
            ("polarity", w.polarity * polarity),
            ("owner", w.owner * one(asker.owns(&c.known.text))),
            ("hedged", -w.hedged * one(is_hedged(&c.known.text))),
            ("system_or_tool", -w.system_or_tool * one(aside)),
            ("question", -w.question * one(only_asks)),
            ("social", -w.social * c.answerability.penalties[1]),
        ]
    }

    /// How much of the question the turn before asks: then this one replies to it.
    fn asked_before(&self, id: InteractionId, terms: &Terms<'_>) -> f64 {
        let near = self.neighbours(id, 1);
        let Some(before) = near.first().filter(|n| **n < id) else {
            return 0.0;
        };
        let asks = self
            .turns
            .get(before)
            .is_some_and(|m| m.signals.has(Signals::QUERY_LIKE));
        if asks { terms.coverage(*before) } else { 0.0 }
    }

    /// Terms of whether the turn still stands, measured against the time asked about.
    fn what_stands(&self, c: &Candidate, q: &QueryFrame, w: &Ranking) -> Vec<(&'static str, f64)> {
        let one = |yes: bool| f64::from(u8::from(yes));
        let stale = c.answerability.penalties[0] > 0.0;
        let replaced = !self.lineage.newer(c.id).is_empty();
        let replaces = !self.lineage.older(c.id).is_empty();
        let past = replaced || c.known.facts.signals.has(Signals::PAST_STATE);
        let former = q.currentness == "historical" && past;
        let current = !q.historical() && replaces && !stale;
        let original = q.wants_first && replaced && !replaces;
        vec![
            // A question that does not say which time it means may well ask about then.
            (
                "stale",
                -w.stale
                    * one(stale)
                    * if q.currentness == "current" {
                        1.0
                    } else {
                        UNSAID
                    },
            ),
            ("current", w.current * one(current)),
            ("former", w.former * one(former)),
            ("original", w.original * one(original)),
        ]
    }

    /// How sure the engine is that the turn answers: rises with the similarity of
    /// its tokens to the question's, in absolute terms, and with what it has of the
    /// question: whom it is about, its content, something of the kind asked for.
    pub(super) fn confidence(&self, c: &Candidate, absolute: f64, q: &QueryFrame) -> f64 {
        let f = &c.answerability.features;
        let (subject, specificity, answer) = (f[2] - NEUTRAL, f[4] - NEUTRAL, f[8] - NEUTRAL);
        let evidence = SURE_SIMILARITY * (absolute - SURE_FROM)
            + SURE_SUBJECT * subject
            + SURE_CONTENT * specificity
            + SURE_PREDICATE * (f[3] - NEUTRAL)
            + SURE_ANSWER * answer;
        let sure = logistic(evidence);
        let stale = c.answerability.penalties[0] > 0.0 && !q.historical();
        if stale { 0.5 * sure } else { sure }
    }
}

/// Words of denial, as whole words of folded text.
const DENIALS: [&str; 9] = [
    "no", "not", "never", "none", "nobody", "nothing", "without", "cannot", "neither",
];
/// Words that make a statement a guess.
const HEDGES: [&str; 6] = [
    "probably",
    "most likely",
    "maybe",
    "perhaps",
    "i thought",
    "not sure",
];

fn says_no(text: &str) -> bool {
    text.contains("n't") || text.contains("n’t") || DENIALS.iter().any(|w| contains_words(text, w))
}

fn is_hedged(text: &str) -> bool {
    HEDGES.iter().any(|w| contains_words(text, w))
}

/// What the question says of the one who asks, read once for all candidates.
struct Asker {
    /// "The user" stands for the one who speaks as the user.
    is_the_user: bool,
    /// "My boss" of a question about "my boss": "the boss of the sales team" is not
    /// the asker's.
    own: Vec<String>,
}

impl Asker {
    fn of(q: &QueryFrame) -> Self {
        let text = text::fold(&q.text);
        let words: Vec<&str> = text
            .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '-')
            .collect();
        let own = if q.is_first_person && q.role_hint.is_none() {
            let pairs = words.windows(2).filter(|p| matches!(p[0], "my" | "our"));
            pairs.map(|p| p.join(" ")).collect()
        } else {
            Vec::new()
        };
        Self {
            is_the_user: contains_words(&text, "the user"),
            own,
        }
    }

    fn owns(&self, text: &str) -> bool {
        self.own.iter().any(|phrase| contains_words(text, phrase))
    }
}

/// A column scaled to [0, 1] over the candidates that are not dropped; 0 for those.
fn scaled_over_kept(pool: &[Candidate], column: &[f64]) -> Column {
    let kept: Vec<usize> = (0..pool.len())
        .filter(|i| pool[*i].dropped.is_none())
        .collect();
    let mut part: Column = kept.iter().map(|i| column[*i]).collect();
    late::min_max(&mut part);
    let mut all = vec![0.0; column.len()];
    for (i, value) in kept.iter().zip(part) {
        all[*i] = value;
    }
    all
}

/// Dense and late-interaction terms, scaled over the candidates that are left.
fn similarity(
    pool: &[Candidate],
    late: Option<Late>,
    answerability: &[f64],
    w: &Ranking,
) -> Vec<BTreeMap<&'static str, f64>> {
    let scaled = |column: &[f64]| scaled_over_kept(pool, column);
    let cosine: Column = pool.iter().map(|c| c.answerability.features[0]).collect();
    let mut columns = vec![
        ("dense", w.dense, scaled(&cosine)),
        ("answerability", w.answerability, scaled(answerability)),
    ];
    match late {
        Some(l) => columns.extend([
            ("late_own", w.late_own, scaled(&l.own)),
            ("late_window", w.late_window, scaled(&l.window)),
            ("late_previous", w.late_previous, scaled(&l.previous)),
        ]),
        // Without token vectors the cosine of the whole turn takes their place.
        None => columns[0].1 = w.dense + w.late_own,
    }
    (0..pool.len())
        .map(|i| {
            columns
                .iter()
                .map(|(name, weight, column)| (*name, weight * column[i]))
                .collect()
        })
        .collect()
}
