//! The turns that a ranking looks at: the candidates and their neighbours, each once.

use super::Engine;
use super::read::Candidate;
use crate::types::InteractionId;
use std::ops::Range;

/// Candidates and their neighbours in their sessions.
#[derive(Debug, Default)]
pub(super) struct Around {
    /// Ascending; behind them candidates that are no turns of recall.
    ids: Vec<InteractionId>,
    /// Of each candidate: where it and its neighbours stand among `ids`; nowhere for one
    /// that was dropped.
    near: Vec<Range<usize>>,
}

impl Around {
    pub(super) fn ids(&self) -> &[InteractionId] {
        &self.ids
    }

    /// Places of a candidate and its neighbours, in id order.
    pub(super) fn near(&self, candidate: usize) -> Range<usize> {
        self.near[candidate].clone()
    }

    /// The place of a candidate itself; `None` for one that was dropped.
    pub(super) fn own(&self, candidate: usize, id: InteractionId) -> Option<usize> {
        self.near(candidate).find(|place| self.ids[*place] == id)
    }
}

impl Engine {
    /// The candidates that are not dropped, with up to `reach` neighbours on each side.
    pub(super) fn around(&self, pool: &[Candidate], reach: u64) -> Around {
        let reach = usize::try_from(reach).unwrap_or(usize::MAX);
        let kept = |c: &Candidate| c.dropped.is_none();
        let ranges: Vec<Option<Range<usize>>> = pool
            .iter()
            .map(|c| {
                let at = self.turns.position(c.id).filter(|_| kept(c))?;
                Some(self.turns.around(at, reach))
            })
            .collect();
        let mut places: Vec<usize> = ranges.iter().flatten().cloned().flatten().collect();
        places.sort_unstable();
        places.dedup();
        let mut ids: Vec<InteractionId> = places.iter().map(|p| self.turns.id(*p)).collect();
        let near = pool
            .iter()
            .zip(ranges)
            .map(|(c, range)| match range {
                Some(range) => {
                    // Turns side by side stand side by side among the places too.
                    let first = places.partition_point(|p| *p < range.start);
                    first..first + range.len()
                }
                None if kept(c) => {
                    ids.push(c.id);
                    ids.len() - 1..ids.len()
                }
                None => 0..0,
            })
            .collect();
        Around { ids, near }
    }
}
