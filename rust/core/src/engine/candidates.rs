//! Candidates: the channels, their merge, and the hard filters (section 9.3, step 3).

use super::metadata::Having;
use super::read::{
    BM25, CARD_SEMANTIC, CARD_SYMBOLIC, Candidate, Channels, Hits, RAW_LEXICAL, RAW_SEMANTIC,
    Sighting,
};
use super::{Engine, TurnMeta};
use crate::config::{Config, Retrieval};
use crate::error::Result;
use crate::index::Found;
use crate::retrieve::features::Judge;
use crate::retrieve::{Filters, Query, QueryFrame, cards};
use crate::text::{self, fold};
use crate::types::{InteractionId, Signals, Validity};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The caller's conditions, those on metadata looked up.
pub(super) struct Conditions<'a> {
    filters: &'a Filters,
    having: Having<'a>,
}

impl Engine {
    pub(super) fn conditions<'a>(&'a self, filters: &'a Filters) -> Conditions<'a> {
        let having = self.metadata.having(filters.metadata.as_ref());
        Conditions { filters, having }
    }

    /// Whether a turn that recall knows meets the caller's conditions.
    pub(super) fn may_answer(&self, id: InteractionId, c: &Conditions<'_>) -> bool {
        self.turns.get(&id).is_some_and(|m| self.admits(id, m, c))
    }

    /// The same with what is known of the turn.
    pub(super) fn admits(&self, id: InteractionId, m: &TurnMeta, c: &Conditions<'_>) -> bool {
        let f = c.filters;
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
            && c.having.contains(id)
    }

    /// The channels and their merge by (type, id) (eq. 33).
    pub(super) fn candidates(
        &self,
        query: &Query,
        config: &Config,
        reach: usize,
        graph: &Found,
        admit: &(impl Fn(InteractionId) -> bool + Sync),
    ) -> Vec<Sighting> {
        let (r, frame) = (&config.retrieval, &query.frame);
        let k = r
            .raw_prefetch_k
            .max(if r.late_interaction { reach } else { 0 });
        // Only the paper has a ceiling of distance; the other preset ranks and cuts later.
        let floor = if r.late_interaction {
            -1.0
        } else {
            1.0 - config.ltm.distance_threshold
        };
        let dense = || {
            // Signs that no model has a vector for; what is asked for in number is given.
            if floor < 0.0 && query.vector.iter().all(|x| *x == 0) {
                self.flat.first(k, admit)
            } else {
                self.flat.search_rest(&query.vector, k, floor, graph, admit)
            }
        };
        let bm25 = || self.bm25.bm25(&self.query_stems(frame), k, admit);
        let lexical = || {
            let terms = self.query_terms(frame);
            self.lexical.overlap(&terms, r.raw_prefetch_k, admit)
        };
        let admit_card = |n: u64| {
            let (id, _) = cards::split(n);
            admit(id) && self.turns.get(&id).is_some_and(|m| m.archived)
        };
        let symbolic = || {
            let (weights, k) = (&r.symbolic_weights, r.symbolic_lookup_k);
            as_cards(self.cards.symbolic(frame, weights, k, admit_card))
        };
        let by_vector =
            || as_cards(self.card_semantic(query, r.card_prefetch_k, floor, &admit_card));
        let cards = config.ltm.cards_enabled;
        // The longest first: a thread that is done takes the next.
        let channels: [(usize, bool, Channel<'_>); 5] = [
            (RAW_SEMANTIC, r.enable_raw_semantic, &dense),
            (BM25, r.enable_bm25, &bm25),
            (CARD_SEMANTIC, cards && r.enable_card_semantic, &by_vector),
            (RAW_LEXICAL, r.enable_raw_lexical, &lexical),
            (CARD_SYMBOLIC, cards && r.enable_card_symbolic, &symbolic),
        ];
        let enabled = channels.into_iter().filter(|c| c.1);
        let (numbers, searches): (Vec<usize>, Vec<Channel<'_>>) =
            enabled.map(|c| (c.0, c.2)).unzip();
        let found = if self.turns.len() < SHARED_FROM {
            searches.iter().map(|search| search()).collect()
        } else {
            by_two_threads(&searches)
        };
        let each =
            |(channel, hits): (usize, Hits)| hits.into_iter().map(move |(k, s)| (k, channel, s));
        merge(numbers.into_iter().zip(found).flat_map(each).collect())
    }

    /// Over the cards' own vectors; over their turns' where the store has none.
    fn card_semantic(
        &self,
        query: &Query,
        k: usize,
        floor: f64,
        admit: &(impl Fn(u64) -> bool + Sync),
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

    pub(super) fn query_stems(&self, frame: &QueryFrame) -> Vec<String> {
        self.query_terms(frame)
            .iter()
            .map(|t| text::stem(t))
            .collect()
    }

    pub(super) fn query_terms(&self, frame: &QueryFrame) -> Vec<String> {
        let mut terms = frame.terms.clone();
        terms.extend(text::cjk_bigrams(&frame.text));
        terms
    }

    pub(super) fn read_candidates(&self, pool: &mut [Candidate]) -> Result<()> {
        self.store().reading(|store| {
            for c in pool.iter_mut().filter(|c| c.dropped.is_none()) {
                match self.known(store, c.id)? {
                    Some(known) => c.known = known,
                    // Erased by the writer since this reader was opened.
                    None => c.dropped = Some("erased"),
                }
            }
            Ok(())
        })
    }

    /// Hard filters (section 9.3, step 3).
    pub(super) fn filter(
        &self,
        pool: &mut [Candidate],
        judge: &Judge<'_>,
        frame: &QueryFrame,
        r: &Retrieval,
    ) {
        for c in pool.iter_mut().filter(|c| c.dropped.is_none()) {
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
            self.filter_mismatches(pool, judge, frame);
        }
    }

    /// Candidates that cannot be evidence: those that name none of the question's
    /// entities, and those that only ask or only acknowledge. Neither filter is
    /// applied where it would leave nothing.
    fn filter_mismatches(&self, pool: &mut [Candidate], judge: &Judge<'_>, frame: &QueryFrame) {
        if !frame.entities.is_empty() {
            drop_unless_all(pool, "entity_mismatch", |c| {
                judge.entity_overlap(&self.subject(c, None, 0.0)) == 0.0
            });
        }
        drop_unless_all(pool, "evidence_type", |c| {
            c.known.facts.social
                || (c.known.facts.signals.has(Signals::QUERY_LIKE)
                    && c.known.text.trim_end().ends_with('?'))
        });
    }
}

/// A turn's id, or a card's number with [`CARD`] set, with a channel and its score.
type Hit = (u64, usize, f64);

/// Ids and card numbers are far below.
const CARD: u64 = 1 << 63;

/// One of the channels, which do not depend on each other.
type Channel<'a> = &'a (dyn Fn() -> Hits + Sync);

/// Turns from which on a second thread takes some of the channels: to start it must cost
/// little beside what it takes over. Few in tests, which thus have both ways.
const SHARED_FROM: usize = if cfg!(test) { 8 } else { 1 << 16 };

/// What each channel finds, in their order; whichever thread is free takes the next.
fn by_two_threads(channels: &[Channel<'_>]) -> Vec<Hits> {
    let next = AtomicUsize::new(0);
    let take = || -> Vec<(usize, Hits)> {
        let numbers = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        let own = numbers.map_while(|n| Some((n, channels.get(n)?())));
        own.collect()
    };
    let mut found = std::thread::scope(|scope| {
        // Where the system gives no thread, this one takes every channel.
        let helper = std::thread::Builder::new().spawn_scoped(scope, take);
        let mut found = take();
        let others = helper.map(|h| h.join().unwrap_or_else(|e| resume_unwind(e)));
        found.extend(others.into_iter().flatten());
        found
    });
    found.sort_unstable_by_key(|(n, _)| *n);
    found.into_iter().map(|(_, hits)| hits).collect()
}

/// Cards among the turns.
fn as_cards(hits: Hits) -> Hits {
    hits.into_iter().map(|(n, s)| (n | CARD, s)).collect()
}

/// Each turn or card once, in their order, with its score by channel.
fn merge(mut all: Vec<Hit>) -> Vec<Sighting> {
    all.sort_unstable_by_key(|(key, channel, _)| (*key, *channel));
    let each = all.chunk_by(|a, b| a.0 == b.0).map(|same| {
        let mut channels = Channels::default();
        for (_, channel, score) in same {
            channels.set(*channel, *score);
        }
        let key = same[0].0;
        let card = (key & CARD != 0).then_some(key & !CARD);
        Sighting {
            id: card.map_or(key, |n| cards::split(n).0),
            card,
            channels,
        }
    });
    each.collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_find_what_one_does_in_the_same_order() {
        let searches: Vec<Box<dyn Fn() -> Hits + Sync>> = (0..5u64)
            .map(|n| -> Box<dyn Fn() -> Hits + Sync> { Box::new(move || vec![(n, 0.5)]) })
            .collect();
        let channels: Vec<Channel<'_>> = searches.iter().map(|s| &**s).collect();
        let alone: Vec<Hits> = channels.iter().map(|search| search()).collect();
        for _ in 0..100 {
            assert_eq!(by_two_threads(&channels), alone);
        }
        assert!(by_two_threads(&[]).is_empty());
    }
}
