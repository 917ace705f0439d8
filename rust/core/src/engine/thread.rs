//! Which turns lie beside one in the talk: its window. Remarks that nothing around
//! them has to do with are stepped over, so that one between a question and its answer
//! does not part them.
//!
//! How near a turn is to the turns around it follows from the vectors alone and is kept
//! beside the turns, never stored: a memory that is reopened knows the same.

use super::Engine;
use super::turns::Turns;
use crate::config::Retrieval;
use crate::types::InteractionId;

/// Turns on each side that a turn may have to do with.
const REACH: usize = 4;
/// Steps back or on, for each turn of the window, that it may take to find one.
const STEPS: usize = 8;

/// A cosine as it is kept: 255ths, rounded down; 1 at least, as 0 means unknown.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn level(cosine: f64) -> u8 {
    ((cosine * 255.0).clamp(1.0, 255.0)) as u8
}

/// How many turns have which level.
#[derive(Debug)]
pub(super) struct Levels([u32; 256]);

impl Default for Levels {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Levels {
    pub(super) fn change(&mut self, from: u8, to: u8) {
        for (level, by) in [(from, -1), (to, 1)] {
            if level > 0 {
                let count = &mut self.0[usize::from(level)];
                *count = count.saturating_add_signed(by);
            }
        }
    }

    /// Upper quartile of what is known, as a cosine.
    fn upper_quartile(&self) -> Option<f64> {
        let total: u64 = self.0.iter().copied().map(u64::from).sum();
        let place = 3 * total.checked_sub(1)? / 4;
        let mut seen = 0;
        let at = self.0.iter().position(|count| {
            seen += u64::from(*count);
            seen > place
        });
        #[allow(clippy::cast_precision_loss)]
        at.map(|level| level as f64 / 255.0)
    }
}

/// The windows of a memory's turns, under the settings of one recall.
pub(super) struct Windows<'a> {
    turns: &'a Turns,
    reach: usize,
    /// Turns of a lower level are stepped over.
    least: f64,
}

impl<'a> Windows<'a> {
    /// The bound is taken from the memory's own cosines too: those of speakers without
    /// names, or of a list of sundry facts, lie lower, and there nothing is a remark
    /// beside the point.
    pub(super) fn new(turns: &'a Turns, r: &Retrieval) -> Self {
        let quartile = turns.levels().upper_quartile();
        let bound = quartile.map_or(0.0, |q| r.aside_below.min(q - r.aside_margin));
        Self {
            turns,
            reach: usize::try_from(r.late_interaction_window).unwrap_or(usize::MAX),
            least: bound * 255.0,
        }
    }

    /// A turn and its neighbours, in order.
    pub(super) fn of(&self, id: InteractionId) -> Vec<InteractionId> {
        self.within(id, self.reach)
    }

    /// The turn before one.
    pub(super) fn before(&self, id: InteractionId) -> Option<InteractionId> {
        let near = self.within(id, 1);
        near.first().copied().filter(|before| *before < id)
    }

    fn within(&self, id: InteractionId, reach: usize) -> Vec<InteractionId> {
        let Some(at) = self.turns.position(id) else {
            return vec![id];
        };
        let around = self.turns.around(at, reach.saturating_mul(STEPS));
        let belongs = |place: &usize| {
            let level = self.turns.level(*place);
            level == 0 || f64::from(level) >= self.least
        };
        let before = (around.start..at).rev().filter(belongs).take(reach);
        let mut places: Vec<usize> = before.collect();
        places.reverse();
        places.push(at);
        places.extend((at + 1..around.end).filter(belongs).take(reach));
        places.into_iter().map(|p| self.turns.id(p)).collect()
    }
}

impl Engine {
    /// Measures the newest turn against those around it, and them against it. Where it
    /// is not the last in order, the turns around it are measured anew.
    pub(super) fn measure_around(&mut self, id: InteractionId) {
        let Some(at) = self.turns.position(id) else {
            return;
        };
        if at + 1 < self.turns.len() {
            return self.measure_again(at);
        }
        let mut own = 0;
        for place in self.turns.around(at, REACH).filter(|place| *place != at) {
            let level = self.level_between(id, self.turns.id(place));
            own = own.max(level);
            if level > self.turns.level(place) {
                self.turns.set_level(place, level);
            }
        }
        self.turns.set_level(at, own);
    }

    /// Measures the turns around a place anew: one came in or went there.
    pub(super) fn measure_again(&mut self, at: usize) {
        let end = (at + REACH + 1).min(self.turns.len());
        for place in at.saturating_sub(REACH)..end {
            let id = self.turns.id(place);
            let around = self.turns.around(place, REACH);
            let others = around.filter(|other| *other != place);
            let levels = others.map(|other| self.level_between(id, self.turns.id(other)));
            let level = levels.max().unwrap_or(0);
            self.turns.set_level(place, level);
        }
    }

    /// The level of the nearest passages of two turns.
    fn level_between(&self, one: InteractionId, other: InteractionId) -> u8 {
        let passages = self.flat.vectors_of(one);
        let each = passages.chunks(self.flat.dimension().max(1));
        let cosines = each.map(|passage| self.flat.similarity(passage, other));
        level(cosines.fold(0.0, f64::max))
    }
}
