//! Writing. Every function here runs inside `Store::transaction`.

use super::row_sum;
use super::sums::{self, turn_sum};
use super::{Namespace, Store, tokens};
use crate::error::Result;
use crate::lineage::Edge;
use crate::types::{AnalysedTurn, InteractionId, NewTurn, Passage, Score};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Statement, params};
use serde_json::json;

/// A turn about to be journalled, with what the engine derived for it.
#[derive(Debug)]
pub struct TurnRow<'a> {
    /// Interaction id.
    pub id: u64,
    /// Derived record id.
    pub record_id: &'a str,
    /// Tokens.
    pub tokens: u32,
    /// The turn.
    pub turn: &'a NewTurn,
}

/// Bytes that the facts of nearly every turn fit in.
const MOST_FACTS: usize = 1024;

/// Decisions on what callers stated have numbers above it, which no insertion gets to: what
/// one decided is decided again by a reindexing, and what a caller stated is not.
pub const STATED: u32 = 1 << 20;
/// What is added to the number of such a decision where an earlier release gave it one that
/// an insertion may get to; below those given since.
const STATED_BEFORE: u32 = 1 << 19;

/// The bit that the low half of the key of an external id has where the turn was discarded,
/// and the rest of it is the sum of what it said rather than an id; no id is that great.
pub(super) const SAID: u64 = 1 << 39;

/// The keys of several turns, where [`keys_of`] is the first parameter.
pub(super) const THESE: &str = "(SELECT value FROM json_each(?1))";

/// Keys of turns as SQLite reads several from one parameter.
fn keys_of(ns: &Namespace, ids: &[InteractionId]) -> String {
    let keys: Vec<i64> = ids.iter().map(|id| ns.key(*id)).collect();
    json!(keys).to_string()
}

// `|` less `&`: SQL has no exclusive or.
const ARCHIVE: &str = "UPDATE turn SET archived = 1,
    checksum = (checksum | ?2) - (checksum & ?2) WHERE key = ?1 AND archived = 0";

const SET_TOKENS: &str = concat!(
    "UPDATE turn SET tokens = ?2, checksum = ",
    turn_sum!("?2", "turn.archived"),
    " WHERE key = ?1"
);

impl Store {
    /// Writes a row whose first `keys` values are keys of turns; its sum is bound last.
    fn put_row(&self, sql: &str, keys: usize, values: &[ValueRef<'_>]) -> Result<()> {
        let mut statement = self.conn.prepare_cached(sql)?;
        put(&mut statement, keys, values)
    }

    /// Makes the caller's own id of a turn known; `false` where it is known already.
    pub fn insert_external(&self, ns: &Namespace, external_id: &str, id: u64) -> Result<bool> {
        let rows = self
            .conn
            .prepare_cached(
                "INSERT OR IGNORE INTO external (namespace, external_id, key) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![ns.id, external_id, ns.key(id)])?;
        Ok(rows == 1)
    }

    /// Journals the raw turn.
    pub fn insert_turn(&self, ns: &Namespace, row: &TurnRow<'_>) -> Result<()> {
        let t = row.turn;
        let stamp = t.timestamp.as_ref();
        let provenance = t
            .provenance
            .as_ref()
            .map(|p| serde_json::json!(p).to_string());
        self.put_row(
            "INSERT INTO turn (key, record_id, external_id, role, speaker, text, timestamp, utc,
             naive, session_id, provenance, metadata, received_at, tokens, archived, checksum)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            1,
            &[
                ValueRef::Integer(ns.key(row.id)),
                row.record_id.into(),
                t.external_id.as_deref().into(),
                t.role.as_str().into(),
                t.speaker.as_deref().into(),
                t.text.as_str().into(),
                stamp.map(|s| s.given.as_str()).into(),
                stamp.map_or(ValueRef::Null, |s| ValueRef::Integer(s.utc_micros)),
                ValueRef::Integer(stamp.is_some_and(|s| s.naive).into()),
                t.session_id.as_deref().into(),
                provenance.as_deref().into(),
                t.metadata.as_deref().into(),
                ValueRef::Integer(t.received_at),
                ValueRef::Integer(row.tokens.into()),
                ValueRef::Integer(0),
            ],
        )
    }

    /// Stores what was derived from a turn: facts, score, vectors.
    pub fn insert_derived(
        &self,
        ns: &Namespace,
        id: u64,
        analysed: &AnalysedTurn,
        score: &Score,
        keep_tokens: bool,
    ) -> Result<()> {
        let facts = postcard::to_extend(&analysed.facts, Vec::with_capacity(MOST_FACTS))?;
        let (spans, vectors) = pack_passages(&analysed.passages);
        let mut cards = Vec::new();
        for vector in &analysed.card_vectors {
            put_le(vector, &mut cards);
        }
        let key = ValueRef::Integer(ns.key(id));
        self.put_row(
            "INSERT OR REPLACE INTO derived (key, divergence, z_content, z_op, z_prov, omega_raw,
             omega, facts, spans, vectors, card_vectors, checksum)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            1,
            &[
                key,
                ValueRef::Real(score.divergence),
                ValueRef::Real(score.z_content),
                ValueRef::Real(score.z_op),
                ValueRef::Real(score.z_prov),
                ValueRef::Real(score.omega_raw),
                ValueRef::Real(score.omega),
                ValueRef::Blob(&facts),
                ValueRef::Blob(&spans),
                ValueRef::Blob(&vectors),
                ValueRef::Blob(&cards),
            ],
        )?;
        if keep_tokens && analysed.passages.iter().any(|p| !p.tokens.is_empty()) {
            let rows = tokens::of_passages(&analysed.passages);
            let bits = ValueRef::Integer(tokens::BITS);
            self.put_row(
                "INSERT OR REPLACE INTO token_vector (key, vectors, bits, checksum)
                 VALUES (?, ?, ?, ?)",
                1,
                &[key, ValueRef::Blob(&rows), bits],
            )?;
        }
        Ok(())
    }

    /// Moves a turn from the active memory to the archive.
    pub fn archive_turn(&self, ns: &Namespace, id: u64) -> Result<()> {
        self.conn
            .prepare_cached(ARCHIVE)?
            .execute([ns.key(id), row_sum::archiving()])?;
        Ok(())
    }

    /// Records a lineage edge.
    pub fn insert_edge(&self, ns: &Namespace, edge: &Edge) -> Result<()> {
        self.put_row(
            "INSERT OR IGNORE INTO lineage (older, newer, relation, topic, by_caller, checksum)
             VALUES (?, ?, ?, ?, ?, ?)",
            2,
            &[
                ValueRef::Integer(ns.key(edge.older)),
                ValueRef::Integer(ns.key(edge.newer)),
                edge.relation.as_str().into(),
                edge.topic.as_str().into(),
                ValueRef::Integer(edge.by_caller.into()),
            ],
        )
    }

    /// Erases a lineage edge.
    pub fn erase_edge(&self, ns: &Namespace, edge: &Edge) -> Result<()> {
        self.conn
            .prepare_cached(
                "DELETE FROM lineage
                 WHERE older = ?1 AND newer = ?2 AND relation = ?3 AND topic = ?4",
            )?
            .execute(params![
                ns.key(edge.older),
                ns.key(edge.newer),
                edge.relation.as_str(),
                edge.topic
            ])?;
        Ok(())
    }

    /// Erases what was decided on a turn at one moment.
    pub fn erase_decisions_at(&self, ns: &Namespace, id: u64, at: u64) -> Result<()> {
        self.conn
            .prepare_cached("DELETE FROM decision WHERE key = ?1 AND at = ?2")?
            .execute([ns.key(id), at.cast_signed()])?;
        Ok(())
    }

    /// Advances the id counter and names the analyser.
    pub fn update_namespace(&self, ns: &Namespace) -> Result<()> {
        self.conn
            .prepare_cached(
                "UPDATE namespace SET next_id = ?2, analyser = ?3, token_counter = ?4 WHERE id = ?1",
            )?
            .execute(params![ns.id, ns.next_id.cast_signed(), ns.analyser, ns.token_counter])?;
        Ok(())
    }

    /// Sets a turn's token count (after a change of the counter).
    pub fn set_tokens(&self, ns: &Namespace, id: u64, tokens: u32) -> Result<()> {
        self.conn
            .prepare_cached(SET_TOKENS)?
            .execute(params![ns.key(id), tokens])?;
        Ok(())
    }

    /// Keeps the external id of a turn that is about to be discarded: it was here, and the
    /// same turn again is a duplicate whenever it comes. The sign says that the turn is gone;
    /// in place of its id, which leads nowhere, there is the sum of its text.
    pub fn keep_external(&self, ns: &Namespace, id: u64) -> Result<()> {
        let gone = i64::MIN | ns.key(SAID);
        self.conn
            .prepare_cached(
                "UPDATE external SET key = ?3 | row_sum(turn.text) FROM turn
                 WHERE turn.key = ?1 AND external.key = ?1 AND external.namespace = ?2
                 AND external.external_id = turn.external_id",
            )?
            .execute(params![ns.key(id), ns.id, gone])?;
        Ok(())
    }

    /// The same of every external id whose turn is not there.
    pub(super) fn keep_externals_of_nobody(&self, ns: &Namespace) -> Result<()> {
        self.conn.execute(
            "UPDATE external SET key = key | ?2 WHERE namespace = ?1
             AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.key = external.key)",
            [ns.id, i64::MIN],
        )?;
        Ok(())
    }

    /// Erases turns, given in id order, from every table. Tables that are not in the order of
    /// turns are gone through once, as far as they are of this memory.
    pub fn erase_turns(&self, ns: &Namespace, ids: &[InteractionId]) -> Result<()> {
        self.erasures.set(self.erasures.get() + 1);
        self.erase_drawn_on(ns, ids)?;
        let keys = keys_of(ns, ids);
        self.erase_gathered_of(ns, &keys)?;
        let (from, to) = ns.range();
        let external = format!(
            "DELETE FROM external WHERE namespace = ?2 AND key IN {THESE} AND external_id IN
             (SELECT external_id FROM turn WHERE turn.key IN {THESE})"
        );
        self.conn
            .prepare_cached(&external)?
            .execute(params![keys, ns.id])?;
        for (table, first) in [("lineage", "older"), ("link", "newer")] {
            let sql = format!(
                "DELETE FROM {table} WHERE {first} >= ?2 AND {first} < ?3
                 AND (older IN {THESE} OR newer IN {THESE})"
            );
            self.conn
                .prepare_cached(&sql)?
                .execute(params![keys, from, to])?;
        }
        for table in [
            "decision",
            "gate",
            "assessment",
            "derived",
            "token_vector",
            "turn",
        ] {
            let sql = format!("DELETE FROM {table} WHERE key IN {THESE}");
            self.conn.prepare_cached(&sql)?.execute([&keys])?;
        }
        Ok(())
    }

    /// Erases every turn of a memory; its id counter stays.
    pub fn erase_all(&self, ns: &Namespace) -> Result<()> {
        let (from, to) = ns.range();
        self.conn
            .execute("DELETE FROM external WHERE namespace = ?1", [ns.id])?;
        self.conn.execute(
            "DELETE FROM lineage WHERE older >= ?1 AND older < ?2",
            [from, to],
        )?;
        // Without relations, those that were stated are derived like others.
        self.erase_derived(ns)?;
        self.erase_written(ns)?;
        self.conn
            .execute("DELETE FROM turn WHERE key >= ?1 AND key < ?2", [from, to])?;
        Ok(())
    }

    /// Erases what can be rebuilt: scores, vectors, decisions, engine-made edges. Not what a
    /// caller stated, nor when.
    pub fn erase_derived(&self, ns: &Namespace) -> Result<()> {
        self.erasures.set(self.erasures.get() + 1);
        self.erase_gathered(ns)?;
        let (from, to) = ns.range();
        self.conn.execute(
            "DELETE FROM link WHERE newer >= ?1 AND newer < ?2",
            [from, to],
        )?;
        self.conn.execute(
            // Where its sum is another one, it is not to be relied on, nor even read.
            &format!(
                "DELETE FROM decision WHERE key >= ?1 AND key < ?2 AND (kind <> 'relate'
                 OR NOT EXISTS (SELECT 1 FROM lineage WHERE older = decision.key AND by_caller
                     AND newer = (?1 | CASE WHEN {} THEN json_extract(detail, '$.by') END)))",
                self.sound("decision", sums::DECISION)
            ),
            [from, to],
        )?;
        let seq = format!("decision.seq + {STATED_BEFORE}");
        let sum = sums::DECISION.replace("decision.seq", &seq);
        self.conn.execute(
            &format!(
                "UPDATE decision SET seq = {seq}, checksum = {sum}
                 WHERE key >= ?1 AND key < ?2 AND seq < {STATED_BEFORE}"
            ),
            [from, to],
        )?;
        for table in ["derived", "token_vector", "gate"] {
            self.conn.execute(
                &format!("DELETE FROM {table} WHERE key >= ?1 AND key < ?2"),
                [from, to],
            )?;
        }
        self.conn.execute(
            "DELETE FROM lineage WHERE older >= ?1 AND older < ?2 AND by_caller = 0",
            [from, to],
        )?;
        let active = turn_sum!("turn.tokens", "0");
        self.conn.execute(
            // One that is damaged keeps its sum: it must not pass for sound.
            &format!(
                "UPDATE turn SET archived = 0, checksum = {active}
                 WHERE key >= ?1 AND key < ?2 AND archived <> 0 AND checksum IS {}",
                sums::TURN
            ),
            [from, to],
        )?;
        Ok(())
    }

    /// Erases a memory and its name.
    pub fn erase_namespace(&self, ns: &Namespace) -> Result<()> {
        self.erase_all(ns)?;
        self.conn
            .execute("DELETE FROM namespace WHERE id = ?1", [ns.id])?;
        Ok(())
    }
}

/// The number that a decision on what a caller stated has, whichever release gave it one.
pub fn stated_seq(seq: u32) -> u32 {
    if seq < STATED_BEFORE {
        seq + STATED_BEFORE
    } else {
        seq
    }
}

/// What is kept of the text of a discarded turn.
pub fn text_sum(text: &str) -> u64 {
    SAID | row_sum::of_row(0, &[text.into()]).cast_unsigned()
}

/// Decisions as they are recorded: a turn has several, and the statement is looked up once.
pub struct DecisionLog<'a> {
    store: &'a Store,
    statement: Option<CachedStatement<'a>>,
}

impl<'a> DecisionLog<'a> {
    /// One that records in a store.
    pub fn new(store: &'a Store) -> Self {
        Self {
            store,
            statement: None,
        }
    }

    /// Records a decision on the turn of that key, taken when `at` was the newest;
    /// `seq` orders those of one turn at one moment, `detail` is JSON.
    pub fn add(&mut self, key: i64, at: u64, seq: u32, kind: &str, detail: &str) -> Result<()> {
        let statement = match &mut self.statement {
            Some(known) => known,
            none => none.insert(self.store.conn.prepare_cached(
                "INSERT OR REPLACE INTO decision (key, at, seq, kind, detail, checksum)
                 VALUES (?, ?, ?, ?, ?, ?)",
            )?),
        };
        let values = [
            ValueRef::Integer(key),
            ValueRef::Integer(at.cast_signed()),
            ValueRef::Integer(seq.into()),
            kind.into(),
            detail.into(),
        ];
        put(statement, 1, &values)
    }
}

/// Writes a row whose first `keys` values are keys of turns; its sum is bound last.
fn put(statement: &mut Statement<'_>, keys: usize, values: &[ValueRef<'_>]) -> Result<()> {
    for (i, value) in values.iter().enumerate() {
        statement.raw_bind_parameter(i + 1, ToSqlOutput::Borrowed(*value))?;
    }
    statement.raw_bind_parameter(values.len() + 1, row_sum::of_row(keys, values))?;
    statement.raw_execute()?;
    Ok(())
}

/// Appends the bytes of `v`, least first.
fn put_le(v: &[i16], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + 2 * v.len(), 0);
    for (bytes, x) in out[from..].as_chunks_mut::<2>().0.iter_mut().zip(v) {
        *bytes = x.to_le_bytes();
    }
}

/// Spans as pairs of u32, vectors one after the other.
fn pack_passages(passages: &[Passage]) -> (Vec<u8>, Vec<u8>) {
    let mut spans = Vec::with_capacity(passages.len() * 8);
    let mut vectors = Vec::with_capacity(passages.iter().map(|p| 2 * p.vector.len()).sum());
    for p in passages {
        spans.extend(p.start.to_le_bytes());
        spans.extend(p.end.to_le_bytes());
        put_le(&p.vector, &mut vectors);
    }
    (spans, vectors)
}
