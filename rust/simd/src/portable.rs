//! The forms that run anywhere, and the definition of what the others compute.

pub(crate) use super::bytes::block_portable as bytes_block;
use super::network::{Head, Room, attend_with};
use super::packed::{row_bytes, unpack};
use super::weights::{PANEL, Rows, Weights, multiply_with};
use super::{Digits, Question};

#[inline(always)]
pub fn multiply(weights: &Weights, x: Rows<'_>, out: &mut [f32]) {
    multiply_with::<[f32; PANEL], 1>(weights, x, out);
}

#[inline(always)]
pub fn attend(scale: f32, head: Head<'_>, room: &mut Room, out: &mut [f32]) {
    attend_with::<[f32; PANEL], 1>(scale, head, room, out);
}

#[inline(always)]
pub fn dot(a: &[i16], b: &[i16]) -> i32 {
    let products = a.iter().zip(b).map(|(x, y)| i32::from(*x) * i32::from(*y));
    products.fold(0i32, i32::wrapping_add)
}

#[inline(always)]
pub fn dot_split(query: &[i16], high: &[i8], low: &[u8], step: i16) -> i32 {
    let mut sum = 0i32;
    for ((q, h), l) in query.iter().zip(high).zip(low) {
        let x = i16::from(*h).wrapping_mul(step).wrapping_add(i16::from(*l));
        sum = sum.wrapping_add(i32::from(*q) * i32::from(x));
    }
    sum
}

#[inline(always)]
pub fn dot_bytes(query: &[i16], row: &[i8]) -> i32 {
    let products = query.iter().zip(row);
    let products = products.map(|(q, x)| i32::from(*q) * i32::from(*x));
    products.fold(0i32, i32::wrapping_add)
}

#[inline(always)]
pub fn dots(query: &Digits, rows: &[i8], out: &mut [i32]) {
    for (row, o) in rows.chunks_exact(query.query.len()).zip(out) {
        *o = dot_bytes(&query.query, row);
    }
}

#[inline(always)]
pub fn best(question: &Question, rows: &[u8], out: &mut [i32]) {
    let d = question.dimension;
    let mut row = vec![0i8; 2 * d.div_ceil(2)];
    for bytes in rows.chunks_exact(row_bytes(d)) {
        let weight = unpack(bytes, &mut row);
        for (b, q) in out.iter_mut().zip(question.tokens.chunks_exact(d)) {
            *b = (*b).max(dot_bytes(q, &row[..d]).wrapping_mul(weight));
        }
    }
}
