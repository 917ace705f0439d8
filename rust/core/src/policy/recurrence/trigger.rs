//! When a unit is consolidated (RecMem, eq. 5 and 6).

use super::units::mean;
use super::{Episode, Unit};
use crate::config::RecurrencePolicy;
use crate::index::Flat;
use crate::order::best_first;
use crate::score::vector::{cosine, dot};
use crate::types::InteractionId;

/// What becomes of an arriving unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It extends the nearest episode (eq. 6).
    Merge {
        /// That episode.
        episode: u64,
        /// Cosine to it.
        cosine: f64,
    },
    /// It and these earlier units, best first, make new episodes (eq. 5).
    Consolidate {
        /// The relevant set, with cosines.
        relevant: Vec<(InteractionId, f64)>,
    },
    /// It stays a raw record for now.
    Wait {
        /// Size of the relevant set.
        relevant: usize,
    },
}

/// Neighbours that are looked at: at least twice as many as the trigger needs.
pub fn neighbours(p: &RecurrencePolicy) -> usize {
    p.neighbours.max(p.count().saturating_mul(2))
}

/// Judges a unit that is not indexed yet: the arriving one never counts itself. Units
/// that an episode has taken in count no more: those would make the same episode again.
pub fn judge<'a>(
    unit: &Unit,
    units: &Flat,
    promoted: impl Fn(InteractionId) -> bool + Sync,
    episodes: impl Iterator<Item = &'a Episode>,
    p: &RecurrencePolicy,
) -> Verdict {
    let near = episodes.map(|e| (e.similarity(&unit.vector), e.id));
    let nearest = near.min_by(|a, b| best_first(*a, *b));
    if let Some((cosine, episode)) = nearest.filter(|n| n.0 >= p.similarity()) {
        return Verdict::Merge { episode, cosine };
    }
    let relevant = units.search(&unit.vector, neighbours(p), p.similarity(), |id| {
        !promoted(id)
    });
    if relevant.len() >= p.count() {
        Verdict::Consolidate { relevant }
    } else {
        Verdict::Wait {
            relevant: relevant.len(),
        }
    }
}

/// Parts a cluster where its sub-topics do: groups are joined while their means are
/// within `theta` of each other, and further until there are at most `most`. Groups
/// come in the order of their first unit, units in id order.
pub fn sub_topics(cluster: &[Unit], theta: f64, most: usize) -> Vec<Vec<Unit>> {
    let mut ordered = cluster.to_vec();
    ordered.sort_by_key(|u| u.id);
    let mut groups: Vec<Vec<Unit>> = ordered.into_iter().map(|u| vec![u]).collect();
    while groups.len() > 1 {
        let means: Vec<Vec<i16>> = groups
            .iter()
            .map(|g| mean(g.iter().map(|u| u.vector.as_slice())))
            .collect();
        let mut best = (f64::NEG_INFINITY, 0, 1);
        for i in 0..groups.len() {
            for j in i + 1..groups.len() {
                let near = cosine(dot(&means[i], &means[j]));
                // Equal ones go to the earliest pair.
                if near > best.0 {
                    best = (near, i, j);
                }
            }
        }
        if best.0 < theta && groups.len() <= most.max(1) {
            break;
        }
        let joined = groups.remove(best.2);
        groups[best.1].extend(joined);
        groups[best.1].sort_by_key(|u| u.id);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::units::centre;
    use super::*;
    use crate::config;
    use crate::score::vector::quantise;

    fn policy(extra: &str) -> RecurrencePolicy {
        let text = format!("[policy.recurrence]\nthresholds = \"paper\"\n{extra}");
        config::load("default", &text).unwrap().policy.recurrence
    }

    fn unit(id: u64, degrees: f32) -> Unit {
        let a = degrees.to_radians();
        Unit {
            id,
            turns: vec![id],
            vector: quantise(&[a.cos(), a.sin()]),
        }
    }

    fn index(units: &[Unit]) -> Flat {
        let mut flat = Flat::default();
        for u in units {
            flat.push(u.id, &u.vector, 2);
        }
        flat
    }

    #[test]
    fn the_papers_values_are_kept() {
        let p = policy("");
        assert_eq!((p.similarity(), p.count()), (0.7, 5));
        assert_eq!(neighbours(&p), 10);
        assert_eq!(neighbours(&policy("paper_theta_count = 6")), 12);
        let most =
            policy("paper_theta_count = 9223372036854775807\nneighbours = 9223372036854775807");
        assert_eq!(neighbours(&most), 2 * most.count());
    }

    #[test]
    fn five_earlier_units_trigger_and_four_do_not() {
        let p = policy("");
        let none = || std::iter::empty::<&Episode>();
        // cos 45° = 0.707 is within 0.7; cos 46° = 0.695 is not.
        let near: Vec<Unit> = (0..5).map(|i| unit(i, 45.0)).collect();
        let new = unit(9, 0.0);
        assert_eq!(
            judge(&new, &index(&near[..4]), |_| false, none(), &p),
            Verdict::Wait { relevant: 4 }
        );
        let Verdict::Consolidate { relevant } = judge(&new, &index(&near), |_| false, none(), &p)
        else {
            panic!("five are enough");
        };
        assert_eq!(
            relevant.iter().map(|r| r.0).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4]
        );
        // One of the five is behind an episode already.
        assert_eq!(
            judge(&new, &index(&near), |id| id == 3, none(), &p),
            Verdict::Wait { relevant: 4 }
        );
        let far: Vec<Unit> = (0..5).map(|i| unit(i, 46.0)).collect();
        assert_eq!(
            judge(&new, &index(&far), |_| false, none(), &p),
            Verdict::Wait { relevant: 0 }
        );
    }

    #[test]
    fn an_episode_within_reach_comes_first() {
        let p = policy("");
        let near: Vec<Unit> = (0..5).map(|i| unit(i, 10.0)).collect();
        let of = |id, degrees: [f32; 2]| {
            let (a, b) = (unit(0, degrees[0]), unit(1, degrees[1]));
            let (vector, cohesion) = centre([a.vector.as_slice(), &b.vector]);
            Episode {
                id,
                version: 1,
                at: 0,
                sources: vec![0, 1],
                sentences: Vec::new(),
                vector,
                cohesion,
                text: None,
            }
        };
        // cos 30° and cos 50°: 0.754 on average; to their mean alone it would be 0.766.
        let episodes = [of(76, [50.0, 60.0]), of(77, [30.0, 50.0])];
        let new = unit(9, 0.0);
        let Verdict::Merge { episode, cosine } =
            judge(&new, &index(&near), |_| false, episodes.iter(), &p)
        else {
            panic!("merge first");
        };
        assert_eq!(episode, 77);
        assert!((cosine - 0.7544).abs() < 1e-3);
    }

    #[test]
    fn sub_topics_part_where_their_means_do() {
        let cluster = [unit(4, 0.0), unit(0, 5.0), unit(2, 80.0), unit(6, 85.0)];
        let ids = |groups: Vec<Vec<Unit>>| -> Vec<Vec<u64>> {
            let of = |g: &Vec<Unit>| g.iter().map(|u| u.id).collect();
            groups.iter().map(of).collect()
        };
        assert_eq!(ids(sub_topics(&cluster, 0.7, 3)), [vec![0, 4], vec![2, 6]]);
        assert_eq!(ids(sub_topics(&cluster, 0.0, 3)), [vec![0, 2, 4, 6]]);
        assert_eq!(ids(sub_topics(&cluster, 0.7, 1)), [vec![0, 2, 4, 6]]);
    }
}
