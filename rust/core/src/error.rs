//! The one list of errors. Every variant has a stable code; the bindings map the
//! code's family (the part before the dot) to one Python exception class.

use std::fmt;

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// Stable identifiers of everything that can go wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in declaration order.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            /// The code as users see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }
        }
    };
}

codes! {
    /// The configuration is not valid TOML.
    ConfigSyntax = "config.syntax",
    /// An unknown section or key.
    ConfigUnknownKey = "config.unknown_key",
    /// A value of the wrong type.
    ConfigType = "config.type",
    /// A value out of its range, or two that contradict each other.
    ConfigRange = "config.range",
    /// No preset by that name.
    ConfigPreset = "config.preset",
    /// A model named in the configuration is not installed.
    ConfigModel = "config.model",
    /// A model directory or package is missing.
    ConfigModelMissing = "config.model_missing",
    /// A model file cannot be used.
    ConfigModelUnusable = "config.model_unusable",
    /// A turn's text is longer than the limit.
    InputTooLong = "input.too_long",
    /// A turn's text is not valid Unicode.
    InputUnicode = "input.unicode",
    /// A field is missing, of the wrong type, or has an unusable value.
    InputField = "input.field",
    /// A timestamp could not be read.
    InputTimestamp = "input.timestamp",
    /// A number that must be finite is not, or an array has the wrong shape.
    InputFacts = "input.facts",
    /// A relation would close a cycle, or relates a turn to itself.
    InputCycle = "input.cycle",
    /// A transcript file could not be read.
    InputTranscript = "input.transcript",
    /// The store is locked by another writer.
    StoreLocked = "store.locked",
    /// The store cannot be opened, or is not an ebbtide store.
    StoreOpen = "store.open",
    /// SQLite reported an error while reading or writing.
    StoreSqlite = "store.sqlite",
    /// A write was asked of a store that is open for reading only.
    StoreReadOnly = "store.read_only",
    /// The memory was closed.
    StoreClosed = "store.closed",
    /// The store's contents contradict themselves.
    StoreCorrupt = "store.corrupt",
    /// The schema version is unknown to this release.
    SchemaVersion = "schema.version",
    /// The store was made with another analyser or embedder.
    FingerprintAnalyser = "fingerprint.analyser",
    /// The store counts tokens with another tokenizer.
    FingerprintTokens = "fingerprint.tokens",
    /// No turn by that id.
    NotFoundTurn = "not_found.turn",
    /// No namespace by that name.
    NotFoundNamespace = "not_found.namespace",
    /// No store file at that path.
    NotFoundStore = "not_found.store",
    /// A language model's endpoint cannot be reached or used at all.
    LlmUnavailable = "llm.unavailable",
    /// A language model's endpoint refused a request.
    LlmRequest = "llm.request",
    /// A language model replied with nothing that can be used.
    LlmAnswer = "llm.answer",
    /// Another memory system, run beside this one, failed, fell silent or ended.
    PeerFailed = "peer.failed",
    /// A worker process of a replay ended on its own.
    WorkerFailed = "worker.failed",
    /// A daemon's socket, port or token file cannot be used.
    DaemonAddress = "daemon.address",
    /// The token that a daemon asks for is missing or wrong.
    DaemonToken = "daemon.token",
    /// A daemon turned a request away because of where it came from.
    DaemonOrigin = "daemon.origin",
    /// A daemon has no such route.
    DaemonRoute = "daemon.route",
    /// A daemon cannot be reached, is stopping, or did not answer in time.
    DaemonUnavailable = "daemon.unavailable",
    /// A write's answer was lost: a daemon may or may not have carried it out.
    DaemonUncertain = "daemon.uncertain",
    /// A daemon failed at a request, or its answer cannot be read.
    DaemonFailed = "daemon.failed",
    /// An archive's server cannot be reached, or failed.
    ArchiveUnavailable = "archive.unavailable",
    /// An archive holds something else under the same name.
    ArchiveConflict = "archive.conflict",
    /// What an archive returned is not what was put there.
    ArchiveDamaged = "archive.damaged",
}

/// What went wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The stable code.
    pub code: Code,
    /// One sentence for a person, with the remedy.
    pub message: String,
}

impl Error {
    /// An error of that code with that message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let code = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                Code::StoreCorrupt
            }
            _ if is_of_a_value(&error) => Code::StoreCorrupt,
            _ => Code::StoreSqlite,
        };
        let remedy = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::NotADatabase) => {
                "; name another file, or restore a backup if it was a store"
            }
            _ => "",
        };
        Self::new(
            code,
            format!("the store could not be read or written: {error}{remedy}"),
        )
    }
}

/// Whether SQLite did as it was told, and what it read is none of the values that are
/// written there.
fn is_of_a_value(error: &rusqlite::Error) -> bool {
    use rusqlite::Error as E;
    matches!(
        error,
        E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::InvalidColumnType(..)
            | E::Utf8Error(..)
    )
}

impl From<postcard::Error> for Error {
    fn from(error: postcard::Error) -> Self {
        Self::new(
            Code::StoreCorrupt,
            format!("derived data in the store cannot be read ({error}); run `ebbtide reindex`"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_have_a_family() {
        let mut seen: Vec<&str> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert!(seen.iter().all(|c| c.contains('.')));
        let before = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), before);
    }
}
