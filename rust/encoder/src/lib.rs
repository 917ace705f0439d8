//! A BERT encoder whose products are of bytes: the vectors of a text's word pieces.
//!
//! Weights are bytes, and what they are multiplied with becomes bytes row by row, each word
//! piece between its own least and greatest number: what a text becomes does not depend on the
//! texts beside it, and no range has to be guessed from other texts. Sums of products are whole
//! numbers, and the rest runs in one order on every processor ([`ebbtide_simd::network`]).

mod file;
mod helping;
mod layer;

use ebbtide_simd::network::{self, Norm};
use ebbtide_simd::room::Aligned;
use helping::{Desk, Part, Share, WORTH};
use layer::{Layer, Room, Texts, groups};
use std::fmt;

/// Word pieces that go through a layer together: more of them share the way of the weights
/// from the memory, fewer stay near the processor.
const TOGETHER: usize = 512;

/// Why a file is no encoder, or texts are none for this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable(pub String);

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

/// An encoder.
#[derive(Debug)]
pub struct Encoder {
    width: usize,
    /// Of each word piece, as bytes.
    words: Vec<u8>,
    words_zero: u8,
    words_scale: f32,
    /// Of each place, [`Encoder::longest`] of them.
    positions: Vec<f32>,
    input: Norm,
    layers: Vec<Layer>,
    /// Where another thread offers its help.
    desk: Desk,
}

impl Encoder {
    /// From the bytes of a safetensors file.
    ///
    /// # Errors
    /// It is none, or lacks a tensor, or one has another shape.
    pub fn new(file: &[u8]) -> Result<Self, Unusable> {
        file::read(file)
    }

    /// Numbers of a word piece's vector.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Word pieces of the longest text.
    pub fn longest(&self) -> usize {
        self.positions.len() / self.width
    }

    /// The vectors of all word pieces, text after text; a text does not see the others.
    ///
    /// # Errors
    /// Lengths do not add up to the pieces, a text is longer than [`Encoder::longest`], or
    /// there is no such piece.
    pub fn encode(&self, pieces: &[u32], lengths: &[usize]) -> Result<Vec<f32>, Unusable> {
        self.check(pieces, lengths)?;
        let _busy = self.desk.begin();
        let mut out = Vec::with_capacity(pieces.len() * self.width);
        let (mut rows, mut room) = (Aligned::default(), Room::default());
        let mut rest = pieces;
        for (lengths, count) in groups(lengths, TOGETHER) {
            let (now, later) = rest.split_at(count);
            self.embed(now, lengths, &mut rows);
            self.pass(&mut rows, lengths, &mut room);
            out.extend_from_slice(&rows);
            rest = later;
        }
        Ok(out)
    }

    /// Helps another thread with the text that it encodes, if it comes to its next layer soon;
    /// what a text becomes is the same.
    ///
    /// `false` where no help is wanted: nothing or more than one text is encoded, or only one
    /// thread can run. After `true` there may be more to help with.
    pub fn help(&self) -> bool {
        self.desk.offer(|mut share| {
            self.pass_part(
                share.layer,
                &mut share.rows,
                &mut share.part,
                &mut Room::default(),
            );
            share.part.hand_over(share.rows.to_vec());
        })
    }

    /// What becomes of rows in all layers.
    fn pass(&self, rows: &mut [f32], lengths: &[usize], room: &mut Room) {
        for (number, layer) in self.layers.iter().enumerate() {
            if let [length] = lengths
                && *length >= WORTH
                && let Some(helper) = self.desk.helper()
            {
                let (share, mut part) = Share::half(number, rows, self.width);
                helper.send(share).expect("who offered help waits for it");
                let (own, other) = rows.split_at_mut(part.own.len() * self.width);
                self.pass_part(number, own, &mut part, room);
                other.copy_from_slice(&part.handed());
                return;
            }
            layer.pass(rows, Texts::Whole(lengths), room);
        }
    }

    /// What becomes of a part of a text's rows in the layers from one on.
    fn pass_part(&self, layer: usize, rows: &mut [f32], part: &mut Part, room: &mut Room) {
        for layer in &self.layers[layer..] {
            layer.pass(rows, Texts::Part(part), room);
        }
    }

    fn check(&self, pieces: &[u32], lengths: &[usize]) -> Result<(), Unusable> {
        let (told, longest) = (lengths.iter().sum::<usize>(), self.longest());
        if told != pieces.len() {
            let count = pieces.len();
            return Err(Unusable(format!(
                "lengths add up to {told} word pieces, there are {count}"
            )));
        }
        if let Some(length) = lengths.iter().find(|l| **l > longest) {
            return Err(Unusable(format!(
                "a text of {length} word pieces: {longest} are the most"
            )));
        }
        let known = self.words.len() / self.width;
        match pieces.iter().find(|p| **p as usize >= known) {
            Some(piece) => Err(Unusable(format!("word piece {piece} of {known}"))),
            None => Ok(()),
        }
    }

    /// Rows of what the word pieces are, and where in their text.
    fn embed(&self, pieces: &[u32], lengths: &[usize], rows: &mut Aligned<f32>) {
        let width = self.width;
        rows.resize(pieces.len() * width);
        let places = lengths.iter().flat_map(|length| 0..*length);
        for ((piece, place), row) in pieces.iter().zip(places).zip(rows.chunks_exact_mut(width)) {
            let word = &self.words[*piece as usize * width..][..width];
            let position = &self.positions[place * width..][..width];
            for ((x, w), p) in row.iter_mut().zip(word).zip(position) {
                let steps = i16::from(*w) - i16::from(self.words_zero);
                *x = f32::from(steps) * self.words_scale + p;
            }
        }
        network::normalise(&self.input, rows);
    }
}
