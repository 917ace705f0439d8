//! What a copy of a memory elsewhere is made from: ids and passage vectors.

use super::{Namespace, Store, id_of};
use crate::error::Result;
use rusqlite::params;

impl Store {
    /// Ids of every turn, analysed or not, in order.
    pub fn ids(&self, ns: &Namespace) -> Result<Vec<u64>> {
        let (from, to) = ns.range();
        let mut statement = self
            .conn
            .prepare_cached("SELECT key FROM turn WHERE key >= ?1 AND key < ?2 ORDER BY key")?;
        let rows = statement.query_map([from, to], |r| Ok(id_of(r.get(0)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Passage vectors of up to `limit` analysed turns from `from` on, in id order:
    /// 16-bit integers, little endian, one passage after the other.
    pub fn vectors(&self, ns: &Namespace, from: u64, limit: u32) -> Result<Vec<(u64, Vec<u8>)>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT key, vectors FROM derived WHERE key >= ?1 AND key < ?2 ORDER BY key LIMIT ?3",
        )?;
        let rows = statement.query_map(params![ns.key(from), ns.range().1, limit], |r| {
            Ok((id_of(r.get(0)?), r.get(1)?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
