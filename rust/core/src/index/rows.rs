//! Rows that lose many places at once: what stays is moved once, however many go.

use std::ops::Range;

/// Takes what is at these places, which ascend, out of a row.
pub(crate) fn take_out<T>(row: &mut Vec<T>, places: &[usize]) {
    let Some(first) = places.first() else {
        return;
    };
    let mut due = places.iter().peekable();
    let mut at = *first..;
    let goes = |_: &mut T| {
        let at = at.next();
        due.next_if(|place| Some(**place) == at).is_some()
    };
    row.extract_if(*first.., goes).for_each(drop);
}

/// The new number of each of `count` places once these, which ascend, went; none of those.
pub(crate) fn left(count: usize, places: &[usize]) -> Vec<Option<u32>> {
    let mut due = places.iter().peekable();
    let mut numbers = 0u32..;
    let number = |at: usize| match due.next_if(|place| **place == at) {
        Some(_) => None,
        None => numbers.next(),
    };
    (0..count).map(number).collect()
}

/// Takes ranges of places, which ascend, out of a row of `width` numbers a place.
pub(crate) fn cut<T: Copy>(row: &mut Vec<T>, ranges: &[Range<usize>], width: usize) {
    let Some(first) = ranges.first() else {
        return;
    };
    let mut to = first.start * width;
    for (n, range) in ranges.iter().enumerate() {
        let next = ranges.get(n + 1).map_or(row.len(), |r| r.start * width);
        let stays = range.end * width..next;
        let end = to + stays.len();
        row.copy_within(stays, to);
        to = end;
    }
    row.truncate(to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_stays_is_what_was_not_named(
            count in 0usize..40,
            gone in prop::collection::btree_set(0usize..40, 0..20),
            width in 1usize..4,
        ) {
            let places: Vec<usize> = gone.iter().copied().filter(|at| *at < count).collect();
            let stay: Vec<usize> = (0..count).filter(|at| !gone.contains(at)).collect();
            let mut row: Vec<usize> = (0..count).collect();
            take_out(&mut row, &places);
            prop_assert_eq!(&row, &stay);
            for (number, at) in left(count, &places).into_iter().zip(0..) {
                let expected = stay.binary_search(&at).ok();
                prop_assert_eq!(number.map(|n| n as usize), expected);
            }
            let wide = |at: &usize| { let at = *at; (0..width).map(move |n| at * width + n) };
            let mut row: Vec<usize> = (0..count * width).collect();
            let ranges: Vec<Range<usize>> = places.iter().map(|at| *at..at + 1).collect();
            cut(&mut row, &ranges, width);
            prop_assert_eq!(row, stay.iter().flat_map(wide).collect::<Vec<_>>());
        }
    }
}
