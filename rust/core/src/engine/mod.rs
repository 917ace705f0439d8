//! One memory, opened: the store beneath it, the indexes above it.

mod around;
mod assemble;
mod candidates;
mod consolidate;
mod decisions;
mod deliberate;
mod digest;
mod erase;
mod explain;
mod first_stage;
mod gate;
mod graph;
mod heirs;
mod hybrid;
mod known;
mod links;
mod load;
mod metadata;
mod page;
mod rank;
mod read;
mod recent;
mod relating;
mod remarks;
mod render;
mod rivals;
mod scan;
mod shipping;
mod stems;
mod terms;
mod thread;
mod tiers;
mod turns;
mod updates;
mod wording;
mod write;

pub use deliberate::Overruled;
pub use graph::SegmentVectors;
pub use load::MemoryOptions;
pub use read::{Evidence, Recall, RecallOptions, Support};
pub use tiers::{EpisodeText, Excerpt, FactText};
pub use wording::{Assignment, Message};

use crate::active::Active;
use crate::calendar;
use crate::config::{Archive, Config};
use crate::error::{Code, Error, Result};
use crate::index::{Flat, Inverted};
use crate::lineage::Lineage;
use crate::policy::recurrence::Recurrence;
use crate::retrieve::cards::CardIndex;
use crate::score::divergence::Window;
use crate::store::{External, Held, IDS, Namespace, SharedStore, text_sum};
use crate::text::{Counter, Words};
use crate::types::{InteractionId, Signals, State, StoredTurn};
use gate::Gate;
use metadata::Fields;
use recent::Recent;
use relating::Stated;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use turns::Turns;

/// What recall needs to know of a turn without reading it from disk.
#[derive(Debug, Clone)]
pub struct TurnMeta {
    /// `user`, `assistant`, …
    pub role: Arc<str>,
    /// Speaker's name, lower case.
    pub speaker: Option<Arc<str>>,
    /// Session.
    pub session: Option<Arc<str>>,
    /// Microseconds since the epoch.
    pub utc_micros: Option<i64>,
    /// Seconds that the clock of its stamp is ahead of UTC.
    pub ahead: i32,
    /// Archived rather than active.
    pub archived: bool,
    /// Its signals.
    pub signals: Signals,
    /// Phatic.
    pub social: bool,
}

impl TurnMeta {
    /// Its time on the clock of its stamp, in microseconds.
    pub fn local_micros(&self) -> Option<i64> {
        self.utc_micros.map(|at| calendar::on_clock(at, self.ahead))
    }
}

/// One memory.
pub struct Engine {
    store: SharedStore,
    namespace: Namespace,
    config: Config,
    presets: BTreeMap<String, Config>,
    analyser: String,
    counter: Counter,
    active: Active,
    window: Window,
    lineage: Lineage,
    /// What callers stated that waits for turns which are taken in anew.
    stated_later: Stated,
    flat: Flat,
    lexical: Inverted,
    bm25: Inverted,
    words: Words,
    cards: CardIndex,
    turns: Turns,
    names: BTreeSet<Arc<str>>,
    pending: BTreeSet<InteractionId>,
    /// Record ids of the archive file's lines, while turns are archived again that may be there.
    filed: BTreeSet<String>,
    metadata: Fields,
    gate: Gate,
    recurrence: Recurrence,
    recent: Recent,
    /// The state of the file in which a reader has last looked whether its memory is there.
    seen: AtomicI64,
    closed: bool,
}

impl Engine {
    fn store(&self) -> Held<'_> {
        self.store.lock()
    }

    fn open_only(&self) -> Result<()> {
        if self.closed {
            return Err(Error::new(
                Code::StoreClosed,
                "this memory was closed; open it again",
            ));
        }
        self.same_memory()
    }

    /// An error where a writer deleted this reader's memory: its number may be another's now.
    fn same_memory(&self) -> Result<()> {
        let store = self.store();
        if !store.read_only() {
            return Ok(());
        }
        let (_, version) = store.generation()?;
        if self.seen.load(Ordering::Relaxed) == version {
            return Ok(());
        }
        let Namespace {
            id, name, next_id, ..
        } = &self.namespace;
        let now = store.find_namespace(name)?;
        if now.is_none_or(|now| now.id != *id || now.next_id < *next_id) {
            return Err(Error::new(
                Code::NotFoundNamespace,
                format!(
                    "the memory {name:?} was deleted since it was opened to be read; open it again"
                ),
            ));
        }
        self.seen.store(version, Ordering::Relaxed);
        Ok(())
    }

    /// The memory's name.
    pub fn namespace(&self) -> &str {
        &self.namespace.name
    }

    /// Turns journalled whose analysis is still to come, in id order.
    pub fn pending(&self) -> Vec<InteractionId> {
        self.pending.iter().copied().collect()
    }

    /// Number of turns.
    pub fn len(&self) -> usize {
        self.turns.len() + self.gate.skipped().len() + self.pending.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has taken that turn in, analysed or not. One that another process stored
    /// since the memory was opened it has not.
    fn knows(&self, id: InteractionId) -> bool {
        self.turns.get(&id).is_some()
            || self.gate.skipped().contains_key(&id)
            || self.pending.contains(&id)
    }

    /// Turns of which a language model said something, at any time.
    pub fn assessed(&self) -> Result<Vec<InteractionId>> {
        self.open_only()?;
        self.store().assessed(&self.namespace)
    }

    /// Known speakers, lower case, ordered.
    pub fn speakers(&self) -> Vec<String> {
        let mut names: BTreeSet<&str> = self.turns.speakers().map(|s| &**s).collect();
        let skipped = self.gate.skipped().values();
        names.extend(skipped.filter_map(|t| t.speaker.as_deref()));
        names.into_iter().map(str::to_owned).collect()
    }

    /// The newest turn's timestamp, in microseconds since the epoch, and the seconds that
    /// its clock is ahead of UTC: the last turn in id order that carries one.
    pub fn newest_time(&self) -> Option<(i64, i32)> {
        let skipped = self.gate.skipped().iter().rev();
        let dated =
            |(id, t): (&InteractionId, &TurnMeta)| t.utc_micros.map(|at| (*id, (at, t.ahead)));
        let newest = { skipped }.find_map(dated).max(self.turns.newest_dated());
        newest.map(|(_, time)| time)
    }

    /// Tokens of a text by the memory's counter.
    pub fn count_tokens(&self, text: &str) -> u32 {
        self.counter.count(text)
    }

    fn newest(&self) -> InteractionId {
        self.namespace.next_id.saturating_sub(1)
    }

    fn recallable(&self, meta: &TurnMeta) -> bool {
        !meta.archived || self.all_recallable()
    }

    /// Whether archived turns are recalled as active ones are.
    fn all_recallable(&self) -> bool {
        self.config.ltm.archive() == Archive::Recalled
    }

    /// A turn with its validity filled in.
    pub(super) fn complete(&self, mut turn: StoredTurn) -> StoredTurn {
        turn.validity = self.lineage.validity(turn.interaction_id);
        turn
    }

    /// One turn.
    pub fn get(&self, id: InteractionId) -> Result<StoredTurn> {
        self.open_only()?;
        // Past the counter a key would reach into another memory of the store.
        let known = id < self.namespace.next_id;
        let found = if known {
            self.store().turn(&self.namespace, id)?
        } else {
            None
        };
        found.map(|t| self.complete(t)).ok_or_else(|| {
            Error::new(
                Code::NotFoundTurn,
                format!("there is no turn {id}; ids run from 0 to {}", self.newest()),
            )
        })
    }

    /// The id behind the caller's own id; an error where that turn was discarded.
    pub fn find_external(&self, external_id: &str) -> Result<Option<InteractionId>> {
        match self.external(external_id)? {
            None => Ok(None),
            Some(External::Turn(id)) => Ok(Some(id)),
            Some(External::Discarded(_)) => Err(Error::new(
                Code::NotFoundTurn,
                format!(
                    "the turn with external id {external_id:?} was discarded when it left the active memory (ltm.storage_type); only its id is kept, so that it is not stored again"
                ),
            )),
        }
    }

    /// Whether a turn with the caller's own id was ever stored, and not erased.
    pub fn knows_external(&self, external_id: &str) -> Result<bool> {
        Ok(self.external(external_id)?.is_some())
    }

    /// Whether the turn that is known by the caller's own id says another text, or did before
    /// it was discarded.
    pub fn says_other(&self, external_id: &str, text: &str) -> Result<bool> {
        Ok(match self.external(external_id)? {
            None => false,
            Some(External::Turn(id)) => {
                let turn = self.store().turn(&self.namespace, id)?;
                turn.is_some_and(|turn| turn.text != text)
            }
            Some(External::Discarded(sum)) => sum.is_some_and(|sum| sum != text_sum(text)),
        })
    }

    fn external(&self, external_id: &str) -> Result<Option<External>> {
        self.open_only()?;
        self.store().external(&self.namespace, external_id)
    }

    /// Up to `limit` turns from id `from` on, in id order, optionally of one state.
    pub fn page(
        &self,
        from: InteractionId,
        limit: u32,
        state: Option<State>,
    ) -> Result<Vec<StoredTurn>> {
        self.open_only()?;
        if from >= IDS {
            // Its key would be one of another memory's.
            return Ok(Vec::new());
        }
        let page = self.store().page(&self.namespace, from, limit, state)?;
        Ok(page.into_iter().map(|t| self.complete(t)).collect())
    }

    /// The same of turns whose metadata has all of these values.
    pub fn page_having(
        &self,
        from: InteractionId,
        limit: u32,
        state: Option<State>,
        metadata: &Map<String, Value>,
    ) -> Result<Vec<StoredTurn>> {
        self.open_only()?;
        let store = self.store();
        let having = self.metadata.having(Some(metadata));
        let turns = having.from(from).filter_map(|id| {
            let turn = store.turn(&self.namespace, id).transpose()?;
            let other = |t: &StoredTurn| state.is_some_and(|s| t.state != s);
            (!turn.as_ref().is_ok_and(other)).then(|| turn.map(|t| self.complete(t)))
        });
        turns.take(limit as usize).collect()
    }

    /// The turns connected to one by lineage, itself included, in id order. Those that a writer
    /// erased since this reader was opened are left out.
    pub fn history(&self, id: InteractionId) -> Result<Vec<StoredTurn>> {
        self.get(id)?;
        let store = self.store();
        let turns = self.lineage.history(id).into_iter();
        turns
            .filter_map(|id| store.turn(&self.namespace, id).transpose())
            .map(|turn| Ok(self.complete(turn?)))
            .collect()
    }

    /// Closes the memory; the store closes with its last memory.
    pub fn close(&mut self) -> Result<()> {
        self.closed = true;
        Ok(())
    }
}
