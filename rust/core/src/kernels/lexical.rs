//! Overlap and BM25 over an inverted index in arrays.

use super::{refuse, same_length};
use crate::error::Result;
use crate::index::top::TopK;
use crate::score::lexical;

/// An inverted index as compressed rows: the documents that contain term `t` are
/// `documents[offsets[t]..offsets[t + 1]]`, each with its count of occurrences.
#[derive(Debug, Clone, Copy)]
pub struct Postings<'a> {
    offsets: &'a [i64],
    documents: &'a [u32],
    count: usize,
}

impl<'a> Postings<'a> {
    /// An index over `count` documents.
    ///
    /// # Errors
    /// Where the offsets do not start at 0, fall, or do not end at the number of postings.
    pub fn new(offsets: &'a [i64], documents: &'a [u32], count: usize) -> Result<Self> {
        let rising = offsets.windows(2).all(|w| w[0] <= w[1]);
        let ends = offsets.first() == Some(&0)
            && offsets.last().and_then(|o| usize::try_from(*o).ok()) == Some(documents.len());
        if !rising || !ends {
            return refuse(format!(
                "offsets must rise from 0 to the {} postings there are",
                documents.len()
            ));
        }
        Ok(Self {
            offsets,
            documents,
            count,
        })
    }

    /// Where the postings of a term lie; nowhere for a term that is not there.
    fn range(&self, term: u32) -> std::ops::Range<usize> {
        let at = term as usize;
        let bound = |at: usize| {
            self.offsets
                .get(at)
                .and_then(|o| usize::try_from(*o).ok())
                .unwrap_or(self.documents.len())
        };
        bound(at)..bound(at + 1)
    }

    /// Where the postings of each term lie, each once.
    fn ranges(&self, query: &[u32]) -> Result<Vec<std::ops::Range<usize>>> {
        let ranges = distinct(query).into_iter().map(|term| {
            let range = self.range(term);
            let documents = &self.documents[range.clone()];
            if !documents.windows(2).all(|w| w[0] < w[1]) {
                return refuse(format!(
                    "the documents of term {term} must rise, each of them there once"
                ));
            }
            match documents.last() {
                Some(last) if *last as usize >= self.count => refuse(format!(
                    "a posting names document {last}; there are {}, counted from 0",
                    self.count
                )),
                _ => Ok(range),
            }
        });
        ranges.collect()
    }

    /// How many documents there are up to the last in these ranges.
    fn reach(&self, ranges: &[std::ops::Range<usize>]) -> usize {
        let last = ranges
            .iter()
            .filter_map(|r| self.documents[r.clone()].last());
        last.max().map_or(0, |d| *d as usize + 1)
    }
}

/// |Q and C| / |Q| (Table 4): the best `k` documents that share a term, ties by number.
///
/// # Errors
/// Where the documents of a term asked for do not rise, or name one that is not there.
pub fn overlap(postings: Postings<'_>, query: &[u32], k: usize) -> Result<Vec<(u64, f64)>> {
    let ranges = postings.ranges(query)?;
    // Not as long as the caller says that the index is: that may be any number.
    let mut counts = vec![0u32; postings.reach(&ranges)];
    let mut touched = Vec::new();
    for range in &ranges {
        for d in &postings.documents[range.clone()] {
            let count = &mut counts[*d as usize];
            if *count == 0 {
                touched.push(*d);
            }
            *count += 1;
        }
    }
    let mut top = TopK::new(k);
    for d in touched {
        let share = lexical::overlap(counts[d as usize], ranges.len());
        top.push(share, u64::from(d));
    }
    Ok(top.into_sorted())
}

/// BM25 (k1 = 1.2, b = 0.75): the best `k` documents, ties by number.
///
/// # Errors
/// Where there is no count for each posting or no length for each document, a count is 0,
/// or the documents of a term asked for do not rise or name one that is not there.
pub fn bm25(
    postings: Postings<'_>,
    counts: &[u32],
    lengths: &[u32],
    query: &[u32],
    k: usize,
) -> Result<Vec<(u64, f64)>> {
    same_length(
        "counts",
        counts.len(),
        "documents",
        postings.documents.len(),
    )?;
    same_length("lengths", lengths.len(), "the index", postings.count)?;
    let live = lengths.len() as u64;
    let total: u64 = lengths.iter().map(|l| u64::from(*l)).sum();
    let average = lexical::average_length(total, live);
    let mut scores = vec![0.0f64; postings.count];
    let mut touched = Vec::new();
    for range in postings.ranges(query)? {
        let idf = lexical::idf(range.len() as u64, live);
        for (d, count) in postings.documents[range.clone()].iter().zip(&counts[range]) {
            let score = &mut scores[*d as usize];
            if *count == 0 {
                return refuse(format!(
                    "a count of document {d} is 0; leave its posting out"
                ));
            }
            if *score == 0.0 {
                touched.push(*d);
            }
            *score += idf * lexical::saturation(*count, lengths[*d as usize], average);
        }
    }
    let mut top = TopK::new(k);
    for d in touched {
        top.push(scores[d as usize], u64::from(d));
    }
    Ok(top.into_sorted())
}

/// The query's terms once each, in their order: sums run in that order.
fn distinct(query: &[u32]) -> Vec<u32> {
    let mut seen = Vec::with_capacity(query.len());
    for term in query {
        if !seen.contains(term) {
            seen.push(*term);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Inverted;

    /// Documents as lists of term numbers, as an index and as arrays.
    fn both(documents: &[&[u32]]) -> (Inverted, Vec<i64>, Vec<u32>, Vec<u32>, Vec<u32>) {
        let mut index = Inverted::default();
        let terms = documents
            .iter()
            .flat_map(|d| d.iter())
            .max()
            .map_or(0, |t| t + 1);
        let (mut offsets, mut rows, mut counts) = (vec![0], Vec::new(), Vec::new());
        for term in 0..terms {
            for (d, words) in (0u32..).zip(documents) {
                let n = words.iter().filter(|w| **w == term).count();
                if n > 0 {
                    rows.push(d);
                    counts.push(u32::try_from(n).unwrap());
                }
            }
            offsets.push(rows.len() as i64);
        }
        for (id, words) in (0u64..).zip(documents) {
            let names: Vec<String> = words.iter().map(u32::to_string).collect();
            index.push(id, names.iter().map(String::as_str));
        }
        let lengths = documents
            .iter()
            .map(|d| u32::try_from(d.len()).unwrap())
            .collect();
        (index, offsets, rows, counts, lengths)
    }

    #[test]
    fn arrays_and_index_give_the_same_numbers() {
        let documents: [&[u32]; 6] = [&[0, 1, 1], &[2], &[], &[1, 2, 3, 3, 3, 0], &[1], &[5, 1]];
        let (index, offsets, rows, counts, lengths) = both(&documents);
        let postings = Postings::new(&offsets, &rows, documents.len()).unwrap();
        for query in [&[1u32][..], &[3, 1, 3], &[0, 2, 9], &[], &[4]] {
            let names: Vec<String> = query.iter().map(u32::to_string).collect();
            for k in [0, 1, 2, 9] {
                let found = bm25(postings, &counts, &lengths, query, k).unwrap();
                assert_eq!(found, index.bm25(&names, k, |_| true));
                let found = overlap(postings, query, k).unwrap();
                assert_eq!(found, index.overlap(&names, k, |_| true));
            }
        }
    }

    #[test]
    fn arrays_that_contradict_each_other_are_refused() {
        assert!(Postings::new(&[], &[], 0).is_err());
        assert!(Postings::new(&[0, 2, 1], &[0], 1).is_err());
        assert!(Postings::new(&[1, 1], &[0], 1).is_err());
        assert!(Postings::new(&[0, -1], &[], 1).is_err());
        let outside = Postings::new(&[0, 1], &[7], 1).unwrap();
        assert!(overlap(outside, &[0], 3).is_err());
        assert!(bm25(outside, &[1], &[4], &[0], 3).is_err());
        assert!(bm25(outside, &[], &[4], &[0], 3).is_err());
        assert!(bm25(outside, &[1], &[], &[0], 3).is_err());
        let twice = Postings::new(&[0, 2], &[1, 1], 2).unwrap();
        assert!(overlap(twice, &[0], 3).is_err());
        assert!(bm25(twice, &[1, 1], &[4, 4], &[0], 3).is_err());
        let sound = Postings::new(&[0, 2], &[0, 1], usize::MAX).unwrap();
        assert_eq!(overlap(sound, &[0], 3).unwrap(), [(0, 1.0), (1, 1.0)]);
        let sound = Postings::new(&[0, 2], &[0, 1], 2).unwrap();
        assert!(bm25(sound, &[1, 0], &[4, 4], &[0], 3).is_err());
    }
}
