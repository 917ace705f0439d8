//! Batch decay and tiering (eq. 16-20).

use super::{refuse, same_length};
use crate::config::{MemoryTiers, TemporalDecay};
use crate::error::Result;
use crate::score::decay;

/// Rows of one pass: what it touches stays in the nearest cache.
const BLOCK: usize = 512;

/// Effective scores and tiers of turns with Survival Score `omega` after `age` newer
/// turns, into `effective` and `tier` (0 critical, 1 unstable, 2 healthy).
///
/// # Errors
/// Where lengths differ, an age is negative, or a score is not finite.
pub fn decay(
    omega: &[f64],
    age: &[i64],
    rates: &TemporalDecay,
    tiers: &MemoryTiers,
    effective: &mut [f64],
    tier: &mut [u8],
) -> Result<()> {
    same_length("age", age.len(), "omega", omega.len())?;
    same_length("effective", effective.len(), "omega", omega.len())?;
    same_length("tier", tier.len(), "omega", omega.len())?;
    let blocks = omega
        .chunks(BLOCK)
        .zip(age.chunks(BLOCK))
        .zip(effective.chunks_mut(BLOCK).zip(tier.chunks_mut(BLOCK)));
    for (number, ((omega, age), (effective, tier))) in blocks.enumerate() {
        let mut sound = true;
        for ((omega, age), x) in omega.iter().zip(age).zip(effective.iter_mut()) {
            sound &= omega.is_finite() & (*age >= 0);
            *x = decay::exponent(decay::rate(rates, *omega), age.cast_unsigned());
        }
        if !sound {
            return unsound(number * BLOCK, omega, age);
        }
        decay::effective_in_place(effective, omega.iter().copied());
        for (tier, score) in tier.iter_mut().zip(effective.iter()) {
            *tier = decay::tier(tiers, *score) as u8;
        }
    }
    Ok(())
}

#[cold]
fn unsound(from: usize, omega: &[f64], age: &[i64]) -> Result<()> {
    for (i, (omega, age)) in omega.iter().zip(age).enumerate() {
        let at = from + i;
        if !omega.is_finite() {
            return refuse(format!(
                "omega[{at}] is {omega}; every score must be finite"
            ));
        }
        if *age < 0 {
            return refuse(format!(
                "age[{at}] is {age}; an age counts newer turns, from 0 on"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::active::{Active, Entry};
    use crate::config;
    use crate::types::Signals;

    /// What the engine keeps for each entry, turn by turn, is what one call gives.
    #[test]
    fn one_call_gives_the_engines_scores_and_tiers() {
        let c = config::load("default", "[capacity]\ntoken_budget = 100000").unwrap();
        let mut active = Active::default();
        let mut omegas = Vec::new();
        for id in 0..300u64 {
            let omega = (id * 37 % 101) as f64 / 101.0;
            omegas.push(omega);
            active.insert(Entry::new(id, 1, omega, Signals(0), &c), &c, |_| false);
        }
        let newest = 299;
        for e in active.entries() {
            let at = usize::try_from(e.id).unwrap();
            let age = [(newest - e.id).cast_signed()];
            let (mut effective, mut tier) = ([0.0], [9]);
            let (d, t) = (&c.temporal_decay, &c.memory_tiers);
            decay(&omegas[at..=at], &age, d, t, &mut effective, &mut tier).unwrap();
            assert_eq!(effective[0], e.effective(newest));
            assert_eq!(tier[0], e.tier as u8);
        }
    }

    #[test]
    fn what_cannot_be_is_named_with_its_place() {
        let c = config::load("default", "").unwrap();
        let (d, t) = (&c.temporal_decay, &c.memory_tiers);
        let run = |omega: &[f64], age: &[i64]| {
            let n = omega.len();
            decay(omega, age, d, t, &mut vec![0.0; n], &mut vec![0; n])
        };
        run(&[], &[]).unwrap();
        let mut omega = vec![0.5; 700];
        let mut age = vec![1; 700];
        run(&omega, &age).unwrap();
        omega[600] = f64::NAN;
        assert!(
            run(&omega, &age)
                .unwrap_err()
                .message
                .contains("omega[600]")
        );
        omega[600] = 0.5;
        age[601] = -1;
        assert!(run(&omega, &age).unwrap_err().message.contains("age[601]"));
        assert!(run(&omega, &age[1..]).unwrap_err().message.contains("699"));
    }
}
