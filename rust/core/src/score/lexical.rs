//! Formulas over words that the index and the kernels share: BM25 and overlap.

/// BM25's usual term saturation.
pub const K1: f64 = 1.2;
/// BM25's usual length normalisation.
pub const B: f64 = 0.75;

/// Inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)), of a term that
/// `containing` of `documents` documents contain.
#[inline]
pub fn idf(containing: u64, documents: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let (n, total) = (containing as f64, documents as f64);
    libm::log(1.0 + (total - n + 0.5) / (n + 0.5))
}

/// Average length of the documents, at least 1.
#[inline]
pub fn average_length(total_length: u64, documents: u64) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let average = total_length as f64 / documents as f64;
    average.max(1.0)
}

/// Term saturation and length normalisation of `count` occurrences in a document.
#[inline]
pub fn saturation(count: u32, length: u32, average: f64) -> f64 {
    let (tf, length) = (f64::from(count), f64::from(length));
    tf * (K1 + 1.0) / (tf + K1 * (1.0 - B + B * length / average))
}

/// |Q and C| / |Q| (Table 4).
#[inline]
pub fn overlap(shared: u32, query: usize) -> f64 {
    #[allow(clippy::cast_precision_loss)]
    let all = query as f64;
    f64::from(shared) / all
}
