//! A bound of N: never more than N, and never fewer than N while a caller is turned away.
//!
//! Each thread records when each of its timeouts has surely been pending (from after the call until
//! before its `cancel`, or until its deadline, before which it does not run) and when it may have
//! been (from before the call until after the end). The records are put side by side afterwards.

use crate::support::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, WheelKind};

const N: usize = 1_000;
const THREADS: usize = 16;
const EACH: usize = if cfg!(debug_assertions) { 5_000 } else { 50_000 };

/// From, until.
type Span = (Instant, Instant);

#[derive(Default)]
struct Records {
    surely: Vec<Span>,
    perhaps: Vec<Span>,
    /// Called when; runs, or has run, when.
    expired: Vec<(Instant, Arc<OnceLock<Instant>>)>,
    turned_away: Vec<Span>,
}

/// One that is still pending: its handle, before and after the call, when it ran.
struct Pending {
    timeout: Timeout,
    called: Instant,
    accepted: Instant,
    ran: Arc<OnceLock<Instant>>,
}

impl Records {
    fn schedule(&mut self, timer: &Timer, random: &mut Rng, pending: &mut Vec<Pending>) {
        let delay = if random.u64(..3) == 0 { random.duration(3 * MILLI) } else { HOUR };
        let ran = Arc::new(OnceLock::new());
        let own = ran.clone();
        let called = Instant::now();
        match timer.new_timeout(delay, move |_| own.set(Instant::now()).unwrap()) {
            Ok(timeout) => pending.push(Pending { timeout, called, accepted: Instant::now(), ran }),
            Err(_) => self.turned_away.push((called, Instant::now())),
        }
    }

    fn cancel(&mut self, Pending { timeout, called, accepted, ran }: Pending) {
        let before = Instant::now();
        if timeout.cancel() {
            self.surely.push((accepted, before));
            self.perhaps.push((called, Instant::now()));
        } else {
            self.surely.push((accepted, timeout.deadline()));
            self.expired.push((called, ran));
        }
    }

    fn append(&mut self, mut other: Records) {
        self.surely.append(&mut other.surely);
        self.perhaps.append(&mut other.perhaps);
        self.expired.append(&mut other.expired);
        self.turned_away.append(&mut other.turned_away);
    }

    /// Waits for the runs of what has expired: its permit was free by then, and not before it
    /// counted as expired.
    fn await_runs(&mut self) {
        for (called, ran) in self.expired.drain(..) {
            let begun = Instant::now();
            while ran.get().is_none() {
                assert!(begun.elapsed() < LONG, "expired and never run");
                watch_for(MILLI);
            }
            self.perhaps.push((called, *ran.get().unwrap()));
        }
    }

    /// The most that were surely pending at one time.
    fn most(&self) -> usize {
        let mut events = Vec::new();
        for (from, until) in self.surely.iter().filter(|(from, until)| from < until) {
            events.push((*from, 1));
            events.push((*until, -1));
        }
        // At one and the same instant the ends come first.
        events.sort();
        let mut pending = 0;
        events
            .iter()
            .map(|(_, change)| {
                pending += change;
                pending
            })
            .max()
            .unwrap_or(0) as usize
    }

    /// The fewest that may have been pending when a caller was turned away.
    fn fewest_at_refusal(&self) -> Option<usize> {
        let mut from: Vec<Instant> = self.perhaps.iter().map(|span| span.0).collect();
        let mut until: Vec<Instant> = self.perhaps.iter().map(|span| span.1).collect();
        from.sort();
        until.sort();
        let perhaps = |(called, refused): &Span| {
            from.partition_point(|begun| begun <= refused) - until.partition_point(|ended| ended < called)
        };
        self.turned_away.iter().map(perhaps).min()
    }
}

/// One thread: schedules more than its share of the permits, cancels as it likes, and at the end
/// all of its own.
fn traffic(timer: &Timer, seed: u64, together: &Barrier) -> Records {
    let (mut records, mut random, mut pending) = (Records::default(), Rng::with_seed(seed), Vec::new());
    for n in 0..EACH {
        if n % 250 == 0 {
            // None is done before the others have begun.
            together.wait();
        }
        if pending.len() > 4 * N / THREADS || !pending.is_empty() && random.u64(..3) == 0 {
            let at = random.usize(..pending.len());
            records.cancel(pending.swap_remove(at));
        } else {
            records.schedule(timer, &mut random, &mut pending);
        }
        let seen = timer.pending_timeouts();
        assert!(seen <= N, "{seen} pending");
    }
    pending.into_iter().for_each(|one| records.cancel(one));
    records
}

fn bounded(wheel: WheelKind) -> Timer {
    Timer::builder().wheel(wheel).max_pending_timeouts(N).build().unwrap()
}

#[test]
fn never_more_than_the_bound_and_no_permit_is_lost() {
    for wheel in [WHEELS[0], WHEELS[3]] {
        let timer = bounded(wheel);
        let together = Barrier::new(THREADS);
        let records = std::thread::scope(|scope| {
            let (timer, together) = (&timer, &together);
            let threads: Vec<_> =
                (0..THREADS).map(|n| scope.spawn(move || traffic(timer, n as u64, together))).collect();
            let mut all = Records::default();
            threads.into_iter().for_each(|thread| all.append(thread.join().unwrap()));
            all.await_runs();
            all
        });
        let (most, fewest, refused) = (records.most(), records.fewest_at_refusal(), records.turned_away.len());
        println!("{wheel:?}: {} accepted, most {most}, {refused} turned away at {fewest:?}", records.surely.len());
        assert!(most <= N && most > N / 2, "{most} were pending");
        assert!(refused > 0 && fewest >= Some(N), "turned away with {fewest:?} pending");
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.rejected), (0, refused as u64));
        assert_eq!((stats.scheduled, stats.expired + stats.cancelled), (records.surely.len() as u64, stats.scheduled));
        all_permits(&timer);
    }
}

/// N are accepted and no more, again and again, when none is cancelled meanwhile.
fn all_permits(timer: &Timer) {
    let over = 50;
    for _ in 0..5 {
        let rejected = timer.stats().rejected;
        let taken = AtomicUsize::new(0);
        let held: Vec<Timeout> = std::thread::scope(|scope| {
            let one = || {
                let tries = (0..N / THREADS + over).filter_map(|_| timer.new_timeout(HOUR, |_| {}).ok());
                let held: Vec<Timeout> = tries.collect();
                taken.fetch_add(held.len(), SeqCst);
                held
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!((taken.load(SeqCst), timer.pending_timeouts()), (N, N));
        let tries = THREADS * (N / THREADS + over);
        assert_eq!(timer.stats().rejected - rejected, (tries - N) as u64);
        // Every permit of one that was cancelled, or moved and expired, is there again.
        let mut held = held;
        let expiring = held.split_off(N / 2);
        assert!(held.iter().all(|timeout| timeout.cancel()));
        assert!(expiring.iter().all(|timeout| timeout.reset(MILLI)));
        let begun = Instant::now();
        while timer.pending_timeouts() > 0 {
            assert!(begun.elapsed() < LONG);
            watch_for(MILLI);
        }
    }
}

// B04: the count fell only after the run, so a task at the bound could not schedule itself again.
#[test]
fn a_task_rearms_at_a_bound_of_one() {
    fn again(timer: &Timer, left: u32) {
        let inner = timer.clone();
        let next = move |_: &Timeout| {
            if left > 0 {
                again(&inner, left - 1);
            }
        };
        accepted(timer.new_timeout(MILLI, next));
    }
    let (timer, mut driver) = Timer::builder().max_pending_timeouts(1).build_manual().unwrap();
    again(&timer, 99);
    assert_eq!(driver.advance(SECOND), 100);
    assert_eq!(timer.stats().rejected, 0);
}

#[test]
fn tasks_of_any_thread_rearm_at_the_bound() {
    struct Chain {
        timer: Timer,
        left: AtomicUsize,
        _done: std::sync::mpsc::Sender<()>,
    }
    fn again(chain: Arc<Chain>, delay: Duration) {
        let timer = chain.timer.clone();
        let next = move |_: &Timeout| {
            if chain.left.fetch_sub(1, SeqCst) > 16 {
                again(chain, delay);
            }
        };
        accepted(timer.new_timeout(delay, next));
    }
    let pool = timer_executor::ThreadPoolExecutor::new(2);
    let builder = Timer::builder().max_pending_timeouts(16).tick_duration(20 * MICRO).executor(pool);
    let timer = builder.build().unwrap();
    let (done, ended) = channel();
    let chain = Arc::new(Chain { timer: timer.clone(), left: AtomicUsize::new(2_000), _done: done });
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let chain = chain.clone();
            scope.spawn(move || again(chain, thread * 5 * MICRO));
        }
    });
    drop(chain);
    all_gone(&ended);
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.rejected, stats.task_panics), (0, 0, 0));
    assert!(stats.expired >= 2_000);
}
