//! Forks. A child is a copy of its parent with one of the parent's threads: what another one
//! was about, SQLite's own locks among it, stays half done there for good. So a fork waits
//! until nobody uses a store. Its child lets go of the stores that the parent has open: while
//! it had them, SQLite would take the parent's locks on their files for its own.

use super::Store;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread::sleep;
use std::time::Duration;

/// Threads that use a store.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// A thread is about to fork. No lock of the system's: a child could not open it.
static FORKING: AtomicBool = AtomicBool::new(false);
/// What is open in this process.
static OPEN: Mutex<Vec<Weak<Mutex<Store>>>> = Mutex::new(Vec::new());

thread_local! {
    /// Passes of this thread.
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Between two looks.
const MOMENT: Duration = Duration::from_micros(500);
/// Looks, for a minute or more: a fork waits for a copy of a whole store, but not for ever. An
/// archive file may be a pipe that nobody reads.
const PATIENCE: usize = 120_000;

/// No fork happens while one is held, by the thread that took it.
#[derive(Debug)]
pub(super) struct Pass(());

/// Waits for a fork that is about to happen, unless this thread has a pass already: the fork
/// would wait for it.
pub(super) fn pass() -> Pass {
    let held = HELD.get();
    if held == 0 {
        enter();
    }
    HELD.set(held + 1);
    Pass(())
}

fn enter() {
    loop {
        INSIDE.fetch_add(1, SeqCst);
        if !FORKING.load(SeqCst) {
            return;
        }
        INSIDE.fetch_sub(1, SeqCst);
        while FORKING.load(SeqCst) {
            sleep(MOMENT);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let held = HELD.get() - 1;
        HELD.set(held);
        if held == 0 {
            INSIDE.fetch_sub(1, SeqCst);
        }
    }
}

/// Makes a store known to a later fork; the caller has a pass.
pub(super) fn remember(store: &Arc<Mutex<Store>>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|known| known.strong_count() > 0);
    open.push(Arc::downgrade(store));
}

/// To be called before a fork, by the thread that forks. What else it does until the fork is
/// over, with a store too, does not wait.
pub fn before() {
    while FORKING.swap(true, SeqCst) {
        sleep(MOMENT);
    }
    for _ in 0..PATIENCE {
        if INSIDE.load(SeqCst) == 0 {
            break;
        }
        sleep(MOMENT);
    }
    HELD.set(HELD.get() + 1);
}

/// To be called after it in the parent, by the same thread.
pub fn after_in_parent() {
    HELD.set(HELD.get().saturating_sub(1));
    FORKING.store(false, SeqCst);
}

/// To be called after it in the child.
pub fn after_in_child() {
    // Where the fork did not wait any longer, a thread that is not here may have these.
    if let Some(open) = free(&OPEN) {
        for store in open.iter().filter_map(Weak::upgrade) {
            if let Some(mut store) = free(&store) {
                store.leave_to_parent();
            }
        }
    }
    INSIDE.store(0, SeqCst);
    after_in_parent();
}

fn free<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Store {
    /// In a fork: closes its copies of what the parent has open. The file stays as it is, and
    /// so do the parent's locks.
    fn leave_to_parent(&mut self) {
        if self.path.is_none() {
            return;
        }
        // Closing must not move the log into the file, though the parent may be gone.
        let as_it_is = self
            .conn
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        if let (Ok(true), Ok(nothing)) = (as_it_is, Connection::open_in_memory()) {
            self.scrub_due.set(false);
            self.conn = nothing;
        }
        self.lock = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_fork_waits_for_who_is_inside_and_nobody_comes_in_meanwhile() {
        let outer = pass();
        let inner = pass();
        let (says, hears) = channel();
        thread::scope(|scope| {
            let forks = says.clone();
            scope.spawn(move || {
                before();
                forks.send("alone").unwrap();
                // Its own use of a store does not wait for itself.
                drop(pass());
                forks.send("forked").unwrap();
                after_in_parent();
            });
            while !FORKING.load(SeqCst) {
                thread::yield_now();
            }
            scope.spawn(move || {
                drop(pass());
                says.send("came in").unwrap();
            });
            drop(inner);
            assert!(hears.try_recv().is_err());
            drop(outer);
            let order: Vec<_> = hears.iter().collect();
            assert_eq!(order, ["alone", "forked", "came in"]);
        });
    }
}
