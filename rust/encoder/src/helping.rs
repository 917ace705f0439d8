//! Two threads at one text.
//!
//! A thread that waits for a text's vectors may offer its help. The one that encodes looks for
//! an offer before each layer, and gives away half of the text's rows. From there on both take
//! their own rows through the layers, and in each hand over what all rows have to see: their
//! keys and values. What becomes of a row does not depend on who has it.

use ebbtide_simd::room::Aligned;
use std::hint::spin_loop;
use std::ops::Range;
use std::process::id;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

/// Rows of a text from which on it is given to two threads.
pub const WORTH: usize = 16;
/// Rows that the wider products take at once: a half has a multiple of them.
const GROUP: usize = 8;
/// How long an offer stands at most; then its thread looks whether what it waits for is there.
const STANDS: Duration = Duration::from_millis(1);
/// Looks for the other's keys and values before the thread lies down: they come within
/// microseconds, and to be woken takes longer.
const LOOKS: usize = 2_000;
/// Both hold their ends until the last layer.
const THERE: &str = "the other thread goes through the same layers";

/// Where help is offered and taken.
#[derive(Debug, Default)]
pub struct Desk {
    /// Calls that are encoding.
    busy: AtomicUsize,
    /// Offers, to be looked at without the lock.
    standing: AtomicUsize,
    offers: Mutex<Offers>,
}

#[derive(Debug, Default)]
struct Offers {
    made: u64,
    standing: Vec<Offer>,
}

#[derive(Debug)]
struct Offer {
    number: u64,
    /// A forked child has the offers of its parent, and none of the threads that made them.
    process: u32,
    to: Sender<Share>,
}

/// A call that is encoding.
#[derive(Debug)]
pub struct Busy<'a>(&'a Desk);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
        // Who offers help may have waited for this call.
        if self.0.standing.load(Ordering::Relaxed) > 0 {
            self.0.with(|offers| offers.standing.clear());
        }
    }
}

impl Desk {
    /// Counts a call until what is returned is dropped.
    pub fn begin(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    /// Somebody who offers help.
    pub fn helper(&self) -> Option<Sender<Share>> {
        if self.standing.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let offer = self.with(|offers| offers.standing.pop())?;
        (offer.process == id()).then_some(offer.to)
    }

    /// Offers help for a while, and does what it is asked to.
    ///
    /// The offer ends when a call does. `false` where nothing is encoded, where more than one
    /// call is under way, since two threads go in step and each needs a processor of its own,
    /// and where only one thread can run.
    pub fn offer(&self, work: impl FnOnce(Share)) -> bool {
        static ALONE: OnceLock<bool> = OnceLock::new();
        let alone = *ALONE.get_or_init(|| available_parallelism().map_or(1, usize::from) == 1);
        if alone || self.busy.load(Ordering::Relaxed) != 1 {
            return false;
        }
        let (to, from) = channel();
        let number = self.with(|offers| {
            offers.made += 1;
            offers.standing.push(Offer {
                number: offers.made,
                process: id(),
                to,
            });
            offers.made
        });
        let share = match from.recv_timeout(STANDS) {
            Ok(share) => Some(share),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                self.with(|offers| offers.standing.retain(|o| o.number != number));
                // Who took it in that moment is about to answer.
                from.recv().ok()
            }
        };
        if let Some(share) = share {
            work(share);
        }
        true
    }

    fn with<T>(&self, change: impl FnOnce(&mut Offers) -> T) -> T {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        let done = change(&mut offers);
        self.standing
            .store(offers.standing.len(), Ordering::Relaxed);
        done
    }
}

/// Rows that another thread takes through the layers.
#[derive(Debug)]
pub struct Share {
    /// The first of the layers.
    pub layer: usize,
    pub rows: Aligned<f32>,
    pub part: Part,
}

/// Which rows of a text a thread has, and its way to the one that has the others.
#[derive(Debug)]
pub struct Part {
    /// Rows of the text.
    pub count: usize,
    pub own: Range<usize>,
    to: Sender<Vec<f32>>,
    from: Receiver<Vec<f32>>,
    room: Vec<f32>,
}

impl Share {
    /// The second half of a text's rows, of `width` numbers each; the first half's part.
    pub fn half(layer: usize, rows: &[f32], width: usize) -> (Self, Part) {
        let count = rows.len() / width;
        let middle = (count / 2).next_multiple_of(GROUP).min(count);
        let ((to, theirs), (back, from)) = (channel(), channel());
        let part = |own, to, from| Part {
            count,
            own,
            to,
            from,
            room: Vec::new(),
        };
        let share = Self {
            layer,
            rows: Aligned::from(&rows[middle * width..]),
            part: part(middle..count, back, theirs),
        };
        (share, part(0..middle, to, from))
    }
}

impl Part {
    /// Completes rows of queries, keys and values, of `width` numbers each, by the keys and
    /// values of the other's rows.
    pub fn exchange(&mut self, rows: &mut [f32], width: usize) {
        let seen = |row: usize| 3 * row * width + width..3 * (row + 1) * width;
        let mut mine = std::mem::take(&mut self.room);
        mine.clear();
        for row in self.own.clone() {
            mine.extend_from_slice(&rows[seen(row)]);
        }
        self.hand_over(mine);
        let theirs = self.handed();
        let others = (0..self.own.start).chain(self.own.end..self.count);
        for (row, numbers) in others.zip(theirs.chunks_exact(2 * width)) {
            rows[seen(row)].copy_from_slice(numbers);
        }
        self.room = theirs;
    }

    /// Gives numbers to the other.
    pub fn hand_over(&self, numbers: Vec<f32>) {
        self.to.send(numbers).expect(THERE);
    }

    /// Numbers of the other's.
    pub fn handed(&self) -> Vec<f32> {
        for _ in 0..LOOKS {
            if let Ok(numbers) = self.from.try_recv() {
                return numbers;
            }
            spin_loop();
        }
        self.from.recv().expect(THERE)
    }
}
