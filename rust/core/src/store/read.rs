//! Reading turns, facts, vectors and decisions back.

use super::tokens::tokens_of;
use super::write::SAID;
use super::{Namespace, Store, id_of, sums};
use crate::error::{Code, Error, Result};
use crate::lineage::Edge;
use crate::types::{Decision, Facts, Provenance, Relation, Score, State, StoredTurn, Validity};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::result;
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

impl Derived {
    /// Numbers of each of its vectors.
    pub fn dimension(&self) -> usize {
        self.vectors.len() / self.spans.len().max(1)
    }
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

/// Microseconds from the year 1 to the year 9999: no datetime holds others.
const DATED: RangeInclusive<i64> = -62_135_596_800_000_000..=253_402_300_799_999_999;

/// A row, or what about it cannot be: "its …".
type Readable<T> = result::Result<T, String>;

fn turn_of(row: &Row<'_>) -> Result<StoredTurn> {
    let key = row.get(0)?;
    if !row.get::<_, bool>(14)? {
        return Err(sums::damaged_turn(key));
    }
    read_turn(row).map_err(|what| sums::unreadable_turn(key, &what))
}

fn read_turn(row: &Row<'_>) -> Readable<StoredTurn> {
    let (mut turn, provenance) = turn_values(row).map_err(no_value)?;
    if turn.utc_micros.is_some_and(|at| !DATED.contains(&at)) {
        return Err("its time is before the year 1 or after the year 9999".into());
    }
    let metadata = turn.metadata.as_deref();
    if metadata.is_some_and(|m| serde_json::from_str::<Map<String, Value>>(m).is_err()) {
        return Err("its metadata is no JSON object".into());
    }
    if let Some(text) = provenance {
        let read = serde_json::from_str::<Provenance>(&text);
        turn.provenance = Some(read.map_err(|_| "its provenance cannot be read")?);
    }
    Ok(turn)
}

fn no_value(error: rusqlite::Error) -> String {
    format!("a value of it is of the wrong kind ({error})")
}

/// A turn but for its provenance, which is JSON.
fn turn_values(row: &Row<'_>) -> rusqlite::Result<(StoredTurn, Option<String>)> {
    let turn = StoredTurn {
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
        provenance: None,
        metadata: row.get(11)?,
        tokens: row.get(12)?,
        state: if row.get(13)? {
            State::Archived
        } else {
            State::Active
        },
        validity: Validity::Current,
    };
    Ok((turn, row.get(10)?))
}

fn derived_of(row: &Row<'_>, at: usize) -> Result<Option<Derived>> {
    if row.get_ref(at)? == ValueRef::Null {
        return Ok(None);
    }
    if !row.get::<_, bool>(at + 10)? {
        return Err(sums::damaged_derived(DERIVED_ROW));
    }
    let read = read_derived(row, at).map(Some);
    read.map_err(|what| sums::unreadable_derived(DERIVED_ROW, &what))
}

fn read_derived(row: &Row<'_>, at: usize) -> Readable<Derived> {
    let (score, blobs) = derived_values(row, at).map_err(no_value)?;
    let [facts, spans, vectors, card_vectors] = blobs;
    if !fitting(spans.len(), vectors.len(), card_vectors.len()) {
        return Err(MISFIT.into());
    }
    Ok(Derived {
        facts: postcard::from_bytes(&facts).map_err(|_| "its facts cannot be read")?,
        score,
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
    })
}

/// The terms of a score, then facts, spans, vectors and card vectors as they are stored.
fn derived_values(row: &Row<'_>, at: usize) -> rusqlite::Result<(Score, [Vec<u8>; 4])> {
    let score = Score {
        divergence: row.get(at)?,
        z_content: row.get(at + 1)?,
        z_op: row.get(at + 2)?,
        z_prov: row.get(at + 3)?,
        omega_raw: row.get(at + 4)?,
        omega: row.get(at + 5)?,
    };
    let blob = |i| row.get(at + i);
    Ok((score, [blob(6)?, blob(7)?, blob(8)?, blob(9)?]))
}

const MISFIT: &str = "its vectors do not fit its passages";

/// Whether so many bytes of spans, vectors and card vectors belong together: one vector a
/// passage, and all of one dimension.
fn fitting(spans: usize, vectors: usize, card_vectors: usize) -> bool {
    let passages = spans / 8;
    let whole = |bytes: usize, part: usize| part > 0 && bytes.is_multiple_of(part);
    whole(spans, 8)
        && vectors > 0
        && whole(vectors, 2 * passages)
        && whole(card_vectors, vectors / passages)
}

/// Turns as a table gives them. Where it is damaged they may go back, and whoever reads on
/// from the last one would never come to an end.
struct Ascending {
    next: i64,
    end: i64,
}

impl Ascending {
    fn from(ns: &Namespace, id: u64) -> Self {
        Self {
            next: ns.key(id),
            end: ns.range().1,
        }
    }

    fn take(&mut self, key: i64) -> Result<()> {
        if !(self.next..self.end).contains(&key) {
            return Err(Error::new(
                Code::StoreCorrupt,
                "the turns in the store are out of order: the file was damaged; `ebbtide doctor` tells what else is, a backup has what was lost",
            ));
        }
        self.next = key + 1;
        Ok(())
    }
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
        let (mut order, mut width) = (Ascending::from(ns, from), None);
        while let Some(row) = rows.next()? {
            order.take(row.get(0)?)?;
            let turn = turn_of(row)?;
            let derived = derived_of(row, AFTER_TURN)?;
            if let Some(own) = derived.as_ref().map(Derived::dimension)
                && *width.get_or_insert(own) != own
            {
                return Err(sums::unreadable_derived(DERIVED_ROW, MISFIT));
            }
            each(LoadedTurn { turn, derived })?;
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
        let (mut found, mut order) = (Vec::new(), Ascending::from(ns, from));
        while let Some(row) = rows.next()? {
            order.take(row.get(0)?)?;
            let derived = derived_of(row, AFTER_TURN)?;
            let dimension = derived.as_ref().map_or(0, Derived::dimension);
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
        let (mut found, mut order) = (Vec::new(), Ascending::from(ns, from));
        while let Some(row) = rows.next()? {
            order.take(row.get(0)?)?;
            found.push(turn_of(row)?);
        }
        Ok(found)
    }

    /// Turns that are what was written and cannot be read: their keys, and why.
    pub(super) fn unreadable_turns(&self, ns: &Namespace) -> Result<Vec<(i64, String)>> {
        let sound = self.sound("turn", sums::TURN);
        self.unreadable(ns, &format!("{TURN}, 1 FROM turn WHERE {sound}"), |row| {
            read_turn(row).map(drop)
        })
    }

    /// The same of what was derived from them, whether or not it is what was written.
    pub(super) fn unreadable_derived(&self, ns: &Namespace) -> Result<Vec<(i64, String)>> {
        let mut width = None;
        self.unreadable(ns, &format!("key, {DERIVED} FROM derived WHERE 1"), |row| {
            let own = read_derived(row, 1)?.dimension();
            if *width.get_or_insert(own) == own {
                Ok(())
            } else {
                Err(MISFIT.into())
            }
        })
    }

    /// Rows whose first column is a turn's key, and that `read` cannot read.
    fn unreadable(
        &self,
        ns: &Namespace,
        rows: &str,
        mut read: impl FnMut(&Row<'_>) -> Readable<()>,
    ) -> Result<Vec<(i64, String)>> {
        let sql = format!("SELECT {rows} AND key >= ?1 AND key < ?2 ORDER BY key");
        let mut statement = self.conn.prepare(&sql)?;
        let (from, to) = ns.range();
        let mut rows = statement.query([from, to])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            if let Err(what) = read(row) {
                found.push((row.get(0)?, what));
            }
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
    pub fn decision_counts(&self, ns: &Namespace) -> Result<BTreeMap<String, u64>> {
        let (from, to) = ns.range();
        // Counted here: to group them, SQLite would sort them all.
        let sql = "SELECT kind FROM decision WHERE key >= ?1 AND key < ?2";
        let mut statement = self.conn.prepare_cached(sql)?;
        let mut rows = statement.query([from, to])?;
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let kind = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            match counts.get_mut(kind) {
                Some(count) => *count += 1,
                None => drop(counts.insert(kind.to_owned(), 1)),
            }
        }
        Ok(counts)
    }
}
