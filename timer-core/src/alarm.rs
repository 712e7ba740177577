//! The alarm: how the worker goes to sleep, and how a caller wakes it up.
//!
//! One word holds the tick until which the sleeper sleeps. [`AWAKE`] means that the sleeper looks
//! at the shards again before it sleeps.
//!
//! # The caller
//!
//! A caller has made tick `t` the earliest one of a shard.
//!
//! 1. It stores `t` in the shard's `next` while it holds the shard's lock.
//! 2. It makes a read-modify-write of the word. If the word is later than `t`, the word becomes
//!    `AWAKE`, and the caller unparks the sleeper.
//!
//! # The sleeper
//!
//! 1. It swaps the word to [`NO_TICK`], which means "asleep forever" ([`Alarm::arm`]).
//! 2. It reads the `next` of every shard. The least of them is `m`.
//! 3. If `m` is due, it does not sleep. Otherwise it changes the word from `NO_TICK` to `m`
//!    ([`Alarm::set`]). If the word is no longer `NO_TICK`, it starts again.
//! 4. It parks until `m` or until it is unparked.
//!
//! # No wake-up is missed
//!
//! In the critical case, the caller stores `next` just after the sleeper has read it. Both sides
//! make a read-modify-write of the same word, in the caller's step 2 and the sleeper's step 1, so
//! these two operations have an order.
//!
//! - The caller's comes first. The sleeper's swap reads its value, or a later one of the same
//!   release sequence, so the sleeper's step 2 sees the caller's step 1, and `m <= t`.
//! - The sleeper's comes first. The caller finds `NO_TICK` or the end of the sleep. If that is
//!   later than `t`, the caller writes `AWAKE`, and the sleeper's step 3 fails or its step 4 ends.
//!   Otherwise the sleeper wakes up by `t` anyway.
//!
//! All changes of the word are read-modify-writes, so no release sequence is cut.
//!
//! # No wake-up is sent twice
//!
//! Only the caller whose read-modify-write turns the word to `AWAKE` unparks, and only the next
//! step 1 of the sleeper turns it back. A caller that does so between the sleeper's steps 1 and 4
//! leaves a token in the parker, so a later step 4 may end at once.

use crate::config::Hook;
use crate::deadline::NO_TICK;
use crate::sync::{AtomicU64, Mutex, Ordering, Parker};
use std::time::Duration;
use timer_executor::panics;

/// The sleeper is awake or has been woken up, and looks at every shard before it sleeps.
const AWAKE: u64 = 0;

/// The word of the protocol, and the means to wait.
#[derive(Default)]
pub(crate) struct Alarm {
    until: AtomicU64,
    parker: Parker,
    /// Called in addition for a driven timer, whose loop sleeps elsewhere.
    wake_hook: Mutex<Option<Hook>>,
}

impl Alarm {
    /// Makes the caller's step 2. The caller must hold no lock, because this may call a driver's
    /// waker.
    pub(crate) fn wake_before(&self, tick: u64) {
        let sooner = |until: u64| if until > tick { AWAKE } else { until };
        // ORDERING: AcqRel, because the sleeper's `arm` reads this value and must see the shard's
        // `next`. This is a read-modify-write even if the value stays the same, because the proof
        // needs its place in the word's history.
        let Ok(until) = self.until.fetch_update(Ordering::AcqRel, Ordering::Acquire, |until| Some(sooner(until)))
        else {
            return;
        };
        if until > tick {
            self.parker.unpark();
            self.call_wake_hook();
        }
    }

    /// Calls the driver's waker. It runs and is dropped while no lock is held, because it is
    /// foreign code. Its panic harms no caller.
    fn call_wake_hook(&self) {
        let hook = self.wake_hook.lock().clone();
        if let Some(hook) = hook {
            contain(|| hook());
            contain(|| drop(hook));
        }
    }

    /// Makes the sleeper's step 1.
    pub(crate) fn arm(&self) {
        // ORDERING: AcqRel read-modify-write, whose Acquire pairs with the Release in
        // `wake_before`.
        self.until.swap(NO_TICK, Ordering::AcqRel);
    }

    /// Makes the sleeper's step 3. Returns `false` if a caller has changed the word since.
    #[must_use]
    pub(crate) fn set(&self, until: u64) -> bool {
        // ORDERING: AcqRel, as in `arm`. After a failure the sleeper begins again with `arm`, which
        // acquires.
        self.until.compare_exchange(NO_TICK, until, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Marks the sleeper as awake, so that callers need not wake it.
    pub(crate) fn disarm(&self) {
        // ORDERING: AcqRel read-modify-write. A store would end the release sequence of a caller's
        // step 2 that it overwrites, and `arm` would not see that caller's `next`.
        self.until.swap(AWAKE, Ordering::AcqRel);
    }

    /// Makes the sleeper's step 4, with the time until `m`.
    pub(crate) fn park(&self, limit: Option<Duration>) {
        self.parker.park(limit);
    }

    /// Returns `true` if the sleeper is awake or a caller has woken it.
    #[cfg(test)]
    pub(crate) fn is_up(&self) -> bool {
        self.until.load(Ordering::Acquire) == AWAKE
    }

    #[cfg(all(test, timer_loom))]
    pub(crate) fn wake_ups_sent(&self) -> usize {
        self.parker.sent()
    }

    /// Sets the function that [`wake_before`](Self::wake_before) calls in addition.
    pub(crate) fn set_wake_hook(&self, hook: Option<Hook>) {
        let former = std::mem::replace(&mut *self.wake_hook.lock(), hook);
        contain(|| drop(former));
    }
}

/// Calls foreign code. A panic of it is traced and goes no further.
fn contain(foreign: impl FnOnce()) {
    panics::contain("the waker of a timer's driver panicked", foreign);
}
