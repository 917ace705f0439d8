//! Which turns have which value in which field of their metadata: a condition on fields
//! reads no turn, however many there are.

use crate::index::rows;
use crate::types::InteractionId;
use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

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

    /// Forgets turns with their metadata, in id order: each value's turns are gone through
    /// once, however many go.
    pub(super) fn remove(&mut self, turns: &[(InteractionId, Option<String>)]) {
        let mut going: BTreeMap<Pair, Vec<InteractionId>> = BTreeMap::new();
        for (id, metadata) in turns {
            for pair in pairs_of(metadata.as_deref()) {
                going.entry(pair).or_default().push(*id);
            }
        }
        for (pair, ids) in going {
            let Some(turns) = self.0.get_mut(&pair) else {
                continue;
            };
            let places = ids.iter().filter_map(|id| turns.binary_search(id).ok());
            rows::take_out(turns, &places.collect::<Vec<_>>());
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

    /// Those from an id on, in id order. There is at least one condition.
    pub(super) fn from(&self, id: InteractionId) -> impl Iterator<Item = InteractionId> {
        let fewest = { self.0.iter() }.copied().min_by_key(|turns| turns.len());
        let turns = fewest.unwrap_or(&[]);
        let rest = &turns[turns.partition_point(|other| *other < id)..];
        rest.iter().copied().filter(|id| self.contains(*id))
    }
}

/// Whether a turn's own metadata has all of these values: for what is read anyway.
pub(super) fn has(metadata: Option<&str>, wanted: Option<&Map<String, Value>>) -> bool {
    let Some(wanted) = wanted.filter(|w| !w.is_empty()) else {
        return true;
    };
    let pairs = pairs_of(metadata);
    wanted.iter().all(|(k, v)| pairs.contains(&pair(k, v)))
}

fn parsed(metadata: Option<&str>) -> Option<Map<String, Value>> {
    serde_json::from_str(metadata?).ok()
}

fn pairs_of(metadata: Option<&str>) -> Vec<Pair> {
    let fields = parsed(metadata).unwrap_or_default();
    fields.iter().map(|(k, v)| pair(k, v)).collect()
}

fn pair(field: &str, value: &Value) -> Pair {
    let mut hash = Sha256::new();
    feed_text(&mut hash, field);
    feed(&mut hash, value);
    let hash: [u8; 32] = hash.finalize().into();
    std::array::from_fn(|at| hash[at])
}

/// Feeds a hash with a value, so that equal ones and no others feed it alike. As in JSON
/// there is one kind of number: 1 is 1.0.
fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update("n"),
        Value::Bool(yes) => hash.update(if *yes { "t" } else { "f" }),
        Value::Number(number) => {
            hash.update("#");
            feed_text(hash, &digits(number));
        }
        Value::String(text) => {
            hash.update("s");
            feed_text(hash, text);
        }
        Value::Array(items) => {
            hash.update("[");
            hash.update(items.len().to_le_bytes());
            items.iter().for_each(|item| feed(hash, item));
        }
        Value::Object(fields) => {
            hash.update("{");
            hash.update(fields.len().to_le_bytes());
            // A map may have them in the order in which they came.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(field, _)| *field);
            for (field, item) in fields {
                feed_text(hash, field);
                feed(hash, item);
            }
        }
    }
}

fn feed_text(hash: &mut Sha256, text: &str) {
    hash.update(text.len().to_le_bytes());
    hash.update(text);
}

/// A number in digits, whole ones without a point; 0 has no sign.
fn digits(number: &Number) -> String {
    match number.as_f64() {
        Some(x) if number.is_f64() => (x + 0.0).to_string(),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

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
        fields.remove(&[(3, Some(ana.into()))]);
        assert_eq!(ids(&fields, r#"{"user": "ana"}"#), [9]);
        fields.remove(&[(9, Some(ana.into()))]);
        fields.remove(&[(7, Some(ben.into()))]);
        assert!(fields.0.is_empty());
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            prop_oneof![-3i64..3, Just(-1), Just(i64::MAX)].prop_map(Value::from),
            prop_oneof![Just(u64::MAX), Just(1.0f64.to_bits())].prop_map(Value::from),
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

    /// What equal is, said once more.
    fn same(a: &Value, b: &Value) -> bool {
        match (a, b) {
            (Value::Number(a), Value::Number(b)) => {
                a == b || (a.is_f64() != b.is_f64() && a.as_f64() == b.as_f64())
            }
            (Value::Array(a), Value::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
            }
            (Value::Object(a), Value::Object(b)) => {
                let other = |k: &String| b.get(k).cloned().unwrap_or(json!({"no": k}));
                a.len() == b.len() && a.iter().all(|(k, v)| same(v, &other(k)))
            }
            _ => a == b,
        }
    }

    proptest! {
        #[test]
        fn the_index_finds_what_reading_does(a in value(), b in value()) {
            let equal = same(&a, &b);
            let metadata = Value::Object([("f".to_owned(), a)].into_iter().collect()).to_string();
            let wanted: Map<String, Value> = [("f".to_owned(), b)].into_iter().collect();
            let mut fields = Fields::default();
            fields.insert(1, Some(&metadata));
            prop_assert_eq!(fields.having(Some(&wanted)).contains(1), equal);
            prop_assert_eq!(has(Some(&metadata), Some(&wanted)), equal);
        }
    }
}
