//! Every form against the portable one, and that against the schoolbook.

use super::*;
use proptest::prelude::*;

const DIMENSIONS: [usize; 10] = [1, 4, 37, 64, 128, 200, 250, 383, 384, 1025];

fn vectors() -> impl Strategy<Value = (usize, Vec<i16>, Vec<i8>, Vec<u8>, Vec<i8>)> {
    (
        prop::sample::select(DIMENSIONS.to_vec()),
        0usize..11,
        0usize..35,
    )
        .prop_flat_map(|(d, rows, tokens)| {
            (
                Just(d),
                // What a unit vector in 16 bits can hold, digits or not.
                prop::collection::vec(-32767i16..=32767, d),
                prop::collection::vec(any::<i8>(), rows * d),
                prop::collection::vec(any::<u8>(), rows * d),
                prop::collection::vec(any::<i8>(), tokens * d),
            )
        })
}

fn schoolbook(a: impl Iterator<Item = i64>, b: impl Iterator<Item = i64>) -> i32 {
    let sum: i64 = a.zip(b).map(|(x, y)| x * y).sum();
    #[allow(clippy::cast_possible_truncation)]
    let wrapped = sum as i32;
    wrapped
}

fn wide(row: &[i8]) -> impl Iterator<Item = i64> {
    row.iter().map(|x| i64::from(*x))
}

proptest! {
    #[test]
    fn every_form_gives_the_same_bits((d, query, high, low, tokens) in vectors(), step in 1i16..=256) {
        let question = Question::new(&tokens, d);
        let digits = Digits::of(&query);
        let q = || query.iter().map(|x| i64::from(*x));
        for level in Level::all() {
            prop_assert_eq!(dot_at(level, &query, &query), schoolbook(q(), q()));
            for (h, l) in high.chunks_exact(d).zip(low.chunks_exact(d)) {
                let row: Vec<i64> = h.iter().zip(l)
                    .map(|(h, l)| i64::from(i16::from(*h).wrapping_mul(step).wrapping_add(i16::from(*l))))
                    .collect();
                let expected = schoolbook(q(), row.into_iter());
                prop_assert_eq!(dot_split_at(level, &query, h, l, step), expected);
            }
            if let Some(digits) = &digits {
                let mut out = vec![0; high.len() / d];
                digits.dots_at(level, &high, &mut out);
                let expected: Vec<i32> = high.chunks_exact(d).map(|r| schoolbook(q(), wide(r))).collect();
                prop_assert_eq!(out, expected);
            }
            // Any bytes are rows of some weight and numbers.
            let mut numbers = vec![0; 2 * d.div_ceil(2)];
            let mut weighed = |t: &[i8], row: &[u8]| {
                let weight = packed::unpack(row, &mut numbers);
                schoolbook(wide(t), wide(&numbers[..d])).wrapping_mul(weight)
            };
            let expected: Vec<i32> = tokens.chunks_exact(d)
                .map(|t| low.chunks_exact(packed::row_bytes(d)).map(|r| weighed(t, r)).max().unwrap_or(i32::MIN))
                .collect();
            prop_assert_eq!(best(&question, level, &low), expected);
        }
    }
}

#[test]
fn extremes_are_exact() {
    let question = Question::new(&[-128; 384], 384);
    let digits = Digits::of(&[-32767; 384]).expect("has digits");
    for level in Level::all() {
        // All sevens: a length of 137.2, a weight of 1911.
        let mut rows = Vec::new();
        packed::pack(&[127; 384], 384, &mut rows);
        assert_eq!(best(&question, level, &rows), [-128 * 7 * 384 * 1911]);
        packed::pack(&[-128; 384], 384, &mut rows);
        assert_eq!(best(&question, level, &rows), [128 * 7 * 384 * 1911]);
        let mut out = [0];
        digits.dots_at(level, &[-128; 384], &mut out);
        assert_eq!(out, [32767 * 128 * 384]);
        assert_eq!(dot_at(level, &[32767, -32767], &[32767, 32767]), 0);
    }
    assert!(Digits::of(&[32640]).is_none());
    assert_eq!(best(&Question::new(&[], 384), Level::best(), &[1; 194]), []);
}

fn best(question: &Question, level: Level, rows: &[u8]) -> Vec<i32> {
    let mut out = vec![0; question.len()];
    question.best_at(level, rows, &mut out);
    out
}
