//! The bound of N is exact. At most N timeouts are pending, and at least N are when a caller is
//! rejected.
//!
//! Each thread records when each of its timeouts was surely pending: from after the call until
//! before its `cancel`, or until its deadline, before which it does not run. It also records when
//! the timeout may have been pending, from before the call until after its end. The test compares
//! the records afterwards.

use crate::support::*;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, OnceLock};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer, WheelKind};

const N: usize = 1_000;
const THREADS: usize = 16;
const EACH: usize = if cfg!(debug_assertions) { 5_000 } else { 50_000 };

/// The start and the end of a time span.
type Span = (Instant, Instant);

#[derive(Default)]
struct Records {
    surely: Vec<Span>,
    perhaps: Vec<Span>,
    /// The instant of the call, and the instant of the run once it has happened.
    expired: Vec<(Instant, Arc<OnceLock<Instant>>)>,
    turned_away: Vec<Span>,
}

/// A timeout that is still pending, with the instants before and after the call.
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

    /// Waits for the runs of expired timeouts. A permit is free before the run, but not before its
    /// timeout counts as expired.
    fn await_runs(&mut self) {
        for (called, ran) in self.expired.drain(..) {
            let begun = Instant::now();
            while ran.get().is_none() {
                assert!(begun.elapsed() < MAX_WAIT, "an expired timeout never ran");
                watch_for(MILLI);
            }
            self.perhaps.push((called, *ran.get().unwrap()));
        }
    }

    /// Returns the largest number of timeouts that were surely pending at one time.
    fn most(&self) -> usize {
        let mut events = Vec::new();
        for (from, until) in self.surely.iter().filter(|(from, until)| from < until) {
            events.push((*from, 1));
            events.push((*until, -1));
        }
        // Ends sort before begins at the same instant.
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

    /// Returns the smallest number of timeouts that may have been pending when a caller was
    /// rejected.
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

/// Runs one thread, which schedules more than its share of the permits, cancels at random, and
/// finally cancels all that remain.
fn traffic(timer: &Timer, seed: u64, together: &Barrier) -> Records {
    let (mut records, mut random, mut pending) = (Records::default(), Rng::with_seed(seed), Vec::new());
    for n in 0..EACH {
        if n % 250 == 0 {
            // No thread ends before the others have begun.
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
fn the_bound_is_exact_and_no_permit_is_lost() {
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
        println!("{wheel:?}: {} accepted, most {most}, {refused} rejected at {fewest:?}", records.surely.len());
        assert!(most <= N && most > N / 2, "{most} were pending");
        assert!(refused > 0 && fewest >= Some(N), "rejected with {fewest:?} pending");
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.rejected), (0, refused as u64));
        assert_eq!((stats.scheduled, stats.expired + stats.cancelled), (records.surely.len() as u64, stats.scheduled));
        all_permits(&timer);
    }
}

/// Checks repeatedly that exactly N timeouts are accepted if none is cancelled in between.
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
        // Cancelled and expired timeouts return their permits.
        let mut held = held;
        let expiring = held.split_off(N / 2);
        assert!(held.iter().all(|timeout| timeout.cancel()));
        assert!(expiring.iter().all(|timeout| timeout.reset(MILLI)));
        let begun = Instant::now();
        while timer.pending_timeouts() > 0 {
            assert!(begun.elapsed() < MAX_WAIT);
            watch_for(MILLI);
        }
    }
}

// Guards against B04, in which the count fell only after the run, so a task at the bound could not
// schedule itself again.
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
