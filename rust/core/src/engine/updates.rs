//! What changed without lineage having seen it: a newer candidate that says so
//! ("from now on", "instead") against an older one about the same.

use super::Engine;
use super::rank::only_asks;
use super::read::Candidate;
use super::rivals::Things;
use crate::retrieve::QueryFrame;
use crate::retrieve::features::NEUTRAL;
use crate::retrieve::words::contains_words;
use crate::text::fold;
use crate::types::{InteractionId, Signals};
use std::cell::LazyCell;

/// Least share of the best candidate's match at which a turn is about the question.
const ABOUT: f64 = 0.45;
/// Least cosine of two turns that tell of the same.
const ALIKE: f64 = 0.6;
/// Strength of an update that does not say so: two equally good answers, and the
/// newer one counts.
const SILENT: f64 = 0.6;
/// Least share of the best candidate's match at which it counts.
const EQUAL: f64 = 0.7;
/// How far the newer of two equally good answers may fall behind.
const BEHIND: f64 = 0.12;
/// Words up to which a correction is of what was just said, and how many turns before that is.
const AFTERTHOUGHT: u32 = 8;
const RIGHT_AFTER: u64 = 2;
/// Candidates that are compared with each other, best matches first.
const COMPARED: usize = 40;

/// For each candidate: whether it updates another, and how much another updates it.
pub(super) struct Updates {
    pub(super) updates: Vec<f64>,
    pub(super) outdated: Vec<f64>,
    /// Whether it tells of what was before the thing that the question names.
    pub(super) former: Vec<f64>,
    /// Whether it names that thing.
    pub(super) anchored: Vec<f64>,
    /// Places of candidates with those of what was said right after them to correct them.
    pub(super) corrected: Vec<(usize, usize)>,
}

impl Engine {
    /// Compares the candidates that match the question best.
    ///
    /// `matches` holds their similarity to the question, scaled to [0, 1].
    pub(super) fn updates(&self, pool: &[Candidate], matches: &[f64], q: &QueryFrame) -> Updates {
        let mut found = Updates {
            updates: vec![0.0; pool.len()],
            outdated: vec![0.0; pool.len()],
            former: vec![0.0; pool.len()],
            anchored: vec![0.0; pool.len()],
            corrected: Vec::new(),
        };
        let before = Self::names_anchor(pool, q);
        let over = q.last.is_some() && !q.is_present;
        if before.is_empty() && (q.historical() || q.wants_first || over) {
            return found;
        }
        let mut about: Vec<usize> = (0..pool.len())
            .filter(|i| pool[*i].dropped.is_none() && matches[*i] >= ABOUT)
            .collect();
        about.sort_by(|a, b| {
            crate::order::best_first((matches[*a], pool[*a].id), (matches[*b], pool[*b].id))
        });
        about.truncate(COMPARED);
        if !before.is_empty() {
            for &i in &before {
                found.anchored[i] = 1.0;
            }
            for &older in &about {
                let led_to = before
                    .iter()
                    .any(|&newer| self.tells_of_the_same(pool[newer].id, pool[older].id));
                found.former[older] = f64::from(u8::from(led_to && !before.contains(&older)));
            }
            return found;
        }
        found.corrected = self.corrected(pool);
        for (older, _) in &found.corrected {
            found.outdated[*older] = matches[*older];
        }
        let things = LazyCell::new(|| Things::of(q));
        // What is said of somebody else does not change what is asked.
        let fitting = |i: &&usize| pool[**i].answerability.features[2] >= NEUTRAL;
        for &newer in about.iter().filter(fitting) {
            let said = says_so(&pool[newer], q);
            // Between two equally good answers to a question for one value the newer
            // one counts, though it does not say that things changed.
            let answers = matches[newer] >= EQUAL && !only_asks(&pool[newer]);
            let strength = match (said, q.is_present && q.is_single) {
                (true, _) => 1.0,
                (false, true) if answers => SILENT,
                _ => continue,
            };
            for &older in &about {
                let (from, to) = (&pool[older], &pool[newer]);
                let near = matches[newer] >= matches[older] - BEHIND
                    || (said && (corrects(to) || !things.lost(to, from)));
                let near = near && (said || answers_as_well(to, from));
                let on_topic = q.is_single || (covers(&pool[newer]) && covers(&pool[older]));
                if near
                    && on_topic
                    // Said again, word for word, it is no news.
                    && from.known.text != to.known.text
                    && self.tells_of_the_same(to.id, from.id)
                    && !things.rival(to, from)
                {
                    found.updates[newer] = strength;
                    let taken = strength * matches[newer];
                    found.outdated[older] = f64::max(found.outdated[older], taken);
                }
            }
        }
        // What is itself out of date is no news.
        for (update, outdated) in found.updates.iter_mut().zip(&found.outdated) {
            if *outdated > 0.0 {
                *update = 0.0;
            }
        }
        found
    }

    /// Turns that somebody corrects in their next words without naming what: "Sorry, I meant
    /// May 4." Where the correction says what it is of, lineage knows.
    fn corrected(&self, pool: &[Candidate]) -> Vec<(usize, usize)> {
        let kept = |i: &usize| pool[*i].dropped.is_none();
        let short = |c: &Candidate| corrects(c) && c.known.words <= AFTERTHOUGHT;
        let mut found = Vec::new();
        for newer in (0..pool.len()).filter(kept).filter(|i| short(&pool[*i])) {
            let id = pool[newer].id;
            let (Some(own), true) = (self.turns.get(&id), self.lineage.older(id).is_empty()) else {
                continue;
            };
            let by_same = |other: &InteractionId| {
                let meta = self.turns.get(other);
                meta.is_some_and(|m| m.role == own.role && m.speaker == own.speaker)
            };
            let around = self.neighbours(id, RIGHT_AFTER);
            let mut before = around.into_iter().rev().filter(|other| *other < id);
            if let Some(older) = before.find(by_same) {
                let at = (0..pool.len())
                    .filter(kept)
                    .filter(|i| pool[*i].id == older);
                found.extend(at.map(|older| (older, newer)));
            }
        }
        found
    }

    /// Candidates that name what the question wants the time before of: "Where did I
    /// live before Porto?" is not answered by the turn that tells of Porto.
    fn names_anchor(pool: &[Candidate], q: &QueryFrame) -> Vec<usize> {
        let anchor = match q.anchor_event.as_deref().map(fold) {
            Some(anchor) if q.temporal_intent == "before" && q.currentness == "historical" => {
                anchor
            }
            _ => return Vec::new(),
        };
        if anchor.split_whitespace().count() > 3 {
            return Vec::new();
        }
        let names = |c: &Candidate| {
            contains_words(&c.known.text, &anchor) && !contains_words(&c.known.text, "before")
        };
        (0..pool.len()).filter(|i| names(&pool[*i])).collect()
    }

    /// Whether the first may update the second: newer, alike, and not an assistant's
    /// word against a person's.
    fn tells_of_the_same(&self, newer: InteractionId, older: InteractionId) -> bool {
        let (Some(n), Some(o)) = (self.turns.get(&newer), self.turns.get(&older)) else {
            return false;
        };
        newer > older
            && (n.role == o.role || *n.role == *"user")
            && self.flat.similarity(
                first_vector(&self.flat.vectors_of(older), self.flat.dimension()),
                newer,
            ) >= ALIKE
    }
}

/// A correction always says that things are otherwise; that they changed counts for
/// a question about the present.
fn says_so(c: &Candidate, q: &QueryFrame) -> bool {
    let facts = &c.known.facts;
    corrects(c)
        || (q.is_present
            && (facts.signals.has(Signals::REPLACEMENT)
                || facts.cues.iter().any(|cue| cue.signal == "update")))
}

fn corrects(c: &Candidate) -> bool {
    c.known.facts.signals.has(Signals::CORRECTION)
}

/// Whether it has something of the kind that is asked for, if the other has.
fn answers_as_well(c: &Candidate, other: &Candidate) -> bool {
    c.answerability.features[8] >= other.answerability.features[8]
}

/// Whether the turn has half of what the question is about.
fn covers(c: &Candidate) -> bool {
    c.answerability.features[4] >= 0.5
}

fn first_vector(vectors: &[i16], dimension: usize) -> &[i16] {
    vectors.get(..dimension).unwrap_or(&[])
}
