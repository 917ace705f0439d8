//! One layer: attention, then two products with a bend between them.

use ebbtide_simd::bytes::ByteWeights;
use ebbtide_simd::network::{self, Bytes, Columns, HEAD, Head, Norm};

/// A product: what its input becomes in bytes, the weights, what its sums mean.
#[derive(Debug)]
pub struct Product {
    pub input: Bytes,
    pub weights: ByteWeights,
    pub columns: Columns,
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
        let Product {
            input,
            weights,
            columns,
        } = &self.attended;
        made_bytes(*input, &room.means, &mut room.bytes);
        weights.multiply(&room.bytes, |sums| network::add(columns, sums, rows));
        network::normalise(&self.middle, rows);

        let Product {
            input,
            weights,
            columns,
        } = &self.widening;
        made_bytes(*input, rows, &mut room.bytes);
        let (wide, to) = (&mut room.wide, self.narrowing.input);
        wide.resize(room.bytes.len() / weights.inner() * weights.columns(), 0);
        weights.multiply(&room.bytes, |sums| {
            network::gelu_bytes(columns, to, sums, wide);
        });
        let Product {
            weights, columns, ..
        } = &self.narrowing;
        weights.multiply(wide, |sums| network::add(columns, sums, rows));
        network::normalise(&self.output, rows);
    }

    /// Fills the room with what the heads see.
    fn attend(&self, rows: &[f32], lengths: &[usize], room: &mut Room) {
        let width = self.heads * HEAD;
        let Product {
            input,
            weights,
            columns,
        } = &self.looking;
        made_bytes(*input, rows, &mut room.bytes);
        let looking = &mut room.looking;
        looking.resize(3 * rows.len(), 0.0);
        weights.multiply(&room.bytes, |sums| network::numbers(columns, sums, looking));
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

fn made_bytes(to: Bytes, numbers: &[f32], out: &mut Vec<u8>) {
    out.resize(numbers.len(), 0);
    network::bytes(to, numbers, out);
}
