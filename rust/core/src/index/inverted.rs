//! Inverted index over terms: the paper's overlap score, and BM25.

mod terms;

use crate::index::rows;
use crate::score::lexical;

use terms::Term;
pub use terms::Terms;

/// Terms to numbers. Its order is never looked at.
#[allow(clippy::disallowed_types)]
type TermMap = std::collections::HashMap<String, u32, foldhash::fast::RandomState>;

/// Documents that contain a term, with how often; ascending.
#[derive(Debug, Clone, Default)]
struct Postings {
    documents: Vec<Posting>,
    /// The most that any of them ever had.
    most_count: u32,
    /// Length of the shortest that was ever among them.
    least_length: u32,
}

type Posting = (u32, u32);

/// Postings of a growing set of documents that come in id order.
#[derive(Debug, Clone, Default)]
pub struct Inverted {
    terms: TermMap,
    postings: Vec<Postings>,
    documents: Vec<u64>,
    lengths: Vec<u32>,
    total_length: u64,
}

impl Inverted {
    /// Indexes one document; repetitions count.
    pub fn push<'a>(&mut self, id: u64, terms: impl IntoIterator<Item = &'a str>) {
        let document = u32::try_from(self.documents.len()).expect("fewer than 2^32 turns");
        let mut length = 0u32;
        let mut touched: Vec<u32> = Vec::new();
        for term in terms {
            length += 1;
            let number = match self.terms.get(term) {
                Some(n) => *n,
                None => {
                    let n = u32::try_from(self.postings.len()).expect("fewer than 2^32 terms");
                    self.terms.insert(term.to_owned(), n);
                    self.postings.push(Postings::default());
                    n
                }
            };
            let list = &mut self.postings[number as usize].documents;
            match list.last_mut() {
                Some((d, count)) if *d == document => *count += 1,
                _ => {
                    list.push((document, 1));
                    touched.push(number);
                }
            }
        }
        for number in touched {
            let list = &mut self.postings[number as usize];
            let count = list.documents.last().map_or(0, |p| p.1);
            list.most_count = list.most_count.max(count);
            list.least_length = match list.documents.len() {
                1 => length,
                _ => list.least_length.min(length),
            };
        }
        self.documents.push(id);
        self.lengths.push(length);
        self.total_length += u64::from(length);
    }

    /// Forgets documents, given in increasing order, and the terms that only they contain: no
    /// text of theirs may stay in memory. Linear in the index, however many go: deleting is
    /// rare, searching is not.
    pub fn remove(&mut self, ids: &[u64]) {
        let places = ids.iter().filter_map(|id| self.position(*id));
        let gone: Vec<usize> = places.map(|at| at as usize).collect();
        let Some(first) = gone.first() else {
            return;
        };
        let left = rows::left(self.documents.len(), &gone);
        self.total_length -= { gone.iter() }
            .map(|at| u64::from(self.lengths[*at]))
            .sum::<u64>();
        rows::take_out(&mut self.documents, &gone);
        rows::take_out(&mut self.lengths, &gone);
        for list in &mut self.postings {
            let from = list.documents.partition_point(|p| (p.0 as usize) < *first);
            let stays = |p: &mut Posting| {
                let number = left[p.0 as usize];
                p.0 = number.unwrap_or(p.0);
                number.is_some()
            };
            list.documents
                .extract_if(from.., |p| !stays(p))
                .for_each(drop);
        }
        let emptied = { self.postings.iter().enumerate() }
            .filter_map(|(at, list)| list.documents.is_empty().then_some(at));
        let emptied: Vec<usize> = emptied.collect();
        let left = rows::left(self.postings.len(), &emptied);
        rows::take_out(&mut self.postings, &emptied);
        self.terms.retain(|_, number| {
            let now = left[*number as usize];
            *number = now.unwrap_or(*number);
            now.is_some()
        });
    }

    /// |Q ∩ C| / |Q| (Table 4): the best `k` documents that share a term.
    pub fn overlap(
        &self,
        query: &[String],
        k: usize,
        admit: impl Fn(u64) -> bool,
    ) -> Vec<(u64, f64)> {
        let terms = self.terms(query);
        let count = terms.terms.len();
        let shared = terms.best(k, 1.0, |_, _| 1.0, |_| 1.0, admit);
        #[allow(clippy::cast_precision_loss)]
        let share = |(id, n): (u64, f64)| (id, n / count as f64);
        shared.into_iter().map(share).collect()
    }

    /// BM25 (k1 = 1.2, b = 0.75, idf = ln(1 + (N - n + 0.5) / (n + 0.5))).
    pub fn bm25(&self, query: &[String], k: usize, admit: impl Fn(u64) -> bool) -> Vec<(u64, f64)> {
        let terms = self.terms(query);
        terms.best(
            k,
            terms::SLACK,
            |term, posting| term.idf * terms.saturation(posting),
            |term| term.idf * terms.most(term),
            admit,
        )
    }

    /// BM25 of one document.
    pub fn bm25_of(&self, query: &[String], id: u64) -> f64 {
        self.terms(query).score(id)
    }

    /// A query's terms looked up, once each, in their order: sums run in that order.
    pub fn terms(&self, query: &[String]) -> Terms<'_> {
        let mut seen: Vec<&str> = Vec::with_capacity(query.len());
        let mut terms = Vec::with_capacity(query.len());
        for name in query {
            if seen.contains(&name.as_str()) {
                continue;
            }
            seen.push(name);
            let list = self.terms.get(name).map(|n| &self.postings[*n as usize]);
            terms.push(Term {
                list: list.map_or(&[], |l| l.documents.as_slice()),
                idf: self.idf(name),
                most_count: list.map_or(0, |l| l.most_count),
                least_length: list.map_or(0, |l| l.least_length),
            });
        }
        Terms {
            index: self,
            average: lexical::average_length(self.total_length, self.len()),
            terms,
        }
    }

    /// Ids have few gaps: the place of one is mostly its distance from the first.
    fn position(&self, id: u64) -> Option<u32> {
        let first = self.documents.first()?;
        let guess = usize::try_from(id.checked_sub(*first)?).ok()?;
        let at = match self.documents.get(guess) {
            Some(there) if *there == id => guess,
            _ => self.documents.binary_search(&id).ok()?,
        };
        u32::try_from(at).ok()
    }

    /// Inverse document frequency; high for a term that nothing contains.
    pub fn idf(&self, term: &str) -> f64 {
        let list = self.terms.get(term);
        let n = list.map_or(0, |n| self.postings[*n as usize].documents.len());
        lexical::idf(n as u64, self.len())
    }

    /// Documents indexed.
    pub fn len(&self) -> u64 {
        self.documents.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::best_first;
    use proptest::prelude::*;

    fn index(documents: &[&str]) -> Inverted {
        let mut index = Inverted::default();
        for (i, d) in documents.iter().enumerate() {
            index.push(i as u64 * 10, d.split(' '));
        }
        index
    }

    fn terms(q: &str) -> Vec<String> {
        q.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn overlap_is_the_share_of_the_question() {
        let i = index(&["port 8080", "port 3000 open", "cat"]);
        let hits = i.overlap(&terms("port 3000 port now"), 5, |_| true);
        assert_eq!(hits[0].0, 10);
        assert!((hits[0].1 - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(hits.len(), 2);
    }

    #[test]
    fn bm25_matches_a_hand_worked_value() {
        let i = index(&["a b", "a", "c c c"]);
        let hits = i.bm25(&terms("b"), 5, |_| true);
        // N = 3, n = 1: idf = ln(1 + 2.5 / 1.5); average length 2, this one 2.
        let expected = libm::log(1.0 + 2.5 / 1.5) * 2.2 / (1.0 + 1.2);
        assert!((hits[0].1 - expected).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_best_are_those_of_a_full_evaluation(
            documents in prop::collection::vec(prop::collection::vec(0u8..12, 1..9), 1..120),
            query in prop::collection::vec(0u8..14, 1..8),
            gone in prop::collection::btree_set(0usize..120, 0..60),
            k in 1usize..30,
        ) {
            let names: Vec<String> = (0..14).map(|n| format!("t{n}")).collect();
            let mut i = Inverted::default();
            for (at, d) in documents.iter().enumerate() {
                // Low numbers are frequent, as words are.
                i.push(at as u64 * 3, d.iter().map(|n| names[usize::from(n / 3 * (n % 4))].as_str()));
            }
            let gone: Vec<u64> = gone.into_iter().map(|at| at as u64 * 3).collect();
            i.remove(&gone);
            let mut afresh = Inverted::default();
            for (at, d) in documents.iter().enumerate().filter(|(at, _)| !gone.contains(&(*at as u64 * 3))) {
                afresh.push(at as u64 * 3, d.iter().map(|n| names[usize::from(n / 3 * (n % 4))].as_str()));
            }
            prop_assert_eq!(i.postings.len(), afresh.postings.len());
            prop_assert_eq!(i.terms.len(), afresh.terms.len());
            let q: Vec<String> = query.iter().map(|n| names[usize::from(*n)].clone()).collect();
            let naive = |score: &dyn Fn(u64) -> f64| {
                let mut all: Vec<(u64, f64)> = i.documents.iter()
                    .map(|id| (*id, score(*id))).filter(|h| h.1 > 0.0 && h.0.is_multiple_of(2)).collect();
                all.sort_by(|a, b| best_first((a.1, a.0), (b.1, b.0)));
                all.truncate(k);
                all
            };
            let even = |id: u64| id.is_multiple_of(2);
            prop_assert_eq!(i.bm25(&q, k, even), afresh.bm25(&q, k, even));
            prop_assert_eq!(i.bm25(&q, k, even), naive(&|id| i.bm25_of(&q, id)));
            let terms = i.terms(&q);
            let there_and_back: Vec<u64> =
                i.documents.iter().chain(i.documents.iter().rev()).copied().chain([7]).collect();
            let each: Vec<f64> = there_and_back.iter().map(|id| terms.score(*id)).collect();
            prop_assert_eq!(terms.scores(&there_and_back), each);
            let overlap = |id: u64| {
                let position = i.position(id).expect("indexed");
                let held = terms.terms.iter().filter(|t| t.list.iter().any(|p| p.0 == position)).count();
                held as f64 / terms.terms.len() as f64
            };
            prop_assert_eq!(i.overlap(&q, k, even), naive(&overlap));
        }
    }

    #[test]
    fn a_removed_document_leaves_no_trace() {
        let mut i = index(&["a secret", "a"]);
        i.remove(&[0]);
        assert!(i.bm25(&terms("secret"), 5, |_| true).is_empty());
        assert!(!i.terms.contains_key("secret"));
        let only = index(&["x", "a"]);
        let mut only = only;
        only.remove(&[0]);
        assert_eq!(
            i.bm25(&terms("a"), 5, |_| true)[0].1,
            only.bm25(&terms("a"), 5, |_| true)[0].1
        );
    }
}
