//! The turns that a ranking looks at: the candidates and those in their windows, each once.

use super::read::Candidate;
use super::thread::Windows;
use crate::types::InteractionId;

/// Candidates with their windows.
#[derive(Debug)]
pub(super) struct Around {
    /// Ascending.
    ids: Vec<InteractionId>,
    /// Of each candidate; none for one that was dropped.
    windows: Vec<Option<Window>>,
}

/// A candidate and its window, as places among the turns around.
#[derive(Debug)]
pub(super) struct Window {
    /// The candidate itself.
    pub(super) own: usize,
    /// It and its neighbours, in id order.
    pub(super) near: Vec<usize>,
}

impl Window {
    /// The turn before.
    pub(super) fn before(&self) -> Option<usize> {
        self.near.iter().rev().copied().find(|p| *p < self.own)
    }

    /// The neighbours alone.
    pub(super) fn beside(&self) -> impl Iterator<Item = usize> {
        self.near.iter().copied().filter(|p| *p != self.own)
    }
}

impl Around {
    /// The candidates that are not dropped, with their windows.
    pub(super) fn new(pool: &[Candidate], windows: &Windows<'_>) -> Self {
        let near: Vec<Option<Vec<InteractionId>>> = pool
            .iter()
            .map(|c| c.dropped.is_none().then(|| windows.of(c.id)))
            .collect();
        let mut ids: Vec<InteractionId> = near.iter().flatten().flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let place = |id: InteractionId| ids.partition_point(|other| *other < id);
        let windows = pool
            .iter()
            .zip(near)
            .map(|(c, near)| {
                near.map(|near| Window {
                    own: place(c.id),
                    near: near.into_iter().map(place).collect(),
                })
            })
            .collect();
        Self { ids, windows }
    }

    pub(super) fn ids(&self) -> &[InteractionId] {
        &self.ids
    }

    /// The window of a candidate; `None` for one that was dropped.
    pub(super) fn window(&self, candidate: usize) -> Option<&Window> {
        self.windows[candidate].as_ref()
    }
}
