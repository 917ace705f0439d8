//! Inverted index over terms: the paper's overlap score, and BM25.

use crate::index::flat::TopK;
use crate::score::lexical;

/// Terms to numbers. Its order is never looked at.
#[allow(clippy::disallowed_types)]
type TermMap = std::collections::HashMap<String, u32>;

/// Postings of a growing set of documents that come in id order.
#[derive(Debug, Clone, Default)]
pub struct Inverted {
    terms: TermMap,
    postings: Vec<Vec<(u32, u32)>>,
    documents: Vec<u64>,
    lengths: Vec<u32>,
    total_length: u64,
    live: u64,
}

impl Inverted {
    /// Indexes one document; repetitions count.
    pub fn push<'a>(&mut self, id: u64, terms: impl IntoIterator<Item = &'a str>) {
        let document = u32::try_from(self.documents.len()).expect("fewer than 2^32 turns");
        let mut length = 0u32;
        for term in terms {
            length += 1;
            let number = match self.terms.get(term) {
                Some(n) => *n,
                None => {
                    let n = u32::try_from(self.postings.len()).expect("fewer than 2^32 terms");
                    self.terms.insert(term.to_owned(), n);
                    self.postings.push(Vec::new());
                    n
                }
            };
            let list = &mut self.postings[number as usize];
            match list.last_mut() {
                Some((d, count)) if *d == document => *count += 1,
                _ => list.push((document, 1)),
            }
        }
        self.documents.push(id);
        self.lengths.push(length);
        self.total_length += u64::from(length);
        self.live += 1;
    }

    /// Forgets one document. Linear in the index: deleting is rare, searching is not.
    pub fn remove(&mut self, id: u64) {
        let Ok(document) = self.documents.binary_search(&id) else {
            return;
        };
        let number = u32::try_from(document).expect("indexed as u32");
        for list in &mut self.postings {
            if let Ok(at) = list.binary_search_by_key(&number, |p| p.0) {
                list.remove(at);
            }
        }
        // A term that nothing contains any more must not stay in memory as text.
        let postings = &self.postings;
        self.terms.retain(|_, n| !postings[*n as usize].is_empty());
        self.total_length -= u64::from(self.lengths[document]);
        self.lengths[document] = 0;
        self.live -= 1;
    }

    fn list(&self, term: &str) -> &[(u32, u32)] {
        self.terms
            .get(term)
            .map_or(&[], |n| self.postings[*n as usize].as_slice())
    }

    /// |Q ∩ C| / |Q| (Table 4): the best `k` documents that share a term.
    pub fn overlap(
        &self,
        query: &[String],
        k: usize,
        admit: impl Fn(u64) -> bool,
    ) -> Vec<(u64, f64)> {
        let distinct = distinct(query);
        let mut counts = vec![0u32; self.documents.len()];
        let mut touched = Vec::new();
        for term in &distinct {
            for (d, _) in self.list(term) {
                if counts[*d as usize] == 0 {
                    touched.push(*d);
                }
                counts[*d as usize] += 1;
            }
        }
        let mut top = TopK::new(k);
        for d in touched {
            let id = self.documents[d as usize];
            if admit(id) {
                top.push(lexical::overlap(counts[d as usize], distinct.len()), id);
            }
        }
        top.into_sorted()
    }

    /// BM25 (k1 = 1.2, b = 0.75, idf = ln(1 + (N - n + 0.5) / (n + 0.5))).
    pub fn bm25(&self, query: &[String], k: usize, admit: impl Fn(u64) -> bool) -> Vec<(u64, f64)> {
        if self.live == 0 {
            return Vec::new();
        }
        let mut scores = vec![0.0f64; self.documents.len()];
        let mut touched = Vec::new();
        for term in distinct(query) {
            let idf = self.idf(term);
            for (d, count) in self.list(term) {
                let at = *d as usize;
                if scores[at] == 0.0 {
                    touched.push(*d);
                }
                scores[at] += idf * self.saturation(*count, *d);
            }
        }
        let mut top = TopK::new(k);
        for d in touched {
            let id = self.documents[d as usize];
            if admit(id) {
                top.push(scores[d as usize], id);
            }
        }
        top.into_sorted()
    }

    /// BM25 of one document.
    pub fn bm25_of(&self, query: &[String], id: u64) -> f64 {
        let Some(document) = self.position(id) else {
            return 0.0;
        };
        let mut sum = 0.0;
        for term in distinct(query) {
            let list = self.list(term);
            if let Ok(at) = list.binary_search_by_key(&document, |p| p.0) {
                sum += self.idf(term) * self.saturation(list[at].1, document);
            }
        }
        sum
    }

    /// Share of the query's terms, weighed by rarity, that one document contains.
    pub fn coverage(&self, query: &[String], id: u64) -> f64 {
        let Some(document) = self.position(id) else {
            return 0.0;
        };
        let (mut held, mut all) = (0.0, 0.0);
        for term in distinct(query) {
            let idf = self.idf(term);
            all += idf;
            if self
                .list(term)
                .binary_search_by_key(&document, |p| p.0)
                .is_ok()
            {
                held += idf;
            }
        }
        if all > 0.0 { held / all } else { 0.0 }
    }

    fn position(&self, id: u64) -> Option<u32> {
        self.documents
            .binary_search(&id)
            .ok()
            .and_then(|at| u32::try_from(at).ok())
    }

    /// Term saturation and length normalisation of one posting.
    fn saturation(&self, count: u32, document: u32) -> f64 {
        let average = lexical::average_length(self.total_length, self.live);
        lexical::saturation(count, self.lengths[document as usize], average)
    }

    /// Inverse document frequency; high for a term that nothing contains.
    pub fn idf(&self, term: &str) -> f64 {
        lexical::idf(self.list(term).len() as u64, self.live)
    }

    /// Documents indexed.
    pub fn len(&self) -> u64 {
        self.live
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }
}

/// The query's terms once each, in their order: sums run in that order.
fn distinct(query: &[String]) -> Vec<&str> {
    let mut seen = Vec::with_capacity(query.len());
    for term in query {
        if !seen.contains(&term.as_str()) {
            seen.push(term.as_str());
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_removed_document_leaves_no_trace() {
        let mut i = index(&["a secret", "a"]);
        i.remove(0);
        assert!(i.bm25(&terms("secret"), 5, |_| true).is_empty());
        assert!(!i.terms.contains_key("secret"));
        let only = index(&["x", "a"]);
        let mut only = only;
        only.remove(0);
        assert_eq!(
            i.bm25(&terms("a"), 5, |_| true)[0].1,
            only.bm25(&terms("a"), 5, |_| true)[0].1
        );
    }
}
