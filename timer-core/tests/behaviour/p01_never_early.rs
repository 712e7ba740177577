//! Promise 1, never early. A task starts at or after the instant of the call plus the delay, for
//! every tick and phase.

use crate::support::*;
use std::sync::mpsc::{Sender, channel};
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
    let delay = delay(random, tick);
    let verdicts = verdicts.clone();
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

// Guards against tokio-rs/tokio-timer#14, which needed a tick that is no whole millisecond or a
// start within a tick.
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
fn virtual_time_that_runs_is_never_early() {
    let mut random = Rng::with_seed(6);
    for wheel in WHEELS {
        let (timer, mut driver) = manual(wheel);
        let (verdicts, received) = channel();
        // Time has moved on, stood still and moved by hand before it runs.
        for by in [Duration::ZERO, NANO, HOUR] {
            driver.resume();
            for _ in 0..20 {
                let called = Instant::now();
                let delay = random.duration(2 * MILLI);
                let verdicts = verdicts.clone();
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
            let delay = MILLI + random.duration(4 * MILLI);
            let ran = ran.clone();
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
        let mut runs = 0;
        let period = 10 * MICRO;
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
