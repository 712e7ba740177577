//! How the worker goes to sleep and how a caller wakes it: the protocol of the missed wake-up.
//!
//! One word says until which tick the sleeper will sleep; [`AWAKE`] says that it will look again before it sleeps.
//!
//! The caller, who has a new earliest tick `t` in a shard:
//!
//! 1. writes `t` to the shard's `next` (holding the shard's lock);
//! 2. a read-modify-write on the word: if it is later than `t`, it becomes `AWAKE`, and the caller unparks the sleeper.
//!
//! The sleeper:
//!
//! 1. swaps the word to [`NO_TICK`]: "I sleep for ever" ([`Alarm::arm`]);
//! 2. reads the `next` of every shard; the least is `m`;
//! 3. if `m` is due it does not sleep; else it changes the word from `NO_TICK` to `m` ([`Alarm::set`]), and if the word is no
//!    longer `NO_TICK`, begins again;
//! 4. parks until `m` or until it is unparked.
//!
//! *The race*: the caller writes `next` just after the sleeper has read it. *Proof that no wake-up is missed*: both sides
//! make a read-modify-write of the one word (caller's step 2, sleeper's step 1), so these two have an order.
//! Either the caller's comes first; then the sleeper's swap reads it or a later one in its release sequence, and so the
//! sleeper's step 2 sees the caller's step 1: `m <= t`. Or the sleeper's comes first; then the caller finds `NO_TICK` or
//! the sleep's end there: if that is later than `t` it writes `AWAKE`, which makes step 3 fail or step 4 end, and
//! otherwise the sleeper wakes by `t` anyway.
//! All changes of the word are read-modify-writes, so no release sequence is ever cut.
//! *No more than one is sent*: only the read-modify-write that turns the word to `AWAKE` unparks, and nothing but the
//! sleeper's next step 1 turns it back. (One that finds the sleeper up lets its next step 4 end at once.)

use crate::sync::{Arc, AtomicU64, Mutex, Ordering, Parker};
use crate::time::NO_TICK;
use std::fmt;
use std::time::Instant;
use timer_executor::panics;

/// The sleeper is up, or has been told to get up, and will look at every shard before it sleeps.
const AWAKE: u64 = 0;

/// What a driver does to make its loop look at the timer again.
pub(crate) type Waker = Arc<dyn Fn() + Send + Sync>;

/// The word, and the bed.
#[derive(Default)]
pub(crate) struct Alarm {
    until: AtomicU64,
    parker: Parker,
    /// A driven timer's loop sleeps elsewhere.
    waker: Mutex<Option<Waker>>,
}

impl Alarm {
    /// Caller's step 2. Call it with nothing held: it may call a driver's waker.
    pub(crate) fn wake_before(&self, tick: u64) {
        let sooner = |until: u64| if until > tick { AWAKE } else { until };
        // ORDERING: AcqRel, and a read-modify-write even where nothing changes: Release so that the sleeper's `arm`, which
        // reads it, sees the shard's `next`; being in the word's one history is what the proof above needs.
        let Ok(until) = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, |until| Some(sooner(until)))
        else {
            return;
        };
        if until > tick {
            self.parker.unpark();
            self.call_waker();
        }
    }

    /// The waker is foreign code: it runs, and is dropped, with nothing held, and its panic harms no caller.
    fn call_waker(&self) {
        let waker = self.waker.lock().clone();
        if let Some(waker) = waker {
            contain(|| waker());
            contain(|| drop(waker));
        }
    }

    /// Lets the sleeper's next [`park`](Self::park) end: it gets what it has reserved.
    pub(crate) fn ring(&self) {
        self.parker.unpark();
    }

    /// Sleeper's step 1.
    pub(crate) fn arm(&self) {
        // ORDERING: AcqRel read-modify-write: Acquire pairs with the Release in `wake_before`.
        self.until.swap(NO_TICK, Ordering::AcqRel);
    }

    /// Sleeper's step 3; `false` if a caller has called meanwhile.
    #[must_use]
    pub(crate) fn set(&self, until: u64) -> bool {
        // ORDERING: AcqRel, as in `arm`; on failure the sleeper begins again with `arm`, which acquires.
        self.until.compare_exchange(NO_TICK, until, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The sleeper will look at every shard again before it sleeps; no call is needed.
    pub(crate) fn disarm(&self) {
        // ORDERING: AcqRel read-modify-write, not a store: a store would end the release sequence of a caller's step 2 that
        // it overwrites, and `arm` would no longer see that caller's `next`.
        self.until.swap(AWAKE, Ordering::AcqRel);
    }

    /// Sleeper's step 4.
    pub(crate) fn park(&self, until: Option<Instant>) {
        self.parker.park(until);
    }

    /// Whether the sleeper is up, or a caller has called.
    #[cfg(all(test, timer_loom))]
    pub(crate) fn is_up(&self) -> bool {
        self.until.load(Ordering::Acquire) == AWAKE
    }

    #[cfg(all(test, timer_loom))]
    pub(crate) fn wake_ups_sent(&self) -> usize {
        self.parker.sent()
    }

    /// Sets what [`wake_before`](Self::wake_before) calls besides.
    pub(crate) fn set_waker(&self, waker: Option<Waker>) {
        let former = std::mem::replace(&mut *self.waker.lock(), waker);
        contain(|| drop(former));
    }
}

/// Calls foreign code whose panic is traced and goes no further.
fn contain(foreign: impl FnOnce()) {
    panics::contain("the waker of a timer's driver panicked", foreign);
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // ORDERING: Relaxed, for people to read.
        f.debug_struct("Alarm").field("until", &self.until.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}
