//! One writer a store, enforced by the operating system's own file lock: free at
//! once when its holder dies, and no stale file to clean up by hand.

use crate::error::{Code, Error, Result};
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A held lock; dropping it frees it.
#[derive(Debug)]
pub struct WriterLock {
    _file: File,
}

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
                let who = if read.is_ok() && !who.trim().is_empty() {
                    who.trim()
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
        // Only words for an error message: the lock itself is not the text.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(holder.as_bytes()));
        Ok(Self { _file: file })
    }
}
