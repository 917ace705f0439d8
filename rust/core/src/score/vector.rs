//! Canonical integer vectors.
//!
//! A unit vector is stored as 16-bit integers (scale 32767), a token vector as
//! 8-bit ones (scale 127). Their dot products are exact in 32-bit integers
//! whatever the order of summation: by Cauchy-Schwarz every partial sum of two
//! such unit vectors stays below 2^31. So SIMD width, thread count and compiler
//! cannot change a result, and the error against f32 is about 1e-5.

/// Scale of a 16-bit unit vector.
pub const SCALE: f64 = 32767.0;
/// Scale of an 8-bit token vector.
pub const TOKEN_SCALE: f64 = 127.0;

fn norm(raw: &[f32]) -> f64 {
    let mut sum = 0.0;
    for x in raw {
        sum += f64::from(*x) * f64::from(*x);
    }
    sum.sqrt()
}

/// The unit vector of `raw` in 16-bit integers; all zero for a zero vector.
pub fn quantise(raw: &[f32]) -> Vec<i16> {
    let n = norm(raw);
    if n == 0.0 {
        return vec![0; raw.len()];
    }
    #[allow(clippy::cast_possible_truncation)]
    raw.iter()
        .map(|x| (f64::from(*x) / n * SCALE).round() as i16)
        .collect()
}

/// The unit vector of `raw` in 8-bit integers, appended to `out`.
pub fn quantise_token(raw: &[f32], out: &mut Vec<i8>) {
    let n = norm(raw);
    #[allow(clippy::cast_possible_truncation)]
    out.extend(raw.iter().map(|x| {
        if n == 0.0 {
            0
        } else {
            (f64::from(*x) / n * TOKEN_SCALE).round() as i8
        }
    }));
}

/// Exact dot product of two 16-bit vectors.
#[inline]
pub fn dot(a: &[i16], b: &[i16]) -> i32 {
    ebbtide_simd::dot(a, b)
}

/// Cosine of two 16-bit unit vectors, clipped to [-1, 1].
pub fn cosine(dot: i32) -> f64 {
    (f64::from(dot) / (SCALE * SCALE)).clamp(-1.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_integer_cosine_is_close_and_never_overflows(
            a in prop::collection::vec(-1.0f32..1.0, 384),
            b in prop::collection::vec(-1.0f32..1.0, 384),
        ) {
            let exact: f64 = a.iter().zip(&b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>()
                / (norm(&a) * norm(&b));
            let (qa, qb) = (quantise(&a), quantise(&b));
            prop_assert!((cosine(dot(&qa, &qb)) - exact).abs() < 1e-4);
            prop_assert!((cosine(dot(&qa, &qa)) - 1.0).abs() < 1e-3);
        }
    }

    #[test]
    fn extremes_fit() {
        let one = quantise(&[1.0]);
        assert_eq!(one, [32767]);
        assert_eq!(quantise(&[0.0, 0.0]), [0, 0]);
        assert_eq!(quantise(&[-3.0, 0.0]), [-32767, 0]);
        let flat = quantise(&[1.0; 384]);
        assert!(dot(&flat, &flat) > 0);
    }
}
