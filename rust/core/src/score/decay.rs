//! Decay by interaction count and the tiers it leads through (eq. 15-20).

use crate::config::{MemoryTiers, TemporalDecay};
use ebbtide_simd::exp::exp_in_place;
use serde::{Deserialize, Serialize};

/// Tier of an effective score (eq. 20).
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// At or below the critical ceiling: evicted first.
    Critical,
    /// In between.
    Unstable,
    /// Strictly above the healthy floor: safe from budget pruning.
    Healthy,
}

impl Tier {
    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Unstable => "unstable",
            Self::Healthy => "healthy",
        }
    }
}

/// Effective decay rate: lambda (1 - eta omega).
#[inline]
pub fn rate(d: &TemporalDecay, omega: f64) -> f64 {
    d.lambda_base * (1.0 - d.inertia_strength * omega)
}

/// Exponent of the decay after `newer` turns (eq. 18), with the rate precomputed.
#[inline]
pub fn exponent(rate: f64, newer: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let newer = newer as f64;
    -rate * newer
}

/// Effective score after `newer` turns (eq. 18), with the rate precomputed.
pub fn effective(omega: f64, rate: f64, newer: u64) -> f64 {
    omega * libm::exp(exponent(rate, newer))
}

/// Turns exponents into effective scores, in place: the same numbers as
/// [`effective`] gives one by one.
pub fn effective_in_place(scores: &mut [f64], omegas: impl IntoIterator<Item = f64>) {
    exp_in_place(scores);
    for (score, omega) in scores.iter_mut().zip(omegas) {
        *score *= omega;
    }
}

/// Turns until the effective score is halved (eq. 19).
pub fn half_life(d: &TemporalDecay, omega: f64) -> f64 {
    std::f64::consts::LN_2 / rate(d, omega)
}

/// Tier of an effective score (eq. 20).
#[inline]
pub fn tier(t: &MemoryTiers, effective: f64) -> Tier {
    if effective > t.healthy_min {
        Tier::Healthy
    } else if effective > t.critical_max {
        Tier::Unstable
    } else {
        Tier::Critical
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    /// Table 3 of the paper.
    #[test]
    fn table_3() {
        let c = config::load("paper", "").unwrap();
        for (omega, mu, lambda, life, name) in [
            (0.87, 0.565, 0.0198, 35.0, "healthy"),
            (0.72, 0.640, 0.0224, 30.9, "unstable"),
            (0.50, 0.750, 0.0263, 26.4, "unstable"),
            (0.35, 0.825, 0.0289, 24.0, "unstable"),
            (0.25, 0.875, 0.0306, 22.6, "critical"),
            (0.18, 0.910, 0.0319, 21.8, "critical"),
        ] {
            let d = &c.temporal_decay;
            assert!((rate(d, omega) / d.lambda_base - mu).abs() < 1e-12);
            assert!((rate(d, omega) - lambda).abs() <= 0.0001);
            assert!((half_life(d, omega) - life).abs() <= 0.06, "{omega}");
            assert_eq!(tier(&c.memory_tiers, omega).as_str(), name);
        }
    }

    #[test]
    fn many_at_once_are_the_same_numbers() {
        let d = config::load("paper", "").unwrap().temporal_decay;
        let omegas: Vec<f64> = (0..101).map(|i| f64::from(i) / 100.0).collect();
        for newer in [0, 1, 30, 1_000, 100_000] {
            let mut scores: Vec<f64> = omegas
                .iter()
                .map(|o| exponent(rate(&d, *o), newer))
                .collect();
            effective_in_place(&mut scores, omegas.iter().copied());
            for (score, omega) in scores.iter().zip(&omegas) {
                assert_eq!(*score, effective(*omega, rate(&d, *omega), newer));
            }
        }
    }

    #[test]
    fn boundaries_of_the_tiers() {
        let t = config::load("paper", "").unwrap().memory_tiers;
        assert_eq!(tier(&t, 0.75), Tier::Unstable);
        assert_eq!(tier(&t, 0.75 + 1e-12), Tier::Healthy);
        assert_eq!(tier(&t, 0.3), Tier::Critical);
        assert_eq!(tier(&t, 0.3 + 1e-12), Tier::Unstable);
    }

    #[test]
    fn the_newest_turn_has_not_decayed() {
        let d = config::load("paper", "").unwrap().temporal_decay;
        let r = rate(&d, 0.6);
        assert!((effective(0.6, r, 0) - 0.6).abs() < 1e-15);
        assert!(effective(0.6, r, 2) < effective(0.6, r, 1));
    }
}
