//! Survival Score (eq. 4, 8-12, 28-29).

use crate::config::ScoringWeights;
use crate::types::{Facts, Provenance, Score, Signals};

/// min(E, cap) / cap (eq. 4).
pub fn entity_norm(count: u32, cap: u32) -> f64 {
    f64::from(count.min(cap)) / f64::from(cap)
}

/// Content channel (eq. 8).
pub fn z_content(w: &ScoringWeights, density: f64, sentiment: f64, e_norm: f64, d: f64) -> f64 {
    w.alpha_density * density
        + w.gamma_sentiment * sentiment
        + w.beta_entities * e_norm
        + w.delta_technical * d
}

/// Operational channel (eq. 9).
pub fn z_op(w: &ScoringWeights, s: Signals) -> f64 {
    w.lambda_operational
        * (w.eta_constraint * s.indicator(Signals::CONSTRAINT)
            + w.eta_preference * s.indicator(Signals::PREFERENCE)
            + w.eta_current_state * s.indicator(Signals::CURRENT_STATE)
            + w.eta_correction * s.indicator(Signals::CORRECTION)
            + w.eta_replacement * s.indicator(Signals::REPLACEMENT)
            + w.eta_past_state * s.indicator(Signals::PAST_STATE))
}

/// Provenance channel (eq. 10): only what the caller said, never the signals.
pub fn z_prov(w: &ScoringWeights, p: Option<&Provenance>) -> f64 {
    let Some(p) = p else { return 0.0 };
    let one = |flag: bool| f64::from(u8::from(flag));
    w.user_correction_boost * one(p.is_user_correction)
        + w.preference_update_boost * one(p.is_preference_update)
        + w.constraint_boost * one(p.is_constraint)
        - w.corrected_by_user_penalty * one(p.corrected_by_user)
}

/// Logistic projection (eq. 12).
pub fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// Social floor (eq. 29).
pub fn social_floor(w: &ScoringWeights, omega: f64, social: bool) -> f64 {
    if social && omega < w.social_threshold {
        omega.max(w.min_social_score)
    } else {
        omega
    }
}

/// The whole score of one turn, with its terms.
pub fn score(
    w: &ScoringWeights,
    facts: &Facts,
    provenance: Option<&Provenance>,
    divergence: f64,
) -> Score {
    let e_norm = entity_norm(facts.entity_count, w.entity_cap);
    let z_content = z_content(w, facts.density, facts.sentiment, e_norm, divergence);
    let z_op = z_op(w, facts.signals);
    let z_prov = z_prov(w, provenance);
    let omega_raw = logistic(z_content + z_op + z_prov - w.sigmoid_midpoint);
    let omega = social_floor(w, omega_raw, facts.social);
    Score {
        divergence,
        z_content,
        z_op,
        z_prov,
        omega_raw,
        omega,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn weights() -> ScoringWeights {
        config::load("paper", "").unwrap().scoring_weights
    }

    /// Table 2 of the paper: density, sentiment, E_norm, D, signals, z, omega.
    #[test]
    fn table_2() {
        let rows = [
            (0.60, 0.05, 0.80, 0.05, 0, 3.29, 0.86),
            (0.35, 0.05, 0.20, 0.05, Signals::CONSTRAINT, 2.24, 0.68),
            (0.65, 0.10, 0.20, 0.05, 0, 2.25, 0.68),
            (0.40, 0.15, 0.20, 0.15, 0, 1.26, 0.44),
            (0.15, 0.85, 0.10, 0.70, 0, -0.93, 0.08),
            (0.00, 0.00, 0.00, 0.00, 0, 0.00, 0.18),
        ];
        let w = weights();
        for (id, s, e, d, bits, z_paper, omega_paper) in rows {
            let z = z_content(&w, id, s, e, d) + z_op(&w, Signals(bits));
            let omega = logistic(z - w.sigmoid_midpoint);
            assert!((z - z_paper).abs() <= 0.006, "z {z} against {z_paper}");
            assert!(
                (omega - omega_paper).abs() <= 0.005,
                "omega {omega} against {omega_paper}"
            );
        }
    }

    #[test]
    fn equations_14_and_27() {
        let w = weights();
        let average = logistic(z_content(&w, 0.40, 0.15, 0.20, 0.15) - w.sigmoid_midpoint);
        assert!((average - 0.439).abs() < 0.0005, "{average}");
        assert!((logistic(-w.sigmoid_midpoint) - 0.18).abs() < 0.005);
    }

    #[test]
    fn the_social_floor_lifts_only_low_phatic_turns() {
        let w = weights();
        assert!((social_floor(&w, 0.18, true) - 0.25).abs() < 1e-12);
        assert!((social_floor(&w, 0.18, false) - 0.18).abs() < 1e-12);
        assert!((social_floor(&w, 0.30, true) - 0.30).abs() < 1e-12);
        assert!((social_floor(&w, 0.41, true) - 0.41).abs() < 1e-12);
    }

    #[test]
    fn provenance_comes_from_the_caller_alone() {
        let w = weights();
        let facts = Facts {
            signals: Signals(Signals::CORRECTION),
            ..Facts::default()
        };
        assert!(score(&w, &facts, None, 0.0).z_prov.abs() < 1e-12);
        let p = Provenance {
            is_user_correction: true,
            is_constraint: true,
            ..Default::default()
        };
        assert!((score(&w, &facts, Some(&p), 0.0).z_prov - 0.25).abs() < 1e-12);
    }

    #[test]
    fn entities_saturate_at_the_cap() {
        assert!((entity_norm(3, 5) - 0.6).abs() < 1e-12);
        assert!((entity_norm(50, 5) - 1.0).abs() < 1e-12);
    }
}
