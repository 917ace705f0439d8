//! Utility by a language model, as D-MEM has it (section 4.1), where one takes part.
//!
//! The model is asked before the turn is taken in, outside of the engine; what it said
//! comes with the turn and is kept with it, so that nothing is asked twice.

use crate::error::{Code, Error, Result};
use crate::types::{Assessment, Lifecycle};

/// Reason of a verdict that the model gave.
pub const REASON: &str = "model";

/// Reasons that outweigh the model: the caller's own word, and a contradiction of what
/// is stored, which a model that sees the turn alone cannot know of.
const OUTWEIGHS: [&str; 2] = ["conflict", "provenance"];

/// Refuses what no model may say: utility outside of [0, 1], something of a transient
/// turn, or nothing of another.
pub fn check(assessment: &Assessment) -> Result<()> {
    let Ok((lifecycle, utility)) = assessment.said else {
        return Ok(());
    };
    let fits = match lifecycle {
        Lifecycle::Transient => utility == 0.0,
        _ => utility > 0.0 && utility <= 1.0,
    };
    if fits {
        return Ok(());
    }
    Err(Error::new(
        Code::InputFacts,
        format!("utility {utility} does not fit a turn that is {lifecycle:?}"),
    ))
}

/// The verdict of rules and model together: the model's, where it gave one and no
/// stronger reason stands against it.
pub fn over(
    assessment: &Assessment,
    rules: (Lifecycle, &'static str, f64),
) -> (Lifecycle, &'static str, f64) {
    match assessment.said {
        Ok((lifecycle, utility)) if !OUTWEIGHS.contains(&rules.1) => (lifecycle, REASON, utility),
        _ => rules,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Cost;
    use Lifecycle::{Persistent, ShortTerm, Transient};

    fn said(lifecycle: Lifecycle, utility: f64) -> Assessment {
        Assessment {
            said: Ok((lifecycle, utility)),
            cost: Cost::default(),
        }
    }

    #[test]
    fn transient_means_nothing_and_nothing_else_does() {
        assert!(check(&said(Transient, 0.0)).is_ok());
        assert!(check(&said(Transient, 0.1)).is_err());
        assert!(check(&said(ShortTerm, 0.0)).is_err());
        assert!(check(&said(ShortTerm, 0.01)).is_ok());
        assert!(check(&said(Persistent, 1.0)).is_ok());
        assert!(check(&said(Persistent, 1.01)).is_err());
        assert!(check(&said(Persistent, f64::NAN)).is_err());
    }

    #[test]
    fn the_model_decides_but_against_the_caller_and_a_contradiction() {
        let model = said(Transient, 0.0);
        assert_eq!(
            over(&model, (Persistent, "fact", 0.8)),
            (Transient, REASON, 0.0)
        );
        for reason in OUTWEIGHS {
            let rules = (Persistent, reason, 0.75);
            assert_eq!(over(&model, rules), rules);
        }
        let failed = Assessment {
            said: Err("llm.unavailable: no reply in time".into()),
            cost: Cost::default(),
        };
        let rules = (ShortTerm, "content", 0.61);
        assert!(check(&failed).is_ok());
        assert_eq!(over(&failed, rules), rules);
    }
}
