//! A checksum a row of what is canonical or costly: a flipped bit is told from what was
//! written.
//!
//! SQLite keeps none, and finds damage only where it breaks the structure of a page. The
//! sum is taken over every column, of a key over the interaction id alone: an imported
//! memory has another number. It is reckoned by SQL, by a function of each connection, so
//! that a change of one column and the sum over all of them are one statement.

use super::{Namespace, Store, id_of};
use crate::error::{Code, Error, Result};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::ValueRef;

/// The schema version that brought the sums; an earlier store that is only read has none.
pub const SINCE: usize = 4;

/// The sum of a turn whose last two columns are about to be `tokens` and `archived`.
macro_rules! turn_sum {
    ($tokens:literal, $archived:literal) => {
        concat!(
            "row_sum(turn.key & 1099511627775, turn.record_id, turn.external_id, turn.role,
             turn.speaker, turn.text, turn.timestamp, turn.utc, turn.naive, turn.session_id,
             turn.provenance, turn.metadata, turn.received_at, ",
            $tokens,
            ", ",
            $archived,
            ")"
        )
    };
}
pub(super) use turn_sum;

/// The sum of a turn as it stands.
pub const TURN: &str = turn_sum!("turn.tokens", "turn.archived");
/// Of what was derived from it.
pub const DERIVED: &str = "row_sum(derived.key & 1099511627775, derived.divergence,
    derived.z_content, derived.z_op, derived.z_prov, derived.omega_raw, derived.omega,
    derived.facts, derived.spans, derived.vectors, derived.card_vectors)";
/// Of its token vectors.
pub const TOKENS: &str = "row_sum(token_vector.key & 1099511627775, token_vector.vectors)";
/// Of a relation.
pub const LINEAGE: &str = "row_sum(lineage.older & 1099511627775,
    lineage.newer & 1099511627775, lineage.relation, lineage.topic, lineage.by_caller)";

/// A table whose rows have sums.
pub struct Summed {
    pub table: &'static str,
    /// The column that says whose a row is.
    pub key: &'static str,
    pub sum: &'static str,
    /// What a row whose sum is another one is called.
    pub damage: &'static str,
    /// Whether reading the turns anew puts it right.
    pub derived: bool,
}

/// Every table whose rows have sums.
pub const SUMMED: [Summed; 4] = [
    Summed {
        table: "turn",
        key: "key",
        sum: TURN,
        damage: "the turn is not what was written",
        derived: false,
    },
    Summed {
        table: "lineage",
        key: "older",
        sum: LINEAGE,
        damage: "a relation to it is not what was written; one that was stated by a caller is lost",
        derived: true,
    },
    Summed {
        table: "derived",
        key: "key",
        sum: DERIVED,
        damage: "what was derived from it is not what was written",
        derived: true,
    },
    Summed {
        table: "token_vector",
        key: "key",
        sum: TOKENS,
        damage: "its token vectors are not what was written",
        derived: true,
    },
];

/// Makes `row_sum` known: the CRC-32 of its arguments, each with its kind and length.
pub fn register(conn: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    conn.create_scalar_function("row_sum", -1, flags, |values| {
        let mut sum = crc32fast::Hasher::new();
        for i in 0..values.len() {
            let (kind, bytes): (u8, &[u8]) = match values.get_raw(i) {
                ValueRef::Null => (0, &[]),
                ValueRef::Integer(x) => (1, &x.to_le_bytes()),
                ValueRef::Real(x) => (2, &x.to_bits().to_le_bytes()),
                ValueRef::Text(t) => (3, t),
                ValueRef::Blob(b) => (4, b),
            };
            sum.update(&[kind]);
            sum.update(&(bytes.len() as u64).to_le_bytes());
            sum.update(bytes);
        }
        Ok(i64::from(sum.finalize()))
    })?;
    Ok(())
}

/// SQL that gives every row without a sum its own.
pub fn fill() -> String {
    SUMMED
        .iter()
        .map(|s| {
            let Summed { table, sum, .. } = s;
            format!("UPDATE {table} SET checksum = {sum} WHERE checksum IS NULL;")
        })
        .collect()
}

impl Store {
    /// SQL that is 1 where a row is what was written.
    pub(super) fn sound(&self, table: &str, sum: &str) -> String {
        if self.summed {
            format!("{table}.checksum IS {sum}")
        } else {
            "1".to_owned()
        }
    }

    /// Turns of a memory with rows that are not what was written, in one table.
    pub(super) fn unsound(&self, ns: &Namespace, summed: &Summed) -> Result<Vec<i64>> {
        if !self.summed {
            return Ok(Vec::new());
        }
        let Summed { table, key, .. } = summed;
        let sound = self.sound(table, summed.sum);
        let mut statement = self.conn.prepare(&format!(
            "SELECT {key} FROM {table} WHERE {key} >= ?1 AND {key} < ?2 AND NOT ({sound})
             ORDER BY {key}"
        ))?;
        let (from, to) = ns.range();
        let keys = statement.query_map([from, to], |r| r.get(0))?;
        Ok(keys.collect::<rusqlite::Result<_>>()?)
    }

    /// Erases the turns that are not what was written; returns their ids.
    pub fn erase_unsound_turns(&mut self, name: &str) -> Result<Vec<u64>> {
        self.transaction(|store| {
            let ns = store.known_namespace(name)?;
            let keys = store.unsound(&ns, &SUMMED[0])?;
            let ids: Vec<u64> = keys.into_iter().map(id_of).collect();
            for id in &ids {
                store.erase_turn(&ns, *id)?;
            }
            Ok(ids)
        })
    }
}

/// The error of a turn whose sum is another one.
pub fn damaged_turn(key: i64) -> Error {
    Error::new(
        Code::StoreCorrupt,
        format!(
            "turn {} is not what was written: the file was damaged; `ebbtide doctor` tells what else is, a backup has what was lost",
            id_of(key)
        ),
    )
}

/// The error of derived data whose sum is another one.
pub fn damaged_derived(what: &str) -> Error {
    Error::new(
        Code::StoreCorrupt,
        format!(
            "{what} in the store is not what was written: the file was damaged; `ebbtide doctor --repair` derives it anew"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A column that is added to a table goes into its sum.
    #[test]
    fn a_sum_covers_every_column() {
        let store = Store::in_memory().unwrap();
        for summed in &SUMMED {
            let sql = format!("SELECT * FROM {}", summed.table);
            let statement = store.conn.prepare(&sql).unwrap();
            for name in statement.column_names() {
                let covered = summed.sum.contains(&format!("{}.{name}", summed.table));
                assert!(covered || name == "checksum", "{}.{name}", summed.table);
            }
        }
    }
}
