//! The counter of the heap, and timeouts with captures that it can see.

use crate::support::*;
use peak_alloc::PeakAlloc;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, WheelKind};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Bytes that an empty wheel may keep per shard. The hierarchical wheel has at most 11 levels of 64
/// buckets of 32 bytes, each with room for 4 entries of 24 bytes (90 KB). The hashed wheel keeps
/// less, because its number of lists follows its values.
pub(crate) const TABLES: usize = 256 << 10;

/// Bytes that the test harness may allocate in the meantime for captured output and threads.
pub(crate) const NOISE: usize = 16 << 10;

/// The number of ended timeouts of one size whose memory a thread keeps.
pub(crate) const KEPT: usize = 64;

/// A million timeouts, or fewer in a debug build.
pub(crate) const MILLION: usize = if cfg!(debug_assertions) { 50_000 } else { 1_000_000 };

/// The default wheel and Netty's.
pub(crate) const DEFAULT_WHEELS: [WheelKind; 2] = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 512 }];

/// Excludes all other tests while the guard lives.
pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    static GATE: Mutex<()> = Mutex::new(());
    GATE.lock().unwrap_or_else(|failed| failed.into_inner())
}

/// The size of the heap at one moment.
#[derive(Clone, Copy)]
pub(crate) struct Mark(usize);

impl Mark {
    /// Records the current size and restarts the peak.
    pub(crate) fn set() -> Self {
        HEAP.reset_peak_usage();
        Self(HEAP.current_usage())
    }

    /// Returns the bytes by which the heap has grown since the mark, at least 0.
    pub(crate) fn grown(self) -> usize {
        HEAP.current_usage().saturating_sub(self.0)
    }

    /// Returns the bytes by which the peak since the latest mark exceeds this mark.
    pub(crate) fn peak(self) -> usize {
        HEAP.peak_usage().saturating_sub(self.0)
    }

    /// Waits until the heap has grown by at most `most` bytes since the mark, and returns the
    /// growth. A worker frees memory in its own time.
    #[track_caller]
    pub(crate) fn falls_to(self, most: usize) -> usize {
        let begun = Instant::now();
        while self.grown() > most {
            assert!(begun.elapsed() < MAX_WAIT, "{} bytes are never freed, {most} may remain", self.grown());
            watch_for(MILLI);
        }
        self.grown()
    }
}

/// Prints a measured size and fails if it exceeds `most` bytes.
#[track_caller]
pub(crate) fn assert_at_most(label: &str, measured: usize, most: usize) {
    println!("{label}: {measured} bytes, at most {most}");
    assert!(measured <= most, "{label}: {measured} bytes, {most} are allowed");
}

/// Returns a task with a capture of 256 bytes, which makes a kept task visible.
pub(crate) fn ballast() -> impl FnOnce(&Timeout) + Send + 'static {
    let ballast = Box::new([1u8; 256]);
    move |_| assert_eq!(ballast[7], 1)
}

/// Schedules a timeout with a capture.
#[track_caller]
pub(crate) fn schedule(timer: &Timer, delay: Duration) -> Timeout {
    accepted(timer.new_timeout(delay, ballast()))
}

/// Schedules `count` timeouts with delays from `least` to `least + spread`.
pub(crate) fn schedule_many(timer: &Timer, count: usize, least: Duration, spread: Duration) -> Vec<Timeout> {
    let mut random = Rng::with_seed(count as u64);
    let mut timeouts = Vec::with_capacity(count);
    timeouts.extend((0..count).map(|_| schedule(timer, least + random.duration(spread))));
    timeouts
}
