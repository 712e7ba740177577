//! Promise 1, never early. A task starts at or after the instant of the call plus the delay, for
//! every tick and phase.

use crate::support::*;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use timer_core::{MissedTickBehavior, Timeout, Timer, WheelKind};

const TICKS: [Duration; 5] =
    [MICRO, Duration::from_micros(100), MILLI, Duration::from_micros(1_500), Duration::from_millis(7)];

const TWO_WHEELS: [WheelKind; 2] = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 8 }];

/// The time by which a task ran too early, if it did.
type Earliness = Option<Duration>;

/// Draws a delay of zero, less than a tick, on the edge of a tick, or any other.
fn delay(random: &mut Rng, tick: Duration) -> Duration {
    let ticks = random.u32(1..6);
    match random.u64(..6) {
        0 => Duration::ZERO,
        1 => NANO,
        2 => random.duration(tick),
        3 => tick * ticks,
        4 => (tick * ticks).saturating_sub(NANO),
        _ => random.duration(20 * MILLI),
    }
}

/// Schedules by either call, at a random phase of the tick.
fn schedule(timer: &Timer, random: &mut Rng, tick: Duration, verdicts: &Sender<Earliness>) {
    spin(random.duration(tick.min(200 * MICRO)));
    let (delay, verdicts) = (delay(random, tick), verdicts.clone());
    let called = Instant::now();
    let judge = move |_: &_| {
        let _ = verdicts.send((called + delay).checked_duration_since(Instant::now()));
    };
    if random.bool() {
        accepted(timer.new_timeout(delay, judge));
    } else {
        accepted(timer.new_timeout_at(called + delay, judge));
    }
}

fn is_in_time(early: Earliness) -> bool {
    early.is_none_or(|early| early.is_zero())
}

// Guards against B10 and B46, which needed a tick that is no whole millisecond or a start within a
// tick.
#[test]
fn the_worker_is_never_early_at_any_tick_and_phase() {
    let mut random = Rng::with_seed(1);
    for tick in TICKS {
        for wheel in TWO_WHEELS {
            let timer = Timer::builder().tick_duration(tick).wheel(wheel).build().unwrap();
            let (verdicts, received) = channel();
            (0..120).for_each(|_| schedule(&timer, &mut random, tick, &verdicts));
            for _ in 0..120 {
                let early = next(&received);
                assert!(is_in_time(early), "{early:?} early at a tick of {tick:?}, {wheel:?}");
            }
        }
    }
}

#[test]
fn a_driver_is_never_early_however_often_it_turns() {
    let mut random = Rng::with_seed(2);
    for tick in TICKS {
        for wheel in TWO_WHEELS {
            let (timer, mut driver) = Timer::builder().tick_duration(tick).wheel(wheel).build_driven().unwrap();
            let (verdicts, received) = channel();
            let mut ran = 0;
            for _ in 0..120 {
                schedule(&timer, &mut random, tick, &verdicts);
                ran += driver.turn().expired;
            }
            while ran < 120 {
                ran += driver.turn().expired;
            }
            for early in received.try_iter().take(120) {
                assert!(is_in_time(early), "{early:?} early at a tick of {tick:?}, {wheel:?}");
            }
        }
    }
}

/// The deadline of the last `reset` that returned `true` counts, even if the task races it.
#[test]
fn a_moved_timeout_is_never_early() {
    let mut random = Rng::with_seed(3);
    for tick in TICKS {
        let timer = Timer::builder().tick_duration(tick).build().unwrap();
        for _ in 0..20 {
            let (ran, received) = channel();
            let delay = random.duration(3 * MILLI);
            let mut due = Instant::now() + delay;
            let timeout = accepted(timer.new_timeout(delay, move |_| ran.send(Instant::now()).unwrap()));
            for _ in 0..random.u64(..6) {
                spin(random.duration(MILLI));
                let (called, delay) = (Instant::now(), random.duration(3 * MILLI));
                if timeout.reset(delay) {
                    due = called + delay;
                }
            }
            let ran = next(&received);
            assert!(ran >= due, "{:?} early at a tick of {tick:?}", due - ran);
        }
    }
}

#[test]
fn no_run_of_a_periodic_task_is_early() {
    for tick in TICKS {
        let timer = Timer::builder().tick_duration(tick).build().unwrap();
        let (early, received) = channel();
        let run = move |me: &timer_core::Timeout| {
            let _ = early.send(me.deadline().checked_duration_since(Instant::now()));
        };
        let called = Instant::now();
        let period = Duration::from_micros(700);
        let rate = accepted(timer.schedule_at_fixed_rate(MILLI, period, run));
        for run in 0..25 {
            assert!(is_in_time(next(&received)), "early at a tick of {tick:?}");
            assert!(called.elapsed() >= MILLI + run * period, "more runs than periods at a tick of {tick:?}");
        }
        assert!(rate.cancel());
    }
}

#[test]
fn virtual_time_is_exact_to_the_nanosecond() {
    let mut random = Rng::with_seed(4);
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        for _ in 0..500 {
            driver.advance(random.duration(10 * MILLI));
            let magnitude = random.u64(..40);
            let delay = NANO + Duration::from_nanos(random.u64(..(1 << magnitude)));
            let timeout = accepted(timer.new_timeout(delay, |_| {}));
            assert_eq!(timeout.deadline(), driver.now() + delay);
            assert_eq!(driver.advance(delay - NANO), 0, "{delay:?} early, {wheel:?}");
            assert_eq!(driver.advance(NANO), 1, "{delay:?} late, {wheel:?}");
        }
    }
}

#[test]
fn virtual_time_that_runs_is_never_early() {
    let mut random = Rng::with_seed(6);
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let (verdicts, received) = channel();
        // Time has moved on, stood still and moved by hand before it runs.
        for by in [Duration::ZERO, NANO, HOUR] {
            driver.resume();
            for _ in 0..20 {
                let (called, delay, verdicts) = (Instant::now(), random.duration(2 * MILLI), verdicts.clone());
                let judge = move |_: &_| {
                    let _ = verdicts.send((called + delay).checked_duration_since(Instant::now()));
                };
                let timeout = accepted(timer.new_timeout(HOUR, judge));
                spin(random.duration(200 * MICRO));
                assert!(timeout.reset(delay));
                while driver.advance(Duration::ZERO) == 0 {}
                assert!(is_in_time(next(&received)), "{wheel:?}");
            }
            driver.pause();
            let present = driver.now();
            spin(MICRO);
            assert_eq!(timer.now(), present);
            driver.advance(by);
            assert_eq!(timer.now(), present + by);
        }
    }
}

#[test]
fn a_late_call_keeps_the_order_of_virtual_time_that_runs() {
    let mut random = Rng::with_seed(7);
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        driver.resume();
        let (ran, received) = channel();
        for _ in 0..100 {
            let (delay, ran) = (MILLI + random.duration(4 * MILLI), ran.clone());
            accepted(timer.new_timeout(delay, move |me: &Timeout| ran.send(me.deadline()).unwrap()));
        }
        spin(6 * MILLI);
        assert_eq!(driver.advance(Duration::ZERO), 100);
        let order: Vec<Instant> = received.try_iter().collect();
        assert!(order.is_sorted(), "{wheel:?}");
    }
}

#[test]
fn an_advance_of_a_running_time_ends_although_runs_take_longer_than_their_period() {
    for wheel in WHEELS {
        let (timer, mut driver) =
            Timer::builder().wheel(wheel).missed_runs(MissedTickBehavior::Burst).build_manual().expect("legal");
        driver.resume();
        let (mut runs, period) = (0, 10 * MICRO);
        let task = move |me: &Timeout| {
            spin(2 * period);
            runs += 1;
            // Otherwise a call that does not end would hang the test.
            if runs == 1_000 {
                me.cancel();
            }
        };
        let _rate = timer.schedule_at_fixed_rate(Duration::ZERO, period, task).expect("accepted");
        assert!(driver.advance(Duration::ZERO) < 100, "{wheel:?}");
    }
}

/// Returns a task that records by how much it ran too early.
fn judge(due: Instant, early: &Arc<Mutex<Vec<Duration>>>) -> impl FnOnce(&Timeout) + Send + 'static {
    let early = early.clone();
    move |_| {
        if let Some(by) = due.checked_duration_since(Instant::now()).filter(|by| !by.is_zero()) {
            early.lock().unwrap().push(by);
        }
    }
}

// Guards against B12, in which a callback scheduled into the bucket that was being run, and the new
// timeout ran at once.
#[test]
fn timeouts_of_a_task_wait_for_their_deadlines() {
    for slots in [1, 8, 64] {
        for kind in [WheelKind::Hashed { ticks_per_wheel: slots }, WheelKind::Hierarchical] {
            for delay in (0..=2 * slots as u32 + 1).map(|delay| delay * NANO) {
                let (timer, mut driver) = manual(kind);
                driver.advance(5 * NANO);
                let inner = timer.clone();
                accepted(timer.new_timeout(3 * NANO, move |_| drop(accepted(inner.new_timeout(delay, |_| {})))));
                driver.advance(3 * NANO);
                if !delay.is_zero() {
                    assert_eq!(driver.next_expiry(), Some(delay), "{kind:?}");
                    assert_eq!(driver.advance(delay - NANO), 0, "{delay:?} early, {kind:?}");
                    assert_eq!(driver.advance(NANO), 1, "{delay:?} late, {kind:?}");
                }
                assert_eq!(timer.pending_timeouts(), 0);
            }
        }
    }
}

// Guards against B13, in which delays counted from the last handled tick while callbacks ran long.
#[test]
fn a_delay_in_a_slow_task_counts_from_the_call() {
    for tick in [10 * MICRO, MILLI] {
        let timer = Timer::builder().tick_duration(tick).build().unwrap();
        let (early, (done, ended)) = (Arc::default(), channel::<()>());
        for _ in 0..3 {
            let (inner, verdicts, done) = (timer.clone(), Arc::clone(&early), done.clone());
            accepted(timer.new_timeout(MILLI, move |_| {
                for delay in [NANO, MILLI, 2 * MILLI] {
                    spin(2 * MILLI);
                    let (judge, done) = (judge(Instant::now() + delay, &verdicts), done.clone());
                    accepted(inner.new_timeout(delay, move |me| {
                        judge(me);
                        drop(done);
                    }));
                }
            }));
        }
        drop(done);
        all_gone(&ended);
        assert_eq!(*early.lock().unwrap(), [], "tick {tick:?}");
    }
}

// Guards against B14, in which a late worker took several buckets in a row, including timeouts that
// had just been added.
#[test]
fn a_late_turn_runs_nothing_early() {
    for wheel in WHEELS {
        let (timer, mut driver) = Timer::builder().wheel(wheel).tick_duration(50 * MICRO).build_driven().unwrap();
        let early = Arc::default();
        let mut random = Rng::with_seed(14);
        for _ in 0..30 {
            for _ in 0..3 {
                spin(random.duration(200 * MICRO));
                let delay = random.duration(300 * MICRO);
                accepted(timer.new_timeout(delay, judge(Instant::now() + delay, &early)));
            }
            driver.turn();
        }
        while timer.pending_timeouts() > 0 {
            driver.turn();
        }
        assert_eq!(*early.lock().unwrap(), [], "{wheel:?}");
    }
}

// Guards against B16, in which each new start came from a stale tick, so each was later than the
// last.
#[test]
fn a_chain_of_ten_thousand_does_not_drift() {
    fn link(timer: &Timer, left: u32) {
        let inner = timer.clone();
        let next = move |_: &Timeout| {
            if left > 1 {
                link(&inner, left - 1);
            }
        };
        accepted(timer.new_timeout(MILLI + NANO, next));
    }
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        link(&timer, 10_000);
        assert_eq!(driver.advance(10_000 * (MILLI + NANO) - NANO), 9_999, "{wheel:?}");
        assert_eq!(driver.advance(NANO), 1, "{wheel:?}");
    }
}

// Guards against B19 and B86, in which a worker woke half a tick early, found nothing due and was
// not armed again.
#[test]
fn a_worker_that_is_woken_early_sleeps_again() {
    let timer = Timer::builder().tick_duration(100 * MICRO).build().unwrap();
    let (early, (done, ended)) = (Arc::default(), channel());
    for _ in 0..20 {
        let delay = 3 * MILLI;
        let (judge, done) = (judge(Instant::now() + delay, &early), done.clone());
        accepted(timer.new_timeout(delay, move |me| {
            judge(me);
            done.send(()).unwrap();
        }));
        // Each is earlier than the deadline that the worker sleeps for, so the worker wakes and
        // finds nothing.
        for micros in (1..=20).rev() {
            accepted(timer.new_timeout(micros * 100 * MICRO, |_| {})).cancel();
        }
        next(&ended);
    }
    assert_eq!(*early.lock().unwrap(), []);
}

// Guards against B19. A driver that is turned again and again before the deadline still reports it.
#[test]
fn a_driver_turned_too_often_stays_armed() {
    let (timer, mut driver) = Timer::builder().tick_duration(Duration::from_micros(1_500)).build_driven().unwrap();
    let timeout = accepted(timer.new_timeout(4 * MILLI, |_| {}));
    loop {
        let now = Instant::now();
        let turn = driver.turn();
        if turn.expired == 1 {
            assert!(Instant::now() >= timeout.deadline());
            break;
        }
        let next = turn.next.expect("something is pending");
        assert!(next >= timeout.deadline() || next <= Instant::now(), "sent to sleep too early");
        assert!(now < timeout.deadline() + MAX_WAIT, "the timeout was never due");
    }
    assert_eq!(driver.turn().next, None);
}
