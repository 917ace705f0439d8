//! Which turns lie beside one in the talk: its window. Turns that nothing around them
//! has to do with are stepped over, as remarks are, so that one between a question and
//! its answer does not part them.
//!
//! How near a turn is to the turns around it follows from the vectors alone and is kept
//! beside the turns, never stored: a memory that is reopened knows the same.

use super::Engine;
use super::turns::Turns;
use crate::config::Config;
use crate::types::InteractionId;
use std::ops::Range;

/// Turns on each side that a turn may have to do with.
const REACH: usize = 4;
/// Fewer turns than this, and no quartile is taken of them.
const LEAST: u64 = 30;
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

    /// Upper quartile of what is known, as a cosine, once there is enough of it.
    fn upper_quartile(&self) -> Option<f64> {
        let total: u64 = self.0.iter().copied().map(u64::from).sum();
        if total < LEAST {
            return None;
        }
        let place = 3 * (total - 1) / 4;
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
    /// Whether remarks are stepped over, whatever their level.
    talk_alone: bool,
}

impl<'a> Windows<'a> {
    /// The bound is taken from the memory's own cosines too: those of speakers without
    /// names, or of a list of sundry facts, lie lower, and there nothing is beside
    /// the point.
    pub(super) fn new(turns: &'a Turns, c: &Config) -> Self {
        let r = &c.retrieval;
        let quartile = turns.levels().upper_quartile();
        let bound = quartile.map_or(0.0, |q| r.aside_below.min(q - r.aside_margin));
        Self {
            turns,
            reach: usize::try_from(r.late_interaction_window).unwrap_or(usize::MAX),
            least: bound * 255.0,
            talk_alone: c.ranking.remark > 0.0,
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
        let steps = reach.saturating_mul(STEPS);
        let belongs = |place: &usize| {
            if *place + 1 == at && self.turns.replies(at) {
                return true;
            }
            if self.talk_alone && self.turns.standing(*place).remark {
                return false;
            }
            let level = self.turns.level(*place);
            level == 0 || f64::from(level) >= self.least
        };
        let (back, on) = (self.turns.back_from(at), self.turns.on_from(at));
        let mut places: Vec<usize> = back.take(steps).filter(belongs).take(reach).collect();
        places.reverse();
        places.push(at);
        places.extend(on.take(steps).filter(belongs).take(reach));
        places.into_iter().map(|p| self.turns.id(p)).collect()
    }
}

impl Engine {
    /// Measures the newest turn against those around it, and them against it. Where it
    /// is not the last in order, the turns around it are measured anew. Returns the cosines
    /// with them, where it has no other passage than its first.
    pub(super) fn measure_around(
        &mut self,
        id: InteractionId,
        passages: &[i16],
    ) -> Vec<(InteractionId, f64)> {
        let mut cosines = Vec::with_capacity(REACH);
        let Some(at) = self.turns.position(id) else {
            return cosines;
        };
        if at + 1 < self.turns.len() {
            self.measure_again(&[at]);
            return cosines;
        }
        let mut own = 0;
        for place in self.turns.around(at, REACH).filter(|place| *place != at) {
            let other = self.turns.id(place);
            let cosine = self.cosine_between(passages, other);
            cosines.push((other, cosine));
            own = own.max(level(cosine));
            if level(cosine) > self.turns.level(place) {
                self.turns.set_level(place, level(cosine));
            }
        }
        self.turns.set_level(at, own);
        if passages.len() > self.flat.dimension() {
            cosines.clear();
        }
        cosines
    }

    /// Measures the turns around some places, which ascend, anew: one came in or went there.
    pub(super) fn measure_again(&mut self, places: &[usize]) {
        let mut done = 0;
        for at in places {
            let end = (at + REACH + 1).min(self.turns.len());
            self.measure_these(done.max(at.saturating_sub(REACH))..end);
            done = end;
        }
    }

    fn measure_these(&mut self, places: Range<usize>) {
        for place in places {
            let passages = self.flat.vectors_of(self.turns.id(place));
            let around = self.turns.around(place, REACH);
            let others = around.filter(|other| *other != place);
            let levels =
                others.map(|other| level(self.cosine_between(&passages, self.turns.id(other))));
            let level = levels.max().unwrap_or(0);
            self.turns.set_level(place, level);
        }
    }

    /// Cosine of the nearest passages of two turns, one by its vectors.
    fn cosine_between(&self, passages: &[i16], other: InteractionId) -> f64 {
        let each = passages.chunks(self.flat.dimension().max(1));
        let cosines = each.map(|passage| self.flat.similarity(passage, other));
        cosines.fold(f64::NEG_INFINITY, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use crate::engine::TurnMeta;
    use crate::types::Signals;

    fn turns(levels: &[u8]) -> Turns {
        let mut turns = Turns::default();
        for (at, level) in levels.iter().enumerate() {
            let meta = TurnMeta {
                role: "user".into(),
                speaker: None,
                session: None,
                utc_micros: None,
                ahead: 0,
                archived: false,
                signals: Signals::default(),
                social: false,
            };
            turns.insert(at as u64, meta);
            turns.set_level(at, *level);
        }
        turns
    }

    fn settings() -> Config {
        config::load("default", "").unwrap()
    }

    #[test]
    fn a_window_steps_over_what_nothing_around_has_to_do_with() {
        // 0.7 is 178.5: 178 is a remark, 179 is not, and 0 is not known.
        let mut levels = [230; 40];
        levels[20] = 100;
        levels[21] = 178;
        levels[23] = 179;
        levels[24] = 0;
        let turns = turns(&levels);
        let windows = Windows::new(&turns, &settings());
        assert_eq!(windows.of(22), [18, 19, 22, 23, 24]);
        assert_eq!(windows.before(22), Some(19));
        assert_eq!(windows.of(20), [18, 19, 20, 22, 23], "its own is as any");
        assert_eq!((windows.of(0), windows.before(0)), (vec![0, 1, 2], None));
    }

    #[test]
    fn a_window_reaches_sixteen_places_and_no_further() {
        let mut levels = [230; 60];
        levels[11..=25].fill(100);
        let with = turns(&levels);
        let windows = Windows::new(&with, &settings());
        assert_eq!(windows.of(26), [10, 26, 27, 28], "16 back, and no further");
        assert_eq!(windows.before(26), None, "8 for one turn");
    }

    #[test]
    fn the_bound_lies_under_the_memory_s_own_quartile() {
        // Upper quartile 150 of 255, less 0.15: 111.75.
        let mut levels = [150; 40];
        levels[20] = 112;
        levels[21] = 111;
        let low = turns(&levels);
        assert_eq!(Windows::new(&low, &settings()).of(22), [19, 20, 22, 23, 24]);
        let few = turns(&levels[..29]);
        assert_eq!(Windows::new(&few, &settings()).of(22), [20, 21, 22, 23, 24]);
        let mut off = settings();
        off.retrieval.aside_below = 0.0;
        assert_eq!(Windows::new(&low, &off).of(22), [20, 21, 22, 23, 24]);
    }

    #[test]
    fn the_quartile_follows_what_comes_and_goes() {
        // Places 0 to 39 in order; that at 3 · 39 / 4 = 29 is the quartile.
        let mut of = turns(&[vec![100; 29], vec![200; 11]].concat());
        assert_eq!(of.levels().upper_quartile(), Some(200.0 / 255.0));
        of.remove(&[39]);
        // Now the one at 3 · 38 / 4 = 28.
        assert_eq!(of.levels().upper_quartile(), Some(100.0 / 255.0));
        for id in 0..10 {
            of.remove(&[id]);
        }
        assert_eq!(of.levels().upper_quartile(), None, "29 are left");
    }

    #[test]
    fn a_cosine_is_kept_in_255ths() {
        assert_eq!([-1.0, 0.0, 0.5, 1.0].map(level), [1, 1, 127, 255]);
    }
}
