//! Units, episodes and facts. None of these rows holds text of a turn but the values
//! of a fact's topics, and those go with the fact.

use super::write::THESE;
use super::{Namespace, Store, id_of};
use crate::error::Result;
use crate::policy::recurrence::facts::Held;
use crate::policy::recurrence::{Episode, Fact, Span};
use crate::types::InteractionId;
use rusqlite::{Row, params};
use std::collections::{BTreeMap, BTreeSet};

/// Every table of them that is keyed by the memory.
const TABLES: [&str; 5] = [
    "episode",
    "episode_source",
    "episode_sentence",
    "semantic_fact",
    "semantic_topic",
];

impl Store {
    /// Records which turns a unit consists of.
    pub fn insert_unit(
        &self,
        ns: &Namespace,
        opened: InteractionId,
        turns: &[InteractionId],
    ) -> Result<()> {
        for turn in turns {
            self.conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO unit (key, opened, checksum)
                     VALUES (?1, ?2, row_sum(?1 & 1099511627775, ?2 & 1099511627775))",
                )?
                .execute([ns.key(*turn), ns.key(opened)])?;
        }
        Ok(())
    }

    /// Writes an episode, or its new version; only then are older versions retired.
    pub fn put_episode(&self, ns: &Namespace, e: &Episode) -> Result<()> {
        let (id, version) = (e.id.cast_signed(), e.version);
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO episode (namespace, id, version, at, checksum)
                 VALUES (?1, ?2, ?3, ?4, row_sum(?2, ?3, ?4))",
            )?
            .execute(params![ns.id, id, version, e.at.cast_signed()])?;
        for turn in &e.sources {
            self.conn
                .prepare_cached(
                    "INSERT OR IGNORE INTO episode_source (namespace, episode, key, checksum)
                     VALUES (?1, ?2, ?3, row_sum(?2, ?3 & 1099511627775))",
                )?
                .execute(params![ns.id, id, ns.key(*turn)])?;
        }
        for s in &e.sentences {
            self.conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO episode_sentence
                     (namespace, episode, version, key, from_char, to_char, checksum)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6,
                     row_sum(?2, ?3, ?4 & 1099511627775, ?5, ?6))",
                )?
                .execute(params![ns.id, id, version, ns.key(s.turn), s.start, s.end])?;
        }
        for sql in [
            "DELETE FROM episode WHERE namespace = ?1 AND id = ?2 AND version < ?3",
            "DELETE FROM episode_sentence WHERE namespace = ?1 AND episode = ?2 AND version < ?3",
        ] {
            self.conn
                .prepare_cached(sql)?
                .execute(params![ns.id, id, version])?;
        }
        Ok(())
    }

    /// Erases an episode.
    pub fn erase_episode(&self, ns: &Namespace, id: u64) -> Result<()> {
        for (table, key) in [
            ("episode", "id"),
            ("episode_source", "episode"),
            ("episode_sentence", "episode"),
        ] {
            let sql = format!("DELETE FROM {table} WHERE namespace = ?1 AND {key} = ?2");
            self.conn
                .prepare_cached(&sql)?
                .execute([ns.id, id.cast_signed()])?;
        }
        Ok(())
    }

    /// Writes a fact, or what has changed in it.
    pub fn put_fact(&self, ns: &Namespace, f: &Fact) -> Result<()> {
        self.conn
            .prepare_cached(
                "INSERT OR REPLACE INTO semantic_fact
                 (namespace, id, episode, key, from_char, to_char, reasons, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,
                 row_sum(?2, ?3, ?4 & 1099511627775, ?5, ?6, ?7))",
            )?
            .execute(params![
                ns.id,
                f.id.cast_signed(),
                f.episode.cast_signed(),
                ns.key(f.span.turn),
                f.span.start,
                f.span.end,
                f.reasons.join(" "),
            ])?;
        for h in &f.held {
            self.conn
                .prepare_cached(
                    "INSERT OR REPLACE INTO semantic_topic
                     (namespace, fact, topic, value, replaced_by, checksum)
                     VALUES (?1, ?2, ?3, ?4, ?5, row_sum(?2, ?3, ?4, ?5))",
                )?
                .execute(params![
                    ns.id,
                    f.id.cast_signed(),
                    h.topic,
                    h.value,
                    h.replaced_by.map(u64::cast_signed),
                ])?;
        }
        Ok(())
    }

    /// Erases facts; what they replaced stands again.
    pub fn erase_facts(&self, ns: &Namespace, gone: &BTreeSet<u64>) -> Result<()> {
        for id in gone {
            for sql in [
                "DELETE FROM semantic_fact WHERE namespace = ?1 AND id = ?2",
                "DELETE FROM semantic_topic WHERE namespace = ?1 AND fact = ?2",
                "DELETE FROM wording WHERE namespace = ?1 AND fact = ?2",
                "UPDATE semantic_topic SET replaced_by = NULL, checksum = row_sum(fact, topic, value, NULL)
                 WHERE namespace = ?1 AND replaced_by = ?2",
            ] {
                self.conn
                    .prepare_cached(sql)?
                    .execute([ns.id, id.cast_signed()])?;
            }
        }
        Ok(())
    }

    /// Erases what stands in the turns of these keys ([`THESE`]), wherever it was gathered.
    pub(super) fn erase_gathered_of(&self, ns: &Namespace, keys: &str) -> Result<()> {
        let facts =
            format!("(SELECT id FROM semantic_fact WHERE namespace = ?2 AND key IN {THESE})");
        for sql in [
            format!("DELETE FROM unit WHERE key IN {THESE} AND ?2 > 0"),
            format!("DELETE FROM episode_source WHERE namespace = ?2 AND key IN {THESE}"),
            format!("DELETE FROM episode_sentence WHERE namespace = ?2 AND key IN {THESE}"),
            format!(
                "UPDATE semantic_topic SET replaced_by = NULL, checksum = row_sum(fact, topic, value, NULL)
                 WHERE namespace = ?2 AND replaced_by IN {facts}"
            ),
            format!("DELETE FROM semantic_topic WHERE namespace = ?2 AND fact IN {facts}"),
            format!("DELETE FROM wording WHERE namespace = ?2 AND fact IN {facts}"),
            format!("DELETE FROM semantic_fact WHERE namespace = ?2 AND key IN {THESE}"),
        ] {
            self.conn
                .prepare_cached(&sql)?
                .execute(params![keys, ns.id])?;
        }
        Ok(())
    }

    /// Erases all of it in one memory.
    pub(super) fn erase_gathered(&self, ns: &Namespace) -> Result<()> {
        self.erase_wordings(ns)?;
        let (from, to) = ns.range();
        self.conn
            .execute("DELETE FROM unit WHERE key >= ?1 AND key < ?2", [from, to])?;
        for table in TABLES {
            self.conn.execute(
                &format!("DELETE FROM {table} WHERE namespace = ?1"),
                [ns.id],
            )?;
        }
        Ok(())
    }

    /// Whether the file has a place for them: one of an earlier version that is opened
    /// for reading has not.
    pub fn gathers(&self) -> Result<bool> {
        self.holds("semantic_topic")
    }

    /// The turns of every unit, by the turn that opened it.
    pub fn units(&self, ns: &Namespace) -> Result<BTreeMap<InteractionId, Vec<InteractionId>>> {
        let (from, to) = ns.range();
        let mut statement = self.conn.prepare_cached(
            "SELECT opened, key FROM unit WHERE key >= ?1 AND key < ?2 ORDER BY key",
        )?;
        let mut rows = statement.query([from, to])?;
        let mut units: BTreeMap<InteractionId, Vec<InteractionId>> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            units
                .entry(id_of(row.get(0)?))
                .or_default()
                .push(id_of(row.get(1)?));
        }
        Ok(units)
    }

    /// Every episode, by number, without its vector.
    pub fn episodes(&self, ns: &Namespace) -> Result<Vec<Episode>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, version, at FROM episode WHERE namespace = ?1 ORDER BY id",
        )?;
        let rows = statement.query_map([ns.id], |r| {
            Ok(Episode {
                id: r.get::<_, i64>(0)?.cast_unsigned(),
                version: r.get(1)?,
                at: r.get::<_, i64>(2)?.cast_unsigned(),
                sources: Vec::new(),
                sentences: Vec::new(),
                vector: Vec::new(),
                cohesion: 0.0,
                text: None,
            })
        })?;
        let mut episodes: Vec<Episode> = rows.collect::<rusqlite::Result<_>>()?;
        let mut sources = self.conn.prepare_cached(
            "SELECT key FROM episode_source WHERE namespace = ?1 AND episode = ?2 ORDER BY key",
        )?;
        let mut sentences = self.conn.prepare_cached(
            "SELECT key, from_char, to_char FROM episode_sentence
             WHERE namespace = ?1 AND episode = ?2 ORDER BY key, from_char",
        )?;
        for e in &mut episodes {
            let key = [ns.id, e.id.cast_signed()];
            let found = sources.query_map(key, |r| Ok(id_of(r.get(0)?)))?;
            e.sources = found.collect::<rusqlite::Result<_>>()?;
            let found = sentences.query_map(key, |r| span_of(r, 0))?;
            e.sentences = found.collect::<rusqlite::Result<_>>()?;
        }
        Ok(episodes)
    }

    /// Every fact, by number, without its stems.
    pub fn facts(&self, ns: &Namespace) -> Result<Vec<Fact>> {
        let mut statement = self.conn.prepare_cached(
            "SELECT id, episode, key, from_char, to_char, reasons FROM semantic_fact
             WHERE namespace = ?1 ORDER BY id",
        )?;
        let rows = statement.query_map([ns.id], |r| {
            let reasons: String = r.get(5)?;
            Ok(Fact {
                id: r.get::<_, i64>(0)?.cast_unsigned(),
                episode: r.get::<_, i64>(1)?.cast_unsigned(),
                span: span_of(r, 2)?,
                reasons: reasons.split_whitespace().map(str::to_owned).collect(),
                held: Vec::new(),
                stems: Vec::new(),
                wording: None,
            })
        })?;
        let mut facts: Vec<Fact> = rows.collect::<rusqlite::Result<_>>()?;
        let mut topics = self.conn.prepare_cached(
            "SELECT topic, value, replaced_by FROM semantic_topic
             WHERE namespace = ?1 AND fact = ?2 ORDER BY topic",
        )?;
        for f in &mut facts {
            let found = topics.query_map([ns.id, f.id.cast_signed()], |r| {
                Ok(Held {
                    topic: r.get(0)?,
                    value: r.get(1)?,
                    replaced_by: r.get::<_, Option<i64>>(2)?.map(i64::cast_unsigned),
                })
            })?;
            f.held = found.collect::<rusqlite::Result<_>>()?;
        }
        Ok(facts)
    }
}

fn span_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Span> {
    Ok(Span {
        turn: id_of(row.get(at)?),
        start: row.get(at + 1)?,
        end: row.get(at + 2)?,
    })
}
