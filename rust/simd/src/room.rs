//! Room for long rows of numbers that are read from end to end.
//!
//! Where the system is asked for it, it maps them in large pages (Linux: 2 MiB instead of
//! 4 KiB), so that the processor need not look up an address every few rows. Nothing depends
//! on whether it does.

#![allow(unsafe_code)]

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
