//! What a turn that no longer stands would be worth, and whose that is: the turn that took
//! over what it said answers what it answered, whatever words it uses.

use super::Engine;
use super::read::Candidate;
use super::terms::Term;
use crate::types::{InteractionId, Validity};

/// What a candidate would score, and how sure it would be, if it stood.
#[derive(Clone, Copy)]
struct Worth {
    score: f64,
    confidence: f64,
}

impl Engine {
    /// Gives those that stand what candidates which they replaced would score.
    ///
    /// Lineage knows of some that they were replaced, and as a whole: what was replaced in part
    /// still answers for the rest, and passes nothing on. Of others `corrected` has the places,
    /// with that of the correction. Older ones come first, so that the last of a chain
    /// inherits from all of it.
    pub(super) fn inherit(
        &self,
        pool: &mut [Candidate],
        corrected: &[(usize, usize)],
        weight: f64,
    ) {
        if weight == 0.0 || corrected.is_empty() && !pool.iter().any(is_stale) {
            return;
        }
        let mut left = self.left(pool);
        left.extend(corrected.iter().filter(|(_, heir)| !is_stale(&pool[*heir])));
        left.sort_by_key(|(older, heir)| (pool[*older].id, *older, pool[*heir].id, *heir));
        let mut worth: Vec<Worth> = pool.iter().map(worth_of).collect();
        for (older, heir) in left {
            let (own, other) = (worth[heir], worth[older]);
            worth[heir].score = own.score.max(other.score);
            worth[heir].confidence = own.confidence.max(other.confidence);
        }
        for (c, worth) in pool.iter_mut().zip(worth) {
            let more = worth.score - c.score;
            if c.dropped.is_none() && c.terms[Term::Outdated] >= 0.0 && !is_stale(c) && more > 0.0 {
                c.terms[Term::Inherited] = weight * more;
                c.score = c.terms.sum();
                c.confidence = c.confidence.max(worth.confidence);
            }
        }
    }

    /// Places of candidates that were replaced as a whole, by lineage, and of their heirs.
    fn left(&self, pool: &[Candidate]) -> Vec<(usize, usize)> {
        let kept = { 0..pool.len() }.filter(|i| pool[*i].dropped.is_none());
        let mut by_id: Vec<(InteractionId, usize)> = kept.map(|i| (pool[i].id, i)).collect();
        by_id.sort_unstable();
        let whole = |id: InteractionId| self.lineage.validity(id) != Validity::Current;
        let mut found = Vec::new();
        for (id, at) in &by_id {
            if !is_stale(&pool[*at]) || !whole(*id) {
                continue;
            }
            let edges = self.lineage.newer(*id).iter();
            for edge in edges.filter(|e| e.relation.suppresses().is_some()) {
                let first = by_id.partition_point(|(id, _)| *id < edge.newer);
                let heirs = by_id[first..]
                    .iter()
                    .take_while(|(id, _)| *id == edge.newer);
                found.extend(heirs.map(|(_, heir)| (*at, *heir)));
            }
        }
        found
    }
}

fn is_stale(c: &Candidate) -> bool {
    c.terms[Term::Stale] < 0.0
}

fn worth_of(c: &Candidate) -> Worth {
    Worth {
        score: c.score - c.terms[Term::Stale] - c.terms[Term::Outdated],
        confidence: c.confidence * if is_stale(c) { 2.0 } else { 1.0 },
    }
}
