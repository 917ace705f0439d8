//! A hash of the logical state: equal whenever the same turns went in.

use super::Engine;
use crate::error::Result;
use crate::types::State;
use sha2::{Digest, Sha256};

/// Feeds one optional field, so that no two different sequences of fields read alike.
pub(super) fn field(hash: &mut Sha256, value: Option<&[u8]>) {
    match value {
        Some(bytes) => {
            hash.update([1]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        None => hash.update([0]),
    }
}

impl Engine {
    /// SHA-256, in hex, over ids, texts, given timestamps, provenance, states,
    /// scores, cards, lineage, the gate's verdicts and what was consolidated; not over
    /// decisions, receipt times or caches.
    pub fn digest(&self) -> Result<String> {
        self.open_only()?;
        let mut hash = Sha256::new();
        self.store().for_each_loaded(&self.namespace, 0, |loaded| {
            let t = loaded.turn;
            hash.update(t.interaction_id.to_le_bytes());
            let provenance = t.provenance.map(|p| serde_json::json!(p).to_string());
            for value in [
                Some(t.record_id.as_str()),
                Some(&t.text),
                Some(&t.role),
                t.speaker.as_deref(),
                t.timestamp.as_deref(),
                t.session_id.as_deref(),
                t.external_id.as_deref(),
                provenance.as_deref(),
                t.metadata.as_deref(),
            ] {
                field(&mut hash, value.map(str::as_bytes));
            }
            hash.update([u8::from(t.state == State::Archived)]);
            hash.update(t.tokens.to_le_bytes());
            if let Some(d) = loaded.derived {
                let s = d.score;
                for x in [
                    s.divergence,
                    s.z_content,
                    s.z_op,
                    s.z_prov,
                    s.omega_raw,
                    s.omega,
                ] {
                    hash.update(x.to_bits().to_le_bytes());
                }
                hash.update([d.facts.signals.0]);
                field(&mut hash, Some(&postcard::to_stdvec(&d.facts.cards)?));
            }
            Ok(())
        })?;
        for edge in self.lineage.edges() {
            hash.update(edge.older.to_le_bytes());
            hash.update(edge.newer.to_le_bytes());
            field(&mut hash, Some(edge.relation.as_str().as_bytes()));
            field(&mut hash, Some(edge.topic.as_bytes()));
        }
        self.gate.digest(&mut hash);
        self.digest_recurrence(&mut hash);
        Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
    }
}
