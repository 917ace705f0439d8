//! Total orders: score first, then id, so that equal scores never flip.

use std::cmp::Ordering;

/// Higher score first, then smaller id. NaN sorts last.
pub fn best_first(a: (f64, u64), b: (f64, u64)) -> Ordering {
    nan_low(b.0).total_cmp(&nan_low(a.0)).then(a.1.cmp(&b.1))
}

/// Lower score first, then smaller id: the argmin of eq. 26.
pub fn least_first(a: (f64, u64), b: (f64, u64)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
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
}
