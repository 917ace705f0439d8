//! What storing an analysed turn costs: the whole engine over a file and over
//! SQLite in memory; without a store, the state transitions with the indexes of recall,
//! and alone.
//!
//! About 60 active turns; batches of 64; times are per batch.

mod workload;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ebbtide_core::active::{Active, Entry, Step};
use ebbtide_core::config::{self, Config};
use ebbtide_core::engine::{Engine, MemoryOptions};
use ebbtide_core::index::{Flat, Inverted};
use ebbtide_core::lineage::Lineage;
use ebbtide_core::retrieve::cards::CardIndex;
use ebbtide_core::score::divergence::Window;
use ebbtide_core::score::survival;
use ebbtide_core::store::{OpenOptions, SharedStore, Store};
use ebbtide_core::text::{self, Words};
use ebbtide_core::types::{AnalysedTurn, Validity};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use workload::{DIMENSION, Turns};

const BATCH: usize = 64;

fn settings(token_vectors: bool) -> Config {
    let user = format!("[capacity]\ntoken_budget = 850\n[store]\ntoken_vectors = {token_vectors}");
    config::load("default", &user).expect("valid settings")
}

fn engine(path: Option<&Path>, config: &Config) -> Engine {
    let store = SharedStore::new(|| match path {
        Some(path) => Store::open(path, &OpenOptions::default()),
        None => Store::in_memory(),
    });
    let options = MemoryOptions {
        namespace: "bench".into(),
        config: config.clone(),
        presets: BTreeMap::new(),
        analyser: "bench".into(),
        reindexing: false,
    };
    Engine::open(store.expect("a store"), options).expect("a memory")
}

fn batch(turns: &mut Turns) -> Vec<AnalysedTurn> {
    turns.by_ref().take(BATCH).collect()
}

/// What the engine holds in memory, and what it does to a turn, without a store:
/// divergence, score, lineage, insertion, decay, sweep, pruning, and what it adds to the
/// indexes of recall. The count of tokens comes with the turn, as its facts do.
struct State {
    config: Config,
    next: u64,
    window: Window,
    lineage: Lineage,
    active: Active,
    flat: Flat,
    lexical: Inverted,
    bm25: Inverted,
    cards: CardIndex,
    words: Words,
}

impl State {
    fn new(config: Config) -> Self {
        Self {
            window: Window::new(config.capacity.window_size as usize),
            config,
            next: 0,
            lineage: Lineage::default(),
            active: Active::default(),
            flat: Flat::default(),
            lexical: Inverted::default(),
            bm25: Inverted::default(),
            cards: CardIndex::default(),
            words: Words::default(),
        }
    }

    /// The state transitions.
    fn judge(&mut self, turn: &AnalysedTurn, tokens: u32) -> Step {
        let id = self.next;
        self.next += 1;
        let (facts, vector) = (&turn.facts, &turn.passages[0].vector);
        let role = &turn.turn.role;
        let divergence = self.window.divergence(vector);
        self.window.push(id, vector);
        let weights = &self.config.scoring_weights;
        let score = survival::score(weights, facts, None, divergence);
        let edges = self.lineage.detect(id, role, facts.signals, &facts.claims);
        self.lineage.register(id, role, &facts.claims);
        for edge in edges {
            self.lineage.add(edge).expect("no cycle");
        }
        let entry = Entry::new(id, tokens, score.omega, facts.signals, &self.config);
        let lineage = &self.lineage;
        self.active.insert(entry, &self.config, |id| {
            lineage.validity(id) != Validity::Current
        })
    }

    /// What the newest turn adds to the indexes.
    fn index(&mut self, turn: &AnalysedTurn) {
        let id = self.next - 1;
        let (facts, vector) = (&turn.facts, &turn.passages[0].vector);
        self.flat.push(id, vector, DIMENSION);
        let terms = || facts.terms.iter().map(String::as_str);
        self.lexical.push(id, terms());
        let stems: Vec<_> = terms().map(|t| self.words.stem(t)).collect();
        self.bm25.push(id, stems.iter().map(|s| &**s));
        self.cards.push(id, &turn.turn.role, facts, &[], DIMENSION);
    }
}

fn transitions(c: &mut Criterion) {
    let mut group = c.benchmark_group("write_path");
    group.throughput(Throughput::Elements(BATCH as u64));
    let counter = text::tokenizer("cl100k_base").expect("there is one");
    let prepared = |turns: &mut Turns| -> Vec<(AnalysedTurn, u32)> {
        let count = |t: AnalysedTurn| {
            let tokens = text::count_tokens(counter, &t.turn.text);
            (t, tokens)
        };
        batch(turns).into_iter().map(count).collect()
    };
    for (name, indexed) in [("state alone", false), ("state and indexes", true)] {
        let mut state = State::new(settings(false));
        let mut turns = Turns::new(false);
        group.bench_function(name, |b| {
            b.iter_batched(
                || prepared(&mut turns),
                |batch| {
                    for (turn, tokens) in &batch {
                        black_box(state.judge(turn, *tokens));
                        if indexed {
                            state.index(turn);
                        }
                    }
                    batch // dropped outside the measurement
                },
                BatchSize::PerIteration,
            );
        });
        println!("active turns: {}", state.active.entries().len());
    }
    group.finish();
}

fn write_path(c: &mut Criterion) {
    let mut group = c.benchmark_group("write_path");
    group.throughput(Throughput::Elements(BATCH as u64));
    for (name, on_disk, token_vectors) in [
        ("file", true, false),
        ("file, token vectors", true, true),
        ("SQLite in memory", false, false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bench.db");
        let config = settings(token_vectors);
        let mut engine = engine(on_disk.then_some(path.as_path()), &config);
        let mut turns = Turns::new(token_vectors);
        group.bench_function(name, |b| {
            b.iter_batched(
                || batch(&mut turns),
                |batch| engine.add(batch).expect("stored"),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, transitions, write_path);
criterion_main!(benches);
