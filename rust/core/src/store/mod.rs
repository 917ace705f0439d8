//! The one disk user: a SQLite file with journal, archive and derived data.
//!
//! A turn's key is `namespace << 40 | interaction id`, so a namespace is one
//! contiguous key range in every table and appends go to its end.

mod archive_file;
mod care;
mod files;
pub mod forking;
mod gate;
mod lock;
mod read;
mod recurrence;
mod row_sum;
mod schema;
mod scrub;
mod shared;
mod shipping;
mod sums;
mod tokens;
mod transfer;
mod write;
mod written;

pub use archive_file::{append_raw_record, raw_records};
pub use care::Finding;
pub use read::{DecisionRow, Derived, External, LoadedTurn, Scanned};
pub use schema::LATEST as SCHEMA_VERSION;
pub use shared::{Held, SharedStore};
pub use write::{DecisionLog, STATED, TurnRow, stated_seq, text_sum};
pub use written::{Uses, Writing, Written};

use crate::error::{Code, Error, Result};
use files::Found;
use lock::WriterLock;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior};
use std::cell::Cell;
use std::path::{Path, PathBuf};

const ID_BITS: u32 = 40;
/// Interaction ids lie below it: one above would be a turn of another memory.
pub const IDS: u64 = 1 << ID_BITS;
/// Numbers of memories lie below it, from 1 on: the keys of the one behind are numbers, too.
const MEMORIES: i64 = (1 << (i64::BITS - 1 - ID_BITS)) - 1;

/// How a store is opened.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Refuse every write; take no lock.
    pub read_only: bool,
    /// Who holds the writer's lock, in words for another process's error.
    pub holder: String,
    /// Survive a power cut, not only a killed process.
    pub synchronous_full: bool,
}

/// An open store file.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    path: Option<PathBuf>,
    read_only: bool,
    /// Of its schema; a store that is only read keeps an earlier one.
    version: usize,
    /// Erasures by this process.
    erasures: Cell<u64>,
    /// Whether the log may hold what was erased: also one that a killed process left.
    scrub_due: Cell<bool>,
    /// As they were found when it was opened for writing.
    files: Vec<Found>,
    // Held until the store is dropped; the operating system frees it with the process.
    lock: Option<WriterLock>,
}

/// One memory within a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Number within the store.
    pub id: i64,
    /// Name.
    pub name: String,
    /// Next interaction id.
    pub next_id: u64,
    /// Fingerprint of the analyser that made the derived data; empty before the first turn.
    pub analyser: String,
    /// Name of the token counter.
    pub token_counter: String,
}

/// The keys of one memory's turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys(i64);

impl Keys {
    /// Key of a turn in every table.
    pub fn of(self, id: u64) -> i64 {
        self.0 | id.cast_signed()
    }
}

impl Namespace {
    /// Its keys.
    pub fn keys(&self) -> Keys {
        Keys(self.id << ID_BITS)
    }

    /// Key of a turn in every table.
    pub fn key(&self, id: u64) -> i64 {
        self.keys().of(id)
    }

    fn range(&self) -> (i64, i64) {
        (self.id << ID_BITS, (self.id + 1) << ID_BITS)
    }
}

fn id_of(key: i64) -> u64 {
    #[allow(clippy::cast_sign_loss)]
    let id = (key & ((1 << ID_BITS) - 1)) as u64;
    id
}

impl Store {
    /// A store that lives in memory and ends with the process.
    pub fn in_memory() -> Result<Self> {
        let conn = Connection::open_in_memory()?;
        schema::prepare(&conn, false)?;
        Ok(Self {
            conn,
            path: None,
            read_only: false,
            version: SCHEMA_VERSION,
            erasures: Cell::new(0),
            scrub_due: Cell::new(false),
            files: Vec::new(),
            lock: None,
        })
    }

    /// Opens a store file; a writer creates it where it is missing.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self> {
        refuse_no_file(path)?;
        if options.read_only {
            return Self::open_read_only(path);
        }
        // One lock for one file, whatever links lead to it, and from before it is made on.
        let path = &files::real_path(path);
        if let Some(folder) = path.parent().filter(|p| !p.is_dir()) {
            return Err(Error::new(
                Code::StoreOpen,
                format!(
                    "the folder {} does not exist; create it first",
                    folder.display()
                ),
            ));
        }
        files::refuse_other_formats(path)?;
        let mut lock = WriterLock::acquire(path, &options.holder)?;
        if lock.had_store() && std::fs::metadata(path).is_ok_and(|m| m.len() == 0) {
            return Err(Error::new(
                Code::StoreCorrupt,
                format!(
                    "{0} is empty, but held a store: remove {0} and {0}-wal and put a backup there, or remove {0}.lock too to begin anew",
                    path.display()
                ),
            ));
        }
        let left = files::log_left(path);
        let conn =
            Connection::open_with_flags(path, files::AS_NAMED).map_err(|e| open_error(path, &e))?;
        let prepared = schema::prepare(&conn, options.synchronous_full);
        prepared.map_err(|e| name_the_file(e, path))?;
        lock.note_store();
        Ok(Self {
            conn,
            path: Some(path.clone()),
            read_only: false,
            version: SCHEMA_VERSION,
            erasures: Cell::new(0),
            scrub_due: Cell::new(left),
            files: [path.clone(), files::log(path)]
                .into_iter()
                .filter_map(Found::at)
                .collect(),
            lock: Some(lock),
        })
    }

    fn open_read_only(path: &Path) -> Result<Self> {
        if !path.is_file() {
            return Err(Error::new(
                Code::NotFoundStore,
                format!(
                    "there is no store at {}; check the path, or write to it first, which makes one",
                    path.display()
                ),
            ));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let usable = |conn: &Connection| {
            conn.query_row("SELECT count(*) FROM sqlite_schema", [], |r| {
                r.get::<_, i64>(0)
            })
            .is_ok()
        };
        let rooted = files::from_root(path);
        let mut conn =
            Connection::open_with_flags(&rooted, flags).map_err(|e| open_error(path, &e))?;
        if !usable(&conn) {
            // In a folder that cannot be written, SQLite cannot make the shared
            // index of the WAL; without a WAL the file itself is all there is.
            files::refuse_unread_log(path)?;
            let uri = files::immutable(&rooted);
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            let still = Connection::open_with_flags(uri, flags).ok().filter(usable);
            if let Some(immutable) = still {
                conn = immutable;
            }
        }
        let version = schema::check(&conn).map_err(|e| name_the_file(e, path))?;
        schema::equip(&conn)?;
        Ok(Self {
            conn,
            path: Some(files::real_path(path)),
            read_only: true,
            version,
            erasures: Cell::new(0),
            scrub_due: Cell::new(false),
            files: Vec::new(),
            lock: None,
        })
    }

    /// The file, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Whether writes are refused.
    pub fn read_only(&self) -> bool {
        self.read_only
    }

    /// An error unless the store may be written.
    pub fn writable(&self) -> Result<()> {
        if self.read_only {
            return Err(Error::new(
                Code::StoreReadOnly,
                "this memory was opened for reading only; open it without read_only to write",
            ));
        }
        Ok(())
    }

    /// Names of the memories in the store, ordered.
    pub fn namespaces(&self) -> Result<Vec<String>> {
        let mut statement = self
            .conn
            .prepare("SELECT name FROM namespace ORDER BY name")?;
        let names = statement
            .query_map([], |r| r.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(names)
    }

    /// The memory of that name, if it exists.
    pub fn find_namespace(&self, name: &str) -> Result<Option<Namespace>> {
        // The table itself decides: through a damaged index a memory would seem not to
        // be there, and another one would be begun in its place.
        let sql = "SELECT id, name, next_id, analyser, token_counter FROM namespace NOT INDEXED
                   WHERE name = ?1";
        let found = self
            .conn
            .query_row(sql, [name], |r| {
                Ok(Namespace {
                    id: r.get(0)?,
                    name: r.get(1)?,
                    next_id: r.get::<_, i64>(2)?.unsigned_abs(),
                    analyser: r.get(3)?,
                    token_counter: r.get(4)?,
                })
            })
            .optional()?;
        if let Some(Namespace { id, .. }) = found.as_ref().filter(|n| !has_keys(n.id)) {
            return Err(Error::new(
                Code::StoreCorrupt,
                format!(
                    "the memory {name:?} has the number {id}, which none can have: the file was damaged; restore a backup"
                ),
            ));
        }
        Ok(found)
    }

    /// The memory of that name; an error where there is none.
    pub fn known_namespace(&self, name: &str) -> Result<Namespace> {
        self.find_namespace(name)?.ok_or_else(|| {
            Error::new(
                Code::NotFoundNamespace,
                format!("the store has no namespace {name:?}"),
            )
        })
    }

    /// The memory of that name, created where it is missing.
    pub fn namespace(&self, name: &str, token_counter: &str) -> Result<Namespace> {
        if let Some(found) = self.find_namespace(name)? {
            return Ok(found);
        }
        if self.read_only {
            return self.known_namespace(name);
        }
        let sql = "SELECT ifnull(max(id), 0) FROM namespace";
        let last: i64 = self.conn.query_row(sql, [], |r| r.get(0))?;
        if !has_keys(last.saturating_add(1)) {
            return Err(Error::new(
                Code::StoreCorrupt,
                format!(
                    "behind the memory with the number {last} there is no place for another: the file was damaged; restore a backup"
                ),
            ));
        }
        self.conn.execute(
            "INSERT INTO namespace (name, next_id, analyser, token_counter) VALUES (?1, 0, '', ?2)",
            [name, token_counter],
        )?;
        let id = self.conn.last_insert_rowid();
        Ok(Namespace {
            id,
            name: name.into(),
            next_id: 0,
            analyser: String::new(),
            token_counter: token_counter.into(),
        })
    }

    /// Runs `work` in one transaction: all of it is on disk, or none, also where it panics.
    pub fn transaction<T>(&mut self, work: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
        self.writable()?;
        let open = Transaction::new_unchecked(&self.conn, TransactionBehavior::Immediate)?;
        let value = work(self)?;
        self.files.iter().try_for_each(Found::still_there)?;
        open.commit()?;
        self.scrub_unless_busy();
        Ok(value)
    }

    /// Runs `work` on one state of the store. SQLite takes and gives back the file's locks
    /// once, and not for each of the hundreds of rows that a recall reads.
    pub fn reading<T>(&self, work: impl FnOnce(&Store) -> Result<T>) -> Result<T> {
        if !self.conn.is_autocommit() {
            return work(self);
        }
        self.conn.prepare_cached("BEGIN")?.execute([])?;
        let state = State(&self.conn);
        let value = work(self)?;
        state.end()?;
        Ok(value)
    }

    /// Changes whenever something may have been erased, by this process or another.
    pub fn generation(&self) -> Result<(u64, i64)> {
        let others = self
            .conn
            .prepare_cached("PRAGMA data_version")?
            .query_row([], |r| r.get(0))?;
        Ok((self.erasures.get(), others))
    }

    /// Rebuilds the file without free pages.
    pub fn vacuum(&self) -> Result<()> {
        self.writable()?;
        self.conn.execute_batch("VACUUM")?;
        self.scrub()?;
        Ok(())
    }
}

/// One state of the store while it is read. It ends with this, also after an error or a
/// panic: else every transaction after it would be one within another.
struct State<'a>(&'a Connection);

impl State<'_> {
    fn end(&self) -> Result<()> {
        self.0.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }
}

impl Drop for State<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // The error to report is the first one.
            let _ = self.0.execute_batch("ROLLBACK");
        }
    }
}

/// Whether the keys of a memory with that number are numbers.
fn has_keys(id: i64) -> bool {
    (1..MEMORIES).contains(&id)
}

/// Names that lead to no file: SQLite would keep a store in memory, or in a file without a
/// name, where it is lost without a word, and would wait for who writes into a pipe.
fn refuse_no_file(path: &Path) -> Result<()> {
    let message = if path.as_os_str().is_empty() {
        "the path of the store is empty; name a file, such as memory.db".into()
    } else if path.is_dir() {
        format!(
            "{} is a folder; name a file, such as memory.db",
            path.display()
        )
    } else if path == Path::new(":memory:") {
        ":memory: is not a file; name one, or use Memory.in_memory() for a memory without".into()
    } else if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        format!(
            "{} is no regular file; name one, such as memory.db",
            path.display()
        )
    } else {
        return Ok(());
    };
    Err(Error::new(Code::StoreOpen, message))
}

fn open_error(path: &Path, error: &rusqlite::Error) -> Error {
    Error::new(
        Code::StoreOpen,
        format!("{} cannot be opened: {error}", path.display()),
    )
}

fn name_the_file(error: Error, path: &Path) -> Error {
    Error::new(error.code, format!("{}: {}", path.display(), error.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn store() -> Store {
        let store = Store::in_memory().unwrap();
        store.namespace("ana", "x").unwrap();
        store
    }

    #[test]
    fn a_panic_leaves_no_transaction_open() {
        let mut store = store();
        let written = catch_unwind(AssertUnwindSafe(|| {
            store.transaction(|s| -> Result<()> {
                s.namespace("half", "x")?;
                panic!("in a transaction")
            })
        }));
        let read = catch_unwind(AssertUnwindSafe(|| {
            store.reading(|_| -> Result<()> { panic!("in a reading") })
        }));
        assert!(written.is_err() && read.is_err());
        store.transaction(|s| s.namespace("luis", "x")).unwrap();
        assert_eq!(store.namespaces().unwrap(), ["ana", "luis"]);
    }

    #[test]
    fn a_reading_that_fails_tells_why() {
        let store = store();
        let read = store.reading(|s| -> Result<()> {
            // With no transaction left, ending it fails too.
            s.conn.execute_batch("COMMIT")?;
            s.known_namespace("eve").map(drop)
        });
        assert_eq!(read.unwrap_err().code, Code::NotFoundNamespace);
    }

    #[test]
    fn no_memory_has_a_number_whose_keys_are_none() {
        let store = store();
        for id in [i64::MAX, MEMORIES, 0, -1] {
            store
                .conn
                .execute("UPDATE namespace SET id = ?1", [id])
                .unwrap();
            let found = store.find_namespace("ana");
            assert_eq!(found.unwrap_err().code, Code::StoreCorrupt, "{id}");
            let what = &store.check().unwrap()[0].what;
            assert!(what.contains(&id.to_string()), "{what}");
        }
        for id in [i64::MAX, MEMORIES - 1] {
            store
                .conn
                .execute("UPDATE namespace SET id = ?1", [id])
                .unwrap();
            let made = store.namespace("luis", "x");
            assert_eq!(made.unwrap_err().code, Code::StoreCorrupt, "{id}");
        }
        let (_, end) = store.known_namespace("ana").unwrap().range();
        assert!(end > 0);
    }
}
