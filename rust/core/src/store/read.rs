//! Reading turns, facts, vectors and decisions back.

use super::tokens::tokens_of;
use super::write::SAID;
use super::{Namespace, Store, id_of, sums};
use crate::error::{Code, Error, Result};
use crate::lineage::Edge;
use crate::types::{Decision, Facts, Provenance, Relation, Score, State, StoredTurn, Validity};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};
use std::sync::Arc;

/// What was derived from one turn.
#[derive(Debug, Clone)]
pub struct Derived {
    /// Its facts.
    pub facts: Facts,
    /// The terms of its score.
    pub score: Score,
    /// Character spans of its passages.
    pub spans: Vec<(u32, u32)>,
    /// Their vectors, one after the other.
    pub vectors: Vec<i16>,
    /// Vectors of its cards, one after the other.
    pub card_vectors: Vec<i16>,
}

/// A turn with its derived data, as the engine is rebuilt from the store.
#[derive(Debug, Clone)]
pub struct LoadedTurn {
    /// The turn; its validity is for the lineage to say.
    pub turn: StoredTurn,
    /// What was derived from it; none while its analysis is still to come.
    pub derived: Option<Derived>,
}

/// A turn with its derived data and its token vectors.
#[derive(Debug, Clone)]
pub struct Scanned {
    /// The turn; its validity is for the lineage to say.
    pub turn: StoredTurn,
    /// What was derived from it; none while its analysis is still to come.
    pub derived: Option<Derived>,
    /// Its token vectors, packed, one after the other.
    pub tokens: Arc<[u8]>,
}

/// A decision as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionRow {
    /// The turn that was the newest when it was taken.
    pub at: u64,
    /// Its place among those of that moment.
    pub seq: u32,
    /// Kind.
    pub kind: String,
    /// JSON.
    pub detail: String,
}

/// What a caller's own id leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum External {
    /// A turn that is there.
    Turn(u64),
    /// One that is not, with the [sum](super::text_sum) of what it said; an earlier release
    /// kept none.
    Discarded(Option<u64>),
}

const TURN: &str = "turn.key, record_id, external_id, role, speaker, text, timestamp, utc, naive,
    session_id, provenance, metadata, tokens, archived";
const DERIVED: &str =
    "divergence, z_content, z_op, z_prov, omega_raw, omega, facts, spans, derived.vectors,
    card_vectors";

/// What a row of it is called in an error.
const DERIVED_ROW: &str = "what was derived from a turn";

/// Columns of what was derived, from where on they stand behind those of a turn.
const AFTER_TURN: usize = 15;

fn turn_of(row: &Row<'_>) -> Result<StoredTurn> {
    if !row.get::<_, bool>(14)? {
        return Err(sums::damaged_turn(row.get(0)?));
    }
    let provenance: Option<String> = row.get(10)?;
    Ok(StoredTurn {
        interaction_id: id_of(row.get(0)?),
        record_id: row.get(1)?,
        external_id: row.get(2)?,
        role: row.get(3)?,
        speaker: row.get(4)?,
        text: row.get(5)?,
        timestamp: row.get(6)?,
        utc_micros: row.get(7)?,
        naive_timestamp: row.get(8)?,
        session_id: row.get(9)?,
        provenance: provenance.and_then(|p| serde_json::from_str::<Provenance>(&p).ok()),
        metadata: row.get(11)?,
        tokens: row.get(12)?,
        state: if row.get(13)? {
            State::Archived
        } else {
            State::Active
        },
        validity: Validity::Current,
    })
}

fn derived_of(row: &Row<'_>, at: usize) -> Result<Option<Derived>> {
    let Some(divergence) = row.get::<_, Option<f64>>(at)? else {
        return Ok(None);
    };
    if !row.get::<_, bool>(at + 10)? {
        return Err(sums::damaged_derived(DERIVED_ROW));
    }
    let facts: Vec<u8> = row.get(at + 6)?;
    let spans: Vec<u8> = row.get(at + 7)?;
    let vectors: Vec<u8> = row.get(at + 8)?;
    let card_vectors: Vec<u8> = row.get(at + 9)?;
    Ok(Some(Derived {
        facts: postcard::from_bytes(&facts)?,
        score: Score {
            divergence,
            z_content: row.get(at + 1)?,
            z_op: row.get(at + 2)?,
            z_prov: row.get(at + 3)?,
            omega_raw: row.get(at + 4)?,
            omega: row.get(at + 5)?,
        },
        spans: spans
            .chunks_exact(8)
            .map(|c| {
                (
                    u32::from_le_bytes([c[0], c[1], c[2], c[3]]),
                    u32::from_le_bytes([c[4], c[5], c[6], c[7]]),
                )
            })
            .collect(),
        vectors: shorts(&vectors),
        card_vectors: shorts(&card_vectors),
    }))
}

fn shorts(bytes: &[u8]) -> Vec<i16> {
    bytes
        .chunks_exact(2)
        .map(|c| i16::from_le_bytes([c[0], c[1]]))
        .collect()
}

impl Store {
    fn turn_columns(&self) -> String {
        format!("{TURN}, {}", self.sound("turn", sums::TURN))
    }

    fn derived_columns(&self) -> String {
        format!("{DERIVED}, {}", self.sound("derived", sums::DERIVED))
    }

    /// Calls `each` with every turn of a memory, in id order, from `from` on.
    /// One at a time: a long memory never stands in the working memory twice.
    pub fn for_each_loaded(
        &self,
        ns: &Namespace,
        from: u64,
        mut each: impl FnMut(LoadedTurn) -> Result<()>,
    ) -> Result<()> {
        let (turn, derived) = (self.turn_columns(), self.derived_columns());
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {turn}, {derived} FROM turn LEFT JOIN derived ON derived.key = turn.key
             WHERE turn.key >= ?1 AND turn.key < ?2 ORDER BY turn.key"
        ))?;
        let mut rows = statement.query([ns.key(from), ns.range().1])?;
        while let Some(row) = rows.next()? {
            each(LoadedTurn {
                turn: turn_of(row)?,
                derived: derived_of(row, AFTER_TURN)?,
            })?;
        }
        Ok(())
    }

    /// Up to `limit` turns from `from` on, in id order, with all that was read of them
    /// and their token vectors: what a scan of the history needs.
    pub fn chunk(&self, ns: &Namespace, from: u64, limit: u32) -> Result<Vec<Scanned>> {
        let (turn, derived) = (self.turn_columns(), self.derived_columns());
        let tokens = self.token_columns();
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {turn}, {derived}, {tokens} FROM turn
             LEFT JOIN derived ON derived.key = turn.key
             LEFT JOIN token_vector ON token_vector.key = turn.key
             WHERE turn.key >= ?1 AND turn.key < ?2 ORDER BY turn.key LIMIT ?3"
        ))?;
        let mut rows = statement.query(params![ns.key(from), ns.range().1, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let derived = derived_of(row, AFTER_TURN)?;
            let dimension = derived
                .as_ref()
                .map_or(0, |d| d.vectors.len() / d.spans.len().max(1));
            found.push(Scanned {
                turn: turn_of(row)?,
                tokens: tokens_of(row, AFTER_TURN + 11, dimension)?,
                derived,
            });
        }
        Ok(found)
    }

    /// Up to `limit` turns from `from` on, in id order, optionally of one state.
    pub fn page(
        &self,
        ns: &Namespace,
        from: u64,
        limit: u32,
        state: Option<State>,
    ) -> Result<Vec<StoredTurn>> {
        let turn = self.turn_columns();
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT {turn} FROM turn
             WHERE key >= ?1 AND key < ?2 AND (?4 IS NULL OR archived = ?4) ORDER BY key LIMIT ?3"
        ))?;
        let archived = state.map(|s| s == State::Archived);
        let mut rows = statement.query(params![ns.key(from), ns.range().1, limit, archived])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(turn_of(row)?);
        }
        Ok(found)
    }

    /// One turn.
    pub fn turn(&self, ns: &Namespace, id: u64) -> Result<Option<StoredTurn>> {
        let sql = format!("SELECT {} FROM turn WHERE key = ?1", self.turn_columns());
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([ns.key(id)])?;
        rows.next()?.map(turn_of).transpose()
    }

    /// Text and facts of one turn: what recall reads of a candidate.
    pub fn text_and_facts(&self, ns: &Namespace, id: u64) -> Result<Option<(String, Facts)>> {
        let sql = format!(
            "SELECT turn.text, {}, facts, {} FROM turn
             LEFT JOIN derived ON derived.key = turn.key WHERE turn.key = ?1",
            self.sound("turn", sums::TURN),
            self.sound("derived", sums::DERIVED)
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([ns.key(id)])?;
        let Some(row) = rows.next()? else {
            return Ok(None);
        };
        if !row.get::<_, bool>(1)? {
            return Err(sums::damaged_turn(ns.key(id)));
        }
        let text = row.get(0)?;
        let ValueRef::Blob(facts) = row.get_ref(2)? else {
            return Ok(Some((text, Facts::default())));
        };
        if !row.get::<_, bool>(3)? {
            return Err(sums::damaged_derived(DERIVED_ROW));
        }
        Ok(Some((text, postcard::from_bytes(facts)?)))
    }

    /// What was derived from one turn.
    pub fn derived(&self, ns: &Namespace, id: u64) -> Result<Option<Derived>> {
        let sql = format!(
            "SELECT {} FROM derived WHERE key = ?1",
            self.derived_columns()
        );
        let mut statement = self.conn.prepare_cached(&sql)?;
        let mut rows = statement.query([ns.key(id)])?;
        match rows.next()? {
            Some(row) => derived_of(row, 0),
            None => Ok(None),
        }
    }

    /// What the caller's own id of a turn leads to.
    pub fn external(&self, ns: &Namespace, external_id: &str) -> Result<Option<External>> {
        let key: Option<i64> = self
            .conn
            .prepare_cached("SELECT key FROM external WHERE namespace = ?1 AND external_id = ?2")?
            .query_row(params![ns.id, external_id], |r| r.get(0))
            .optional()?;
        Ok(key.map(|key| match id_of(key) {
            id if key >= 0 => External::Turn(id),
            sum if sum & SAID > 0 => External::Discarded(Some(sum)),
            _ => External::Discarded(None),
        }))
    }

    /// Every lineage edge of a memory.
    pub fn edges(&self, ns: &Namespace) -> Result<Vec<Edge>> {
        let (from, to) = ns.range();
        let sound = self.sound("lineage", sums::LINEAGE);
        let mut statement = self.conn.prepare_cached(&format!(
            "SELECT older, newer, relation, topic, by_caller, {sound} FROM lineage
             WHERE older >= ?1 AND older < ?2 ORDER BY older, newer, relation, topic"
        ))?;
        let mut rows = statement.query([from, to])?;
        let mut edges = Vec::new();
        while let Some(row) = rows.next()? {
            if !row.get::<_, bool>(5)? {
                return Err(sums::damaged_derived("a relation between turns"));
            }
            let name: String = row.get(2)?;
            let relation = Relation::parse(&name).ok_or_else(|| {
                Error::new(
                    Code::StoreCorrupt,
                    format!("unknown lineage relation {name:?} in the store"),
                )
            })?;
            edges.push(Edge {
                older: id_of(row.get(0)?),
                newer: id_of(row.get(1)?),
                relation,
                topic: row.get(3)?,
                by_caller: row.get(4)?,
            });
        }
        Ok(edges)
    }

    /// Decisions about one turn, oldest first.
    pub fn decisions(&self, ns: &Namespace, id: u64) -> Result<Vec<Decision>> {
        let rows = self.decision_rows(ns, id)?.into_iter();
        let decisions = rows.map(|row| Decision {
            interaction_id: id,
            at: row.at,
            kind: row.kind,
            detail: serde_json::from_str(&row.detail).unwrap_or(serde_json::Value::Null),
        });
        Ok(decisions.collect())
    }

    /// The same as they are written down.
    pub fn decision_rows(&self, ns: &Namespace, id: u64) -> Result<Vec<DecisionRow>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT at, seq, kind, detail FROM decision WHERE key = ?1 ORDER BY at, seq",
        )?;
        let rows = statement.query_map([ns.key(id)], |row| {
            Ok(DecisionRow {
                at: row.get::<_, i64>(0)?.cast_unsigned(),
                seq: row.get(1)?,
                kind: row.get(2)?,
                detail: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// The number of the last decision on a turn at one moment; 0 where there is none.
    pub fn last_decision(&self, ns: &Namespace, id: u64, at: u64) -> Result<u32> {
        let mut statement = self
            .conn
            .prepare_cached("SELECT max(seq) FROM decision WHERE key = ?1 AND at = ?2")?;
        let last = statement.query_row([ns.key(id), at.cast_signed()], |r| {
            r.get::<_, Option<u32>>(0)
        })?;
        Ok(last.unwrap_or(0))
    }

    /// How often each kind of decision was taken in a memory.
    pub fn decision_counts(&self, ns: &Namespace) -> Result<Vec<(String, u64)>> {
        let (from, to) = ns.range();
        let mut statement = self.conn.prepare_cached(
            "SELECT kind, count(*) FROM decision WHERE key >= ?1 AND key < ?2 GROUP BY kind ORDER BY kind",
        )?;
        let rows = statement.query_map([from, to], |r| {
            Ok((r.get(0)?, r.get::<_, i64>(1)?.unsigned_abs()))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}
