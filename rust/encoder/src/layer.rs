//! One layer: attention, then two products with a bend between them.

use ebbtide_simd::bytes::{Block, ByteWeights};
use ebbtide_simd::network::{self, Bytes, Columns, HEAD, Head, Norm};

/// A product: what its input becomes in bytes, the weights, what its sums mean.
#[derive(Debug)]
pub struct Product {
    pub input: Bytes,
    pub weights: ByteWeights,
    pub columns: Columns,
}

impl Product {
    /// Makes bytes of `numbers` and calls `put` with each block of what they are multiplied to.
    fn of(&self, numbers: &[f32], bytes: &mut Vec<u8>, put: impl FnMut(&Columns, Block<'_>)) {
        bytes.resize(numbers.len(), 0);
        network::bytes(self.input, numbers, bytes);
        self.of_bytes(bytes, put);
    }

    fn of_bytes(&self, bytes: &[u8], mut put: impl FnMut(&Columns, Block<'_>)) {
        self.weights
            .multiply(bytes, |sums| put(&self.columns, sums));
    }
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
    bytes: Vec<u8>,
    wide: Vec<u8>,
    looking: Vec<f32>,
    means: Vec<f32>,
    head: network::Room,
}

impl Layer {
    /// Rows of all texts, each with as many as `lengths` says, become those after this layer.
    pub fn pass(&self, rows: &mut [f32], lengths: &[usize], room: &mut Room) {
        self.attend(rows, lengths, room);
        let Room {
            bytes, wide, means, ..
        } = room;
        self.attended.of(means, bytes, |columns, sums| {
            network::add(columns, sums, rows)
        });
        network::normalise(&self.middle, rows);
        let (inner, columns) = (
            self.widening.weights.inner(),
            self.widening.weights.columns(),
        );
        wide.resize(rows.len() / inner * columns, 0);
        self.widening.of(rows, bytes, |columns, sums| {
            network::gelu_bytes(columns, self.narrowing.input, sums, wide);
        });
        self.narrowing
            .of_bytes(wide, |columns, sums| network::add(columns, sums, rows));
        network::normalise(&self.output, rows);
    }

    /// Fills the room with what the heads see.
    fn attend(&self, rows: &[f32], lengths: &[usize], room: &mut Room) {
        let width = self.heads * HEAD;
        let looking = &mut room.looking;
        looking.resize(3 * rows.len(), 0.0);
        self.looking.of(rows, &mut room.bytes, |columns, sums| {
            network::numbers(columns, sums, looking);
        });
        room.means.resize(rows.len(), 0.0);
        let scale = 1.0 / (HEAD as f32).sqrt();
        let mut from = 0;
        for length in lengths {
            let to = from + length;
            let rows = &room.looking[from * 3 * width..to * 3 * width];
            let out = &mut room.means[from * width..to * width];
            for number in 0..self.heads {
                let head = Head {
                    rows,
                    heads: self.heads,
                    number,
                };
                network::attend(scale, head, &mut room.head, out);
            }
            from = to;
        }
    }
}
