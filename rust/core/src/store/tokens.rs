//! Token vectors in the store: four bits a number, eight in rows of earlier versions of the schema.
//!
//! Rows in eight bits are packed as they are read, so that a memory gives the same evidence
//! whichever version wrote it; `reindex` writes them anew.

use super::schema::PACKED_SINCE;
use super::{Namespace, Store, id_of, sums};
use crate::error::Result;
use crate::types::Passage;
use ebbtide_simd::packed;
use rusqlite::Row;
use std::sync::Arc;

/// What is written in the column of that name.
pub(super) const BITS: i64 = 4;

/// Token vectors of all passages, packed, one after the other.
pub(super) fn of_passages(passages: &[Passage]) -> Vec<u8> {
    let mut out = Vec::new();
    for p in passages.iter().filter(|p| !p.vector.is_empty()) {
        packed::pack(&p.tokens, p.vector.len(), &mut out);
    }
    out
}

impl Store {
    /// The columns that [`tokens_of`] reads.
    pub(super) fn token_columns(&self) -> String {
        let bits = if self.version < PACKED_SINCE {
            "NULL"
        } else {
            "token_vector.bits"
        };
        let sound = self.sound("token_vector", sums::TOKENS);
        format!("token_vector.vectors, {bits}, {sound}")
    }

    /// Token vectors of the turns from `first` to `last`, of `dimension` numbers each, in
    /// [`packed`] rows one after the other; of those that have any, in id order.
    pub fn token_vectors(
        &self,
        ns: &Namespace,
        (first, last): (u64, u64),
        dimension: usize,
    ) -> Result<Vec<(u64, Arc<[u8]>)>> {
        let columns = self.token_columns();
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {columns}, key FROM token_vector WHERE key >= ?1 AND key <= ?2 ORDER BY key"
        ))?;
        let mut rows = statement.query([ns.key(first), ns.key(last)])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((id_of(row.get(3)?), tokens_of(row, 0, dimension)?));
        }
        Ok(found)
    }
}

/// What stands in the [`Store::token_columns`] of a row, from column `at` on.
pub(super) fn tokens_of(row: &Row<'_>, at: usize, dimension: usize) -> Result<Arc<[u8]>> {
    let Some(vectors) = row.get::<_, Option<Arc<[u8]>>>(at)? else {
        return Ok(Arc::default());
    };
    if !row.get::<_, bool>(at + 2)? {
        return Err(sums::damaged_derived("a row of token vectors"));
    }
    if row.get::<_, Option<i64>>(at + 1)?.is_some() || dimension == 0 {
        return Ok(vectors);
    }
    let bytes: Vec<i8> = vectors.iter().map(|x| x.cast_signed()).collect();
    let mut rows = Vec::new();
    packed::pack(&bytes, dimension, &mut rows);
    Ok(rows.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_earlier_releases_read_as_those_of_this_one() {
        let mut store = Store::in_memory().unwrap();
        let ns = store.namespace("m", "").unwrap();
        let rows: Vec<i8> = vec![100, -30, 5, 70, 0, 0, 1, -127];
        let bytes: Vec<u8> = rows.iter().map(|x| x.cast_unsigned()).collect();
        store
            .conn
            .execute(
                "INSERT INTO token_vector (key, vectors) VALUES (?1, ?2)",
                (ns.key(3), bytes),
            )
            .unwrap();
        store.conn.execute_batch(&sums::fill()).unwrap();
        let mut packed = Vec::new();
        packed::pack(&rows, 4, &mut packed);
        let packed: Arc<[u8]> = packed.into();
        let read = store.token_vectors(&ns, (0, 9), 4).unwrap();
        assert_eq!(read, [(3, Arc::clone(&packed))]);
        // A store that is only read has no such column.
        store
            .conn
            .execute_batch("ALTER TABLE token_vector DROP COLUMN bits")
            .unwrap();
        store.version = PACKED_SINCE - 1;
        assert_eq!(store.token_vectors(&ns, (3, 3), 4).unwrap(), [(3, packed)]);
    }

    #[test]
    fn the_bits_are_summed_too() {
        let store = Store::in_memory().unwrap();
        let ns = store.namespace("m", "").unwrap();
        store
            .conn
            .execute(
                "INSERT INTO token_vector (key, vectors) VALUES (?1, x'0102')",
                [ns.key(0)],
            )
            .unwrap();
        store.conn.execute_batch(&sums::fill()).unwrap();
        store
            .conn
            .execute_batch("UPDATE token_vector SET bits = 4")
            .unwrap();
        assert!(store.token_vectors(&ns, (0, 0), 2).is_err());
    }
}
