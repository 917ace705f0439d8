//! Opening: everything in memory comes back from the store exactly as it was.

use super::gate::Gate;
use super::metadata::Fields;
use super::recent::Recent;
use super::turns::Turns;
use super::{Engine, TurnMeta};
use crate::active::{Active, Entry};
use crate::calendar::clock_offset;
use crate::config::Config;
use crate::error::{Code, Error, Result};
use crate::index::{Flat, Inverted};
use crate::lineage::Lineage;
use crate::policy::recurrence::Recurrence;
use crate::retrieve::cards::CardIndex;
use crate::score::divergence::Window;
use crate::store::{Derived, LoadedTurn, Namespace, SharedStore, Store};
use crate::text::{self, Counter, Words};
use crate::types::{Facts, InteractionId, State, StoredTurn};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicI64;
use std::sync::mpsc::{SendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{mem, thread};

/// Turns that one thread hands to the other at once. A memory of fewer needs no other.
const TOGETHER: usize = 512;
/// How often it may do so before the other has taken them.
const AHEAD: usize = 2;

/// What a memory is opened with.
#[derive(Debug, Clone)]
pub struct MemoryOptions {
    /// Name of the memory.
    pub namespace: String,
    /// Settings of writing, and of reading where no preset is named.
    pub config: Config,
    /// Settings of reading by preset name.
    pub presets: BTreeMap<String, Config>,
    /// Fingerprint of the analyser and embedder in use.
    pub analyser: String,
    /// Do not refuse derived data of another analyser: it is about to be rebuilt.
    pub reindexing: bool,
}

impl Engine {
    /// Opens a memory in a store.
    pub fn open(store: SharedStore, options: MemoryOptions) -> Result<Self> {
        let shared = store.clone();
        // Before the tokenizer, which is made at its first use: no fork happens in between.
        let held = shared.lock();
        let counter = &options.config.capacity.token_counter;
        let tokenizer = text::tokenizer(counter).ok_or_else(|| {
            Error::new(
                Code::ConfigRange,
                format!("no token counter is called {counter:?}"),
            )
        })?;
        // Made where it is missing; what it was made with is read with its turns.
        held.namespace(&options.namespace, counter)?;
        held.reading(|s| Self::open_in(s, store, options, Counter::new(tokenizer)))
    }

    /// Opens a memory that is there, in one state of the store: another process may write.
    fn open_in(
        held: &Store,
        store: SharedStore,
        options: MemoryOptions,
        counter: Counter,
    ) -> Result<Self> {
        let namespace = held.known_namespace(&options.namespace)?;
        if !options.reindexing {
            check_fingerprints(
                &namespace.analyser,
                &options.analyser,
                &namespace.token_counter,
                &options.config.capacity.token_counter,
            )?;
        }
        let recent = Recent::with_limit((options.config.store.recall_cache_mb as usize) << 20);
        let mut engine = Self {
            window: Window::new(options.config.capacity.window_size as usize),
            store,
            namespace,
            config: options.config,
            presets: options.presets,
            analyser: options.analyser,
            counter,
            active: Active::default(),
            lineage: Lineage::default(),
            stated_later: Vec::new(),
            flat: Flat::default(),
            lexical: Inverted::default(),
            bm25: Inverted::default(),
            words: Words::default(),
            cards: CardIndex::default(),
            turns: Turns::default(),
            names: BTreeSet::new(),
            pending: BTreeSet::new(),
            filed: BTreeSet::new(),
            metadata: Fields::default(),
            gate: Gate::default(),
            recurrence: Recurrence::default(),
            recent,
            seen: AtomicI64::new(i64::MIN),
            closed: false,
        };
        engine.load(held)?;
        let (stored, wanted) = (
            engine.flat.dimension(),
            engine.config.nlp.vector_dim as usize,
        );
        if stored != 0 && stored != wanted && !options.reindexing {
            return Err(Error::new(
                Code::FingerprintAnalyser,
                format!(
                    "the store's vectors have {stored} dimensions (analyser {}), this memory's have {wanted} (analyser {}); run `ebbtide reindex --store PATH`, or configure the former model",
                    engine.namespace.analyser, engine.analyser
                ),
            ));
        }
        Ok(engine)
    }

    /// Rebuilds everything in memory from the store: at opening, and when a
    /// transaction failed and what was done in memory must be undone. Where the store cannot
    /// be read the memory is closed: with half of its turns it would score and relate the next
    /// ones wrongly, and write that down.
    pub(super) fn reload(&mut self) -> Result<()> {
        let shared = self.store.clone();
        let store = shared.lock();
        let read = store.reading(|s| self.load(s));
        self.closed |= read.is_err();
        read
    }

    /// The same out of one state of the store: a turn that another process adds meanwhile
    /// would seem to be past the counter, or related to one that is not there.
    fn load(&mut self, store: &Store) -> Result<()> {
        self.active = Active::default();
        self.window = Window::new(self.config.capacity.window_size as usize);
        self.lineage = Lineage::default();
        self.flat = Flat::default();
        self.lexical = Inverted::default();
        self.bm25 = Inverted::default();
        self.words.clear();
        self.counter.clear();
        self.cards = CardIndex::default();
        self.turns.clear();
        self.pending.clear();
        self.metadata.clear();
        let namespace = store.namespace(&self.namespace.name, &self.namespace.token_counter)?;
        self.namespace = namespace.clone();
        store.verify_gathered(&namespace)?;
        self.gate = Gate::load(store, &namespace)?;
        let last = self.restore_all(store, &namespace)?;
        if let Some(id) = last.filter(|id| *id >= namespace.next_id) {
            // The next turn would get the id of one that is there.
            return Err(Error::new(
                Code::StoreCorrupt,
                format!(
                    "turn {id} is past the memory's counter, {}: the file was damaged; `ebbtide doctor --repair` puts the counter right",
                    namespace.next_id
                ),
            ));
        }
        self.load_edges(store)?;
        self.load_recurrence(store)?;
        self.filed = self.filed_lines(store);
        // Turns that wait have not aged the others yet.
        let next = self.pending.first().map(|id| id.saturating_sub(1));
        self.active
            .settle(next.unwrap_or(self.newest()), &self.config);
        Ok(())
    }

    /// Restores every turn, in order; returns the last one's id. This thread reads, and from
    /// the second batch on another one builds the indexes, which takes as long. Where there is
    /// none, what was sent to it comes back.
    fn restore_all(&mut self, store: &Store, ns: &Namespace) -> Result<Option<InteractionId>> {
        let engine = Mutex::new(self);
        let restore = &|turns: Vec<LoadedTurn>| {
            let mut engine = engine.lock().unwrap_or_else(PoisonError::into_inner);
            turns.into_iter().for_each(|t| engine.restore(t));
        };
        thread::scope(|scope| {
            let (mut last, mut batch) = (None, Vec::new());
            let (sender, receiver) = sync_channel(AHEAD);
            let send = |turns| {
                // Nobody receives after a panic either, which the scope raises again.
                if let Err(SendError(turns)) = sender.send(turns) {
                    restore(turns);
                }
            };
            let mut receiver = Some(receiver);
            store.for_each_loaded(ns, 0, |loaded| {
                last = Some(loaded.turn.interaction_id);
                if batch.len() == TOGETHER {
                    if let Some(receiver) = receiver.take() {
                        let build = move || receiver.into_iter().for_each(restore);
                        let _ = thread::Builder::new().spawn_scoped(scope, build);
                    }
                    send(mem::take(&mut batch));
                }
                batch.push(loaded);
                Ok(())
            })?;
            drop(receiver);
            send(batch);
            Ok(last)
        })
    }

    fn restore(&mut self, loaded: LoadedTurn) {
        let LoadedTurn { turn, derived } = loaded;
        let id = turn.interaction_id;
        self.metadata.insert(id, turn.metadata.as_deref());
        let Some(derived) = derived else {
            self.pending.insert(id);
            return;
        };
        if self.gated() && self.gate.skips(id) {
            self.put_in_shadow(&turn, &derived);
            return;
        }
        if turn.state == State::Active {
            let signals = derived.facts.signals;
            self.active.restore(Entry::new(
                id,
                turn.tokens,
                derived.score.omega,
                signals,
                &self.config,
            ));
        }
        self.index(&turn, &derived);
        let dimension = derived.dimension();
        self.window.push(id, &derived.vectors[..dimension]);
        self.lineage.register(id, &turn.role, &derived.facts.claims);
    }

    /// Adds a turn to the read side.
    pub(super) fn index(&mut self, turn: &StoredTurn, derived: &Derived) {
        let id = turn.interaction_id;
        let facts = &derived.facts;
        let dimension = derived.dimension();
        self.flat.push(id, &derived.vectors, dimension);
        // Lemmas, and bigrams where the script has no spaces.
        let bigrams = text::cjk_bigrams(&turn.text);
        let terms = || facts.terms.iter().chain(&bigrams).map(String::as_str);
        self.lexical.push(id, terms());
        // The words of the speaker's name, and the stems of the terms.
        let names = text::words(turn.speaker.as_deref().unwrap_or(""));
        let stems: Vec<Arc<str>> = terms().map(|t| self.words.stem(t)).collect();
        let names = names.iter().map(String::as_str);
        self.bm25.push(id, names.chain(stems.iter().map(|s| &**s)));
        self.cards
            .push(id, &turn.role, facts, &derived.card_vectors, dimension);
        let meta = self.meta_of(turn, facts);
        self.turns.insert(id, meta);
        let cosines = self.measure_around(id, &derived.vectors);
        self.place_in_thread(turn, derived, &cosines);
    }

    pub(super) fn meta_of(&mut self, turn: &StoredTurn, facts: &Facts) -> TurnMeta {
        TurnMeta {
            role: self.intern(&turn.role),
            speaker: turn.speaker.as_deref().map(|s| self.intern(&text::fold(s))),
            session: turn.session_id.as_deref().map(|s| self.intern(s)),
            utc_micros: turn.utc_micros,
            ahead: turn.timestamp.as_deref().map_or(0, clock_offset),
            archived: turn.state == State::Archived,
            signals: facts.signals,
            social: facts.social,
        }
    }

    /// Forgets erased turns everywhere, given in id order. The window is that of the turns
    /// there are, as it will be after a restart.
    pub(super) fn forget(&mut self, ids: &[InteractionId]) {
        self.unindex(ids);
        if !ids.iter().any(|id| self.window.contains(*id)) {
            return;
        }
        let length = self.config.capacity.window_size as usize;
        let mut window = Window::new(length);
        let last: Vec<InteractionId> = self.turns.keys().rev().take(length).copied().collect();
        for id in last.into_iter().rev() {
            if let Some(first) = self.flat.vectors_of(id).get(..self.flat.dimension()) {
                window.push(id, first);
            }
        }
        self.window = window;
    }

    /// What is as long as the memory is gone through once, not once for each turn.
    fn unindex(&mut self, ids: &[InteractionId]) {
        self.flat.remove(ids);
        self.lexical.remove(ids);
        self.bm25.remove(ids);
        self.words.clear();
        self.counter.clear();
        self.cards.remove(ids);
        let places = self.turns.remove(ids);
        self.measure_again(&places);
        self.place_again(&places);
        for id in ids {
            self.active.remove(*id);
            self.lineage.remove(*id);
            self.pending.remove(id);
        }
        self.gate.remove(ids);
        // Of names and sessions of nobody who is left no text may stay in memory either.
        self.names.retain(|name| Arc::strong_count(name) > 1);
    }

    fn intern(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.names.insert(Arc::clone(&name));
        name
    }
}

fn check_fingerprints(
    stored: &str,
    current: &str,
    counter: &str,
    current_counter: &str,
) -> Result<()> {
    if !stored.is_empty() && stored != current {
        return Err(Error::new(
            Code::FingerprintAnalyser,
            format!(
                "the store was made with the analyser {stored}, this memory uses {current}; vectors of two models do not mix: run `ebbtide reindex --store PATH`, or configure the former model"
            ),
        ));
    }
    if counter != current_counter {
        return Err(Error::new(
            Code::FingerprintTokens,
            format!(
                "the store counts tokens with {counter}, the configuration says {current_counter}; run `ebbtide reindex --store PATH` to recount, or set [capacity] token_counter = \"{counter}\""
            ),
        ));
    }
    Ok(())
}
