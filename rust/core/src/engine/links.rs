//! Links between notes, looked up from either end.

use crate::order::best_first;
use crate::policy::rpe::Link;
use crate::types::InteractionId;
use std::collections::{BTreeMap, BTreeSet};

/// The links of a memory.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Cosine by newer and older note.
    cosines: BTreeMap<(InteractionId, InteractionId), f64>,
    /// Older and newer note.
    back: BTreeSet<(InteractionId, InteractionId)>,
}

impl Links {
    pub(super) fn insert(&mut self, link: &Link) {
        self.cosines.insert((link.newer, link.older), link.cosine);
        self.back.insert((link.older, link.newer));
    }

    /// Forgets the links of a note.
    pub(super) fn remove(&mut self, id: InteractionId) {
        for older in self.older_than(id).collect::<Vec<_>>() {
            self.cosines.remove(&(id, older));
            self.back.remove(&(older, id));
        }
        for newer in self.newer_than(id).collect::<Vec<_>>() {
            self.cosines.remove(&(newer, id));
            self.back.remove(&(id, newer));
        }
    }

    /// Notes that a note was linked with when it came, ascending.
    fn older_than(&self, id: InteractionId) -> impl Iterator<Item = InteractionId> {
        let own = self.cosines.range((id, 0)..=(id, InteractionId::MAX));
        own.map(|((_, older), _)| *older)
    }

    /// Notes that were linked with a note when they came, ascending.
    pub(super) fn newer_than(&self, id: InteractionId) -> impl Iterator<Item = InteractionId> {
        let own = self.back.range((id, 0)..=(id, InteractionId::MAX));
        own.map(|(_, newer)| *newer)
    }

    /// Notes linked with one, nearest first, equal ones by id.
    pub(super) fn of(&self, id: InteractionId) -> Vec<(InteractionId, f64)> {
        let older = self.older_than(id).map(|o| (o, self.cosines[&(id, o)]));
        let newer = self.newer_than(id).map(|n| (n, self.cosines[&(n, id)]));
        let mut found: Vec<(InteractionId, f64)> = older.chain(newer).collect();
        found.sort_by(|a, b| best_first((a.1, a.0), (b.1, b.0)));
        found
    }

    pub(super) fn len(&self) -> usize {
        self.cosines.len()
    }

    /// Every link, by newer and older note.
    pub(super) fn iter(&self) -> impl Iterator<Item = Link> {
        self.cosines.iter().map(|((newer, older), cosine)| Link {
            newer: *newer,
            older: *older,
            cosine: *cosine,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_from_both_ends() {
        let mut links = Links::default();
        for (newer, older, cosine) in [(5, 2, 0.7), (5, 3, 0.9), (7, 5, 0.7), (7, 2, 0.8)] {
            links.insert(&Link {
                newer,
                older,
                cosine,
            });
        }
        assert_eq!(links.of(5), [(3, 0.9), (2, 0.7), (7, 0.7)]);
        assert_eq!(links.newer_than(2).collect::<Vec<_>>(), [5, 7]);
        links.remove(5);
        let left: Vec<_> = links.iter().map(|l| (l.newer, l.older)).collect();
        assert_eq!((left, links.len()), (vec![(7, 2)], 1));
        assert_eq!(links.of(5), []);
    }
}
