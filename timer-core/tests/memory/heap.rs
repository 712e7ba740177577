//! The counter, and the traffic that is counted.

use crate::support::*;
use peak_alloc::PeakAlloc;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, WheelKind};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// What an empty wheel may keep of one shard, in bytes: at the most 11 levels of 64 buckets of 32
/// bytes, each with room for 4 entries of 24 bytes (90 KB), or for the hashed wheel below 26 pages
/// of 64 such buckets (228 KB).
pub(crate) const TABLES: usize = 256 << 10;

/// What the test's own frame (captured output, threads) may allocate meanwhile, in bytes.
pub(crate) const NOISE: usize = 16 << 10;

/// A standing million; fewer in a debug build.
pub(crate) const MILLION: usize = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };

/// The default, and Netty's.
pub(crate) const BOTH: [WheelKind; 2] = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 512 }];

/// No other test is counted while this lives.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|failed| failed.into_inner())
}

/// The heap as it was at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Mark(usize);

impl Mark {
    /// Now; the peak starts anew.
    pub(crate) fn set() -> Self {
        HEAP.reset_peak_usage();
        Self(HEAP.current_usage())
    }

    /// Bytes more than at the mark; none if there are fewer.
    pub(crate) fn grown(self) -> usize {
        HEAP.current_usage().saturating_sub(self.0)
    }

    /// Bytes more than at the mark, at the worst moment since the last mark of all.
    pub(crate) fn peak(self) -> usize {
        HEAP.peak_usage().saturating_sub(self.0)
    }

    /// Waits until no more than `most` bytes are left of what came since: for what a worker gives
    /// back in its own time.
    #[track_caller]
    pub(crate) fn falls_to(self, most: usize) -> usize {
        let begun = Instant::now();
        while self.grown() > most {
            assert!(begun.elapsed() < LONG, "{} bytes are never given back, {most} may be kept", self.grown());
            watch_for(MILLI);
        }
        self.grown()
    }
}

/// Prints what was measured and fails if it is more than `most` bytes.
#[track_caller]
pub(crate) fn at_most(what: &str, measured: usize, most: usize) {
    println!("{what}: {measured} bytes, at most {most}");
    assert!(measured <= most, "{what}: {measured} bytes, {most} are allowed");
}

/// Captures of a task: a box of 256 bytes, so that a task which is kept is seen.
pub(crate) fn ballast() -> impl FnOnce(&Timeout) + Send + 'static {
    let ballast = Box::new([1u8; 256]);
    move |_| assert_eq!(ballast[7], 1)
}

/// A timeout with some captures.
#[track_caller]
pub(crate) fn schedule(timer: &Timer, delay: Duration) -> Timeout {
    accepted(timer.new_timeout(delay, ballast()))
}

/// Schedules `count` timeouts with delays of `least` to `least + spread`.
pub(crate) fn many(timer: &Timer, count: usize, least: Duration, spread: Duration) -> Vec<Timeout> {
    let mut random = Rng::with_seed(count as u64);
    let mut timeouts = Vec::with_capacity(count);
    timeouts.extend((0..count).map(|_| schedule(timer, least + random.duration(spread))));
    timeouts
}
