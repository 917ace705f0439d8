//! Tables, and the migrations that lead to them from every earlier version.

use super::{row_sum, sums};
use crate::error::{Code, Error, Result};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OptionalExtension};
use std::time::Duration;

/// "ebbt": marks a SQLite file as ours.
const APPLICATION_ID: i64 = 0x6562_6274;

/// Each entry leads from the version of its index to the next. Never edit one
/// that was released; append.
const MIGRATIONS: [&str; 6] = [V1, V2, V3, V4, V5, V6];

/// The newest schema version.
pub const LATEST: usize = MIGRATIONS.len();

const V1: &str = "
CREATE TABLE namespace (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    next_id INTEGER NOT NULL,
    analyser TEXT NOT NULL,
    token_counter TEXT NOT NULL
);
-- The journal and archive: canonical, never derived.
CREATE TABLE turn (
    key INTEGER PRIMARY KEY,
    record_id TEXT NOT NULL,
    external_id TEXT,
    role TEXT NOT NULL,
    speaker TEXT,
    text TEXT NOT NULL,
    timestamp TEXT,
    utc INTEGER,
    naive INTEGER NOT NULL,
    session_id TEXT,
    provenance TEXT,
    metadata TEXT,
    received_at INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE external (
    namespace INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (namespace, external_id)
) WITHOUT ROWID;
CREATE TABLE lineage (
    older INTEGER NOT NULL,
    newer INTEGER NOT NULL,
    relation TEXT NOT NULL,
    topic TEXT NOT NULL,
    by_caller INTEGER NOT NULL,
    PRIMARY KEY (older, newer, relation, topic)
) WITHOUT ROWID;
-- What the engine decided, and why.
CREATE TABLE decision (
    key INTEGER NOT NULL,
    at INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (key, at, seq)
) WITHOUT ROWID;
-- Derived data, rebuildable from the journal.
CREATE TABLE derived (
    key INTEGER PRIMARY KEY,
    divergence REAL NOT NULL,
    z_content REAL NOT NULL,
    z_op REAL NOT NULL,
    z_prov REAL NOT NULL,
    omega_raw REAL NOT NULL,
    omega REAL NOT NULL,
    facts BLOB NOT NULL,
    spans BLOB NOT NULL,
    vectors BLOB NOT NULL,
    card_vectors BLOB NOT NULL
);
CREATE TABLE token_vector (
    key INTEGER PRIMARY KEY,
    vectors BLOB NOT NULL
);
";

/// The gate: one row a turn that was judged, and the links between notes.
const V2: &str = "
CREATE TABLE gate (
    key INTEGER PRIMARY KEY,
    tier INTEGER NOT NULL,
    lifecycle INTEGER NOT NULL,
    reason TEXT NOT NULL,
    utility REAL NOT NULL,
    similarity REAL,
    thread REAL,
    surprise REAL NOT NULL,
    conflict INTEGER NOT NULL,
    rpe REAL NOT NULL
);
CREATE TABLE link (
    newer INTEGER NOT NULL,
    older INTEGER NOT NULL,
    cosine REAL NOT NULL,
    PRIMARY KEY (newer, older)
) WITHOUT ROWID;
";

/// Recurrence consolidation: spans of turns, derived and rebuildable.
const V3: &str = "
CREATE TABLE unit (
    key INTEGER PRIMARY KEY,
    opened INTEGER NOT NULL
);
CREATE TABLE episode (
    namespace INTEGER NOT NULL,
    id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (namespace, id, version)
) WITHOUT ROWID;
CREATE TABLE episode_source (
    namespace INTEGER NOT NULL,
    episode INTEGER NOT NULL,
    key INTEGER NOT NULL,
    PRIMARY KEY (namespace, episode, key)
) WITHOUT ROWID;
CREATE TABLE episode_sentence (
    namespace INTEGER NOT NULL,
    episode INTEGER NOT NULL,
    version INTEGER NOT NULL,
    key INTEGER NOT NULL,
    from_char INTEGER NOT NULL,
    to_char INTEGER NOT NULL,
    PRIMARY KEY (namespace, episode, version, key, from_char)
) WITHOUT ROWID;
CREATE TABLE semantic_fact (
    namespace INTEGER NOT NULL,
    id INTEGER NOT NULL,
    episode INTEGER NOT NULL,
    key INTEGER NOT NULL,
    from_char INTEGER NOT NULL,
    to_char INTEGER NOT NULL,
    reasons TEXT NOT NULL,
    PRIMARY KEY (namespace, id)
) WITHOUT ROWID;
CREATE TABLE semantic_topic (
    namespace INTEGER NOT NULL,
    fact INTEGER NOT NULL,
    topic TEXT NOT NULL,
    value TEXT NOT NULL,
    replaced_by INTEGER,
    PRIMARY KEY (namespace, fact, topic)
) WITHOUT ROWID;
";

/// What a language model said and wrote: kept like the turns, so that nothing is asked twice.
const V4: &str = "
CREATE TABLE assessment (
    key INTEGER PRIMARY KEY,
    lifecycle INTEGER,
    utility REAL,
    failed TEXT,
    calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL
);
-- One row a version of an episode that was, or is, to be written; turns are lists of ids.
CREATE TABLE writing (
    namespace INTEGER NOT NULL,
    episode INTEGER NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    done INTEGER NOT NULL,
    sources TEXT NOT NULL,
    fresh TEXT NOT NULL,
    past TEXT,
    text TEXT,
    facts TEXT,
    failed TEXT,
    drawn TEXT NOT NULL,
    calls INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (namespace, episode, version)
) WITHOUT ROWID;
CREATE TABLE wording (
    namespace INTEGER NOT NULL,
    fact INTEGER NOT NULL,
    text TEXT NOT NULL,
    drawn TEXT NOT NULL,
    PRIMARY KEY (namespace, fact)
) WITHOUT ROWID;
";

/// Checksums; `prepare` fills them in for what is there already.
const V5: &str = "
ALTER TABLE turn ADD COLUMN checksum INTEGER;
ALTER TABLE derived ADD COLUMN checksum INTEGER;
ALTER TABLE token_vector ADD COLUMN checksum INTEGER;
ALTER TABLE lineage ADD COLUMN checksum INTEGER;
ALTER TABLE decision ADD COLUMN checksum INTEGER;
ALTER TABLE gate ADD COLUMN checksum INTEGER;
ALTER TABLE link ADD COLUMN checksum INTEGER;
ALTER TABLE unit ADD COLUMN checksum INTEGER;
ALTER TABLE episode ADD COLUMN checksum INTEGER;
ALTER TABLE episode_source ADD COLUMN checksum INTEGER;
ALTER TABLE episode_sentence ADD COLUMN checksum INTEGER;
ALTER TABLE semantic_fact ADD COLUMN checksum INTEGER;
ALTER TABLE semantic_topic ADD COLUMN checksum INTEGER;
ALTER TABLE assessment ADD COLUMN checksum INTEGER;
ALTER TABLE writing ADD COLUMN checksum INTEGER;
ALTER TABLE wording ADD COLUMN checksum INTEGER;
";

/// The version that brought the last new table.
const TABLES_SINCE: usize = 4;
/// The version that brought token vectors in four bits; see [`super::tokens`].
pub const PACKED_SINCE: usize = 6;
/// Bits a number; rows of earlier releases have none written and eight.
const V6: &str = "
ALTER TABLE token_vector ADD COLUMN bits INTEGER;
";

/// Bytes of the file that are read where the system keeps them, without a call and a copy
/// for each page; what lies beyond is read as ever. A recall reads a thousand pages from
/// all over a large file, and the next one others, so that `cache_size` is of little use to
/// it. At most as much as `.cargo/config.toml` lets SQLite map, which a million turns are far
/// from. The system takes the memory back when it wants it; an in-memory store has nothing to
/// map. SQLite writes past the map and not through it, and maps anew what has grown or what
/// a `VACUUM` or a checkpoint of any process cut off.
///
/// None on Windows, where a file that somebody maps cannot be cut off: what `VACUUM` frees
/// would stay on disk, erased turns with it. None where addresses are scarce.
///
/// The price: a mapped page that the disk cannot give is no error but ends the process.
/// `Store::check` looks for such pages, so it reads without the map.
const MAPPED: u64 = if cfg!(all(unix, target_pointer_width = "64")) {
    1 << 36
} else {
    0
};

/// Whether the file is read through a map.
pub fn mapped(conn: &Connection, on: bool) -> Result<()> {
    let bytes = if on { MAPPED } else { 0 };
    // Any answer will do: an in-memory store gives none.
    let sql = format!("PRAGMA mmap_size = {bytes}");
    conn.query_row(&sql, [], |_| Ok(())).optional()?;
    Ok(())
}

/// How long a connection waits for another one.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// What every connection needs, whether it reads or writes.
pub fn equip(conn: &Connection) -> Result<()> {
    mapped(conn, true)?;
    conn.set_prepared_statement_cache_capacity(64);
    // Plans do not depend on the values that are bound: else SQLite may plan a statement
    // anew for each.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    row_sum::register(conn)
}

/// Settings of a writing connection, then the schema, created or migrated.
pub fn prepare(conn: &Connection, full: bool) -> Result<()> {
    conn.busy_timeout(PATIENCE)?;
    // Before anything is changed: a file that is not ours is left as it was.
    let present: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |r| r.get(0))?;
    if present > 0 && check(conn)? < sums::SINCE {
        whole(conn)?;
    }
    equip(conn)?;
    // Any answer will do: an in-memory database keeps its own mode.
    conn.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    let synchronous = if full { "FULL" } else { "NORMAL" };
    conn.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA secure_delete = ON;
         PRAGMA foreign_keys = ON;
         PRAGMA temp_store = MEMORY;
         PRAGMA cache_size = -16384;"
    ))?;
    // Any answer will do. Pages that many turns change, as those of an index, go from the
    // log to their place once in 32 MB rather than in 4.
    conn.query_row("PRAGMA wal_autocheckpoint = 8000", [], |_| Ok(()))?;
    let found = version(conn)?;
    if found < LATEST {
        let migrations = MIGRATIONS[found..].concat();
        let fill = if found < sums::SINCE {
            sums::fill()
        } else {
            String::new()
        };
        conn.execute_batch(&format!(
            "BEGIN IMMEDIATE;
             {migrations}
             {fill}
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {LATEST};
             COMMIT;"
        ))?;
    }
    Ok(())
}

impl super::Store {
    /// Whether the file has a place for what a later version brought: one of an earlier
    /// version that is opened for reading is not migrated.
    pub(super) fn holds(&self, table: &str) -> Result<bool> {
        // Known from opening, but for files that are older than the last new table.
        Ok(self.version >= TABLES_SINCE || self.has_table(table)?)
    }

    /// The same of a file that may be damaged, by looking.
    pub(super) fn has_table(&self, name: &str) -> Result<bool> {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let found: i64 = self.conn.query_row(sql, [name], |r| r.get(0))?;
        Ok(found > 0)
    }
}

/// An error unless SQLite finds a file in order that has no sums yet: they would be taken of
/// what is there, which would pass for sound from then on.
fn whole(conn: &Connection) -> Result<()> {
    let found = conn.query_row("PRAGMA integrity_check(1)", [], |r| r.get::<_, String>(0));
    let found = found.unwrap_or_else(|e| e.to_string());
    if found == "ok" {
        return Ok(());
    }
    Err(Error::new(
        Code::StoreCorrupt,
        format!(
            "the file is damaged ({found}), and is not brought to this release's schema so: restore a backup, or export what can still be read with read_only=True"
        ),
    ))
}

/// The version of an ebbtide store; an error unless it is one of a known version.
pub fn check(conn: &Connection) -> Result<usize> {
    let id: i64 = conn.query_row("PRAGMA application_id", [], |r| r.get(0))?;
    if id != APPLICATION_ID {
        return Err(Error::new(
            Code::StoreOpen,
            "this SQLite file is not an ebbtide store; name another file",
        ));
    }
    let found = version(conn)?;
    let latest = LATEST;
    if found > latest {
        return Err(Error::new(
            Code::SchemaVersion,
            format!(
                "the store has schema version {found}, this release knows up to {latest}; upgrade ebbtide to open it"
            ),
        ));
    }
    Ok(found)
}

fn version(conn: &Connection) -> Result<usize> {
    let version: i64 = conn.query_row("PRAGMA user_version", [], |r| r.get(0))?;
    usize::try_from(version)
        .map_err(|_| Error::new(Code::StoreCorrupt, "the store's schema version is negative"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_be_mapped_as_far_as_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let conn = Connection::open(folder.path().join("m.db")).unwrap();
        mapped(&conn, true).unwrap();
        let most: i64 = conn
            .query_row("PRAGMA mmap_size", [], |row| row.get(0))
            .unwrap();
        let wanted = MAPPED.cast_signed();
        assert_eq!(most, wanted, "SQLite was built without .cargo/config.toml");
    }
}
