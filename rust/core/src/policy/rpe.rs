//! The reward prediction error of a turn and the tier it leads to (D-MEM, section 4).

use crate::config::Rpe;
use crate::policy::utility::Lifecycle;
use crate::types::InteractionId;
use serde::Serialize;

/// What the memory does with a turn (D-MEM, section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Journalled and archived at once; in no index, reached by the fallback only.
    Skip,
    /// A note.
    ConstructOnly,
    /// A note, linked with its neighbours, whose tags it joins.
    FullEvolution,
}

impl Tier {
    /// Every tier, in the order of their stored numbers.
    pub const ALL: [Tier; 3] = [Self::Skip, Self::ConstructOnly, Self::FullEvolution];

    /// Kind of the decision in the trace.
    pub fn decision(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::ConstructOnly => "construct",
            Self::FullEvolution => "evolve",
        }
    }
}

/// One turn before the gate, with everything that decided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Verdict {
    /// What becomes of it.
    pub tier: Tier,
    /// How long what it says matters.
    pub lifecycle: Lifecycle,
    /// Which rule found it transient, or what made it persistent.
    pub reason: &'static str,
    /// Long-term utility, in [0, 1].
    pub utility: f64,
    /// Cosine of the nearest note (`S_raw`); none while there is no note.
    pub similarity: Option<f64>,
    /// Cosine of the nearest of the newest notes; none while there are too few.
    pub thread: Option<f64>,
    /// Semantic surprise, in [0, 1].
    pub surprise: f64,
    /// Whether it contradicts a stored claim.
    pub conflict: bool,
    /// Reward prediction error, in [0, 1].
    pub rpe: f64,
}

/// A link from a turn to an older note (D-MEM's link generation).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Link {
    /// The turn that evolved the memory.
    pub newer: InteractionId,
    /// Its neighbour.
    pub older: InteractionId,
    /// Their cosine.
    pub cosine: f64,
}

/// Surprise = sigmoid((mu - S_raw) / max(sigma, epsilon)) (D-MEM, section 4.1).
///
/// `past` holds the similarities of the turns before this one, oldest first; mu and
/// the population's sigma are theirs. While there are fewer than `least` of them, or
/// of notes, everything is a surprise: 1.
pub fn surprise(similarity: Option<f64>, past: &[f64], notes: usize, c: &Rpe) -> f64 {
    let Some(similarity) = similarity.filter(|_| notes >= c.least && past.len() >= c.least) else {
        return 1.0;
    };
    #[allow(clippy::cast_precision_loss)]
    let count = past.len() as f64;
    let mean = past.iter().sum::<f64>() / count;
    let variance = past.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    let z = (mean - similarity) / variance.sqrt().max(c.epsilon);
    1.0 / (1.0 + libm::exp(-z))
}

/// Whether a turn has nothing to do with the newest notes.
///
/// `thread` is the cosine of the nearest of them, `past` gives that of the noted turns
/// before this one and is asked only where it decides. Cosines of a conversation whose
/// speakers have no names lie lower, so the bound is taken from those too: their upper
/// quartile less `thread_margin`, and `thread_below` at most. The first `warmup` notes are
/// no thread yet.
pub fn off_thread(
    thread: Option<f64>,
    past: impl FnOnce() -> Vec<f64>,
    notes: usize,
    c: &Rpe,
) -> bool {
    let Some(thread) = thread.filter(|t| *t < c.thread_below && notes as u64 >= c.warmup) else {
        return false;
    };
    let mut past = past();
    if past.is_empty() {
        return false;
    }
    let place = 3 * (past.len() - 1) / 4;
    let (_, quartile, _) = past.select_nth_unstable_by(place, f64::total_cmp);
    thread < *quartile - c.thread_margin
}

/// RPE = min(1, 1[u >= tau] u (surprise + beta)) (D-MEM, section 4.1).
pub fn rpe(utility: f64, surprise: f64, c: &Rpe) -> f64 {
    if utility < c.tau {
        return 0.0;
    }
    (utility * (surprise + c.beta)).min(1.0)
}

/// The tier of an RPE; the lower bound of each is inclusive. `seen` counts the turns
/// before this one: at the start no turn evolves the memory.
pub fn tier(rpe: f64, seen: u64, c: &Rpe) -> Tier {
    if rpe < c.theta_low {
        Tier::Skip
    } else if rpe < c.theta_high || seen < c.warmup {
        Tier::ConstructOnly
    } else {
        Tier::FullEvolution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn settings() -> Rpe {
        config::load("default", "").unwrap().policy.rpe
    }

    #[test]
    fn surprise_matches_hand_worked_values() {
        let c = settings();
        // Mean 0.6, deviations ±0.1 and 0: variance 0.04 / 5 = 0.008, sigma 0.0894427.
        let past = [0.5, 0.7, 0.6, 0.5, 0.7];
        let sigma = 0.008f64.sqrt();
        let expected = 1.0 / (1.0 + libm::exp(-(0.6 - 0.8) / sigma));
        let got = surprise(Some(0.8), &past, 5, &c);
        assert!((got - expected).abs() < 1e-12);
        assert!((got - 0.096_57).abs() < 1e-4, "{got}");
        assert!((surprise(Some(0.6), &past, 5, &c) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_flat_window_is_measured_by_epsilon() {
        let c = settings();
        // Sigma 0, so z = (0.70 - 0.69) / 0.01 = 1.
        let got = surprise(Some(0.69), &[0.7; 50], 9, &c);
        assert!((got - 1.0 / (1.0 + libm::exp(-1.0))).abs() < 1e-9);
    }

    #[test]
    fn with_too_little_to_compare_everything_surprises() {
        let c = settings();
        let past = [0.5; 5];
        assert_eq!(surprise(Some(0.9), &past[..4], 10, &c), 1.0);
        assert_eq!(surprise(Some(0.9), &past, 4, &c), 1.0);
        assert_eq!(surprise(None, &past, 10, &c), 1.0);
        assert!(surprise(Some(0.9), &past, 5, &c) < 0.01);
    }

    #[test]
    fn the_thread_is_measured_by_what_was_noted() {
        let c = settings();
        let (near, far) = ([0.8, 0.9, 0.7, 0.86, 0.85], [0.5, 0.7, 0.6, 0.66, 0.65]);
        // Upper quartile 0.86: less 0.05 it is 0.81, so thread_below = 0.74 decides.
        assert!(off_thread(Some(0.739), || near.to_vec(), 10, &c));
        assert!(!off_thread(Some(0.74), || near.to_vec(), 10, &c));
        // Upper quartile 0.66: the bound is 0.61.
        assert!(off_thread(Some(0.609), || far.to_vec(), 10, &c));
        assert!(!off_thread(Some(0.611), || far.to_vec(), 10, &c));
        assert!(
            !off_thread(Some(0.1), || near.to_vec(), 9, &c),
            "too few notes"
        );
        assert!(!off_thread(None, || near.to_vec(), 10, &c));
        assert!(!off_thread(Some(0.1), Vec::new, 10, &c));
    }

    #[test]
    fn rpe_matches_hand_worked_values() {
        let c = settings();
        assert!((rpe(0.5, 0.5, &c) - 0.45).abs() < 1e-12);
        assert!((rpe(0.75, 0.0, &c) - 0.3).abs() < 1e-12);
        assert_eq!(rpe(1.0, 0.9, &c), 1.0, "1.3 is cut");
        assert_eq!(rpe(0.049, 1.0, &c), 0.0, "below tau");
        assert!(
            (rpe(0.05, 1.0, &c) - 0.07).abs() < 1e-12,
            "tau itself counts"
        );
    }

    #[test]
    fn the_lower_bound_of_a_tier_is_inclusive() {
        let c = settings();
        assert_eq!(tier(0.299_999, 50, &c), Tier::Skip);
        assert_eq!(tier(0.3, 50, &c), Tier::ConstructOnly);
        assert_eq!(tier(0.699_999, 50, &c), Tier::ConstructOnly);
        assert_eq!(tier(0.7, 50, &c), Tier::FullEvolution);
    }

    #[test]
    fn the_first_turns_are_noted_at_most() {
        let c = settings();
        assert_eq!(tier(1.0, 9, &c), Tier::ConstructOnly);
        assert_eq!(tier(1.0, 10, &c), Tier::FullEvolution);
        assert_eq!(tier(0.1, 0, &c), Tier::Skip);
    }
}
