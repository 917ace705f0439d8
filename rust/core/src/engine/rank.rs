//! Ranking of the default preset: a sum of named terms, each weighed by
//! `[ranking]`, over the best candidates of dense and BM25.

use super::Engine;
use super::around::{Around, Window};
use super::read::Candidate;
use super::terms::{Term, Terms};
use super::thread::Windows;
use super::updates::Updates;
use crate::config::{Config, Ranking};
use crate::error::Result;
use crate::index::inverted;
use crate::retrieve::features::NEUTRAL;
use crate::retrieve::late::{self, Matches};
use crate::retrieve::words::contains_words;
use crate::retrieve::{Query, QueryFrame};
use crate::score::survival::logistic;
use crate::text;
use crate::types::{InteractionId, Signals, Validity};
use ebbtide_simd::{Question, prefetch};
use std::sync::Arc;

/// Weight of a stop word or punctuation mark in late interaction.
const STOP_WEIGHT: f64 = 0.15;

/// Words up to which a turn is none too long, and from which on more take nothing off:
/// a long paste is not to be lost for its length.
const SHORT: f64 = 64.0;
const LONG: f64 = 256.0;

/// What a similarity is scaled by: 0 is the least of the candidates', but no more than `from`,
/// and 1 the greatest, but no less than `spread` above 0.
///
/// Of twenty turns of a conversation some are about something else, and the best is far above
/// them. Of a few turns neither need be so: of two that are both about the question the second
/// must not count as if it were not, and a hundredth of a cosine must not weigh more than whom
/// a turn is of. Twenty turns nearly always have a candidate below each `from`, and a greater
/// distance than each `spread`.
#[derive(Clone, Copy)]
struct Scale {
    from: f64,
    spread: f64,
}

impl Scale {
    const fn new(from: f64, spread: f64) -> Self {
        Self { from, spread }
    }
}

/// Cosines of tokens with the turn, with it and the one before, and with its window.
const OWN: Scale = Scale::new(0.35, 0.1);
const PREVIOUS: Scale = Scale::new(0.38, 0.08);
const WINDOW: Scale = Scale::new(0.42, 0.05);
/// The cosine of the turn.
const DENSE: Scale = Scale::new(0.42, 0.1);
const ANSWERABILITY: Scale = Scale::new(2.7, 2.0);

/// Share of the stale penalty where the question does not say which time it means.
const UNSAID: f64 = 0.75;

/// Confidence is logistic in these; a feature that has nothing to judge adds nothing.
const SURE_SIMILARITY: f64 = 12.0;
const SURE_FROM: f64 = 0.645;
const SURE_SUBJECT: f64 = 2.0;
const SURE_CONTENT: f64 = 2.5;
const SURE_PREDICATE: f64 = 1.0;
const SURE_ANSWER: f64 = 1.5;
const SURE_TIME: f64 = 2.0;
/// The most for a bare question, and for what was at another time than is asked about.
const UNSURE: f64 = 0.4;

/// Bytes of a text that are asked for beforehand: the processor goes on from there by itself.
const BEGIN: usize = 2048;

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
        let windows = Windows::new(&self.turns, c);
        let around = Around::new(pool, &windows);
        let by_words = self.bm25.terms(stems).scores(around.ids());
        let asked = self.lexical.terms(&query.frame.name_free_terms);
        let bm25: Column = (0..pool.len())
            .map(|i| around.window(i).map_or(0.0, |w| by_words[w.own]))
            .collect();
        let top = bm25.iter().copied().fold(0.0, f64::max);
        let share = |x: f64| if top > 0.0 { (x / top).min(1.0) } else { 0.0 };
        let late = if r.late_interaction {
            self.late_scores(pool, query, &around)?
        } else {
            None
        };
        let (absolute, by): (Column, Scale) = match &late {
            Some(l) => (l.own.clone(), OWN),
            None => {
                let cosines = pool.iter().map(|c| c.answerability.features[0]);
                (cosines.collect(), DENSE)
            }
        };
        let answerability: Column = pool
            .iter()
            .map(|c| {
                c.answerability
                    .score(&r.answerability_weights, &r.answerability_penalties)
            })
            .collect();
        let similarity = similarity(pool, late, &answerability, w);
        let matches = scaled_over_kept(pool, &absolute, by);
        let updates = self.updates(pool, &matches, &query.frame);
        let asker = Asker::of(&query.frame);
        for (i, c) in pool.iter_mut().enumerate() {
            if c.dropped.is_some() {
                continue;
            }
            let beside = around.window(i).into_iter().flat_map(Window::beside);
            let best = beside.map(|p| by_words[p]).fold(0.0, f64::max);
            let mut t = similarity[i];
            t[Term::Bm25] = w.bm25 * share(bm25[i]);
            t[Term::Bm25Neighbours] = w.bm25_neighbours * share(best);
            t[Term::Reply] = w.reply * self.asked_by(windows.before(c.id), &asked);
            self.what_is_said(&mut t, c, query, &asker, w);
            self.what_stands(&mut t, c, &query.frame, w);
            let in_part = self.replaces_in_part(c.id);
            what_changed(&mut t, &updates, i, query.frame.is_present, in_part, w);
            c.terms = t;
            c.score = t.sum();
            c.confidence = self.confidence(c, absolute[i], &query.frame);
        }
        self.inherit(pool, &updates.corrected, w.inherited);
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
        around: &Around,
    ) -> Result<Option<Late>> {
        let dimension = self.flat.dimension();
        if query.tokens.is_empty() || dimension == 0 {
            return Ok(None);
        }
        let weights = self.token_weights(query);
        let question = Question::new(&query.tokens, dimension);
        let Some(read) = self.matches_of(around.ids(), &question)? else {
            return Ok(None);
        };
        let zero = vec![0.0; pool.len()];
        let mut late = Late {
            own: zero.clone(),
            window: zero.clone(),
            previous: zero,
        };
        let mut window = Matches::none(&question);
        for i in 0..pool.len() {
            let Some(at) = around.window(i) else {
                continue;
            };
            late.own[i] = read[at.own].score(&weights);
            window.clone_from(&read[at.own]);
            if let Some(before) = at.before() {
                window.merge(&read[before]);
            }
            late.previous[i] = window.score(&weights);
            for place in &at.near {
                window.merge(&read[*place]);
            }
            late.window[i] = window.score(&weights);
        }
        Ok(Some(late))
    }

    /// What matches the question's tokens best in each of these turns; `None` where none
    /// has token vectors.
    fn matches_of(
        &self,
        ids: &[InteractionId],
        question: &Question,
    ) -> Result<Option<Vec<Matches>>> {
        let read = self.store().reading(|store| self.tokens_of(store, ids))?;
        if read.iter().all(|tokens| tokens.is_empty()) {
            return Ok(None);
        }
        Ok(Some(matches(question, &read)))
    }

    /// Terms of what the turn says, measured against what is asked.
    fn what_is_said(
        &self,
        t: &mut Terms,
        c: &Candidate,
        query: &Query,
        asker: &Asker,
        w: &Ranking,
    ) {
        let q = &query.frame;
        let Some(meta) = self.turns.get(&c.id) else {
            return;
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
        let elsewhen = f[5] == 0.0 && c.known.facts.times.iter().any(|t| t.first.is_some());
        let in_range = match (q.names_days(), elsewhen) {
            (false, _) => 0.0,
            // Said outside the range and telling of another day besides.
            (true, true) => -1.5,
            (true, false) => 2.0 * f[5] - 1.0,
        };
        let role = match q.role_hint.as_deref() {
            Some(hint) => w.asked_role * one(*meta.role == *hint),
            None => w.role * one((q.is_first_person || asker.is_the_user) && *meta.role == *"user"),
        };
        let aside =
            matches!(&*meta.role, "system" | "tool") && q.role_hint.as_deref() != Some(&*meta.role);
        t[Term::Speaker] = w.speaker * one(by_named);
        t[Term::Answer] = w.answer * one(f[8] > 0.75);
        t[Term::Time] = w.time * one(asks_time && !c.known.facts.times.is_empty());
        t[Term::Entities] = w.entities * entities;
        t[Term::DateRange] = w.date_range * in_range;
        t[Term::Role] = role;
        t[Term::Polarity] = w.polarity * polarity;
        t[Term::Owner] = w.owner * one(asker.owns(&c.known.text));
        t[Term::Hedged] = -w.hedged * one(c.known.is_hedged);
        t[Term::Length] = -w.length * doublings(c.known.words);
        t[Term::SystemOrTool] = -w.system_or_tool * one(aside);
        t[Term::Question] = -w.question * one(only_asks(c));
        t[Term::Remark] = -w.remark * one(self.turns.is_remark(c.id));
        t[Term::Social] = -w.social * c.answerability.penalties[1];
    }

    /// How much of the question the turn before asks: then this one replies to it.
    fn asked_by(&self, before: Option<InteractionId>, terms: &inverted::Terms<'_>) -> f64 {
        let asks = |id: &InteractionId| {
            let meta = self.turns.get(id);
            meta.is_some_and(|m| m.signals.has(Signals::QUERY_LIKE))
        };
        before.filter(asks).map_or(0.0, |id| terms.coverage(id))
    }

    /// Terms of whether the turn still stands, measured against the time asked about.
    fn what_stands(&self, t: &mut Terms, c: &Candidate, q: &QueryFrame, w: &Ranking) {
        let one = |yes: bool| f64::from(u8::from(yes));
        let stale = c.answerability.penalties[0] > 0.0;
        let replaced = !self.lineage.newer(c.id).is_empty();
        let replaces = !self.lineage.older(c.id).is_empty();
        let past = replaced || c.known.facts.signals.has(Signals::PAST_STATE);
        let former = q.currentness == "historical" && past;
        let current = !q.historical() && replaces && !stale;
        let original = q.wants_first && replaced && !replaces;
        // A question that does not say which time it means may well ask about then.
        let sure = if q.currentness == "current" {
            1.0
        } else {
            UNSAID
        };
        t[Term::Stale] = -w.stale * one(stale) * sure;
        t[Term::Current] = w.current * one(current);
        t[Term::Former] = w.former * one(former);
        t[Term::Original] = w.original * one(original);
    }

    /// Whether something else stands of a turn that this one replaced.
    fn replaces_in_part(&self, id: InteractionId) -> bool {
        let mut older = self.lineage.older(id).iter();
        older.any(|e| self.lineage.validity(e.older) == Validity::Current)
    }

    /// How sure the engine is that the turn answers: rises with the similarity of
    /// its tokens to the question's, in absolute terms, and with what it has of the
    /// question: whom it is about, its content, something of the kind asked for, the time.
    pub(super) fn confidence(&self, c: &Candidate, absolute: f64, q: &QueryFrame) -> f64 {
        let f = &c.answerability.features;
        let time = if q.names_days() { f[5] - NEUTRAL } else { 0.0 };
        let evidence = SURE_SIMILARITY * (absolute - SURE_FROM)
            + SURE_SUBJECT * (f[2] - NEUTRAL)
            + SURE_CONTENT * (f[4] - NEUTRAL)
            + SURE_PREDICATE * (f[3] - NEUTRAL)
            + SURE_ANSWER * (f[8] - NEUTRAL)
            + SURE_TIME * time;
        let sure = logistic(evidence);
        let stale = c.answerability.penalties[0] > 0.0 && !q.historical();
        let elsewhen = q.names_days() && f[5] == 0.0;
        if stale {
            0.5 * sure
        } else if elsewhen || is_bare_question(&c.known.text) {
            UNSURE * sure
        } else {
            sure
        }
    }
}

/// Whether it ends with a question. That is rarely its own answer; one that also states
/// something may be.
pub(super) fn only_asks(c: &Candidate) -> bool {
    c.known.facts.signals.has(Signals::QUERY_LIKE) && c.known.text.trim_end().ends_with('?')
}

/// Words that a question begins with.
const OPENERS: [&str; 29] = [
    "what", "whats", "when", "where", "who", "whose", "whom", "which", "why", "how", "do", "does",
    "did", "is", "are", "am", "was", "were", "can", "could", "will", "would", "should", "have",
    "has", "had", "any", "and", "so",
];

/// Whether a text is questions alone: "I am back from Rome, what now?" tells of Rome.
fn is_bare_question(text: &str) -> bool {
    let Some(asked) = text.trim_end().strip_suffix('?') else {
        return false;
    };
    let mut each = asked.split('?').map(|part| text::words_of(part).next());
    !asked.contains(['.', '!', '\n']) && each.all(|w| w.is_some_and(|w| OPENERS.contains(&w)))
}

/// What matches the question's tokens best in each text. The texts lie all over the memory,
/// so the begin of each is asked for while the one before it is read. On one thread: to start
/// another takes as long as it would save, and longer where the processor has other work.
fn matches(question: &Question, texts: &[Arc<[u8]>]) -> Vec<Matches> {
    let each = texts.iter().enumerate().map(|(at, rows)| {
        if let Some(next) = texts.get(at + 1) {
            prefetch(&next[..next.len().min(BEGIN)]);
        }
        Matches::of(question, rows)
    });
    each.collect()
}

/// Terms of what other candidates say of the same.
fn what_changed(t: &mut Terms, updates: &Updates, i: usize, now: bool, in_part: bool, w: &Ranking) {
    let (outdated, anchored) = (updates.outdated[i] > 0.0, updates.anchored[i] > 0.0);
    let more = if now { 1.25 } else { 1.0 };
    // What lineage knows is not counted twice. Of a turn that was replaced in part it knows only
    // that a newer one did: of that the greater counts.
    if t[Term::Stale] >= 0.0 {
        t[Term::Outdated] = -w.outdated * more * updates.outdated[i];
    }
    let update = w.update * more * updates.updates[i];
    if t[Term::Current] <= 0.0 || in_part && update > t[Term::Current] {
        t[Term::Update] = update;
        t[Term::Current] = 0.0;
    }
    if outdated {
        // The asker's own, but no longer so.
        t[Term::Owner] = 0.0;
    }
    t[Term::Anchor] = -w.anchor * updates.anchored[i];
    if anchored {
        t[Term::Former] = 0.0;
    } else if updates.former[i] > 0.0 {
        t[Term::Former] = w.former;
    }
}

/// Words of denial, as whole words of folded text.
const DENIALS: [&str; 9] = [
    "no", "not", "never", "none", "nobody", "nothing", "without", "cannot", "neither",
];

fn says_no(text: &str) -> bool {
    text.contains("n't") || text.contains("n’t") || DENIALS.iter().any(|w| contains_words(text, w))
}

/// How often the length of a short turn doubles to that of this one. The best of many
/// token vectors is near any word of a question by chance alone, and rises so; BM25 has
/// its own correction for length.
fn doublings(words: u32) -> f64 {
    libm::log2(f64::from(words).clamp(SHORT, LONG) / SHORT)
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
fn scaled_over_kept(pool: &[Candidate], column: &[f64], by: Scale) -> Column {
    let kept: Vec<usize> = (0..pool.len())
        .filter(|i| pool[*i].dropped.is_none())
        .collect();
    let mut part: Column = kept.iter().map(|i| column[*i]).collect();
    late::min_max(&mut part, by.from, by.spread);
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
) -> Vec<Terms> {
    let cosine: Column = pool.iter().map(|c| c.answerability.features[0]).collect();
    // Without token vectors the cosine of the whole turn takes their place.
    let dense = w.dense + if late.is_some() { 0.0 } else { w.late_own };
    let mut terms = vec![Terms::default(); pool.len()];
    let mut put = |term: Term, weight: f64, column: &[f64], by: Scale| {
        for (t, value) in { terms.iter_mut() }.zip(scaled_over_kept(pool, column, by)) {
            t[term] = weight * value;
        }
    };
    put(Term::Dense, dense, &cosine, DENSE);
    let weight = w.answerability;
    put(Term::Answerability, weight, answerability, ANSWERABILITY);
    if let Some(late) = late {
        put(Term::LateOwn, w.late_own, &late.own, OWN);
        put(Term::LateWindow, w.late_window, &late.window, WINDOW);
        put(
            Term::LatePrevious,
            w.late_previous,
            &late.previous,
            PREVIOUS,
        );
    }
    terms
}
