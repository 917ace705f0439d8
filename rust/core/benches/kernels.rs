//! The kernels at 100 to 1,000,000 rows, in time a row.

mod workload;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ebbtide_core::config;
use ebbtide_core::kernels::{self, Postings};
use ebbtide_core::score::vector::{quantise, quantise_token};
use ebbtide_simd::{Question, packed};
use std::hint::black_box;
use workload::{DIMENSION, Numbers, TOKENS};

const SIZES: [usize; 5] = [100, 1_000, 10_000, 100_000, 1_000_000];
/// Rows of vectors at most: 100,000 take 77 MB.
const VECTORS: usize = 100_000;
/// Texts at most whose token vectors are kept: 10,000 take 43 MB.
const TEXTS: usize = 10_000;

fn arithmetic(c: &mut Criterion) {
    let settings = config::load("default", "").expect("valid settings");
    let mut group = c.benchmark_group("kernels");
    for n in SIZES {
        group.throughput(Throughput::Elements(n as u64));
        let mut numbers = Numbers(3);
        let omega: Vec<f64> = (0..n).map(|_| numbers.unit()).collect();
        let age: Vec<i64> = (0..n).map(|_| numbers.below(200) as i64).collect();
        let (mut effective, mut tier) = (vec![0.0; n], vec![0; n]);
        let (rates, tiers) = (&settings.temporal_decay, &settings.memory_tiers);
        group.bench_function(BenchmarkId::new("decay", n), |b| {
            b.iter(|| kernels::decay(&omega, &age, rates, tiers, &mut effective, &mut tier));
        });
        let adjustment: Vec<f64> = (0..n)
            .map(|_| numbers.below(4) as f64 * 0.1 - 0.15)
            .collect();
        let tokens: Vec<i64> = (0..n).map(|_| 1 + numbers.below(59) as i64).collect();
        let total: i64 = tokens.iter().sum();
        let budget = (total - total / 50).cast_unsigned();
        group.bench_function(BenchmarkId::new("prune 2 %", n), |b| {
            b.iter(|| kernels::prune(&effective, &adjustment, &tokens, budget, 0.75, false));
        });
    }
    group.finish();
}

fn vectors(c: &mut Criterion) {
    let mut group = c.benchmark_group("kernels");
    for n in SIZES.into_iter().filter(|n| *n <= VECTORS) {
        group.throughput(Throughput::Elements(n as u64));
        let mut numbers = Numbers(5);
        let rows: Vec<i16> = (0..n)
            .flat_map(|_| quantise(&numbers.floats(DIMENSION)))
            .collect();
        let query = quantise(&numbers.floats(DIMENSION));
        let mut out = vec![0.0; n];
        group.bench_function(BenchmarkId::new("divergence", n), |b| {
            b.iter(|| kernels::divergence(&rows, DIMENSION, 10, &mut out));
        });
        group.bench_function(BenchmarkId::new("cosine top 10", n), |b| {
            b.iter(|| kernels::cosine_top_k(&rows, DIMENSION, black_box(&query), 10));
        });
    }
    group.finish();
}

fn words(c: &mut Criterion) {
    let mut group = c.benchmark_group("kernels");
    for n in SIZES {
        group.throughput(Throughput::Elements(n as u64));
        let mut numbers = Numbers(9);
        // Term t stands in one document of 2 (t + 1).
        let (mut offsets, mut documents, mut counts) = (vec![0i64], Vec::new(), Vec::new());
        for term in 0..64usize {
            for d in 0..n as u32 {
                if numbers.below(2 * (term + 1)) == 0 {
                    documents.push(d);
                    counts.push(1 + numbers.below(3) as u32);
                }
            }
            offsets.push(documents.len() as i64);
        }
        let lengths: Vec<u32> = (0..n).map(|_| 1 + numbers.below(30) as u32).collect();
        let postings = Postings::new(&offsets, &documents, n).expect("sound postings");
        let query = [3, 9, 17, 40, 63];
        group.bench_function(BenchmarkId::new("overlap", n), |b| {
            b.iter(|| kernels::overlap(postings, black_box(&query), 10));
        });
        group.bench_function(BenchmarkId::new("bm25", n), |b| {
            b.iter(|| kernels::bm25(postings, &counts, &lengths, black_box(&query), 10));
        });
    }
    group.finish();
}

/// The token vectors of texts read one after the other, 22 a text.
fn late_interaction(c: &mut Criterion) {
    let mut group = c.benchmark_group("kernels");
    let mut numbers = Numbers(11);
    let mut tokens = |n: usize| {
        let mut out = Vec::new();
        (0..n).for_each(|_| quantise_token(&numbers.floats(DIMENSION), &mut out));
        out
    };
    let mut text = Vec::new();
    packed::pack(&tokens(TOKENS), DIMENSION, &mut text);
    for asked in [4, 10, 20] {
        let question = Question::new(&tokens(asked), DIMENSION);
        for n in SIZES.into_iter().filter(|n| *n <= TEXTS) {
            group.throughput(Throughput::Elements((n * TOKENS) as u64));
            let texts = vec![text.clone(); n];
            let mut best = vec![0; asked];
            let id = BenchmarkId::new(format!("late interaction, {asked} tokens"), n);
            group.bench_function(id, |b| {
                b.iter(|| {
                    for text in &texts {
                        question.best(black_box(text), &mut best);
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, arithmetic, vectors, words, late_interaction);
criterion_main!(benches);
