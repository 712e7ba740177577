//! The threads of a storm. Nothing joins them, so that a thread whose call never returns ends with
//! the process.

use super::super::histogram::{Counts, Histogram};
use super::book::{Book, CANCELLED, Mark, millisecond, sum_before};
use super::tape::{Tape, count, time_of_reading};
use crate::peers::storming::Storming;
use crate::random::SplitMix64;
use crate::scheduling::thread_cpu;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

const DELAYS: std::ops::Range<Duration> = Duration::from_millis(1)..Duration::from_millis(3);
/// A thread pauses after this many pairs, if the plan has a pause.
const BURST: u64 = 100;
/// One pair in this many has its CPU time measured, because a measurement takes longer than the
/// pair.
const SAMPLED: u64 = 64;
/// The CPU time of a call that took more than this many nanoseconds is also measured.
const LONG_CALL: u64 = 50_000;
/// In an overload, one timeout in this many records its lateness. Reading the clock and recording
/// the lateness take longer than the timer needs for the rest of a run.
const TIMED: u64 = 8;
/// A load in which fewer percent of the timeouts are cancelled at once is an overload.
const OVERLOAD_BELOW: u64 = 90;
/// If dropping a handle cancels the timeout, the handle is dropped once a timeout has run whose
/// deadline is this many nanoseconds later.
const SURELY_RUN: u64 = 50_000_000;

/// The rule by which the CPU time of a call is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cpu {
    Read,
    ReadIfLong,
}

/// The shape of a storm.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) threads: usize,
    /// The percentage of the timeouts that are cancelled at once.
    pub(super) cancelled: u64,
    pub(super) pause: Duration,
    /// The number of timeouts whose end is checked one by one. The callers stop after that many.
    /// With 0 none is checked.
    pub(super) each_has_a_place: usize,
}

/// The state that all threads share.
struct Common {
    book: &'static Book,
    abort: AtomicBool,
    next_place: AtomicU32,
    pause: Duration,
    cancelled: u64,
}

pub(super) struct Callers {
    common: Arc<Common>,
    tapes: Vec<Arc<Tape>>,
    gate: Arc<Barrier>,
}

impl Callers {
    /// Starts the threads, which wait for [`Self::go`].
    pub(super) fn ready<P: Storming>(peer: &P, book: &'static Book, plan: &Plan) -> Self {
        let (abort, next_place) = (AtomicBool::new(false), AtomicU32::new(0));
        let common = Arc::new(Common { book, abort, next_place, pause: plan.pause, cancelled: plan.cancelled });
        let gate = Arc::new(Barrier::new(plan.threads + 1));
        let reading = time_of_reading();
        let start = |index: usize| {
            let tape = Arc::new(Tape::new(book.span(), reading));
            let (peer, common, gate, shared) = (peer.clone(), common.clone(), gate.clone(), tape.clone());
            thread::spawn(move || {
                let context = peer.clone();
                context.on_thread(|| {
                    let mut caller = Caller { peer, common: &common, tape: &shared, held: VecDeque::new() };
                    // The first allocation prepares the allocator for this thread.
                    drop(vec![1_u8; 48]);
                    gate.wait();
                    caller.storm(index);
                });
                // ORDERING: Release, pairs with the Acquire in `have_ended_within`, after which the
                // tape is complete.
                shared.has_ended.store(true, Ordering::Release);
            });
            tape
        };
        let tapes = (0..plan.threads).map(start).collect();
        Self { common, tapes, gate }
    }

    /// Releases the threads.
    pub(super) fn go(&self) {
        self.gate.wait();
    }

    /// Makes the threads return before their next pair.
    pub(super) fn abort(&self) {
        // ORDERING: Relaxed, because the flag guards no other data.
        self.common.abort.store(true, Ordering::Relaxed);
    }

    /// Waits for at most `limit` and returns `true` if all threads have ended.
    pub(super) fn have_ended_within(&self, limit: Duration) -> bool {
        let begin = Instant::now();
        // ORDERING: Acquire, pairs with the Release at the end of each thread.
        while !self.tapes.iter().all(|tape| tape.has_ended.load(Ordering::Acquire)) {
            if begin.elapsed() > limit {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn sum(&self, counter: impl Fn(&Tape) -> &AtomicU64) -> u64 {
        // ORDERING: Relaxed, because these are counts. They are exact once the threads have ended.
        self.tapes.iter().map(|tape| counter(tape).load(Ordering::Relaxed)).sum()
    }

    pub(super) fn pairs(&self) -> u64 {
        self.sum(|tape| &tape.pairs)
    }

    pub(super) fn ran(&self) -> u64 {
        self.common.book.ran()
    }

    /// Returns the wall times of all calls, including the calls that have not returned yet.
    pub(super) fn calls(&self) -> Counts {
        let mut calls = Histogram::sum(self.tapes.iter().map(|tape| &tape.calls));
        let now = self.common.book.now();
        for tape in &self.tapes {
            // ORDERING: Relaxed, because the reading may be slightly stale.
            match tape.calling_since.load(Ordering::Relaxed) {
                0 => {}
                since => calls.add(now.saturating_sub(since)),
            }
        }
        calls
    }

    /// Returns the CPU times of the measured calls.
    pub(super) fn cpu_of_calls(&self) -> Counts {
        Histogram::sum(self.tapes.iter().map(|tape| &tape.cpu))
    }

    /// Returns the number of kept timeouts that are due by now and have not run.
    pub(super) fn overdue(&self) -> u64 {
        let now = (self.common.book.now() / 1_000_000) as usize;
        // `kept` is read first, so a timeout that runs between the two readings counts as run.
        let kept: u64 = self.tapes.iter().map(|tape| sum_before(&tape.kept_by_due, now)).sum();
        kept.saturating_sub(self.common.book.ran_before(now))
    }

    /// Returns the difference between the number of accepted timeouts and the number that ran or
    /// were cancelled, which is 0 if each ended in exactly one way. Returns `None` if none was
    /// accepted or if the timer does not report whether a cancel succeeded. The threads and the
    /// timer must have stopped. Waits for at most `limit` for runs in progress.
    pub(super) fn unaccounted(&self, limit: Duration) -> Option<u64> {
        let begin = Instant::now();
        if self.sum(|tape| &tape.untold) > 0 || self.sum(|tape| &tape.accepted) == 0 {
            return None;
        }
        let (accepted, cancelled) = (self.sum(|tape| &tape.accepted), self.sum(|tape| &tape.cancelled));
        loop {
            let unaccounted = accepted.abs_diff(cancelled + self.ran());
            if unaccounted == 0 || begin.elapsed() > limit {
                return Some(unaccounted);
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Returns a number below 100 for a pair. Each number occurs once in 100 consecutive pairs.
fn spread(pair: u64) -> u64 {
    pair.wrapping_mul(37) % 100
}

/// One thread of the storm.
struct Caller<'a, P: Storming> {
    peer: P,
    common: &'a Common,
    tape: &'a Tape,
    /// Handles whose drop would cancel their timeouts, with the deadlines.
    held: VecDeque<(u64, P::Handle)>,
}

impl<P: Storming> Caller<'_, P> {
    /// Schedules and cancels until the timer is stopped or the storm is aborted.
    fn storm(&mut self, index: usize) {
        let book = self.common.book;
        let mut random = SplitMix64::delays(index << 32);
        // Timeouts to be cancelled share one job, unless each is checked.
        let common_work = P::work(Mark { book, due: 0, place: u32::MAX, is_kept: false, is_timed: false });
        let mut last_cpu = thread_cpu();
        for pair in 0_u64.. {
            // ORDERING: Relaxed, because the flag guards no other data.
            if pair % 8 == 0 && self.common.abort.load(Ordering::Relaxed) {
                break;
            }
            let (delay, is_kept) = (random.duration(&DELAYS), spread(pair) >= self.common.cancelled);
            let is_timed = is_kept && (self.common.cancelled >= OVERLOAD_BELOW || pair % TIMED == 0);
            let (place, mut due) = (self.place(), 0);
            let own = (is_kept || book.has_places()).then(|| {
                due = book.now() + delay.as_nanos() as u64;
                P::work(Mark { book, due, place, is_kept, is_timed })
            });
            let work = own.as_ref().unwrap_or(&common_work);
            let cpu = if pair % SAMPLED == 0 { Cpu::Read } else { Cpu::ReadIfLong };
            let Some(handle) = self.call(cpu, &mut last_cpu, |peer| peer.try_schedule::<Mark>(delay, work)) else {
                break;
            };
            count(&self.tape.accepted);
            if is_kept {
                self.keep(due, handle);
            } else {
                match self.call(cpu, &mut last_cpu, |peer| peer.try_cancel(handle)) {
                    Some(true) => {
                        book.ended(place, CANCELLED);
                        count(&self.tape.cancelled);
                    }
                    Some(false) => {}
                    None => count(&self.tape.untold),
                }
            }
            count(&self.tape.pairs);
            if !self.common.pause.is_zero() && (pair + 1) % BURST == 0 {
                thread::sleep(self.common.pause);
            }
        }
    }

    /// Returns a place for the next timeout, or `u32::MAX` if the book has no places.
    fn place(&self) -> u32 {
        if !self.common.book.has_places() {
            return u32::MAX;
        }
        // ORDERING: Relaxed, because each number only has to be unique.
        let place = self.common.next_place.fetch_add(1, Ordering::Relaxed);
        if self.common.book.is_full(place) {
            // ORDERING: Relaxed, because the flag guards no other data.
            self.common.abort.store(true, Ordering::Relaxed);
        }
        place
    }

    /// Makes one call and records its times.
    #[inline]
    fn call<R>(&mut self, cpu: Cpu, last_cpu: &mut Duration, call: impl FnOnce(&mut P) -> R) -> R {
        let (book, tape) = (self.common.book, self.tape);
        if cpu == Cpu::Read {
            *last_cpu = thread_cpu();
        }
        let begin = book.now();
        // ORDERING: Relaxed, here and below, because the reader wants an approximate value.
        tape.calling_since.store(begin, Ordering::Relaxed);
        let result = call(&mut self.peer);
        tape.calling_since.store(0, Ordering::Relaxed);
        let took = book.now() - begin;
        tape.calls.add_alone(took);
        if cpu == Cpu::Read || took > LONG_CALL {
            let now = thread_cpu();
            let of_call = (now - *last_cpu).saturating_sub(tape.reading);
            tape.cpu.add_alone(of_call.as_nanos() as u64);
            *last_cpu = now;
        }
        result
    }

    fn keep(&mut self, due: u64, handle: P::Handle) {
        let kept = &self.tape.kept_by_due[millisecond(due, &self.tape.kept_by_due)];
        // ORDERING: Relaxed, because this thread is the only writer of the count.
        kept.store(kept.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if P::DROP_CANCELS {
            self.held.push_back((due, handle));
            let newest = self.common.book.newest_due();
            while self.held.front().is_some_and(|(due, _)| due + SURELY_RUN < newest) {
                self.held.pop_front();
            }
        }
    }
}
