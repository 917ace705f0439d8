//! Looking after a store: copying it while it is used, and checking it.

use super::files::{AS_NAMED, complete, from_root, new_file, partial, refuse_logs, refuse_own};
use super::schema::mapped;
use super::sums::{SUMMED, Summed};
use super::transfer::{TABLES, Table};
use super::{IDS, Namespace, Store, id_of};
use crate::error::{Code, Error, Result};
use crate::types::Relation;
use rusqlite::Connection;
use rusqlite::backup::Backup;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Pages copied before readers and writers get their turn.
const PAGES: i32 = 1024;

/// Notes what is wrong: the key of the turn it is about, what, and whether it can be put
/// right.
type Add<'a> = dyn FnMut(Option<i64>, String, bool) + 'a;

/// One look at a memory; an error is a page that cannot be read.
type Check = fn(&Store, &Namespace, &mut Add<'_>) -> Result<()>;

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

impl Finding {
    /// One that concerns no memory, and cannot be put right.
    fn of_file(what: String) -> Self {
        Self {
            namespace: None,
            interaction_id: None,
            what,
            repairable: false,
        }
    }
}

impl Store {
    /// Copies the store as it is now into a new file, while it is used.
    pub fn backup(&self, target: &Path) -> Result<()> {
        refuse_own(self.path(), target)?;
        refuse_own(self.path(), &partial(target))?;
        // Not `exists`: that follows a link to where nothing is yet.
        if target.symlink_metadata().is_ok() {
            return Err(Error::new(
                Code::StoreOpen,
                format!("{} is there already; name a new file", target.display()),
            ));
        }
        refuse_logs(target)?;
        complete(target, |partial| {
            new_file(partial)?;
            let copied = self.reading(|store| Ok(store.copy_to(partial)))?;
            copied.map_err(|e| {
                Error::new(
                    Code::StoreOpen,
                    format!("{} cannot be written: {e}", target.display()),
                )
            })?;
            let file = std::fs::File::open(partial);
            file.and_then(|f| f.sync_all()).map_err(|e| {
                Error::new(
                    Code::StoreOpen,
                    format!("{} cannot be written: {e}", target.display()),
                )
            })
        })
    }

    /// Copies the state that is being read. It is begun with a look at it: without that the
    /// copy would begin anew with every commit of another process, and might never end.
    fn copy_to(&self, partial: &Path) -> rusqlite::Result<()> {
        self.conn
            .query_row("SELECT count(*) FROM namespace", [], |_| Ok(()))?;
        let mut copy = Connection::open_with_flags(from_root(partial), AS_NAMED)?;
        Backup::new(&self.conn, &mut copy)?.run_to_completion(
            PAGES,
            Duration::from_millis(1),
            None,
        )?;
        // A copy is one file: no write-ahead log beside it.
        copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
    }

    /// Everything wrong that reading the whole file shows.
    pub fn check(&self) -> Result<Vec<Finding>> {
        mapped(&self.conn, false)?;
        let found = self.check_unmapped();
        mapped(&self.conn, true)?;
        found
    }

    fn check_unmapped(&self) -> Result<Vec<Finding>> {
        let mut found = Vec::new();
        let mut statement = self.conn.prepare("PRAGMA integrity_check(20)")?;
        let mut rows = statement.query([])?;
        loop {
            // A page that cannot be read ends the check with an error.
            match rows.next() {
                Ok(Some(row)) => {
                    let line: String = row.get(0)?;
                    if line != "ok" {
                        found.push(Finding::of_file(format!("SQLite: {line}")));
                    }
                }
                Ok(None) => break,
                Err(e) => {
                    found.push(Finding::of_file(format!("SQLite: {e}")));
                    break;
                }
            }
        }
        // One state: what another process writes between two looks would seem to be amiss.
        let looked = self.reading(|store| {
            store.check_memories(&mut found);
            Ok(())
        });
        if let Err(e) = looked {
            found.push(Finding::of_file(e.message));
        }
        Ok(found)
    }

    /// What is wrong within the memories, and what is of none.
    fn check_memories(&self, found: &mut Vec<Finding>) {
        match self.numbered() {
            Ok(names) => {
                for (name, id) in names {
                    self.check_namespace(&name, id, found);
                }
            }
            Err(e) => found.push(Finding::of_file(e.message)),
        }
        // Where a page cannot be read, what is behind it is looked at all the same.
        if let Err(e) = self.check_strays(found) {
            found.push(Finding::of_file(e.message));
        }
    }

    /// Names of the memories with their numbers, ordered.
    fn numbered(&self) -> Result<Vec<(String, i64)>> {
        let mut statement = self
            .conn
            .prepare("SELECT CAST(name AS BLOB), id FROM namespace ORDER BY name")?;
        let rows = statement.query_map([], |r| {
            let name: Vec<u8> = r.get(0)?;
            Ok((String::from_utf8_lossy(&name).into_owned(), r.get(1)?))
        })?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }

    /// Rows that belong to no memory.
    fn check_strays(&self, found: &mut Vec<Finding>) -> Result<()> {
        for table in &TABLES {
            if !self.has_table(table.name)? {
                continue;
            }
            let stray = stray(table);
            let sql = format!("SELECT count(*) FROM {} WHERE {stray}", table.name);
            let count: i64 = self.conn.query_row(&sql, [], |r| r.get(0))?;
            if count > 0 {
                found.push(Finding {
                    namespace: None,
                    interaction_id: None,
                    what: format!("{} rows of no memory: {count}", table.name),
                    repairable: table.name != "turn",
                });
            }
        }
        Ok(())
    }

    fn check_namespace(&self, name: &str, id: i64, found: &mut Vec<Finding>) {
        let mut finding = |key: Option<i64>, what: String, repairable: bool| {
            found.push(Finding {
                namespace: Some(name.to_owned()),
                interaction_id: key.map(id_of),
                what,
                repairable,
            });
        };
        let ns = match self.find_namespace(name) {
            Ok(Some(ns)) if ns.id == id => ns,
            // Its name is no text any more, or the table is out of order.
            Ok(_) => return finding(None, "its name cannot be read".into(), false),
            Err(e) => return finding(None, e.message, false),
        };
        let checks: [Check; 7] = [
            Self::check_counter,
            Self::check_sums,
            Self::check_orphans,
            Self::check_external,
            Self::check_turns,
            Self::check_derived,
            Self::check_gathered,
        ];
        for check in checks {
            let done = check(self, &ns, &mut finding);
            if let Err(e) = done {
                finding(None, e.message, false);
            }
        }
    }

    fn check_counter(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        if let Some(key) = self.last(ns)?.filter(|k| id_of(*k) >= ns.next_id) {
            add(
                Some(key),
                "its id is past the memory's counter".into(),
                true,
            );
        }
        if ns.next_id >= IDS {
            add(
                None,
                "its counter is past every id that a turn can have".into(),
                true,
            );
        }
        Ok(())
    }

    /// Key of the memory's last turn.
    fn last(&self, ns: &Namespace) -> Result<Option<i64>> {
        let (from, to) = ns.range();
        let sql = "SELECT max(key) FROM turn WHERE key >= ?1 AND key < ?2";
        Ok(self.conn.query_row(sql, [from, to], |r| r.get(0))?)
    }

    fn check_sums(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        for summed in &SUMMED {
            for key in self.unsound(ns, summed)? {
                add(key, summed.damage.into(), summed.derived);
            }
        }
        Ok(())
    }

    /// Rows of any table that name a turn which is not there.
    fn check_orphans(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        let (from, to) = ns.range();
        for table in TABLES.iter().filter(|t| t.name != "turn") {
            if !self.has_table(table.name)? {
                continue;
            }
            for column in table.keys {
                let mut statement = self.conn.prepare(&format!(
                    "SELECT DISTINCT {column} FROM {} WHERE {column} >= ?1 AND {column} < ?2
                     AND {column} NOT IN (SELECT key FROM turn) ORDER BY {column}",
                    table.name
                ))?;
                for key in statement.query_map([from, to], |r| r.get(0))? {
                    let what = format!("{} of a turn that is not there", spoken(table.name));
                    add(Some(key?), what, true);
                }
            }
        }
        Ok(())
    }

    /// Each turn is found by its external id, and by no other.
    fn check_external(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        let (from, to) = ns.range();
        let mut statement = self.conn.prepare(
            "SELECT turn.key FROM turn LEFT JOIN external
                 ON external.namespace = ?3 AND external.external_id = turn.external_id
             WHERE turn.key >= ?1 AND turn.key < ?2
                 AND turn.external_id IS NOT NULL AND external.key IS NOT turn.key
             UNION
             SELECT turn.key FROM external JOIN turn ON turn.key = external.key
             WHERE external.namespace = ?3 AND turn.external_id IS NOT external.external_id
             ORDER BY 1",
        )?;
        for key in statement.query_map([from, to, ns.id], |r| r.get(0))? {
            add(
                Some(key?),
                "its external id does not lead to it".into(),
                true,
            );
        }
        Ok(())
    }

    /// Turns that are what was written, and that nobody could have written so.
    fn check_turns(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        for (key, what) in self.unreadable_turns(ns)? {
            add(Some(key), what, false);
        }
        Ok(())
    }

    fn check_derived(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        for (key, what) in self.unreadable_derived(ns)? {
            add(Some(key), what, true);
        }
        Ok(())
    }

    /// What is read all at once when a memory is opened. Where a row is not what was written,
    /// its sum has told.
    fn check_gathered(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        let at_once = |s: &&Summed| !s.read_singly || s.table == "lineage";
        for summed in SUMMED.iter().filter(at_once) {
            if self.has_table(summed.table)? && !self.unsound(ns, summed)?.is_empty() {
                return Ok(());
            }
        }
        let mut note = |read: Result<()>| {
            if let Err(e) = read {
                add(None, e.message, true);
            }
        };
        note(self.edges(ns).map(drop));
        note(self.verdicts(ns).map(drop));
        note(self.links(ns).map(drop));
        note(self.wordings(ns).map(drop));
        if self.gathers()? {
            note(self.units(ns).map(drop));
            note(self.episodes(ns).map(drop));
            note(self.facts(ns).map(drop));
        }
        Ok(())
    }

    /// Notes every row of a memory that is not what was written, or that could not be read.
    pub(super) fn check_rows(&self, ns: &Namespace, add: &mut Add<'_>) -> Result<()> {
        let checks: [Check; 4] = [
            Self::check_sums,
            Self::check_turns,
            Self::check_derived,
            Self::check_gathered,
        ];
        checks.iter().try_for_each(|check| check(self, ns, add))
    }

    /// Erases everything derived of the memories named, and rows whose turn or memory is
    /// not there, and puts their counters right: the turns wait for their analysis then.
    pub fn erase_damaged(&mut self, names: &[String]) -> Result<()> {
        self.transaction(|store| {
            for table in TABLES.iter().filter(|t| t.name != "turn") {
                let name = table.name;
                let mut orphans: Vec<String> = table
                    .keys
                    .iter()
                    // The external id of a discarded turn is of one that is not there.
                    .map(|key| format!("{key} >= 0 AND {key} NOT IN (SELECT key FROM turn)"))
                    .collect();
                orphans.push(stray(table));
                let sql = format!("DELETE FROM {name} WHERE {}", orphans.join(" OR "));
                store.conn.execute(&sql, [])?;
            }
            for name in names {
                let ns = store.known_namespace(name)?;
                store.erase_derived(&ns)?;
                store.restore_external(&ns)?;
                store.restore_counter(ns.clone())?;
                store.erase_unsound_kept(&ns)?;
            }
            Ok(())
        })
    }

    /// Of what deriving anew does not touch, what is not what was written or is no relation at
    /// all: relations that callers stated, and what a language model said.
    fn erase_unsound_kept(&self, ns: &Namespace) -> Result<()> {
        let (from, to) = ns.range();
        for (table, whose) in [
            ("lineage", "older >= ?1 AND older < ?2"),
            ("assessment", "key >= ?1 AND key < ?2"),
            ("writing", "namespace = ?3"),
        ] {
            let Some(summed) = SUMMED.iter().find(|s| s.table == table) else {
                continue;
            };
            let mut sound = self.sound(table, summed.sum);
            if table == "lineage" {
                let known = Relation::ALL.map(|r| format!("'{}'", r.as_str()));
                sound = format!("{sound} AND relation IN ({})", known.join(", "));
            }
            self.conn.execute(
                &format!("DELETE FROM {table} WHERE {whose} AND ?3 > 0 AND NOT ({sound})"),
                rusqlite::params![from, to, ns.id],
            )?;
        }
        Ok(())
    }

    /// The counter follows the last turn, where it is none that the memory can have had.
    fn restore_counter(&self, mut ns: Namespace) -> Result<()> {
        let next = self.last(&ns)?.map_or(0, |key| id_of(key) + 1);
        if ns.next_id < next || ns.next_id >= IDS {
            ns.next_id = next;
            self.update_namespace(&ns)?;
        }
        Ok(())
    }

    /// External ids lead to the turns that carry them; to the first, where several do. Those
    /// of discarded turns stay.
    fn restore_external(&self, ns: &Namespace) -> Result<()> {
        let (from, to) = ns.range();
        self.conn.execute(
            "DELETE FROM external WHERE namespace = ?1 AND key >= 0",
            [ns.id],
        )?;
        self.conn.execute(
            "INSERT OR IGNORE INTO external (namespace, external_id, key)
             SELECT ?3, external_id, key FROM turn
             WHERE key >= ?1 AND key < ?2 AND external_id IS NOT NULL ORDER BY key",
            [from, to, ns.id],
        )?;
        Ok(())
    }
}

/// A condition on rows that belong to no memory.
fn stray(table: &Table) -> String {
    let whose = if table.namespaced {
        "namespace".to_owned()
    } else {
        format!("{} >> {}", table.keys[0], super::ID_BITS)
    };
    format!("{whose} NOT IN (SELECT id FROM namespace)")
}

/// What the rows of a table are to a reader.
fn spoken(table: &str) -> String {
    match table {
        "derived" => "derived data".into(),
        "external" => "an external id".into(),
        other => format!("a row of {other}"),
    }
}
