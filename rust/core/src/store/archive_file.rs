//! `ltm.storage_type = "file"`: a write-only JSON Lines audit trail.

use crate::error::{Code, Error, Result};
use crate::types::StoredTurn;
use serde_json::json;
use std::fs::File;
use std::io::Write;
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
    let written = (|| {
        if let Some(folder) = Path::new(path).parent() {
            std::fs::create_dir_all(folder)?;
        }
        let mut file = File::options().create(true).append(true).open(path)?;
        writeln!(file, "{line}")
    })();
    written.map_err(|e| {
        Error::new(
            Code::StoreOpen,
            format!("the archive file {path} (ltm.storage_path) cannot be written: {e}"),
        )
    })
}
