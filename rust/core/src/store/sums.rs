//! A checksum a row: a flipped bit is told from what was written.
//!
//! SQLite keeps none, and finds damage only where it breaks the structure of a page. The
//! sum is taken over every column, of a key over the interaction id alone: an imported
//! memory has another number. SQL reckons it, by a function of each connection, so that a
//! change of one column and the sum over all of them are one statement; of the rows that
//! every turn brings it is reckoned beside the values that are bound (`row_sum`).

use super::schema::PACKED_SINCE;
use super::transfer::TABLES;
use super::{Namespace, Store, id_of};
use crate::error::{Code, Error, Result};
use std::collections::BTreeSet;

/// The schema version that brought the sums; an earlier store that is only read has none.
pub const SINCE: usize = 5;

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
pub const TOKENS: &str = "CASE WHEN token_vector.bits IS NULL
    THEN row_sum(token_vector.key & 1099511627775, token_vector.vectors)
    ELSE row_sum(token_vector.key & 1099511627775, token_vector.vectors, token_vector.bits) END";
/// The same in a store that has no such column.
const TOKENS_BEFORE: &str = "row_sum(token_vector.key & 1099511627775, token_vector.vectors)";
/// Of a relation.
pub const LINEAGE: &str = "row_sum(lineage.older & 1099511627775,
    lineage.newer & 1099511627775, lineage.relation, lineage.topic, lineage.by_caller)";
/// Of a decision.
pub const DECISION: &str = "row_sum(decision.key & 1099511627775, decision.at, decision.seq,
    decision.kind, decision.detail)";

/// A table whose rows have sums.
pub struct Summed {
    pub table: &'static str,
    /// The turn that a row is about, in SQL; NULL where it is about none.
    pub turn: &'static str,
    pub sum: &'static str,
    /// What a row whose sum is another one is called.
    pub damage: &'static str,
    /// Whether reading the turns anew puts it right.
    pub derived: bool,
    /// Whether rows are looked at one by one as they are read; else all of them when a
    /// memory is opened, but for the log of decisions.
    pub read_singly: bool,
}

const fn derived(
    table: &'static str,
    turn: &'static str,
    sum: &'static str,
    damage: &'static str,
) -> Summed {
    Summed {
        table,
        turn,
        sum,
        damage,
        derived: true,
        read_singly: false,
    }
}

/// Every table whose rows have sums: all but the names of the memories and the index of
/// external ids, which `check` compares with what they are taken from.
pub const SUMMED: [Summed; 16] = [
    Summed {
        derived: false,
        read_singly: true,
        ..derived("turn", "key", TURN, "the turn is not what was written")
    },
    Summed {
        read_singly: true,
        ..derived(
            "lineage",
            "older",
            LINEAGE,
            "a relation to it is not what was written; one that was stated by a caller is lost",
        )
    },
    Summed {
        read_singly: true,
        ..derived(
            "derived",
            "key",
            DERIVED,
            "what was derived from it is not what was written",
        )
    },
    Summed {
        read_singly: true,
        ..derived(
            "token_vector",
            "key",
            TOKENS,
            "its token vectors are not what was written",
        )
    },
    Summed {
        read_singly: true,
        ..derived(
            "decision",
            "key",
            DECISION,
            "the log of what was decided about it is not what was written",
        )
    },
    derived(
        "gate",
        "key",
        "row_sum(gate.key & 1099511627775, gate.tier, gate.lifecycle, gate.reason,
         gate.utility, gate.similarity, gate.thread, gate.surprise, gate.conflict, gate.rpe)",
        "the gate's verdict on it is not what was written",
    ),
    derived(
        "link",
        "newer",
        "row_sum(link.newer & 1099511627775, link.older & 1099511627775, link.cosine)",
        "a link to it is not what was written",
    ),
    derived(
        "unit",
        "key",
        "row_sum(unit.key & 1099511627775, unit.opened & 1099511627775)",
        "its unit is not what was written",
    ),
    derived(
        "episode",
        "NULL",
        "row_sum(episode.id, episode.version, episode.at)",
        "an episode is not what was written",
    ),
    derived(
        "episode_source",
        "key",
        "row_sum(episode_source.episode, episode_source.key & 1099511627775)",
        "the episode it is gathered in is not what was written",
    ),
    derived(
        "episode_sentence",
        "key",
        "row_sum(episode_sentence.episode, episode_sentence.version,
         episode_sentence.key & 1099511627775, episode_sentence.from_char,
         episode_sentence.to_char)",
        "a sentence gathered from it is not what was written",
    ),
    derived(
        "semantic_fact",
        "key",
        "row_sum(semantic_fact.id, semantic_fact.episode, semantic_fact.key & 1099511627775,
         semantic_fact.from_char, semantic_fact.to_char, semantic_fact.reasons)",
        "a fact gathered from it is not what was written",
    ),
    derived(
        "semantic_topic",
        "NULL",
        "row_sum(semantic_topic.fact, semantic_topic.topic, semantic_topic.value,
         semantic_topic.replaced_by)",
        "the topic of a fact is not what was written",
    ),
    said(
        "assessment",
        "key",
        "row_sum(assessment.key & 1099511627775, assessment.lifecycle, assessment.utility,
         assessment.failed, assessment.calls, assessment.tokens)",
    ),
    said(
        "writing",
        "NULL",
        "row_sum(writing.episode, writing.version, writing.at, writing.done, writing.sources,
         writing.fresh, writing.past, writing.text, writing.facts, writing.failed,
         writing.drawn, writing.calls, writing.tokens)",
    ),
    said(
        "wording",
        "NULL",
        "row_sum(wording.fact, wording.text, wording.drawn)",
    ),
];

/// What a language model said; where it is damaged, it is asked again.
const fn said(table: &'static str, turn: &'static str, sum: &'static str) -> Summed {
    derived(
        table,
        turn,
        sum,
        "what a language model said is not what was written",
    )
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
        if self.version < SINCE {
            return "1".to_owned();
        }
        let sum = if sum == TOKENS && self.version < PACKED_SINCE {
            TOKENS_BEFORE
        } else {
            sum
        };
        format!("{table}.checksum IS ({sum})")
    }

    /// Turns of a memory with rows that are not what was written, in one table; none
    /// where a row is about no turn.
    pub(super) fn unsound(&self, ns: &Namespace, summed: &Summed) -> Result<Vec<Option<i64>>> {
        if self.version < SINCE {
            return Ok(Vec::new());
        }
        let Summed { table, turn, .. } = summed;
        let sound = self.sound(table, summed.sum);
        let (from, to) = ns.range();
        let of = TABLES.iter().find(|t| t.name == *table);
        let whose = if of.is_some_and(|t| t.namespaced) {
            format!("namespace = {}", ns.id)
        } else {
            format!("{turn} >= {from} AND {turn} < {to}")
        };
        let mut statement = self.conn.prepare(&format!(
            "SELECT {turn} FROM {table} WHERE {whose} AND NOT ({sound}) ORDER BY 1"
        ))?;
        let keys = statement.query_map([], |r| r.get(0))?;
        Ok(keys.collect::<rusqlite::Result<_>>()?)
    }

    /// An error unless the rows that are read all at once are what was written.
    pub fn verify_gathered(&self, ns: &Namespace) -> Result<()> {
        for summed in SUMMED.iter().filter(|s| !s.read_singly) {
            if !self.unsound(ns, summed)?.is_empty() {
                return Err(damaged_derived(&format!("a row of {}", summed.table)));
            }
        }
        Ok(())
    }

    /// Erases the turns that are not what was written or cannot be read; returns their ids.
    pub fn erase_unsound_turns(&mut self, name: &str) -> Result<Vec<u64>> {
        self.transaction(|store| {
            let ns = store.known_namespace(name)?;
            let unsound = store.unsound(&ns, &SUMMED[0])?.into_iter().flatten();
            let unreadable = store.unreadable_turns(&ns)?.into_iter().map(|(key, _)| key);
            let ids: BTreeSet<u64> = unsound.chain(unreadable).map(id_of).collect();
            let ids: Vec<u64> = ids.into_iter().collect();
            store.erase_turns(&ns, &ids)?;
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

/// The error of a turn that cannot be: "its …".
pub fn unreadable_turn(key: i64, what: &str) -> Error {
    Error::new(
        Code::StoreCorrupt,
        format!(
            "turn {} cannot be read, {what}: the file was damaged; `ebbtide doctor` tells what else is, a backup has what was lost",
            id_of(key)
        ),
    )
}

/// The same of derived data.
pub fn unreadable_derived(row: &str, what: &str) -> Error {
    Error::new(
        Code::StoreCorrupt,
        format!(
            "{row} cannot be read, {what}: the file was damaged; `ebbtide doctor --repair` derives it anew"
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
    use crate::lineage::Edge;
    use crate::store::{DecisionLog, TurnRow};
    use crate::types::{AnalysedTurn, NewTurn, Passage, Relation, Score, State};

    #[test]
    fn every_table_has_sums_but_one() {
        let mut without: Vec<&str> = TABLES.iter().map(|t| t.name).collect();
        without.retain(|name| SUMMED.iter().all(|s| s.table != *name));
        assert_eq!(without, ["external"]);
    }

    /// A column that is added to a table goes into its sum.
    #[test]
    fn a_sum_covers_every_column() {
        let store = Store::in_memory().unwrap();
        for summed in &SUMMED {
            let sql = format!("SELECT * FROM {}", summed.table);
            let statement = store.conn.prepare(&sql).unwrap();
            for name in statement.column_names() {
                let covered = summed.sum.contains(&format!("{}.{name}", summed.table));
                let needless = ["checksum", "namespace"].contains(&name);
                assert!(covered || needless, "{}.{name}", summed.table);
            }
        }
    }

    fn stored() -> (Store, Namespace) {
        let store = Store::in_memory().unwrap();
        let ns = store.namespace("sums", "cl100k_base").unwrap();
        let analysed = AnalysedTurn {
            turn: NewTurn {
                text: "é".repeat(400),
                role: "user".into(),
                ..NewTurn::default()
            },
            passages: vec![Passage {
                vector: vec![-1; 384],
                tokens: vec![1; 700],
                ..Passage::default()
            }],
            ..AnalysedTurn::default()
        };
        let row = TurnRow {
            id: 3,
            record_id: "00",
            tokens: 7,
            turn: &analysed.turn,
        };
        store.insert_turn(&ns, &row).unwrap();
        let score = Score {
            z_op: -0.0,
            omega: 0.25,
            ..Score::default()
        };
        store
            .insert_derived(&ns, 3, &analysed, &score, true)
            .unwrap();
        let edge = Edge {
            older: 1,
            newer: 3,
            relation: Relation::Corrects,
            topic: "ana".into(),
            by_caller: true,
        };
        store.insert_edge(&ns, &edge).unwrap();
        let detail = "{}";
        DecisionLog::new(&store)
            .add(ns.key(3), 3, 1, "tier", detail)
            .unwrap();
        (store, ns)
    }

    fn unsound(store: &Store, ns: &Namespace) -> Vec<&'static str> {
        let mut tables = Vec::new();
        for summed in &SUMMED {
            if !store.unsound(ns, summed).unwrap().is_empty() {
                tables.push(summed.table);
            }
        }
        tables
    }

    #[test]
    fn sums_reckoned_here_are_those_of_sql() {
        let (store, ns) = stored();
        for table in ["turn", "derived", "token_vector", "lineage", "decision"] {
            let sql = format!("SELECT count(checksum) FROM {table}");
            let rows: i64 = store.conn.query_row(&sql, [], |r| r.get(0)).unwrap();
            assert_eq!(rows, 1, "{table}");
        }
        assert!(unsound(&store, &ns).is_empty());
        store.archive_turn(&ns, 3).unwrap();
        store.archive_turn(&ns, 3).unwrap(); // once is enough
        assert!(store.turn(&ns, 3).unwrap().unwrap().state == State::Archived);
        assert!(unsound(&store, &ns).is_empty());
    }

    #[test]
    fn a_damaged_turn_that_is_archived_stays_damaged() {
        let (store, ns) = stored();
        store
            .conn
            .execute("UPDATE turn SET text = 'x'", [])
            .unwrap();
        store.archive_turn(&ns, 3).unwrap();
        assert_eq!(unsound(&store, &ns), ["turn"]);
    }
}
