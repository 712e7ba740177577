//! Running and timing of callers, and the job of most timers.

use crate::peer::{Job, Peer};
use crate::process;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A job that counts its runs. It is never freed, so a plain reference to it suffices.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Creates a counter that lives as long as the process.
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    /// Returns the number of runs.
    pub(crate) fn count(&self) -> u64 {
        // ORDERING: Relaxed, because this is only a count.
        self.0.load(Ordering::Relaxed)
    }
}

impl Job for &'static Counter {
    #[inline]
    fn run(self) {
        // ORDERING: Relaxed, because this is only a count.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `body` on this thread in the context that the peer's callers need.
pub(crate) fn run_here<P: Peer, R>(peer: &P, body: impl FnOnce(&mut P) -> R) -> R {
    let mut caller = peer.clone();
    peer.on_thread(|| body(&mut caller))
}

/// The results of several callers that ran at once.
pub(crate) struct Calls<R> {
    pub(crate) results: Vec<R>,
    /// The time from the first start to the last end.
    pub(crate) wall: Duration,
    /// The CPU time of the process in that time.
    pub(crate) cpu: Duration,
}

/// Runs `timed` on `threads` threads at once, each with the value that `prepare` made on that
/// thread.
pub(crate) fn in_parallel<P: Peer, S, R: Send>(
    peer: &P,
    threads: usize,
    prepare: impl Fn(&mut P, usize) -> S + Sync,
    timed: impl Fn(&mut P, S) -> R + Sync,
) -> Calls<R> {
    let gate = Barrier::new(threads + 1);
    let gate = &gate;
    let prepare = &prepare;
    let timed = &timed;
    thread::scope(|scope| {
        let start = |index| {
            let context = peer.clone();
            let caller = move || {
                let mut caller = context.clone();
                context.on_thread(move || {
                    let state = prepare(&mut caller, index);
                    gate.wait();
                    gate.wait();
                    let start = Instant::now();
                    let result = timed(&mut caller, state);
                    let end = Instant::now();
                    gate.wait();
                    (start, end, result)
                })
            };
            scope.spawn(caller)
        };
        let callers: Vec<_> = (0..threads).map(start).collect();
        // The three waits mark that all threads are ready, that all start, and that all are done
        // before any cleans up.
        gate.wait();
        let before = process::cpu();
        gate.wait();
        gate.wait();
        let cpu = process::cpu() - before;
        let ended = callers.into_iter().map(|caller| caller.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let ended: Vec<_> = ended.collect();
        let first = ended.iter().map(|(start, ..)| *start).min();
        let last = ended.iter().map(|(_, end, _)| *end).max();
        let wall = last.zip(first).map_or(Duration::ZERO, |(last, first)| last - first);
        Calls { results: ended.into_iter().map(|(.., result)| result).collect(), wall, cpu }
    })
}

/// Returns the number of items of `all` for the thread `index` of `threads`, and the number before
/// them.
pub(crate) fn share(all: usize, index: usize, threads: usize) -> (usize, usize) {
    let before = all * index / threads;
    (all * (index + 1) / threads - before, before)
}

/// Returns room for `n` values and touches its memory, so that filling it causes no page faults.
pub(crate) fn room<T>(n: usize) -> Vec<Option<T>> {
    let mut room: Vec<Option<T>> = Vec::with_capacity(n);
    room.resize_with(n, || None);
    room
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_complete_and_consecutive() {
        for threads in 1..6 {
            let shares: Vec<_> = (0..threads).map(|index| share(1_000, index, threads)).collect();
            assert_eq!(shares.iter().map(|(count, _)| count).sum::<usize>(), 1_000);
            assert!(shares.windows(2).all(|pair| pair[0].1 + pair[0].0 == pair[1].1));
        }
    }
}
