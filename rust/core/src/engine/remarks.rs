//! Which turns are remarks that the talk is not about: those that the gate of D-MEM would
//! find transient, whether there is a gate or not. None is kept out; windows step over
//! them, and they are ranked a little lower.
//!
//! What a turn says by itself settles most of them. The others are remarks where they have
//! nothing to do with the turns before that are none. Both follow from the turns and are
//! kept beside them, never stored: a memory that is reopened knows the same.

use super::Engine;
use crate::config::Rpe;
use crate::policy::rpe;
use crate::policy::utility::{self, Said, Transience};
use crate::store::Derived;
use crate::types::{Facts, InteractionId, StoredTurn};

/// Turns before one that may be its thread.
const REACH: usize = 500;

/// What a turn is to the talk.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Standing {
    /// What it is by itself.
    transience: Transience,
    /// Whether it is a remark.
    pub(super) remark: bool,
    /// Cosine of the nearest of the turns before that are no remarks; none while there
    /// are too few.
    thread: Option<f64>,
}

impl Engine {
    /// Finds out what a turn is that was just indexed; `known` are cosines of its first
    /// passage that are at hand.
    pub(super) fn place_in_thread(
        &mut self,
        turn: &StoredTurn,
        derived: &Derived,
        known: &[(InteractionId, f64)],
    ) {
        let Some(at) = self.turns.position(turn.interaction_id) else {
            return;
        };
        let speaker = self.turns.meta(at).speaker.as_deref();
        let transience = transience(turn, speaker, &derived.facts, &self.config.policy.rpe);
        let standing = self.standing_after(at, transience, &derived.vectors, known);
        self.turns.set_standing(at, standing);
        self.place_again(&[at + 1]);
    }

    /// Finds out anew what the turns from some places on are: one came in or went before each.
    /// What a turn is depends on the `REACH` before it, so that as many in a row that stay as
    /// they were leave all others so, up to the next place.
    pub(super) fn place_again(&mut self, places: &[usize]) {
        for (n, from) in places.iter().enumerate() {
            let end = places.get(n + 1).copied().unwrap_or(self.turns.len());
            self.place_from(*from, end);
        }
    }

    /// The same from one place on, and not past an end.
    fn place_from(&mut self, from: usize, end: usize) {
        let mut same = 0;
        for at in from..end {
            let before = self.turns.standing(at);
            let passages = self.flat.vectors_of(self.turns.id(at));
            let standing = self.standing_after(at, before.transience, &passages, &[]);
            self.turns.set_standing(at, standing);
            same = if standing == before { same + 1 } else { 0 };
            if same == REACH {
                return;
            }
        }
    }

    /// What the turn at a place is, after those before it.
    fn standing_after(
        &self,
        at: usize,
        transience: Transience,
        passages: &[i16],
        known: &[(InteractionId, f64)],
    ) -> Standing {
        let mut standing = Standing {
            transience,
            remark: transience == Transience::Always,
            thread: None,
        };
        // The thread is one of turns that are no remarks.
        if standing.remark {
            return standing;
        }
        let (turns, c) = (&self.turns, &self.config.policy.rpe);
        let notes = || {
            let places = (at.saturating_sub(REACH)..at).rev();
            places.filter(|place| !turns.standing(*place).remark)
        };
        if notes().take(c.least).count() == c.least {
            let first = passages.get(..self.flat.dimension()).unwrap_or(&[]);
            let newest = notes().take(c.thread_notes).map(|place| turns.id(place));
            let cosine = |id| match known.iter().find(|k| k.0 == id) {
                Some((_, cosine)) => *cosine,
                None => self.flat.similarity(first, id),
            };
            standing.thread = newest.map(cosine).reduce(f64::max);
        }
        if transience == Transience::OffThread {
            let past = || {
                let threads = notes().filter_map(|place| turns.standing(place).thread);
                threads.take(c.window).collect()
            };
            let warmup = usize::try_from(c.warmup).unwrap_or(REACH);
            let count = notes().take(c.least.max(warmup)).count();
            standing.remark = rpe::off_thread(standing.thread, past, count, c);
        }
        standing
    }
}

/// What a turn is by itself; of the names only its own speaker's is known to be nobody
/// whom it tells of.
fn transience(turn: &StoredTurn, speaker: Option<&str>, facts: &Facts, c: &Rpe) -> Transience {
    let own = |name: &str| {
        speaker.is_some_and(|s| s == name || s.split_whitespace().any(|word| word == name))
    };
    let said = Said {
        text: &turn.text,
        role: &turn.role,
        facts,
        provenance: turn.provenance.as_ref(),
        takes_part: &own,
        off_thread: false,
        conflict: false,
    };
    utility::transience(&said, c)
}
