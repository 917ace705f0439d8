//! One layer: attention, then two products with a bend between them.

use crate::helping::Part;
use ebbtide_simd::bytes::ByteWeights;
use ebbtide_simd::network::{self, Columns, HEAD, Head, Meant, Norm, RowScale};
use ebbtide_simd::room::Aligned;
use std::ops::Range;

/// A product: the weights, and what its sums mean.
#[derive(Debug)]
pub struct Product {
    pub weights: ByteWeights,
    pub columns: Columns,
}

impl Product {
    /// Calls `put` with each block of what rows of numbers are multiplied to, as bytes.
    fn of(&self, numbers: &[f32], room: &mut Bytes, mut put: impl FnMut(Meant<'_>)) {
        room.bytes.resize(numbers.len());
        let count = numbers.len() / self.weights.inner();
        room.rows.resize(count, RowScale::default());
        network::bytes(numbers, &mut room.bytes, &mut room.rows);
        self.weights.multiply(&room.bytes, |block| {
            put(Meant {
                columns: &self.columns,
                weights: self.weights.sums(),
                rows: &room.rows,
                block,
            });
        });
    }
}

/// Rows whose queries, keys and values stay near the processor beside the weights.
const SEEN: usize = 128;
/// Rows whose wide form does.
const WIDENED: usize = 64;

/// Room for rows as bytes.
#[derive(Debug, Default)]
struct Bytes {
    bytes: Aligned<u8>,
    rows: Vec<RowScale>,
}

/// Which texts rows are of; none sees another.
#[derive(Debug)]
pub enum Texts<'a> {
    /// Of whole ones, of so many rows each.
    Whole(&'a [usize]),
    /// Of a part of one.
    Part(&'a mut Part),
}

/// A layer of an encoder.
#[derive(Debug)]
pub struct Layer {
    pub heads: usize,
    /// Queries, keys and values beside each other.
    pub looking: Product,
    pub attended: Product,
    pub middle: Norm,
    pub widening: Product,
    pub narrowing: Product,
    pub output: Norm,
}

/// Room for what is between the products.
#[derive(Debug, Default)]
pub struct Room {
    bytes: Bytes,
    wide: Aligned<f32>,
    looking: Aligned<f32>,
    means: Aligned<f32>,
    head: network::Room,
}

impl Layer {
    /// Rows of texts become those after this layer.
    pub fn pass(&self, rows: &mut [f32], texts: Texts<'_>, room: &mut Room) {
        match texts {
            Texts::Whole(lengths) => {
                let width = self.heads * HEAD;
                let mut from = 0;
                for (lengths, count) in groups(lengths, SEEN) {
                    let rows = &mut rows[from * width..][..count * width];
                    self.attend(rows, Texts::Whole(lengths), room);
                    from += count;
                }
            }
            part @ Texts::Part(_) => self.attend(rows, part, room),
        }
        let Room { bytes, wide, .. } = room;
        let weights = &self.widening.weights;
        for rows in rows.chunks_mut(WIDENED * weights.inner()) {
            wide.resize(rows.len() / weights.inner() * weights.columns());
            self.widening
                .of(rows, bytes, |sums| network::gelu(sums, wide));
            self.narrowing
                .of(wide, bytes, |sums| network::add(sums, rows));
            network::normalise(&self.output, rows);
        }
    }

    /// Adds what the heads see.
    fn attend(&self, rows: &mut [f32], texts: Texts<'_>, room: &mut Room) {
        self.look(rows, texts, room);
        let Room { bytes, means, .. } = room;
        self.attended
            .of(means, bytes, |sums| network::add(sums, rows));
        network::normalise(&self.middle, rows);
    }

    /// Fills the room with what the heads see.
    fn look(&self, rows: &[f32], texts: Texts<'_>, room: &mut Room) {
        let width = self.heads * HEAD;
        let (count, first) = match &texts {
            Texts::Whole(_) => (rows.len() / width, 0),
            Texts::Part(part) => (part.count, part.own.start),
        };
        let looking = &mut room.looking;
        looking.resize(3 * count * width);
        let own = &mut looking[3 * first * width..][..3 * rows.len()];
        self.looking
            .of(rows, &mut room.bytes, |sums| network::numbers(sums, own));
        let means = &mut room.means;
        means.resize(rows.len());
        match texts {
            Texts::Whole(lengths) => {
                let mut from = 0;
                for length in lengths {
                    let numbers = length * width;
                    let text = &looking[3 * from..][..3 * numbers];
                    let out = &mut means[from..][..numbers];
                    self.see(text, 0..*length, &mut room.head, out);
                    from += numbers;
                }
            }
            Texts::Part(part) => {
                part.exchange(looking, width);
                self.see(looking, part.own.clone(), &mut room.head, means);
            }
        }
    }

    /// What all heads see of a text, for some of its rows.
    fn see(&self, rows: &[f32], asking: Range<usize>, room: &mut network::Room, out: &mut [f32]) {
        let scale = 1.0 / (HEAD as f32).sqrt();
        for number in 0..self.heads {
            let head = Head {
                rows,
                asking: asking.clone(),
                heads: self.heads,
                number,
            };
            network::attend(scale, head, room, out);
        }
    }
}

/// The texts in groups that have at most so many rows, or one text; and how many rows they have.
pub fn groups(lengths: &[usize], most: usize) -> impl Iterator<Item = (&[usize], usize)> {
    let mut rest = lengths;
    std::iter::from_fn(move || {
        let mut count = *rest.first()?;
        let mut texts = 1;
        while let Some(length) = rest.get(texts)
            && count + length <= most
        {
            count += length;
            texts += 1;
        }
        let (now, later) = rest.split_at(texts);
        rest = later;
        Some((now, count))
    })
}
