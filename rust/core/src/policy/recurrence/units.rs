//! Units: an exchange is what recurs, not a single message (RecMem, eq. 3 and 4).

use crate::score::vector::SCALE;
use crate::types::InteractionId;

/// Turns that belong together, and their vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The turn that opened it; it stays when that turn is erased.
    pub id: InteractionId,
    /// Its turns, in order.
    pub turns: Vec<InteractionId>,
    /// Unit mean of its turns' vectors.
    pub vector: Vec<i16>,
}

/// One side of a possible exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side<'a> {
    /// Role.
    pub role: &'a str,
    /// Speaker, folded.
    pub speaker: Option<&'a str>,
    /// Session.
    pub session: Option<&'a str>,
}

/// Whether a turn is part of the conversation: the system's and tools' turns are not.
pub fn speaks(role: &str) -> bool {
    !matches!(role, "system" | "tool")
}

/// Whether `second` answers `first`: another party in the same session, and no user
/// who answers an assistant, which opens a new exchange.
pub fn answers(first: Side<'_>, second: Side<'_>) -> bool {
    let same_party = first.role == second.role && first.speaker == second.speaker;
    let reopened = first.role == "assistant" && second.role == "user";
    first.session == second.session && !same_party && !reopened
}

/// The unit vector of the mean of 16-bit unit vectors; all zero where they cancel out.
pub fn mean<'a>(vectors: impl IntoIterator<Item = &'a [i16]>) -> Vec<i16> {
    centre(vectors).0
}

/// The unit vector of the mean, and the mean's length in [0, 1]: how close they lie. A
/// cosine to the former times the latter is the mean cosine to all of them.
pub fn centre<'a>(vectors: impl IntoIterator<Item = &'a [i16]>) -> (Vec<i16>, f64) {
    let mut sums: Vec<i64> = Vec::new();
    let mut count = 0.0;
    for vector in vectors {
        count += 1.0;
        sums.resize(vector.len().max(sums.len()), 0);
        for (sum, x) in sums.iter_mut().zip(vector) {
            *sum += i64::from(*x);
        }
    }
    // Integer sums: the order of the vectors cannot change the result.
    #[allow(clippy::cast_precision_loss)]
    let square: f64 = sums.iter().map(|x| (*x as f64) * (*x as f64)).sum();
    let norm = square.sqrt();
    if norm == 0.0 {
        return (vec![0; sums.len()], 0.0);
    }
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    let unit = sums
        .iter()
        .map(|x| (*x as f64 / norm * SCALE).round() as i16)
        .collect();
    (unit, norm / (count * SCALE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::vector::{cosine, dot, quantise};

    fn side<'a>(role: &'a str, speaker: Option<&'a str>, session: Option<&'a str>) -> Side<'a> {
        Side {
            role,
            speaker,
            session,
        }
    }

    #[test]
    fn an_exchange_is_two_parties_in_one_session() {
        let (ana, ben) = (
            side("user", Some("ana"), Some("s1")),
            side("user", Some("ben"), Some("s1")),
        );
        assert!(answers(ana, ben) && answers(ben, ana));
        assert!(!answers(ana, ana));
        assert!(!answers(ana, side("user", Some("ben"), Some("s2"))));
        let (user, assistant) = (side("user", None, None), side("assistant", None, None));
        assert!(answers(user, assistant));
        assert!(!answers(assistant, user));
        assert!(!speaks("tool") && speaks("user"));
    }

    #[test]
    fn the_mean_of_a_right_angle_is_its_half() {
        let (x, y) = (quantise(&[1.0, 0.0]), quantise(&[0.0, 1.0]));
        let m = mean([x.as_slice(), &y]);
        assert_eq!(m, [23170, 23170]); // 32767 / sqrt 2
        assert!((cosine(dot(&m, &x)) - 0.5f64.sqrt()).abs() < 1e-4);
        let (unit, length) = centre([x.as_slice(), &y]);
        // cos 45° to the centre, times its length: half of 1 and 0.
        assert!((cosine(dot(&unit, &x)) * length - 0.5).abs() < 1e-4);
        let back = quantise(&[-1.0, 0.0]);
        assert_eq!(mean([x.as_slice(), &back]), [0, 0]);
    }
}
