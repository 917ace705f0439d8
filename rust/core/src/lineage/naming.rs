//! Claims that name the value they replace: of which topic one speaks depends on what was
//! said before it.

use super::topic_key;
use crate::types::{Claim, InteractionId};
use std::collections::{BTreeMap, BTreeSet};

/// Turns of a value that is replaced, by that value.
type Olds = BTreeMap<String, BTreeSet<InteractionId>>;

/// The turns with such claims.
#[derive(Debug, Clone, Default)]
pub(super) struct Naming {
    /// All that such a turn claims, in its order.
    claims: BTreeMap<InteractionId, Vec<Claim>>,
    /// By the topic that is named, which may be a shorter form of the one that is meant.
    named: BTreeMap<String, Olds>,
}

impl Naming {
    /// Notes a turn, where it is one of them.
    pub(super) fn insert(&mut self, id: InteractionId, claims: &[Claim]) {
        for (own, old) in replacing(claims) {
            let olds = self.named.entry(own).or_default();
            olds.entry(old.to_owned()).or_default().insert(id);
        }
        if replacing(claims).next().is_some() {
            self.claims.insert(id, claims.to_vec());
        }
    }

    pub(super) fn remove(&mut self, id: InteractionId) {
        for (own, old) in replacing(&self.claims.remove(&id).unwrap_or_default()) {
            let Some(olds) = self.named.get_mut(&own) else {
                continue;
            };
            if let Some(ids) = olds.get_mut(old) {
                ids.remove(&id);
                if ids.is_empty() {
                    olds.remove(old);
                }
            }
            if olds.is_empty() {
                self.named.remove(&own);
            }
        }
    }

    /// All that a turn claims; none where it is none of them.
    pub(super) fn claims(&self, id: InteractionId) -> Option<&Vec<Claim>> {
        self.claims.get(&id)
    }

    /// Claims that may speak of a topic if that value was said on it, with their turns.
    pub(super) fn of_value(&self, topic: &str, old: &str) -> Vec<(InteractionId, &Claim)> {
        let mut found = Vec::new();
        for (own, olds) in self.at(topic) {
            for id in olds.get(old).into_iter().flatten() {
                let claims = self.claims.get(id).into_iter().flatten();
                let meant = |c: &&Claim| {
                    c.old_value.as_deref() == Some(old) && topic_key(&c.subject, &c.identity) == own
                };
                found.extend(claims.filter(meant).map(|c| (*id, c)));
            }
        }
        found
    }

    /// Turns with claims that speak of a topic where they name it, or a shorter form of it
    /// and a value that was said on it.
    pub(super) fn on(
        &self,
        topic: &str,
        was_said: impl Fn(&str) -> bool,
    ) -> BTreeSet<InteractionId> {
        let mut found = BTreeSet::new();
        for (own, olds) in self.at(topic) {
            let meant = olds.iter().filter(|(old, _)| own == topic || was_said(old));
            found.extend(meant.flat_map(|(_, ids)| ids));
        }
        found
    }

    /// What is named that may mean a topic: the subject alone, and its name up to any word.
    fn at(&self, topic: &str) -> impl Iterator<Item = (&str, &Olds)> {
        let ends = topic.char_indices().filter_map(|(i, c)| match c {
            '\u{1f}' => Some(i + 1),
            ' ' => Some(i),
            _ => None,
        });
        let forms = ends.chain([topic.len()]).map(|end| &topic[..end]);
        let found = forms.filter_map(|own| self.named.get_key_value(own));
        let found: Vec<_> = found.map(|(own, olds)| (own.as_str(), olds)).collect();
        found.into_iter()
    }
}

/// The topics that claims name, each with the value it replaces.
fn replacing(claims: &[Claim]) -> impl Iterator<Item = (String, &str)> {
    let own = |c: &Claim| topic_key(&c.subject, &c.identity);
    { claims.iter() }.filter_map(move |c| Some((own(c), c.old_value.as_deref()?)))
}
