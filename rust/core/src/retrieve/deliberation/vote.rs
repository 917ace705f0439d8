//! The policies that compare three retrievers: the D-Mem paper has three answers
//! written and compares those (section 3.2); without a language model, what three
//! ways of searching find is compared.

use serde::Serialize;

/// One retriever's best turns.
pub type Ballot = (&'static str, Vec<u64>);

/// Two retrievers, and whether they agree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pair {
    /// One.
    pub first: &'static str,
    /// The other.
    pub second: &'static str,
    /// A turn is among the best of both.
    pub agree: bool,
}

/// Every pair of retrievers, in their order.
pub fn pairs(ballots: &[Ballot]) -> Vec<Pair> {
    let mut found = Vec::new();
    for (i, (first, a)) in ballots.iter().enumerate() {
        for (second, b) in &ballots[i + 1..] {
            found.push(Pair {
                first,
                second,
                agree: a.iter().any(|id| b.contains(id)),
            });
        }
    }
    found
}

/// Majority: two of three agree.
pub fn majority(pairs: &[Pair]) -> bool {
    pairs.iter().any(|p| p.agree)
}

/// Consensus: all of them do.
pub fn consensus(pairs: &[Pair]) -> bool {
    pairs.iter().all(|p| p.agree)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &[u64], b: &[u64], c: &[u64]) -> (bool, bool) {
        let ballots = [
            ("dense", a.to_vec()),
            ("bm25", b.to_vec()),
            ("answerability", c.to_vec()),
        ];
        let pairs = pairs(&ballots);
        assert_eq!(pairs.len(), 3);
        (majority(&pairs), consensus(&pairs))
    }

    #[test]
    fn one_shared_turn_is_agreement() {
        assert_eq!(of(&[1, 2, 3], &[3, 4, 5], &[6, 7, 8]), (true, false));
        assert_eq!(of(&[1, 2, 3], &[3, 4, 5], &[5, 1, 9]), (true, true));
        assert_eq!(of(&[1, 2, 3], &[4, 5, 6], &[7, 8, 9]), (false, false));
        assert_eq!(of(&[1], &[1], &[2]), (true, false));
        assert_eq!(of(&[], &[], &[]), (false, false));
    }
}
