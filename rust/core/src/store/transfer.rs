//! One memory as JSON Lines, and back: every row of it, so that nothing is computed anew.
//!
//! The first line is a header, then one line a row, then a last line with the SHA-256
//! of all before it. Keys are interaction ids: the memory may get another number in
//! another store. Blobs are base64, and a number that is not finite is text.

use super::files::{complete, new_file, partial, refuse_others, refuse_own, unwritable};
use super::write::SAID;
use super::{IDS, Namespace, Store, id_of, schema, sums};
use crate::error::{Code, Error, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::types::{Value, ValueRef};
use serde_json::{Map, json};
use sha2::{Digest, Sha256};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

const FORMAT: &str = "ebbtide-memory";
/// Raised when a release can no longer read what an earlier one wrote.
const VERSION: u64 = 1;
/// Longest line that is read: a turn of the greatest length with its token vectors.
const LONGEST: u64 = 1 << 30;
/// Longest first line: a name has no limit.
const LONGEST_HEADER: u64 = 1 << 24;

/// A table of a memory.
pub(super) struct Table {
    pub name: &'static str,
    /// Columns that hold a turn's key.
    pub keys: &'static [&'static str],
    /// What its rows are ordered by.
    order: &'static str,
    /// Whether a column says whose a row is; else its first key does.
    pub namespaced: bool,
}

const fn table(name: &'static str, keys: &'static [&'static str], order: &'static str) -> Table {
    Table {
        name,
        keys,
        order,
        namespaced: false,
    }
}

const fn namespaced(
    name: &'static str,
    keys: &'static [&'static str],
    order: &'static str,
) -> Table {
    Table {
        name,
        keys,
        order,
        namespaced: true,
    }
}

/// Every table that holds something of a memory.
pub(super) const TABLES: [Table; 17] = [
    table("turn", &["key"], "key"),
    namespaced("external", &["key"], "external_id"),
    table(
        "lineage",
        &["older", "newer"],
        "older, newer, relation, topic",
    ),
    table("decision", &["key"], "key, at, seq"),
    table("derived", &["key"], "key"),
    table("token_vector", &["key"], "key"),
    table("gate", &["key"], "key"),
    table("link", &["newer", "older"], "newer, older"),
    table("unit", &["key"], "key"),
    namespaced("episode", &[], "id, version"),
    namespaced("episode_source", &["key"], "episode, key"),
    namespaced(
        "episode_sentence",
        &["key"],
        "episode, version, key, from_char",
    ),
    namespaced("semantic_fact", &["key"], "id"),
    namespaced("semantic_topic", &[], "fact, topic"),
    table("assessment", &["key"], "key"),
    namespaced("writing", &[], "episode, version"),
    namespaced("wording", &[], "fact"),
];

impl Store {
    /// Writes a memory to a file, complete or not at all; returns its number of rows.
    /// An earlier export gives way to it, and nothing else that was there.
    pub fn export(&self, name: &str, path: &Path) -> Result<u64> {
        refuse_own(self.path(), path)?;
        refuse_own(self.path(), &partial(path))?;
        refuse_others(path, is_export)?;
        // One state of the store, though another process writes meanwhile.
        let state = self.conn.unchecked_transaction()?;
        let ns = self.known_namespace(name)?;
        let written = complete(path, |partial| self.write_rows(&ns, partial));
        state.finish()?;
        written
    }

    fn write_rows(&self, ns: &Namespace, path: &Path) -> Result<u64> {
        let file = new_file(path)?;
        let mut out = Hashed {
            inner: BufWriter::new(file),
            hash: Sha256::new(),
        };
        let mut line =
            |value: serde_json::Value| writeln!(out, "{value}").map_err(|e| unwritable(path, &e));
        line(json!({
            "format": FORMAT,
            "version": VERSION,
            "schema": schema::LATEST,
            "namespace": ns.name,
            "next_id": ns.next_id,
            "analyser": ns.analyser,
            "token_counter": ns.token_counter,
        }))?;
        let (from, to) = ns.range();
        let mut count = 0u64;
        for table in &TABLES {
            let Table { name, order, .. } = table;
            if !self.has_table(name)? {
                // A file that an earlier release made, and nobody may write to.
                continue;
            }
            let (whose, bounds) = if table.namespaced {
                ("namespace", [ns.id, ns.id + 1])
            } else {
                (table.keys[0], [from, to])
            };
            let mut statement = self.conn.prepare(&format!(
                "SELECT * FROM {name} WHERE {whose} >= ?1 AND {whose} < ?2 ORDER BY {order}"
            ))?;
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let mut rows = statement.query(bounds)?;
            while let Some(row) = rows.next()? {
                let mut fields = Map::new();
                for (i, name) in names.iter().enumerate() {
                    let value = match row.get_ref(i)? {
                        // Another store gives the memory another number.
                        ValueRef::Integer(_) if name == "namespace" => continue,
                        ValueRef::Integer(key) if table.keys.contains(&name.as_str()) => {
                            json!(id_of(key))
                        }
                        ValueRef::Null => continue,
                        ValueRef::Integer(x) => json!(x),
                        // JSON has no such number.
                        ValueRef::Real(x) if !x.is_finite() => json!({ "real": x.to_string() }),
                        ValueRef::Real(x) => json!(x),
                        ValueRef::Text(t) => json!(String::from_utf8_lossy(t)),
                        ValueRef::Blob(b) => json!({ "base64": BASE64.encode(b) }),
                    };
                    fields.insert(name.clone(), value);
                }
                line(json!({ "table": table.name, "row": fields }))?;
                count += 1;
            }
        }
        let sum = out.sum();
        let last = json!({ "end": true, "rows": count, "sha256": sum });
        writeln!(out.inner, "{last}").map_err(|e| unwritable(path, &e))?;
        let file = out
            .inner
            .into_inner()
            .map_err(|e| unwritable(path, e.error()))?;
        file.sync_all().map_err(|e| unwritable(path, &e))?;
        Ok(count)
    }

    /// Reads a memory from a file into this store, under a name that is not taken:
    /// all of it, or nothing. Returns the name and the number of rows.
    pub fn import(&mut self, path: &Path, name: Option<&str>) -> Result<(String, u64)> {
        let file = std::fs::File::open(path).map_err(|e| {
            Error::new(
                Code::InputTranscript,
                format!("{} cannot be read: {e}", path.display()),
            )
        })?;
        let mut lines = Lines {
            inner: BufReader::new(file),
            hash: Sha256::new(),
            number: 0,
            path,
        };
        let header = lines.next()?.unwrap_or_default();
        if !heads_export(&header) {
            return Err(lines.bad("it is not a memory that `ebbtide export` wrote"));
        }
        // Never by `[…]`: that panics where a key is not there.
        let number = |key: &str| header.get(key).and_then(serde_json::Value::as_u64);
        let (version, scheme) = (number("version"), number("schema"));
        if version != Some(VERSION) || scheme.is_none_or(|s| s > schema::LATEST as u64) {
            return Err(Error::new(
                Code::SchemaVersion,
                format!(
                    "{} was written by a newer release; upgrade ebbtide to read it",
                    path.display()
                ),
            ));
        }
        let text = |key: &str| header.get(key).and_then(|v| v.as_str()).map(str::to_owned);
        let (Some(stored), Some(analyser), Some(counter), Some(next_id)) = (
            text("namespace"),
            text("analyser"),
            text("token_counter"),
            number("next_id"),
        ) else {
            return Err(lines.bad("its first line lacks a field"));
        };
        if next_id >= IDS {
            return Err(lines.bad("its next_id is past every id that a turn can have"));
        }
        let name = name.map_or(stored, str::to_owned);
        self.transaction(|store| {
            if store.find_namespace(&name)?.is_some() {
                return Err(Error::new(
                    Code::InputField,
                    format!(
                        "the store has a memory {name:?} already; give the imported one another name, or delete that one first"
                    ),
                ));
            }
            let mut ns = store.namespace(&name, &counter)?;
            ns.next_id = next_id;
            ns.analyser.clone_from(&analyser);
            store.update_namespace(&ns)?;
            let rows = store.read_rows(&ns, &mut lines)?;
            store.keep_externals_of_nobody(&ns)?;
            // A release without checksums wrote none.
            store.conn.execute_batch(&sums::fill())?;
            let mut wrong = None;
            store.check_rows(&ns, &mut |key, what, _| {
                wrong.get_or_insert_with(|| match key {
                    Some(key) => format!("turn {}: {what}", id_of(key)),
                    None => what,
                });
            })?;
            match wrong {
                Some(what) => Err(lines.bad(&what)),
                None => Ok((name.clone(), rows)),
            }
        })
    }

    fn read_rows(&self, ns: &Namespace, lines: &mut Lines<'_>) -> Result<u64> {
        let mut count = 0u64;
        loop {
            let sum = lines.sum();
            let Some(line) = lines.next()? else {
                return Err(lines.bad("it ends early; copy it again"));
            };
            if line.get("end").is_some() {
                let rows = line.get("rows").and_then(serde_json::Value::as_u64);
                let named = line.get("sha256").and_then(|s| s.as_str());
                if rows != Some(count) || named != Some(&*sum) {
                    return Err(lines.bad("it was altered or damaged; copy it again"));
                }
                return match lines.next()? {
                    None => Ok(count),
                    Some(_) => Err(lines.bad("there is something after its end")),
                };
            }
            self.insert_row(ns, &line)
                .map_err(|what| lines.bad(&what))?;
            count += 1;
        }
    }

    fn insert_row(
        &self,
        ns: &Namespace,
        line: &Map<String, serde_json::Value>,
    ) -> std::result::Result<(), String> {
        let table = line.get("table").and_then(|t| t.as_str()).unwrap_or("");
        let Some(table) = TABLES.iter().find(|t| t.name == table) else {
            return Err(format!("there is no table {table:?}"));
        };
        let row = line.get("row").and_then(|r| r.as_object());
        let row = row.ok_or("a line without a row")?;
        let mut names = Vec::new();
        let mut values = Vec::new();
        for (name, value) in row {
            // The name goes into the statement: nothing but a column's name may.
            if !name.chars().all(|c| c.is_ascii_lowercase() || c == '_') || name == "namespace" {
                return Err(format!("{} has no column {name:?}", table.name));
            }
            names.push(name.as_str());
            values.push(if table.keys.contains(&name.as_str()) {
                let sum = table.name == "external";
                let known = |id: &u64| *id < ns.next_id || sum && (SAID..IDS).contains(id);
                let id = value.as_u64().filter(known);
                Value::Integer(ns.key(id.ok_or_else(|| format!("{value} is no turn's id"))?))
            } else {
                value_of(value)?
            });
        }
        // SQLite would give it one of its own, in whichever memory is the last.
        if !table.namespaced && !table.keys.iter().all(|key| row.contains_key(*key)) {
            return Err(format!("a row of {} without a turn's id", table.name));
        }
        if table.namespaced {
            names.push("namespace");
            values.push(Value::Integer(ns.id));
        }
        let places = vec!["?"; names.len()].join(", ");
        let sql = format!(
            "INSERT INTO {} ({}) VALUES ({places})",
            table.name,
            names.join(", ")
        );
        let mut statement = self.conn.prepare_cached(&sql).map_err(|e| e.to_string())?;
        statement
            .execute(rusqlite::params_from_iter(values))
            .map_err(|e| e.to_string())?;
        Ok(())
    }
}

/// Whether a first line is that of an export, of any release.
fn heads_export(header: &Map<String, serde_json::Value>) -> bool {
    header.get("format").and_then(|f| f.as_str()) == Some(FORMAT)
}

/// Whether a file begins as an export does.
fn is_export(path: &Path) -> bool {
    let Ok(file) = std::fs::File::open(path) else {
        return false;
    };
    let mut line = Vec::new();
    let read = BufReader::new(file.take(LONGEST_HEADER)).read_until(b'\n', &mut line);
    read.is_ok() && serde_json::from_slice(&line).is_ok_and(|header| heads_export(&header))
}

fn value_of(value: &serde_json::Value) -> std::result::Result<Value, String> {
    use serde_json::Value as Json;
    Ok(match value {
        Json::Null => Value::Null,
        Json::Bool(b) => Value::Integer(i64::from(*b)),
        Json::String(s) => Value::Text(s.clone()),
        Json::Number(n) => match n.as_i64() {
            Some(x) => Value::Integer(x),
            None => Value::Real(n.as_f64().ok_or("a number out of range")?),
        },
        Json::Object(o) => {
            let text = |key: &str| o.get(key).and_then(|b| b.as_str());
            if let Some(real) = text("real") {
                return Ok(Value::Real(real.parse().map_err(|_| "an unusable number")?));
            }
            let bytes = text("base64").and_then(|t| BASE64.decode(t).ok());
            Value::Blob(bytes.ok_or("unusable base64")?)
        }
        Json::Array(_) => return Err("a list where a value belongs".into()),
    })
}

/// A writer that hashes what it writes.
struct Hashed<W> {
    inner: W,
    hash: Sha256,
}

impl<W> Hashed<W> {
    fn sum(&self) -> String {
        hex(&self.hash)
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// The lines of a file, hashed, with their numbers for errors.
struct Lines<'a> {
    inner: BufReader<std::fs::File>,
    hash: Sha256,
    number: usize,
    path: &'a Path,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Option<Map<String, serde_json::Value>>> {
        let mut line = Vec::new();
        self.number += 1;
        let read = (&mut self.inner).take(LONGEST).read_until(b'\n', &mut line);
        read.map_err(|e| self.bad(&e.to_string()))?;
        if line.is_empty() {
            return Ok(None);
        }
        self.hash.update(&line);
        let object = serde_json::from_slice(&line);
        object.map(Some).map_err(|e| self.bad(&e.to_string()))
    }

    fn sum(&self) -> String {
        hex(&self.hash)
    }

    fn bad(&self, what: &str) -> Error {
        let (path, number) = (self.path.display(), self.number);
        Error::new(
            Code::InputTranscript,
            format!("{path}, line {number}: {what}; nothing was imported"),
        )
    }
}

fn hex(hash: &Sha256) -> String {
    let bytes = hash.clone().finalize();
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A line of a file, sound or not: what it lacks, has too much, or has of another kind.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let table = prop_oneof![
            (0..TABLES.len()).prop_map(|i| TABLES[i].name.to_owned()),
            "[a-z_]{0,9}",
        ];
        let column = prop_oneof!["key|older|newer|text|role|facts|spans", "[ -~]{0,6}"];
        let value = prop_oneof![
            any::<i64>().prop_map(|x| json!(x)),
            any::<f64>().prop_map(|x| json!(x)),
            any::<Option<bool>>().prop_map(|x| json!(x)),
            ".{0,6}".prop_map(|x| json!(x)),
            "[A-Za-z0-9+/=]{0,8}".prop_map(|x| json!({ "base64": x })),
            Just(json!([1])),
        ];
        let row = prop::collection::btree_map(column, value, 0..5);
        let line = (table, row).prop_map(|(t, r)| json!({ "table": t, "row": r }).to_string());
        prop::collection::vec(prop_oneof![4 => line, 1 => ".{0,30}"], 0..6)
    }

    proptest! {
        #[test]
        fn no_lines_do_more_than_be_refused(lines in lines(), rows in 0u64..6) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("memory.jsonl");
            let header = json!({
                "format": FORMAT, "version": VERSION, "schema": schema::LATEST,
                "namespace": "ana", "next_id": 9, "analyser": "x", "token_counter": "x",
            });
            let mut text = format!("{header}\n");
            for line in &lines {
                text.push_str(line);
                text.push('\n');
            }
            let mut hash = Sha256::new();
            hash.update(&text);
            let end = json!({ "end": true, "rows": rows, "sha256": hex(&hash) });
            std::fs::write(&path, format!("{text}{end}\n")).unwrap();
            let mut store = Store::in_memory().unwrap();
            match store.import(&path, None) {
                Ok((_, count)) => prop_assert_eq!(count, lines.len() as u64),
                Err(e) => {
                    prop_assert_eq!(e.code, Code::InputTranscript);
                    prop_assert!(store.namespaces().unwrap().is_empty());
                    prop_assert_eq!(store.check().unwrap(), Vec::new());
                }
            }
        }
    }

    #[test]
    fn no_table_is_forgotten() {
        let store = Store::in_memory().unwrap();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'namespace'
                   ORDER BY name";
        let mut statement = store.conn.prepare(sql).unwrap();
        let there: Vec<String> = statement
            .query_map([], |r| r.get(0))
            .unwrap()
            .collect::<rusqlite::Result<_>>()
            .unwrap();
        let mut moved: Vec<&str> = TABLES.iter().map(|t| t.name).collect();
        moved.sort_unstable();
        assert_eq!(there, moved);
    }
}
