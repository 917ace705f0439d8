//! Files and their names: whose a path is, and what may be written where.

use crate::error::{Code, Error, Result};
use rusqlite::OpenFlags;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What SQLite keeps beside a database. It reads them as the database's own, whatever was
/// there when they were written.
pub(super) const LOGS: [&str; 3] = ["-wal", "-shm", "-journal"];
/// What else lies beside a store: the writer's lock and the graphs.
const OURS: [&str; 2] = [".lock", ".ann"];
/// Links that are followed, as many as Linux follows.
const LINKS: usize = 40;

/// How files are opened. A name that begins with "file:" is no address with options, by
/// which SQLite would keep a store in memory and lose it.
pub(super) const AS_NAMED: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE
    .union(OpenFlags::SQLITE_OPEN_CREATE)
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The name with something added to its end.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// The path from the root: SQLite as it is built here takes "file:" at the beginning of a
/// name for an address even where the flags do not say so.
pub(super) fn from_root(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// The address by which SQLite reads a file that nobody writes.
pub(super) fn immutable(path: &Path) -> String {
    let name = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{name}?immutable=1")
}

/// One name for one file, whatever links lead to it, though nothing may be there yet.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let mut path = from_root(path);
    for _ in 0..LINKS {
        if let Ok(real) = path.canonicalize() {
            return real;
        }
        let Ok(target) = path.read_link() else { break };
        path = path.parent().map_or(target.clone(), |p| p.join(&target));
    }
    let folder = path.parent().and_then(|p| p.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// An error where a path is that of an open store, or of what lies beside it.
pub(super) fn refuse_own(store: Option<&Path>, target: &Path) -> Result<()> {
    let Some(store) = store else { return Ok(()) };
    let real = real_path(target);
    let beside_it = LOGS
        .iter()
        .chain(&OURS)
        .any(|end| beside(store, end) == real);
    if real == store || beside_it {
        return Err(Error::new(
            Code::StoreOpen,
            format!(
                "{} belongs to the store {}, which would be lost; name another file",
                target.display(),
                store.display()
            ),
        ));
    }
    Ok(())
}

/// An error where something is that a new file must not take the place of: a folder, a
/// device, a link to one of them, or a file that `replaceable` does not know. A link to a
/// file may go: the file stays.
pub(super) fn refuse_others(path: &Path, replaceable: impl FnOnce(&Path) -> bool) -> Result<()> {
    let Ok(there) = path.symlink_metadata() else {
        return Ok(());
    };
    let file = std::fs::metadata(path).map_or(there.is_symlink(), |m| m.is_file());
    let what = if !file {
        "it is no regular file"
    } else if !there.is_symlink() && there.len() > 0 && !replaceable(path) {
        "there is another file already"
    } else {
        return Ok(());
    };
    Err(Error::new(
        Code::StoreOpen,
        format!(
            "{} cannot be written: {what}; name another file",
            path.display()
        ),
    ))
}

/// An error where logs of a database lie beside a name that a new one is to have.
pub(super) fn refuse_logs(path: &Path) -> Result<()> {
    let logs = LOGS.iter().map(|end| beside(path, end));
    match logs.into_iter().find(|p| p.symlink_metadata().is_ok()) {
        None => Ok(()),
        Some(log) => Err(Error::new(
            Code::StoreOpen,
            format!(
                "{} is left of another store, whose turns would come back in {}; remove it, or name another file",
                log.display(),
                path.display()
            ),
        )),
    }
}

/// The log beside a store.
pub(super) fn log(path: &Path) -> PathBuf {
    beside(path, LOGS[0])
}

/// Whether there is something in it.
pub(super) fn log_left(path: &Path) -> bool {
    std::fs::metadata(log(path)).is_ok_and(|m| m.len() > 0)
}

/// A file, and what the system knows it by, whatever becomes of its name.
#[derive(Debug)]
pub(super) struct Found {
    path: PathBuf,
    numbers: (u64, u64),
}

impl Found {
    /// `None` where there is no such file. On Windows none is needed: nobody can take away a
    /// file there that somebody has open.
    pub(super) fn at(path: PathBuf) -> Option<Self> {
        let numbers = numbers(&path)?;
        Some(Self { path, numbers })
    }

    /// An error where the name leads to it no more: what is written to it would be lost with
    /// the last who has it open.
    pub(super) fn still_there(&self) -> Result<()> {
        if numbers(&self.path) == Some(self.numbers) {
            return Ok(());
        }
        Err(Error::new(
            Code::StoreOpen,
            format!(
                "{} was deleted, moved or replaced while it was open, and nothing was written to it; put the store's files back, or a backup, and open it again",
                self.path.display()
            ),
        ))
    }
}

#[cfg(unix)]
fn numbers(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

#[cfg(not(unix))]
fn numbers(_: &Path) -> Option<(u64, u64)> {
    None
}

/// Turns that are only in the log would seem not to be there.
pub(super) fn refuse_unread_log(path: &Path) -> Result<()> {
    if log_left(path) {
        return Err(Error::new(
            Code::StoreOpen,
            format!(
                "{} has a write-ahead log, which cannot be read in a folder that cannot be written; copy both files to one that can",
                path.display()
            ),
        ));
    }
    Ok(())
}

/// SQLite takes a short file of anything for an empty database and writes over it.
pub(super) fn refuse_other_formats(path: &Path) -> Result<()> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let Ok(file) = std::fs::File::open(path) else {
        return Ok(());
    };
    let mut start = Vec::new();
    let read = file.take(16).read_to_end(&mut start);
    if read.is_ok() && !start.is_empty() && start != MAGIC {
        return Err(Error::new(
            Code::StoreOpen,
            format!(
                "{} is not a SQLite file and was left as it is; name another file",
                path.display()
            ),
        ));
    }
    Ok(())
}

/// Writes a file under another name beside it, then gives it its own: complete or not
/// there at all.
pub(super) fn complete<T>(path: &Path, write: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let partial = &partial(path);
    let written = write(partial).and_then(|value| {
        std::fs::rename(partial, path).map_err(|e| unwritable(path, &e))?;
        Ok(value)
    });
    if written.is_err() {
        // The error to report is the first one.
        let _ = std::fs::remove_file(partial);
    }
    written
}

/// The name that a file has while it is written: one that nobody else gives a file.
pub(super) fn partial(path: &Path) -> PathBuf {
    beside(path, PARTIAL)
}

const PARTIAL: &str = ".ebbtide-partial";

/// A file that was not there: what a killed process left is removed, and a link that
/// somebody put in its place is not followed.
pub(super) fn new_file(path: &Path) -> Result<std::fs::File> {
    let _ = std::fs::remove_file(path);
    let made = std::fs::File::options()
        .write(true)
        .create_new(true)
        .open(path);
    made.map_err(|e| unwritable(path, &e))
}

/// Names the file that was asked for, not the one it is written to first.
pub(super) fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    let shown = path.display().to_string();
    Error::new(
        Code::StoreOpen,
        format!(
            "{} cannot be written: {error}; make its folder or room for it, or name another file",
            shown.strip_suffix(PARTIAL).unwrap_or(&shown)
        ),
    )
}
