//! Races between cancel, reset, expiry and cascades.

use crate::support::executors::KeepingExecutor;
use crate::support::ledger::{End, Ledger, Maker};
use crate::support::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};
use timer_core::{Timeout, Timer};

type Seats = Arc<Mutex<Vec<Timeout>>>;

// Guards against B50, in which unlinking from the cancelling thread corrupted the list, or a node
// that was queued twice made it endless.
#[test]
fn one_of_eight_cancellers_and_expiry_wins() {
    const ROUNDS: usize = 400;
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let ledger = Ledger::new();
    let timeouts: Mutex<Vec<Timeout>> = Mutex::default();
    let wins: Vec<AtomicU32> = (0..ROUNDS).map(|_| AtomicU32::new(0)).collect();
    let ends = std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for (round, wins) in wins.iter().enumerate() {
                    let timeout = loop {
                        match timeouts.lock().unwrap().get(round) {
                            Some(timeout) => break timeout.clone(),
                            None => std::thread::yield_now(),
                        }
                    };
                    wins.fetch_add(u32::from(timeout.cancel()), SeqCst);
                }
            });
        }
        let mut random = Rng::with_seed(50);
        let schedule = (0..ROUNDS).map(|_| {
            let (probe, end) = ledger.probe();
            let timeout = accepted(timer.new_timeout_task(random.duration(60 * MICRO), probe));
            timeouts.lock().unwrap().push(timeout);
            end
        });
        schedule.collect::<Vec<_>>()
    });
    ledger.wait();
    for (end, wins) in ends.iter().zip(&wins) {
        let wins = wins.load(SeqCst);
        assert_eq!(end.counts(), (1 - wins, wins));
    }
    let stats = timer.stats();
    assert_eq!((stats.pending, stats.expired + stats.cancelled), (0, ROUNDS as u64));
}

// Guards against B51, in which a timeout was dropped in the tick in which it was due, or while it
// waited to be run.
#[test]
fn the_clock_decides_a_cancel_around_the_deadline() {
    for wheel in WHEELS {
        for after in [SECOND - NANO, SECOND, SECOND + NANO] {
            let (timer, mut driver) = manual(wheel);
            let timeout = accepted(timer.new_timeout(SECOND, |_| {}));
            let ran = driver.advance(after) == 1;
            assert_eq!((ran, timeout.cancel()), (after >= SECOND, after < SECOND), "{wheel:?}");
            assert_eq!((driver.advance(HOUR), timer.pending_timeouts()), (0, 0));
        }
        for earlier in [NANO, Duration::ZERO] {
            let (timer, mut driver) = manual(wheel);
            let seats = Seats::default();
            let victims = seats.clone();
            accepted(timer.new_timeout(SECOND - earlier, move |_| {
                assert!(victims.lock().unwrap()[0].cancel());
            }));
            seats.lock().unwrap().push(accepted(timer.new_timeout(SECOND, |_| panic!("cancelled"))));
            assert_eq!(driver.advance(SECOND), 1, "{wheel:?}");
            assert_eq!(timer.stats().task_panics, 0);
        }
    }
}

// Guards against B54, in which a timeout was registered with the runtime of the thread that moved
// it.
#[test]
fn any_thread_may_move_a_timeout() {
    let timer = Timer::builder().tick_duration(10 * MICRO).build().unwrap();
    for _ in 0..30 {
        let runs = Arc::new(AtomicU32::new(0));
        let (counted, (alive, gone)) = (runs.clone(), channel::<()>());
        let timeout = accepted(timer.new_timeout(HOUR, move |_| {
            let _alive = alive;
            counted.fetch_add(1, SeqCst);
        }));
        let gate = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let (timeout, gate) = (&timeout, &gate);
                scope.spawn(move || {
                    gate.wait();
                    for round in 0..20 {
                        timeout.reset(if round % 2 == 0 { HOUR } else { thread * MILLI });
                    }
                });
            }
        });
        all_gone(&gone);
        assert_eq!((runs.load(SeqCst), timer.pending_timeouts()), (1, 0));
    }
}

// Guards against B55, in which a reset or removal panicked if the entry was on the expired list, or
// at slot 0 with the clock on it.
#[test]
fn every_call_in_every_state_is_truthful() {
    let pool = KeepingExecutor::default();
    let (timer, mut driver) = Timer::builder().executor(pool.clone()).build_manual().unwrap();
    // Virtual time is at the first tick of a round of every size.
    driver.advance(Duration::from_nanos(1 << 48));
    let once = || accepted(timer.new_timeout(Duration::ZERO, |_| {}));
    let rate = || accepted(timer.schedule_at_fixed_rate(Duration::ZERO, SECOND, |_| {}));
    let state = |timeout: &Timeout| (timeout.is_expired(), timeout.is_cancelled());

    for timeout in [once(), rate()] {
        assert_eq!(state(&timeout), (false, false), "pending, although due");
        assert!(timeout.reset(SECOND) && timeout.reset(Duration::ZERO) && timeout.cancel());
        assert_eq!((state(&timeout), timeout.reset(SECOND), timeout.cancel()), ((false, true), false, false));
    }
    let (fired, cancelled, stopped, moved, later) = (once(), once(), rate(), rate(), once());
    assert_eq!(driver.advance(Duration::ZERO), 5);
    for queued in [&fired, &cancelled, &stopped, &moved, &later] {
        assert_eq!((state(queued), queued.expire_now()), ((false, false), false), "in the queue, hence pending");
    }
    for queued in [&cancelled, &stopped] {
        assert_eq!(
            (queued.cancel(), queued.cancel(), state(queued)),
            (true, false, (false, true)),
            "cancelled in the queue"
        );
    }
    assert!(fired.reset(HOUR) && fired.reset(Duration::ZERO), "moved away and back");
    assert!(moved.reset(HOUR) && moved.reset(2 * SECOND) && later.reset(3 * SECOND));
    assert_eq!(driver.next_expiry(), None, "timeouts in the pool's queue are in no wheel");
    pool.run();
    assert_eq!((state(&fired), fired.reset(SECOND), fired.cancel()), ((true, false), false, false), "expired");
    assert_eq!((state(&stopped), stopped.reset(SECOND)), ((false, true), false));
    assert_eq!((state(&moved), state(&later)), ((false, false), (false, false)), "linked again");
    assert_eq!((driver.advance(2 * SECOND - NANO), driver.advance(NANO)), (0, 1));
    assert!(moved.cancel() && driver.next_expiry() == Some(SECOND));
    assert_eq!(driver.advance(SECOND), 1);
    pool.run();
    assert_eq!(state(&later), (true, false));
    assert_eq!(driver.next_expiry(), None);
    let left = once();
    drop(driver.stop());
    assert_eq!((state(&left), left.reset(SECOND), left.cancel()), ((false, true), false, false), "handed back");
}

// Guards against B57, in which a timeout survived a cancel while it moved between levels. A tick of
// 1 us causes many cascades.
#[test]
fn timeouts_cancelled_while_cascading_do_not_run() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    let ledger = Ledger::new();
    let mut random = Rng::with_seed(57);
    let timeouts: Vec<_> = (0..3_000)
        .map(|_| {
            let (probe, end) = ledger.probe();
            let delay = 64 * MICRO * (1 + random.u32(..64) * random.u32(..12));
            (accepted(timer.new_timeout_task(delay, probe)), end)
        })
        .collect();
    let won: Vec<u32> = std::thread::scope(|scope| {
        let halves: Vec<_> = timeouts
            .chunks(1_500)
            .map(|half| {
                scope.spawn(move || {
                    let cancel = |(timeout, _): &(Timeout, _)| {
                        spin(10 * MICRO);
                        u32::from(timeout.cancel())
                    };
                    half.iter().map(cancel).collect::<Vec<_>>()
                })
            })
            .collect();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    ledger.wait();
    for ((_, end), won) in timeouts.iter().zip(won) {
        assert_eq!(end.counts(), (1 - won, won));
    }
    assert_eq!(timer.pending_timeouts(), 0);
}

// Guards against B60, in which the timer panicked because the user still held the entry.
#[test]
fn handles_may_outlive_their_timer() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let kept: Vec<Timeout> = (0..100).map(|id| accepted(timer.new_timeout(id * MILLI, |_| {}))).collect();
    let clones: Vec<_> = kept.iter().cycle().take(300).cloned().collect();
    let timers = vec![timer.clone(); 5];
    driver.advance(50 * MILLI);
    clones[80..90].iter().for_each(|timeout| assert!(timeout.cancel()));
    drop(driver.stop());
    drop((timer, timers));
    assert_eq!(clones.iter().filter(|timeout| timeout.is_expired()).count(), 3 * 51);
    assert_eq!(clones.iter().filter(|timeout| timeout.is_cancelled()).count(), 3 * 49);
    assert!(format!("{:?}", kept[0]).contains("expired"));
}

// Guards against B65, in which timers were armed again after their deletion.
#[test]
fn ended_timeouts_cannot_be_armed_again() {
    let timer = Timer::new();
    let [cancelled, left] = [(); 2].map(|()| accepted(timer.new_timeout(HOUR, |_| {})));
    assert!(cancelled.cancel() && !cancelled.reset(Duration::ZERO));
    let unprocessed = timer.stop().unwrap();
    assert!(!left.reset(Duration::ZERO) && !left.cancel());
    unprocessed.into_iter().for_each(|left| left.run());
    assert!(!left.reset(Duration::ZERO));
    assert!(timer.new_timeout(Duration::ZERO, |_| {}).is_err());
    assert_eq!((timer.pending_timeouts(), timer.stats().runs), (0, 0));
}

// A timeout that is moved while its old deadline arrives runs once, and `reset` returns `true` only
// if it runs at the new one.
#[test]
fn a_reset_that_races_expiry_reports_the_winner() {
    let timer = Timer::builder().tick_duration(MICRO).build().unwrap();
    for round in 0..300 {
        let (ran, received) = channel();
        let timeout = accepted(timer.new_timeout(30 * MICRO, move |_| ran.send(Instant::now()).unwrap()));
        spin(Duration::from_nanos(200 * (round % 200)));
        let called = Instant::now();
        let moved = timeout.reset(200 * MICRO);
        let ran = next(&received);
        assert!(!moved || ran >= called + 200 * MICRO, "reset returned true, and the task ran at its old deadline");
        assert!(!timeout.reset(Duration::ZERO));
        assert!(received.recv_timeout(MAX_WAIT).is_err());
    }
}

/// Schedules without a pause until the timer rejects a call.
fn schedule_until_stopped(timer: &Timer, ledger: &Maker, rejected: &AtomicU64, seed: u64) -> Vec<Arc<End>> {
    let mut random = Rng::with_seed(seed);
    let mut ends = Vec::new();
    loop {
        let (probe, end) = ledger.probe();
        match timer.new_timeout_task(random.duration(500 * MICRO), probe) {
            Ok(timeout) => {
                if random.u64(..16) == 0 {
                    timeout.cancel();
                }
                ends.push(end);
            }
            Err(_) => {
                rejected.fetch_add(1, SeqCst);
                assert_eq!(end.counts(), (0, 0));
                return ends;
            }
        }
    }
}

// Guards against B41, in which 66 of 16 million accepted timeouts were lost because scheduling
// raced `stop`.
#[test]
fn timeouts_accepted_during_stop_are_not_lost() {
    for round in 0..150 {
        let wheel = WHEELS[round as usize % WHEELS.len()];
        let timer = Timer::builder().wheel(wheel).tick_duration(20 * MICRO).build().unwrap();
        let (ledger, rejected) = (Ledger::new(), AtomicU64::new(0));
        let (ends, handed_back): (Vec<Arc<End>>, usize) = std::thread::scope(|scope| {
            let (timer, rejected) = (&timer, &rejected);
            let callers: Vec<_> = (0..3)
                .map(|caller| (ledger.maker(), round * 3 + caller))
                .map(|(maker, seed)| scope.spawn(move || schedule_until_stopped(timer, &maker, rejected, seed)))
                .collect();
            spin(Rng::with_seed(round).duration(2 * MILLI));
            let left = timer.stop().unwrap();
            assert!(left.iter().all(|left| left.timeout().is_cancelled()));
            let handed_back = left.len();
            drop(left);
            (callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect(), handed_back)
        });
        ledger.wait();
        let (ran, cancelled) =
            ends.iter().map(|end| end.counts()).fold((0, 0), |sum, end| (sum.0 + end.0, sum.1 + end.1));
        assert!(ends.iter().all(|end| end.counts().0 + end.counts().1 == 1));
        let stats = timer.stats();
        assert_eq!((stats.pending, stats.scheduled, stats.rejected), (0, ends.len() as u64, 3), "round {round}");
        assert_eq!((stats.expired, stats.cancelled), (u64::from(ran), u64::from(cancelled)), "round {round}");
        assert!(handed_back as u64 <= stats.cancelled);
    }
}
