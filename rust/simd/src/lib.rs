//! Arithmetic of the core as wide as the processor allows, with the same bits: integer
//! dot products here, exponentials in [`exp`], sums of vectors in [`sums`],
//! their planes of bytes in [`planes`], products with [`weights`] of floats and of [`bytes`],
//! what a [`network`] does between them and spaCy's layers after them ([`maxout`]); [`room`] for
//! long rows.
//!
//! Every function has a portable form and forms for AVX2 (with FMA), AVX-512 VNNI and, where it
//! pays, AVX-VNNI and ARM's dot products; which one runs is decided when it is called. Sums of
//! integers do not depend on their order, so all forms give the same bits; the tests hold them
//! against each other.
//!
//! Sums wrap at 32 bits. A caller whose true result fits gets it, whatever the partial
//! sums did.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub mod bytes;
pub mod exp;
pub mod maxout;
pub mod network;
pub mod packed;
pub mod planes;
mod portable;
pub mod room;
pub mod sums;
pub mod weights;
#[cfg(target_arch = "x86_64")]
mod x86;

/// Numbers of each token that a late-interaction step reads at once.
const STEP: usize = 16;
/// Question tokens that stand beside each other in a register.
const TOGETHER: usize = 4;

/// A set of instructions that this processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Dotprod,
}

impl Level {
    /// What runs anywhere.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// Every level of this processor, the slowest first. A level can only be had from
    /// here, so holding one proves that its instructions exist.
    pub fn all() -> Vec<Self> {
        #[allow(unused_mut)]
        let mut levels = vec![Self::PORTABLE];
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx2() {
                levels.push(Self(Kind::Avx2));
            }
            if has_avx_vnni() {
                levels.push(Self(Kind::AvxVnni));
            }
            if has_avx512() {
                levels.push(Self(Kind::Avx512));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if has_dotprod() {
            levels.push(Self(Kind::Dotprod));
        }
        levels
    }

    /// The fastest. The standard library remembers what the processor said.
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if has_avx512() {
                return Self(Kind::Avx512);
            }
            if has_avx_vnni() {
                return Self(Kind::AvxVnni);
            }
            if has_avx2() {
                return Self(Kind::Avx2);
            }
        }
        #[cfg(target_arch = "aarch64")]
        if has_dotprod() {
            return Self(Kind::Dotprod);
        }
        Self::PORTABLE
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    // Every processor but a few that have the one has the other.
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
fn has_avx_vnni() -> bool {
    has_avx2() && is_x86_feature_detected!("avxvnni")
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni")
}

#[cfg(target_arch = "aarch64")]
fn has_dotprod() -> bool {
    std::arch::is_aarch64_feature_detected!("dotprod")
}

/// Calls the form of a function for a level.
macro_rules! dispatch {
    ($level:expr, $name:ident($($arg:expr),*)) => {
        match $level.0 {
            $crate::Kind::Portable => $crate::portable::$name($($arg),*),
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            // SAFETY: a level is made only where the processor has its instructions.
            $crate::Kind::Avx2 => unsafe { $crate::x86::avx2::$name($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            // SAFETY: as above.
            $crate::Kind::AvxVnni => unsafe { $crate::x86::avx_vnni::$name($($arg),*) },
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            // SAFETY: as above.
            $crate::Kind::Avx512 => unsafe { $crate::x86::avx512::$name($($arg),*) },
            #[cfg(target_arch = "aarch64")]
            #[allow(unsafe_code, unused_unsafe)]
            // SAFETY: as above.
            $crate::Kind::Dotprod => unsafe { $crate::aarch64::dotprod::$name($($arg),*) },
        }
    };
}
pub(crate) use dispatch;

/// Makes of a function that runs anywhere one that is compiled for wider registers, too, and
/// runs as wide as the processor allows.
macro_rules! dispatched {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $kind:ty),*) $(-> $out:ty)?, $portable:path) => {
        $(#[$doc])*
        pub fn $name($($arg: $kind),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $kind),*) $(-> $out)? {
                    $portable($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,avx512f,avx512dq,avx512vl")]
                fn avx512($($arg: $kind),*) $(-> $out)? {
                    $portable($($arg),*)
                }
                if $crate::has_avx2()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the processor has said that it has these instructions.
                    return unsafe { avx512($($arg),*) };
                }
                if $crate::has_avx2() {
                    // SAFETY: as above.
                    return unsafe { avx2($($arg),*) };
                }
            }
            $portable($($arg),*)
        }
    };
}
pub(crate) use dispatched;

/// 2^23 + 2^22: of a number near zero added to it, f32 keeps the nearest whole number, in its
/// lowest bits.
const ROUNDING: f32 = 12_582_912.0;

/// Dot product of two 16-bit vectors, over the length of the shorter.
pub fn dot(a: &[i16], b: &[i16]) -> i32 {
    dot_at(Level::best(), a, b)
}

/// [`dot`] at a chosen level.
pub fn dot_at(level: Level, a: &[i16], b: &[i16]) -> i32 {
    let length = a.len().min(b.len());
    dispatch!(level, dot(&a[..length], &b[..length]))
}

/// Dot product of `query` and the vector whose numbers are `step * high + low`.
///
/// # Panics
/// If the three differ in length.
pub fn dot_split(query: &[i16], high: &[i8], low: &[u8], step: i16) -> i32 {
    dot_split_at(Level::best(), query, high, low, step)
}

/// [`dot_split`] at a chosen level.
pub fn dot_split_at(level: Level, query: &[i16], high: &[i8], low: &[u8], step: i16) -> i32 {
    assert!(query.len() == high.len() && query.len() == low.len());
    dispatch!(level, dot_split(query, high, low, step))
}

/// A 16-bit vector that is compared with many 8-bit ones, in two 8-bit digits.
#[derive(Debug, Clone)]
pub struct Digits {
    /// `query = 256 * high + low`.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    high: Vec<i8>,
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    low: Vec<i8>,
    query: Vec<i16>,
    /// Sum of the numbers, wrapped.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    sum: i32,
}

impl Digits {
    /// Digits of a vector; numbers above 32,639 have none and give `None`.
    pub fn of(query: &[i16]) -> Option<Self> {
        let mut high = Vec::with_capacity(query.len());
        let mut low = Vec::with_capacity(query.len());
        for x in query {
            let h = (i32::from(*x) + 128) >> 8;
            high.push(i8::try_from(h).ok()?);
            low.push(i8::try_from(i32::from(*x) - 256 * h).ok()?);
        }
        let sum = query
            .iter()
            .fold(0i32, |s, x| s.wrapping_add(i32::from(*x)));
        Some(Self {
            high,
            low,
            query: query.to_vec(),
            sum,
        })
    }

    /// Dot products with 8-bit rows that lie one after the other, one a row.
    ///
    /// # Panics
    /// If `rows` is not `out.len()` rows of the query's length.
    pub fn dots(&self, rows: &[i8], out: &mut [i32]) {
        self.dots_at(Level::best(), rows, out);
    }

    /// [`Digits::dots`] at a chosen level.
    pub fn dots_at(&self, level: Level, rows: &[i8], out: &mut [i32]) {
        assert_eq!(rows.len(), out.len() * self.query.len());
        if !self.query.is_empty() {
            dispatch!(level, dots(self, rows, out));
        }
    }
}

/// What fills a register, and a line of the cache: a load from it never takes two.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct Line<T>(T);

/// The tokens of a question, laid out so that four of them are compared at once.
#[derive(Debug, Clone)]
pub struct Question {
    count: usize,
    dimension: usize,
    /// Tokens one after the other, as the multiplication of the portable form wants them.
    tokens: Vec<i16>,
    /// For each four tokens and each step: sixteen numbers of the first, of the second, of
    /// the third, of the fourth. The halves of a token begin a step each, as those of an
    /// unpacked row do; what fills them up is zero.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    lines: Vec<Line<[i8; TOGETHER * STEP]>>,
    /// For each four tokens -8 times their sums, each four times: what is too much where
    /// the numbers of a row are 8 more.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    excess: Vec<Line<[i32; 4 * TOGETHER]>>,
}

impl Question {
    /// Lays out tokens of `dimension` numbers each; a broken last one is left out.
    ///
    /// # Panics
    /// If `dimension` is 0.
    pub fn new(tokens: &[i8], dimension: usize) -> Self {
        let count = tokens.len() / dimension;
        let half = dimension.div_ceil(2);
        let (groups, steps) = (count.div_ceil(TOGETHER), steps_of(dimension));
        let mut lines = vec![Line([0; TOGETHER * STEP]); groups * steps];
        let mut excess = vec![Line([0; 4 * TOGETHER]); groups];
        for (t, token) in tokens.chunks_exact(dimension).enumerate() {
            let (group, place) = (t / TOGETHER, t % TOGETHER);
            for (i, x) in token.iter().enumerate() {
                let at = i % half + i / half * half.next_multiple_of(STEP);
                lines[group * steps + at / STEP].0[place * STEP + at % STEP] = *x;
            }
            let sum: i32 = token.iter().map(|x| i32::from(*x)).sum();
            excess[group].0[4 * place..4 * place + 4].fill(-8 * sum);
        }
        Self {
            count,
            dimension,
            tokens: tokens[..count * dimension]
                .iter()
                .map(|x| i16::from(*x))
                .collect(),
            lines,
            excess,
        }
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// For each token its greatest dot product with any [`packed`] row, times the row's
    /// weight; `i32::MIN` without rows.
    ///
    /// # Panics
    /// If `out` has another length than the question has tokens.
    pub fn best(&self, rows: &[u8], out: &mut [i32]) {
        self.best_at(Level::best(), rows, out);
    }

    /// [`Question::best`] at a chosen level.
    pub fn best_at(&self, level: Level, rows: &[u8], out: &mut [i32]) {
        assert_eq!(out.len(), self.count);
        let row = packed::row_bytes(self.dimension);
        let whole = rows.len() / row * row;
        out.fill(i32::MIN);
        if whole > 0 {
            dispatch!(level, best(self, &rows[..whole], out));
        }
    }
}

/// Bytes of a line of the cache.
const CACHE_LINE: usize = 64;

/// Asks the memory for numbers that will be read soon. Changes nothing but how long that
/// takes; nothing at all where the processor has no such instruction.
#[inline]
pub fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(CACHE_LINE / size_of::<T>()) {
        x86::prefetch(line);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

/// Steps of a row whose halves are filled up to whole ones.
const fn steps_of(dimension: usize) -> usize {
    2 * dimension.div_ceil(2).div_ceil(STEP)
}

#[cfg(test)]
mod tests;
