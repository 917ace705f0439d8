//! Looking after a store: copying it while it is used, and checking it.

use super::Store;
use crate::error::{Code, Error, Result};
use crate::types::Facts;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Pages copied before readers and writers get their turn.
const PAGES: i32 = 1024;

/// What a check found wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The memory, where it concerns one.
    pub namespace: Option<String>,
    /// The turn, where it concerns one.
    pub interaction_id: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// Whether reading the turns anew puts it right: nothing canonical is lost.
    pub repairable: bool,
}

impl Store {
    /// Copies the store as it is now into a new file, while it is used.
    pub fn backup(&self, target: &Path) -> Result<()> {
        if target.exists() {
            return Err(Error::new(
                Code::StoreOpen,
                format!("{} is there already; name a new file", target.display()),
            ));
        }
        let copied = (|| {
            let mut copy = Connection::open(target)?;
            Backup::new(&self.conn, &mut copy)?.run_to_completion(
                PAGES,
                Duration::from_millis(1),
                None,
            )?;
            // A copy is one file: no write-ahead log beside it.
            copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
        })();
        copied.map_err(|e| {
            // What there is of it is of no use.
            let _ = std::fs::remove_file(target);
            Error::new(
                Code::StoreOpen,
                format!("{} cannot be written: {e}", target.display()),
            )
        })
    }

    /// Everything wrong that reading the whole file shows.
    pub fn check(&self) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        let whole = |what: String| Finding {
            namespace: None,
            interaction_id: None,
            what,
            repairable: false,
        };
        let mut statement = self.conn.prepare("PRAGMA integrity_check(20)")?;
        let mut rows = statement.query([])?;
        loop {
            // A page that cannot be read ends the check with an error.
            match rows.next() {
                Ok(Some(row)) => {
                    let line: String = row.get(0)?;
                    if line != "ok" {
                        found.push(whole(format!("SQLite: {line}")));
                    }
                }
                Ok(None) => break,
                Err(e) => {
                    found.push(whole(format!("SQLite: {e}")));
                    break;
                }
            }
        }
        for name in self.namespaces()? {
            match self.check_namespace(&name) {
                Ok(more) => found.extend(more),
                Err(e) => found.push(Finding {
                    namespace: Some(name),
                    interaction_id: None,
                    what: e.message,
                    repairable: false,
                }),
            }
        }
        Ok(found)
    }

    fn check_namespace(&self, name: &str) -> Result<Vec<Finding>> {
        let Some(ns) = self.find_namespace(name)? else {
            return Ok(Vec::new());
        };
        let (from, to) = ns.range();
        let mut found = Vec::new();
        let mut add = |key: i64, what: String, repairable: bool| {
            found.push(Finding {
                namespace: Some(name.to_owned()),
                interaction_id: Some(super::id_of(key)),
                what,
                repairable,
            });
        };
        let last: Option<i64> = self.conn.query_row(
            "SELECT max(key) FROM turn WHERE key >= ?1 AND key < ?2",
            [from, to],
            |r| r.get(0),
        )?;
        if let Some(key) = last.filter(|k| super::id_of(*k) >= ns.next_id) {
            add(key, "its id is past the memory's counter".into(), false);
        }
        for (table, what) in [
            ("derived", "derived data of a turn that is not there"),
            ("token_vector", "token vectors of a turn that is not there"),
            ("external", "an external id of a turn that is not there"),
        ] {
            let mut statement = self.conn.prepare(&format!(
                "SELECT key FROM {table} WHERE key >= ?1 AND key < ?2
                 AND key NOT IN (SELECT key FROM turn) ORDER BY key"
            ))?;
            for key in statement.query_map([from, to], |r| r.get(0))? {
                add(key?, what.into(), true);
            }
        }
        self.check_derived(from, to, &mut add)?;
        Ok(found)
    }

    fn check_derived(
        &self,
        from: i64,
        to: i64,
        add: &mut impl FnMut(i64, String, bool),
    ) -> Result<()> {
        let width: Option<i64> = self
            .conn
            .query_row(
                "SELECT length(vectors) / (length(spans) / 8) FROM derived
                 WHERE key >= ?1 AND key < ?2 AND length(spans) >= 8 ORDER BY key LIMIT 1",
                [from, to],
                |r| r.get(0),
            )
            .optional()?;
        let mut statement = self.conn.prepare(
            "SELECT key, facts, length(spans), length(vectors) FROM derived
             WHERE key >= ?1 AND key < ?2 ORDER BY key",
        )?;
        let mut rows = statement.query([from, to])?;
        while let Some(row) = rows.next()? {
            let (key, facts): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let (spans, vectors): (i64, i64) = (row.get(2)?, row.get(3)?);
            if postcard::from_bytes::<Facts>(&facts).is_err() {
                add(key, "its facts cannot be read".into(), true);
            }
            let passages = spans / 8;
            if spans % 8 != 0
                || passages == 0
                || vectors % 2 != 0
                || Some(vectors) != width.map(|w| w * passages)
            {
                add(key, "its vectors do not fit its passages".into(), true);
            }
        }
        Ok(())
    }

    /// Erases everything derived of the memories named, and derived rows whose turn is
    /// not there: the turns wait for their analysis then.
    pub fn erase_damaged(&mut self, names: &[String]) -> Result<()> {
        self.transaction(|store| {
            for table in ["derived", "token_vector", "external", "decision"] {
                store.conn.execute(
                    &format!("DELETE FROM {table} WHERE key NOT IN (SELECT key FROM turn)"),
                    [],
                )?;
            }
            for name in names {
                store.erase_derived(&store.known_namespace(name)?)?;
            }
            Ok(())
        })
    }
}
