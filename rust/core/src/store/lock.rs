//! One writer a store, enforced by the operating system's own file lock: free at
//! once when its holder dies, and no stale file to clean up by hand. A fork of the holder
//! has a part in it until it lets go (see [`super::forking`]).

use crate::error::{Code, Error, Result};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A held lock; dropping it frees it.
#[derive(Debug)]
pub struct WriterLock {
    file: File,
    had_store: bool,
    process: u32,
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Closed here, the file may still be open in a fork. In a fork, it is the parent's.
        if self.process == std::process::id() {
            let _ = self.file.unlock();
        }
    }
}

/// The second line of the lock's text once there is a store: an empty file in its place
/// is no new one then, but one that lost everything.
const STORE: &str = "has a store";

fn lock_path(store: &Path) -> PathBuf {
    let mut name: OsString = store.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

impl WriterLock {
    /// Takes the lock beside the store, or says who has it.
    pub fn acquire(store: &Path, holder: &str) -> Result<Self> {
        let path = lock_path(store);
        let open = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let mut file = open.map_err(|e| {
            Error::new(
                Code::StoreOpen,
                format!(
                    "the lock {} cannot be opened: {e}; is the folder writable?",
                    path.display()
                ),
            )
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut who = String::new();
                let read = file.read_to_string(&mut who);
                let who = who.lines().next().unwrap_or("").trim();
                let who = if read.is_ok() && !who.is_empty() {
                    who
                } else {
                    "another process"
                };
                return Err(Error::new(
                    Code::StoreLocked,
                    format!(
                        "{} is open for writing by {who}; close it there, or open it with read_only=True",
                        store.display()
                    ),
                ));
            }
            Err(TryLockError::Error(e)) => {
                return Err(Error::new(
                    Code::StoreOpen,
                    format!("{} cannot be locked: {e}", path.display()),
                ));
            }
        }
        let mut before = String::new();
        let had_store =
            file.read_to_string(&mut before).is_ok() && before.lines().nth(1) == Some(STORE);
        let mut lock = Self {
            file,
            had_store,
            process: std::process::id(),
        };
        lock.write(holder, had_store);
        Ok(lock)
    }

    /// Whether there was a store when an earlier process had the lock.
    pub fn had_store(&self) -> bool {
        self.had_store
    }

    /// Notes that there is a store now.
    pub fn note_store(&mut self) {
        if !self.had_store {
            let _ = self
                .file
                .seek(SeekFrom::End(0))
                .and_then(|_| writeln!(self.file, "{STORE}"));
        }
    }

    /// Only words for an error message: the lock itself is not the text.
    fn write(&mut self, holder: &str, had_store: bool) {
        let line = holder.replace('\n', " ");
        let rest = if had_store { STORE } else { "" };
        let _ = self
            .file
            .set_len(0)
            .and_then(|()| self.file.seek(SeekFrom::Start(0)))
            .and_then(|_| write!(self.file, "{line}\n{rest}"));
    }
}
