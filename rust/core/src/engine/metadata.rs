//! Which turns have which value in which field of their metadata: a condition on fields
//! reads no turn, however many there are.

use crate::types::InteractionId;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

/// The first half of the SHA-256 of a field and its value: values may be long, and no two
/// ever have the same.
type Pair = [u8; 16];

/// The turns by field and value, each in id order.
#[derive(Debug, Default)]
pub(super) struct Fields(BTreeMap<Pair, Vec<InteractionId>>);

impl Fields {
    pub(super) fn insert(&mut self, id: InteractionId, metadata: Option<&str>) {
        for pair in pairs_of(metadata) {
            let turns = self.0.entry(pair).or_default();
            let at = turns.partition_point(|other| *other < id);
            if turns.get(at) != Some(&id) {
                turns.insert(at, id);
            }
        }
    }

    pub(super) fn remove(&mut self, id: InteractionId, metadata: Option<&str>) {
        for pair in pairs_of(metadata) {
            let Some(turns) = self.0.get_mut(&pair) else {
                continue;
            };
            turns.retain(|other| *other != id);
            if turns.is_empty() {
                self.0.remove(&pair);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The turns that have all of these values; every turn, where there are none.
    pub(super) fn having(&self, wanted: Option<&Map<String, Value>>) -> Having<'_> {
        let each = wanted.into_iter().flatten();
        let turns = |(k, v): (&String, &Value)| self.0.get(&pair(k, v)).map_or(&[][..], |t| t);
        Having(each.map(turns).collect())
    }
}

/// Turns that meet a condition on fields.
#[derive(Debug)]
pub(super) struct Having<'a>(Vec<&'a [InteractionId]>);

impl Having<'_> {
    pub(super) fn contains(&self, id: InteractionId) -> bool {
        let mut fields = self.0.iter();
        fields.all(|turns| turns.binary_search(&id).is_ok())
    }
}

/// Whether a turn's own metadata has all of these values: for what is read anyway.
pub(super) fn has(metadata: Option<&str>, wanted: Option<&Map<String, Value>>) -> bool {
    let Some(wanted) = wanted.filter(|w| !w.is_empty()) else {
        return true;
    };
    parsed(metadata).is_some_and(|m| wanted.iter().all(|(k, v)| m.get(k) == Some(v)))
}

fn parsed(metadata: Option<&str>) -> Option<Map<String, Value>> {
    serde_json::from_str(metadata?).ok()
}

fn pairs_of(metadata: Option<&str>) -> Vec<Pair> {
    let fields = parsed(metadata).unwrap_or_default();
    fields.iter().map(|(k, v)| pair(k, v)).collect()
}

fn pair(field: &str, value: &Value) -> Pair {
    let mut hasher = Wide(Sha256::new());
    (field, value).hash(&mut hasher);
    let hash: [u8; 32] = hasher.0.finalize().into();
    std::array::from_fn(|at| hash[at])
}

/// Takes what equal values have in common, as any hasher does, into more than 64 bits.
struct Wide(Sha256);

impl Hasher for Wide {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Half of what is asked for instead.
    fn finish(&self) -> u64 {
        let hash: [u8; 32] = self.0.clone().finalize().into();
        u64::from_le_bytes(std::array::from_fn(|at| hash[at]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn object(text: &str) -> Map<String, Value> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn turns_are_found_by_every_field() {
        let mut fields = Fields::default();
        let ana = r#"{"user": "ana", "tags": ["a", {"x": 1, "y": 2}]}"#;
        let ben = r#"{"user": "ben", "tags": ["a", {"y": 2, "x": 1}]}"#;
        for (id, metadata) in [(7, Some(ben)), (3, Some(ana)), (9, Some(ana)), (8, None)] {
            fields.insert(id, metadata);
        }
        let ids = |fields: &Fields, wanted: &str| {
            let wanted = object(wanted);
            let having = fields.having(Some(&wanted));
            (0..10)
                .filter(|id| having.contains(*id))
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&fields, r#"{"user": "ana"}"#), [3, 9]);
        let tags = r#"{"tags": ["a", {"x": 1, "y": 2}]}"#;
        assert_eq!(ids(&fields, tags), [3, 7, 9]);
        assert!(ids(&fields, r#"{"user": "eve"}"#).is_empty());
        assert_eq!(ids(&fields, "{}").len(), 10);
        assert!(fields.having(None).contains(1));
        fields.remove(3, Some(ana));
        assert_eq!(ids(&fields, r#"{"user": "ana"}"#), [9]);
        fields.remove(9, Some(ana));
        fields.remove(7, Some(ben));
        assert!(fields.0.is_empty());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            prop_oneof![Just(0.0), Just(-0.0), Just(1.0), Just(0.5)].prop_map(Value::from),
            "[a\":,]{0,2}".prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 6, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::vec(("[ab]", inner), 0..3)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_index_finds_what_reading_does(a in value(), b in value()) {
            let metadata = Value::Object([("f".to_owned(), a)].into_iter().collect()).to_string();
            let wanted: Map<String, Value> = [("f".to_owned(), b)].into_iter().collect();
            let mut fields = Fields::default();
            fields.insert(1, Some(&metadata));
            prop_assert_eq!(
                fields.having(Some(&wanted)).contains(1),
                has(Some(&metadata), Some(&wanted))
            );
        }
    }
}
