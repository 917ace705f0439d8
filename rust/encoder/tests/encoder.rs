//! A small encoder of drawn numbers: texts do not see each other, files that are none are
//! refused. That it is the model it is meant to be is tested from Python.

use ebbtide_encoder::Encoder;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

const WIDTH: usize = 64;
const WIDE: usize = 128;
const WORDS: usize = 50;
const LONGEST: usize = 40;

struct Drawn(u64);

impl Drawn {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.0 >> 33
    }

    fn bytes(&mut self, count: usize, most: u64) -> Vec<u8> {
        let low = most / 2;
        let number = |_| (self.next() % (most + 1)).wrapping_sub(low).to_le_bytes()[0];
        (0..count).map(number).collect()
    }

    fn floats(&mut self, count: usize, around: f32, most: f32) -> Vec<u8> {
        let number = |_| around + most * (self.next() % 2001) as f32 / 1000.0 - most;
        (0..count).map(number).flat_map(f32::to_le_bytes).collect()
    }
}

type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn tensors(layers: usize) -> Tensors {
    let (mut found, mut drawn) = (Tensors::new(), Drawn(7));
    let mut put = |name: &str, kind: Dtype, shape: &[usize], data: Vec<u8>| {
        found.insert(name.into(), (kind, shape.to_vec(), data));
    };
    put(
        "words",
        Dtype::U8,
        &[WORDS, WIDTH],
        drawn.bytes(WORDS * WIDTH, 255),
    );
    put(
        "words.scale",
        Dtype::F32,
        &[1],
        0.01f32.to_le_bytes().to_vec(),
    );
    put("words.zero", Dtype::U8, &[1], vec![120]);
    let places = drawn.floats(LONGEST * WIDTH, 0.0, 0.3);
    put("positions", Dtype::F32, &[LONGEST, WIDTH], places);
    let norms = (0..layers).flat_map(|i| ["middle", "output"].map(|n| format!("layer.{i}.{n}")));
    for name in norms.chain(["input".into()]) {
        let gain = drawn.floats(WIDTH, 1.0, 0.2);
        put(&format!("{name}.gain"), Dtype::F32, &[WIDTH], gain);
        let shift = drawn.floats(WIDTH, 0.0, 0.2);
        put(&format!("{name}.shift"), Dtype::F32, &[WIDTH], shift);
    }
    for i in 0..layers {
        for (name, inner, columns) in [
            ("looking", WIDTH, 3 * WIDTH),
            ("attended", WIDTH, WIDTH),
            ("widening", WIDTH, WIDE),
            ("narrowing", WIDE, WIDTH),
        ] {
            let name = format!("layer.{i}.{name}");
            let weights = drawn.bytes(inner * columns, 128);
            put(
                &format!("{name}.weight"),
                Dtype::I8,
                &[inner, columns],
                weights,
            );
            let scale = drawn.floats(columns, 0.004, 0.002);
            put(&format!("{name}.scale"), Dtype::F32, &[columns], scale);
            let bias = drawn.floats(columns, 0.0, 0.1);
            put(&format!("{name}.bias"), Dtype::F32, &[columns], bias);
        }
    }
    found
}

fn file(tensors: &Tensors) -> Vec<u8> {
    let views = tensors.iter().map(|(name, (kind, shape, data))| {
        let view = TensorView::new(*kind, shape.clone(), data);
        (name.clone(), view.expect("data of that shape"))
    });
    safetensors::serialize(views, None).expect("tensors")
}

fn bits(rows: &[f32]) -> Vec<u32> {
    rows.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_text_has_the_same_bits_alone_and_in_company() {
    let encoder = Encoder::new(&file(&tensors(2))).expect("an encoder");
    assert_eq!((encoder.width(), encoder.longest()), (WIDTH, LONGEST));
    let mut drawn = Drawn(3);
    // More pieces than go through a layer together.
    let texts: Vec<Vec<u32>> = (0..70)
        .map(|i| {
            let length = [0, 1, 2, 15, 16, 17, 31, 33, LONGEST][i % 9];
            (0..length)
                .map(|_| (drawn.next() % WORDS as u64) as u32)
                .collect()
        })
        .collect();
    let alone: Vec<f32> = texts
        .iter()
        .flat_map(|text| encoder.encode(text, &[text.len()]).expect("a text"))
        .collect();
    let lengths: Vec<usize> = texts.iter().map(Vec::len).collect();
    let together = encoder.encode(&texts.concat(), &lengths).expect("texts");
    assert_eq!(bits(&together), bits(&alone));
    assert!(alone.iter().all(|x| x.is_finite()));
    let other = encoder.encode(&[1, 2, 4], &[3]).expect("a text");
    assert_ne!(
        encoder.encode(&[1, 2, 3], &[3]).expect("a text")[..WIDTH],
        other[..WIDTH]
    );
}

#[test]
fn texts_that_are_none_are_refused() {
    let encoder = Encoder::new(&file(&tensors(1))).expect("an encoder");
    for (pieces, lengths, said) in [
        (vec![1; 3], vec![2], "add up to 2 word pieces, there are 3"),
        (vec![1; 41], vec![41], "41 word pieces: 40 are the most"),
        (vec![50], vec![1], "word piece 50 of 50"),
    ] {
        let error = encoder.encode(&pieces, &lengths).expect_err("no text");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn files_that_are_no_encoder_are_refused() {
    let whole = tensors(1);
    for name in whole.keys() {
        let mut without = whole.clone();
        without.remove(name);
        assert!(Encoder::new(&file(&without)).is_err(), "without {name}");
        let mut short = whole.clone();
        let (kind, _, data) = &whole[name];
        short.insert(name.clone(), (*kind, vec![0], data[..0].to_vec()));
        assert!(Encoder::new(&file(&short)).is_err(), "{name} of nothing");
    }
    let mut beyond = whole.clone();
    if let Some((_, _, data)) = beyond.get_mut("layer.0.looking.weight") {
        data[5] = 65;
    }
    let error = Encoder::new(&file(&beyond))
        .expect_err("no encoder")
        .to_string();
    assert!(error.contains("beyond ±64"), "{error}");
    let mut infinite = whole.clone();
    if let Some((_, _, data)) = infinite.get_mut("layer.0.looking.bias") {
        data[..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    }
    assert!(Encoder::new(&file(&infinite)).is_err());
    let bytes = file(&whole);
    assert!(Encoder::new(&bytes[..bytes.len() / 2]).is_err());
    assert!(Encoder::new(b"no file").is_err());
    assert!(Encoder::new(&[]).is_err());
}

#[test]
fn help_changes_no_bit() {
    let encoder = Encoder::new(&file(&tensors(6))).expect("an encoder");
    assert!(!encoder.help(), "nothing is encoded");
    let mut drawn = Drawn(5);
    let mut text = |length| -> Vec<u32> {
        let piece = |_| (drawn.next() % WORDS as u64) as u32;
        (0..length).map(piece).collect()
    };
    let texts: Vec<Vec<u32>> = (0..=LONGEST).map(&mut text).collect();
    let encode = |text: &Vec<u32>| bits(&encoder.encode(text, &[text.len()]).expect("a text"));
    let alone: Vec<Vec<u32>> = texts.iter().map(encode).collect();
    let (done, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    scope(|threads| {
        // More offers than there are texts under way; help is wanted by one at a time.
        for _ in 0..2 {
            threads.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    answers.fetch_add(usize::from(encoder.help()), Ordering::Relaxed);
                }
            });
        }
        let same = || (0..10).all(|_| texts.iter().map(encode).eq(alone.iter().cloned()));
        let one_by_one = same();
        let beside = threads.spawn(same);
        let both = [same(), beside.join().expect("a thread")];
        done.store(true, Ordering::Relaxed);
        assert_eq!((one_by_one, both), (true, [true, true]));
    });
    let several = available_parallelism().map_or(1, usize::from) > 1;
    assert_eq!(answers.into_inner() > 0, several);
}
