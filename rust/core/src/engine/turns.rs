//! What recall knows of every turn without the disk, in id order.

use super::TurnMeta;
use super::remarks::Standing;
use super::thread::Levels;
use crate::index::rows;
use crate::types::{InteractionId, Signals};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The turns of a memory. Kept in one row: ids have few gaps, so that a turn is found
/// by its distance from the first, and its neighbours lie beside it.
#[derive(Debug, Default)]
pub(super) struct Turns {
    ids: Vec<InteractionId>,
    metas: Vec<TurnMeta>,
    /// How near each is to those around it; 0 where there is none, or not known.
    nearest: Vec<u8>,
    levels: Levels,
    /// What each is to the talk.
    standings: Vec<Standing>,
    /// How many turns each speaker has.
    speakers: BTreeMap<Arc<str>, u64>,
    /// The last turn in id order that carries a time.
    timed: Option<InteractionId>,
}

impl Turns {
    /// Where a turn is, or where it would be.
    fn find(&self, id: InteractionId) -> Result<usize, usize> {
        let first = self.ids.first().copied().unwrap_or(0);
        let guess = usize::try_from(id.saturating_sub(first)).unwrap_or(usize::MAX);
        if self.ids.get(guess) == Some(&id) {
            return Ok(guess);
        }
        self.ids.binary_search(&id)
    }

    pub(super) fn position(&self, id: InteractionId) -> Option<usize> {
        self.find(id).ok()
    }

    pub(super) fn get(&self, id: &InteractionId) -> Option<&TurnMeta> {
        self.find(*id).ok().map(|at| &self.metas[at])
    }

    /// Notes that a turn left the active memory.
    pub(super) fn set_archived(&mut self, id: InteractionId) {
        if let Ok(at) = self.find(id) {
            self.metas[at].archived = true;
        }
    }

    pub(super) fn insert(&mut self, id: InteractionId, meta: TurnMeta) {
        self.remove(&[id]);
        if let Some(speaker) = &meta.speaker {
            *self.speakers.entry(Arc::clone(speaker)).or_default() += 1;
        }
        if meta.utc_micros.is_some() && self.timed.is_none_or(|t| t < id) {
            self.timed = Some(id);
        }
        let at = self.find(id).unwrap_or_else(|at| at);
        self.ids.insert(at, id);
        self.metas.insert(at, meta);
        self.nearest.insert(at, 0);
        self.standings.insert(at, Standing::default());
    }

    /// Forgets turns, given in id order. Returns the places, among those that are left, before
    /// which some went, each once.
    pub(super) fn remove(&mut self, ids: &[InteractionId]) -> Vec<usize> {
        let gone: Vec<usize> = ids.iter().filter_map(|id| self.position(*id)).collect();
        for at in &gone {
            self.levels.change(self.nearest[*at], 0);
            if let Some(speaker) = &self.metas[*at].speaker
                && let Some(count) = self.speakers.get_mut(speaker)
            {
                *count -= 1;
                if *count == 0 {
                    self.speakers.remove(speaker);
                }
            }
        }
        rows::take_out(&mut self.ids, &gone);
        rows::take_out(&mut self.metas, &gone);
        rows::take_out(&mut self.nearest, &gone);
        rows::take_out(&mut self.standings, &gone);
        if self.timed.is_some_and(|id| self.position(id).is_none()) {
            let last = self.metas.iter().rposition(|m| m.utc_micros.is_some());
            self.timed = last.map(|at| self.ids[at]);
        }
        let mut left: Vec<usize> = gone
            .iter()
            .zip(0..)
            .map(|(at, before)| at - before)
            .collect();
        left.dedup();
        left
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// How many there are from the first id up to, not including, the second.
    pub(super) fn count(&self, first: InteractionId, end: InteractionId) -> u64 {
        let place = |id| self.find(id).unwrap_or_else(|at| at);
        (place(end) - place(first)) as u64
    }

    pub(super) fn keys(&self) -> impl DoubleEndedIterator<Item = &InteractionId> {
        self.ids.iter()
    }

    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &TurnMeta> {
        self.metas.iter()
    }

    /// Those before an id, the last one first.
    pub(super) fn before(
        &self,
        id: InteractionId,
    ) -> impl Iterator<Item = (&InteractionId, &TurnMeta)> {
        let end = self.find(id).unwrap_or_else(|at| at);
        self.ids[..end].iter().zip(&self.metas[..end]).rev()
    }

    /// Speakers, each once, ordered.
    pub(super) fn speakers(&self) -> impl Iterator<Item = &Arc<str>> {
        self.speakers.keys()
    }

    /// The last turn in id order that carries a time, that time, and its clock.
    pub(super) fn newest_dated(&self) -> Option<(InteractionId, (i64, i32))> {
        let id = self.timed?;
        let meta = self.get(&id)?;
        Some((id, (meta.utc_micros?, meta.ahead)))
    }

    /// Places of a turn and of up to `reach` neighbours on each side in its session.
    pub(super) fn around(&self, at: usize, reach: usize) -> Range<usize> {
        let before = self.back_from(at).take(reach).count();
        at - before..at + 1 + self.on_from(at).take(reach).count()
    }

    /// What is known of the turn at a place.
    pub(super) fn meta(&self, at: usize) -> &TurnMeta {
        &self.metas[at]
    }

    /// The id at a place.
    pub(super) fn id(&self, at: usize) -> InteractionId {
        self.ids[at]
    }

    /// How near the turn at a place is to those around it.
    pub(super) fn level(&self, at: usize) -> u8 {
        self.nearest[at]
    }

    pub(super) fn set_level(&mut self, at: usize, level: u8) {
        let before = std::mem::replace(&mut self.nearest[at], level);
        self.levels.change(before, level);
    }

    pub(super) fn levels(&self) -> &Levels {
        &self.levels
    }

    /// What the turn at a place is to the talk.
    pub(super) fn standing(&self, at: usize) -> Standing {
        self.standings[at]
    }

    pub(super) fn set_standing(&mut self, at: usize, standing: Standing) {
        self.standings[at] = standing;
    }

    /// Whether a turn is a remark that the talk is not about.
    pub(super) fn is_remark(&self, id: InteractionId) -> bool {
        self.find(id).is_ok_and(|at| self.standings[at].remark)
    }

    /// Whether the turn at a place comes right behind what somebody else asks.
    pub(super) fn replies(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).map(|before| &self.metas[before]) else {
            return false;
        };
        let own = &self.metas[at];
        before.signals.has(Signals::QUERY_LIKE)
            && (&before.role, &before.speaker) != (&own.role, &own.speaker)
    }

    /// Places of the turns before one in its session, the nearest first.
    pub(super) fn back_from(&self, at: usize) -> impl Iterator<Item = usize> {
        let session = &self.metas[at].session;
        let same = move |place: &usize| self.metas[*place].session == *session;
        (0..at).rev().take_while(same)
    }

    /// Places of the turns after one in its session, the nearest first.
    pub(super) fn on_from(&self, at: usize) -> impl Iterator<Item = usize> {
        let session = &self.metas[at].session;
        let same = move |place: &usize| self.metas[*place].session == *session;
        (at + 1..self.metas.len()).take_while(same)
    }

    /// The ids at some places.
    pub(super) fn ids(&self, places: Range<usize>) -> &[InteractionId] {
        &self.ids[places]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Signals;

    fn meta(speaker: &str, session: &str, utc_micros: Option<i64>) -> TurnMeta {
        TurnMeta {
            role: "user".into(),
            speaker: Some(speaker.into()),
            session: Some(session.into()),
            utc_micros,
            ahead: 0,
            archived: false,
            signals: Signals::default(),
            social: false,
        }
    }

    #[test]
    fn what_is_kept_beside_follows_the_turns() {
        let mut turns = Turns::default();
        turns.insert(3, meta("ana", "a", Some(30)));
        turns.insert(4, meta("ben", "a", Some(40)));
        turns.insert(7, meta("ana", "a", None));
        turns.insert(8, meta("ana", "b", None));
        assert_eq!(turns.newest_dated().map(|d| d.1.0), Some(40));
        assert_eq!((turns.count(3, 8), turns.count(5, 7)), (3, 0));
        assert_eq!(turns.around(1, 2), 0..3);
        assert_eq!(turns.ids(turns.around(3, 2)), [8]);
        turns.remove(&[4]);
        assert_eq!(turns.newest_dated().map(|d| d.1.0), Some(30));
        let names: Vec<&str> = turns.speakers().map(|s| &**s).collect();
        assert_eq!(names, ["ana"]);
        assert!(turns.get(&4).is_none());
        assert_eq!(turns.position(7), Some(1));
        turns.remove(&[3]);
        assert_eq!(turns.newest_dated(), None);
    }
}
