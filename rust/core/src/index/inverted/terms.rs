//! A query against the postings: the best documents, or the scores of given ones.
//!
//! Documents are visited in id order, all terms at once (MaxScore): a term whose
//! greatest possible part, with those of all lesser terms, cannot bring a document
//! among the best is not walked; documents that other terms bring up are looked up in
//! it. What is skipped could not have been returned, so the result is that of a full
//! evaluation, and each score is summed in the query's order.

use super::{Inverted, Posting};
use crate::index::top::TopK;
use crate::score::lexical;

/// Bounds are sums in another order than scores: far more than that can differ by.
pub(super) const SLACK: f64 = 1.0 + 1e-9;

/// A term of a query.
pub(super) struct Term<'a> {
    pub(super) list: &'a [Posting],
    pub(super) idf: f64,
    pub(super) most_count: u32,
    pub(super) least_length: u32,
}

/// The terms of a query, looked up in an index.
pub struct Terms<'a> {
    pub(super) index: &'a Inverted,
    pub(super) average: f64,
    pub(super) terms: Vec<Term<'a>>,
}

impl Terms<'_> {
    /// Term saturation and length normalisation of one posting.
    pub(super) fn saturation(&self, (document, count): Posting) -> f64 {
        self.saturate(count, self.index.lengths[document as usize])
    }

    /// The most that [`Terms::saturation`] gives for any posting of a term: it grows
    /// with the count and falls with the length.
    pub(super) fn most(&self, term: &Term<'_>) -> f64 {
        self.saturate(term.most_count.max(1), term.least_length)
    }

    fn saturate(&self, count: u32, length: u32) -> f64 {
        lexical::saturation(count, length, self.average)
    }

    /// BM25 of one document.
    pub fn score(&self, id: u64) -> f64 {
        let mut score = 0.0;
        self.each(id, |term, posting| {
            score += term.idf * self.saturation(posting);
        });
        score
    }

    /// BM25 of several documents. Each list is walked once while the ids ascend.
    pub fn scores(&self, ids: &[u64]) -> Vec<f64> {
        let documents: Vec<Option<u32>> = ids.iter().map(|id| self.index.position(*id)).collect();
        let mut scores = vec![0.0; ids.len()];
        for (place, term) in self.terms.iter().enumerate() {
            let mut list = List::of(place, term, 0.0);
            let mut last = 0;
            for (score, document) in scores.iter_mut().zip(&documents) {
                let Some(document) = *document else {
                    continue;
                };
                if document < last {
                    list.at = 0;
                }
                last = document;
                list.seek(document);
                if list.head() == Some(document) {
                    *score += term.idf * self.saturation(term.list[list.at]);
                }
            }
        }
        scores
    }

    /// Share of the terms, weighed by rarity, that one document contains.
    pub fn coverage(&self, id: u64) -> f64 {
        if self.index.position(id).is_none() {
            return 0.0;
        }
        let mut held = 0.0;
        self.each(id, |term, _| held += term.idf);
        let mut all = 0.0;
        for term in &self.terms {
            all += term.idf;
        }
        if all > 0.0 { held / all } else { 0.0 }
    }

    fn each(&self, id: u64, mut found: impl FnMut(&Term<'_>, Posting)) {
        let Some(document) = self.index.position(id) else {
            return;
        };
        for term in &self.terms {
            if let Ok(at) = term.list.binary_search_by_key(&document, |p| p.0) {
                found(term, term.list[at]);
            }
        }
    }

    /// The best `k` documents by the sum of `weigh` over the terms that they contain,
    /// none of which exceeds its term's `bound`. `slack` covers the rounding of sums.
    pub(super) fn best(
        &self,
        k: usize,
        slack: f64,
        weigh: impl Fn(&Term<'_>, Posting) -> f64,
        bound: impl Fn(&Term<'_>) -> f64,
        admit: impl Fn(u64) -> bool,
    ) -> Vec<(u64, f64)> {
        let mut lists: Vec<List<'_>> = self
            .terms
            .iter()
            .enumerate()
            .filter(|(_, t)| !t.list.is_empty())
            .map(|(place, term)| List::of(place, term, bound(term)))
            .collect();
        // The least telling first; of equal ones the longest.
        lists.sort_by(|a, b| {
            (a.bound.total_cmp(&b.bound))
                .then(b.list.len().cmp(&a.list.len()))
                .then(a.place.cmp(&b.place))
        });
        let mut sums = Vec::with_capacity(lists.len());
        let mut sum = 0.0;
        for list in &lists {
            sum += list.bound;
            sums.push(sum);
        }
        let mut top = TopK::new(k);
        let mut parts = vec![0.0; self.terms.len()];
        // Lists before this one bring no document up any more.
        let mut walked = 0;
        loop {
            // Documents come in id order: one that only ties with the least is not kept.
            let least = top.least();
            while walked < lists.len() && sums[walked] * slack <= least {
                walked += 1;
            }
            let Some(document) = lists[walked..].iter().filter_map(List::head).min() else {
                break;
            };
            parts.fill(0.0);
            let mut upper = 0.0;
            for list in &mut lists[walked..] {
                if let Some(posting) = list.take(document) {
                    let part = weigh(&self.terms[list.place], posting);
                    parts[list.place] = part;
                    upper += part;
                }
            }
            // The rest is looked up, the most telling first, while there is hope.
            let mut hopeful = true;
            for (i, list) in lists[..walked].iter_mut().enumerate().rev() {
                if (upper + sums[i]) * slack <= least {
                    hopeful = false;
                    break;
                }
                list.seek(document);
                if let Some(posting) = list.take(document) {
                    let part = weigh(&self.terms[list.place], posting);
                    parts[list.place] = part;
                    upper += part;
                }
            }
            if hopeful {
                let mut score = 0.0;
                for part in &parts {
                    score += part;
                }
                let id = self.index.documents[document as usize];
                if top.keeps(score, id) && admit(id) {
                    top.push(score, id);
                }
            }
        }
        top.into_sorted()
    }
}

/// A term's postings, read from the front.
struct List<'a> {
    place: usize,
    list: &'a [Posting],
    at: usize,
    bound: f64,
}

impl<'a> List<'a> {
    fn of(place: usize, term: &Term<'a>, bound: f64) -> Self {
        Self {
            place,
            list: term.list,
            at: 0,
            bound,
        }
    }

    fn head(&self) -> Option<u32> {
        self.list.get(self.at).map(|p| p.0)
    }

    /// The posting at the front, if it is that document's.
    fn take(&mut self, document: u32) -> Option<Posting> {
        let posting = *self.list.get(self.at)?;
        if posting.0 != document {
            return None;
        }
        self.at += 1;
        Some(posting)
    }

    /// Skips what comes before a document, in steps that double.
    fn seek(&mut self, document: u32) {
        let rest = &self.list[self.at..];
        let mut reach = 1;
        while reach < rest.len() && rest[reach].0 < document {
            reach *= 2;
        }
        let from = reach / 2;
        let to = (reach + 1).min(rest.len());
        let within = rest.get(from..to).unwrap_or(&[]);
        self.at += from + within.partition_point(|p| p.0 < document);
    }
}
