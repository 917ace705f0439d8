//! Exact cosine search over the rows of a matrix.

use super::{rows, same_length};
use crate::error::Result;
use crate::index::top::TopK;
use crate::score::vector::{cosine, dot};

/// The `k` rows nearest to `query` and their cosines, best first, ties by row.
/// None where the query is all zero.
///
/// # Errors
/// Where the query is not as wide as the rows, or there are no columns.
pub fn cosine_top_k(
    vectors: &[i16],
    width: usize,
    query: &[i16],
    k: usize,
) -> Result<Vec<(u64, f64)>> {
    let all = rows("vectors", vectors, width)?;
    same_length("query", query.len(), "a row of vectors", width)?;
    if k == 0 || query.iter().all(|x| *x == 0) {
        return Ok(Vec::new());
    }
    let mut top = TopK::new(k);
    for (row, id) in all.zip(0u64..) {
        top.push(cosine(dot(query, row)), id);
    }
    Ok(top.into_sorted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Flat;
    use crate::score::vector::quantise;

    #[test]
    fn it_finds_what_the_index_finds() {
        let data: Vec<Vec<i16>> = (0..50u8)
            .map(|i| quantise(&[f32::from(i % 7), f32::from(i % 5), f32::from(i % 3) - 1.0]))
            .collect();
        let mut flat = Flat::default();
        for (id, row) in (0u64..).zip(&data) {
            flat.push(id, row, 3);
        }
        let query = quantise(&[0.3, 0.8, -0.1]);
        for k in [0, 1, 7, 50, 99] {
            let found = cosine_top_k(&data.concat(), 3, &query, k).unwrap();
            assert_eq!(found, flat.search(&query, k, -2.0, |_| true));
        }
        assert!(
            cosine_top_k(&data.concat(), 3, &[0; 3], 5)
                .unwrap()
                .is_empty()
        );
        assert!(cosine_top_k(&data.concat(), 3, &[1; 2], 5).is_err());
    }
}
