//! `ltm.storage_type = "file"`: a write-only JSON Lines audit trail.

use crate::error::{Code, Error, Result};
use crate::types::StoredTurn;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Appends one RawLTMRecord (eq. 30). It is written before the transaction that
/// archives the turn commits: a kill in between repeats the line, with the same
/// `record_id`, and never loses it.
pub fn append_raw_record(path: &str, turn: &StoredTurn) -> Result<()> {
    let line = json!({
        "record_id": turn.record_id,
        "interaction_id": turn.interaction_id,
        "role": turn.role,
        "text": turn.text,
        "created_at": turn.timestamp,
        "provenance": turn.provenance,
    });
    let written = append(Path::new(path), &line.to_string());
    written.map_err(|e| {
        Error::new(
            Code::StoreOpen,
            format!("the archive file {path} (ltm.storage_path) cannot be written: {e}; give it room, or name another"),
        )
    })
}

/// Record ids of the lines that such a file has: none where it only takes, or is not there.
/// What cannot be read is written again, which is better than not at all.
pub fn raw_records(path: &str) -> BTreeSet<String> {
    #[derive(Deserialize)]
    struct Line {
        record_id: String,
    }
    // A pipe would wait for somebody who writes.
    let regular = std::fs::metadata(path).is_ok_and(|there| there.is_file());
    let Some(file) = regular.then(|| File::open(path)).and_then(|f| f.ok()) else {
        return BTreeSet::new();
    };
    let lines = BufReader::new(file)
        .split(b'\n')
        .map_while(|line| line.ok());
    let records = lines.filter_map(|line| serde_json::from_slice(&line).ok());
    records.map(|line: Line| line.record_id).collect()
}

/// Appends a line, whole or not at all.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = open(path)?;
    // Two memories may have one file. Where there are no locks, it is as it was.
    let _ = file.lock();
    let there = file.metadata()?;
    let (regular, length) = (there.is_file(), there.len());
    let torn = regular && length > 0 && !ends_a_line(&mut file);
    let begin = if torn { "\n" } else { "" };
    let written = file.write_all(format!("{begin}{line}\n").as_bytes());
    if written.is_err() && regular {
        // What a full disk took of it would swallow the next line.
        let _ = file.set_len(length);
    }
    written
}

/// Opens it to append, and to read where that may be: a pipe only takes, and so does a
/// file that nobody may read.
fn open(path: &Path) -> std::io::Result<File> {
    let with = |read| {
        let mut options = File::options();
        options.read(read).create(true).append(true).open(path)
    };
    if std::fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        return with(false);
    }
    with(true).or_else(|_| with(false))
}

/// Whether a file that is not empty ends with a line's end, as it does unless a process
/// was killed within a line.
fn ends_a_line(file: &mut File) -> bool {
    let mut last = [0];
    let read = file
        .seek(SeekFrom::End(-1))
        .and_then(|_| file.read_exact(&mut last));
    read.is_err() || last == *b"\n"
}
