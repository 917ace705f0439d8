//! Total orders: score first, then id, so that equal scores never flip.

use std::cmp::Ordering;

/// Higher score first, then smaller id. NaN sorts last.
pub fn best_first(a: (f64, u64), b: (f64, u64)) -> Ordering {
    nan_low(b.0).total_cmp(&nan_low(a.0)).then(a.1.cmp(&b.1))
}

/// A whole number that orders as `total_cmp` orders the score: what is compared often
/// is compared as numbers, with the id behind it (the argmin of eq. 26).
pub fn ordered_bits(score: f64) -> i64 {
    let bits = score.to_bits().cast_signed();
    bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed()
}

fn nan_low(x: f64) -> f64 {
    // -0.0 and 0.0 are one score; total_cmp would part them.
    if x.is_nan() {
        f64::NEG_INFINITY
    } else {
        x + 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_smaller_id() {
        let mut v = [
            (0.5, 3),
            (0.7, 9),
            (0.5, 1),
            (f64::NAN, 0),
            (-0.0, 5),
            (0.0, 4),
        ];
        v.sort_by(|a, b| best_first(*a, *b));
        let ids: Vec<u64> = v.iter().map(|x| x.1).collect();
        assert_eq!(ids, [9, 1, 3, 4, 5, 0]);
    }

    #[test]
    fn bits_order_as_the_numbers_do() {
        let v = [
            -f64::NAN,
            f64::NEG_INFINITY,
            -1.5,
            -0.0,
            0.0,
            1e-300,
            1.5,
            f64::INFINITY,
        ];
        assert!(
            v.windows(2)
                .all(|w| ordered_bits(w[0]) < ordered_bits(w[1]))
        );
        assert!(v.windows(2).all(|w| w[0].total_cmp(&w[1]).is_lt()));
    }
}
