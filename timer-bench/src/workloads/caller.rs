//! How callers are run and timed, and the job that most timers get.

use crate::peers::{Job, Peer};
use crate::process;
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A job that counts. It is never freed, so that a plain pointer to it is enough.
#[derive(Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    /// A new one, for as long as the process lives.
    pub(super) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    /// How often the job ran.
    pub(super) fn count(&self) -> u64 {
        // ORDERING: Relaxed, a count and nothing that hangs on it.
        self.0.load(Ordering::Relaxed)
    }
}

impl Job for &'static Counter {
    #[inline]
    fn run(self) {
        // ORDERING: Relaxed, as above.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs `body` on this thread, in the context that the peer's callers need.
pub(super) fn here<P: Peer, R>(peer: &P, body: impl FnOnce(&mut P) -> R) -> R {
    let mut caller = peer.clone();
    peer.on_thread(|| body(&mut caller))
}

/// What came of several callers at once.
pub(super) struct Run<R> {
    pub(super) results: Vec<R>,
    /// From the first start to the last end.
    pub(super) wall: Duration,
    /// CPU time of the whole process meanwhile.
    pub(super) cpu: Duration,
}

/// Runs `timed` on so many threads at once, each with what `prepare` made there for it.
pub(super) fn in_parallel<P: Peer, S, R: Send>(
    peer: &P,
    threads: usize,
    prepare: impl Fn(&mut P, usize) -> S + Sync,
    timed: impl Fn(&mut P, S) -> R + Sync,
) -> Run<R> {
    let gate = Barrier::new(threads + 1);
    let (gate, prepare, timed) = (&gate, &prepare, &timed);
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
        // All are ready; then all start; then all are done, and none has begun to tidy up.
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
        Run { results: ended.into_iter().map(|(.., result)| result).collect(), wall, cpu }
    })
}

/// How many of `all` the thread `index` of `threads` does, and how many those before it.
pub(super) fn share(all: usize, index: usize, threads: usize) -> (usize, usize) {
    let before = all * index / threads;
    (all * (index + 1) / threads - before, before)
}

/// Room for `n` values, its memory touched, so that filling it costs no page faults.
pub(super) fn room<T>(n: usize) -> Vec<Option<T>> {
    let mut room: Vec<Option<T>> = Vec::with_capacity(n);
    room.resize_with(n, || None);
    room
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_complete_and_follow_each_other() {
        for threads in 1..6 {
            let shares: Vec<_> = (0..threads).map(|index| share(1_000, index, threads)).collect();
            assert_eq!(shares.iter().map(|(count, _)| count).sum::<usize>(), 1_000);
            assert!(shares.windows(2).all(|pair| pair[0].1 + pair[0].0 == pair[1].1));
        }
    }
}
