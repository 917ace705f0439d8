//! Room for rows of numbers: in large pages where they are long, at lines of the cache where
//! wide registers and tiles read them.
//!
//! Where the system is asked for it, it maps long rows in large pages (Linux: 2 MiB instead of
//! 4 KiB), so that the processor need not look up an address every few rows. Nothing depends
//! on whether it does.

#![allow(unsafe_code)]

use crate::CACHE_LINE;
use std::ops::{Deref, DerefMut};

/// Numbers of which the first begins a line of the cache: a load of a whole line from there
/// never takes two.
#[derive(Debug, Default)]
pub struct Aligned<T> {
    /// With room for a line more.
    numbers: Vec<T>,
    from: usize,
    count: usize,
}

impl<T: Copy + Default> Aligned<T> {
    /// Room for so many numbers, which are anything.
    pub fn resize(&mut self, count: usize) {
        let needed = count + CACHE_LINE / size_of::<T>();
        if self.numbers.len() < needed {
            self.numbers.clear();
            self.numbers.resize(needed, T::default());
        }
        let from = self.numbers.as_ptr().align_offset(CACHE_LINE);
        // There may be no such place, if not on any processor that is known.
        self.from = if from.saturating_add(count) <= self.numbers.len() {
            from
        } else {
            0
        };
        self.count = count;
    }
}

impl<T: Copy + Default> From<&[T]> for Aligned<T> {
    fn from(numbers: &[T]) -> Self {
        let mut aligned = Self::default();
        aligned.resize(numbers.len());
        aligned.copy_from_slice(numbers);
        aligned
    }
}

impl<T> Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.numbers[self.from..][..self.count]
    }
}

impl<T> DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.numbers[self.from..][..self.count]
    }
}

/// Bytes from which on large pages are asked for: a part of one that is not used is lost.
const LARGE: usize = 16 << 20;

/// Makes room for `more` numbers, at least twice what there was where there is too little.
pub fn reserve<T: Copy>(numbers: &mut Vec<T>, more: usize) {
    let needed = numbers.len() + more;
    if needed <= numbers.capacity() {
        return;
    }
    let room = needed.max(2 * numbers.capacity());
    if room.saturating_mul(size_of::<T>()) < LARGE {
        numbers.reserve(more);
        return;
    }
    // Asked before the first of them is written: what is mapped already stays as it is.
    let mut larger = Vec::with_capacity(room);
    in_large_pages(&mut larger);
    larger.extend_from_slice(numbers);
    *numbers = larger;
}

/// Asks for large pages under the room of an empty row.
#[cfg(target_os = "linux")]
fn in_large_pages<T>(numbers: &mut Vec<T>) {
    const PAGE: usize = 2 << 20;
    let from = (numbers.as_mut_ptr() as usize).next_multiple_of(PAGE);
    let bytes = numbers.capacity() * size_of::<T>();
    let to = (numbers.as_mut_ptr() as usize + bytes) / PAGE * PAGE;
    if from < to {
        // SAFETY: whole pages of room that the row owns; the advice changes no content. Where
        // the system does not know it, it says so, and nothing is different.
        unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn in_large_pages<T>(_: &mut Vec<T>) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_numbers_begin_a_line() {
        let mut numbers = Aligned::<f32>::default();
        assert!(numbers.is_empty());
        for count in [0, 1, 15, 16, 17, 3, 1_000] {
            numbers.resize(count);
            assert_eq!(numbers.len(), count);
            assert_eq!(numbers.as_ptr() as usize % CACHE_LINE, 0);
            numbers.fill(1.0);
        }
        let bytes: Vec<u8> = (0..100).collect();
        assert_eq!(&*Aligned::from(&bytes[3..]), &bytes[3..]);
    }

    #[test]
    fn what_was_there_stays_while_the_room_grows() {
        let mut numbers: Vec<u16> = Vec::new();
        let most = LARGE / size_of::<u16>() * 3;
        while numbers.len() < most {
            let from = numbers.len();
            reserve(&mut numbers, 100_000);
            assert!(numbers.capacity() >= from + 100_000);
            numbers.extend((from..from + 100_000).map(|n| n as u16));
        }
        assert!(numbers.iter().enumerate().all(|(at, n)| *n == at as u16));
        let room = numbers.capacity();
        reserve(&mut numbers, 0);
        assert_eq!(numbers.capacity(), room);
    }
}
