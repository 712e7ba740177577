//! Stopping beside callers that find their shards locked. Each of their requests is either accepted
//! or rejected.

use crate::counts::Counts;
use crate::progress::announce;
use crate::support::random::Rng;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use timer_core::{RejectReason, Timeout, Timer, WheelKind};

const FAR: Duration = Duration::from_secs(3_600);

/// Stops `amount` timers, each while one thread schedules and cancels and another keeps its shard
/// busy.
pub(crate) fn stops(seed: u64, amount: usize, wheel: WheelKind) -> Counts {
    let mut random = Rng::with_seed(seed);
    announce(format!("stops: seed {seed:#x}, {wheel:?}"));
    let mut counts = Counts::default();
    (0..amount).for_each(|n| counts += stop_once(n, &mut random, wheel));
    Counts { rounds: 1, ..counts }
}

fn stop_once(n: usize, random: &mut Rng, wheel: WheelKind) -> Counts {
    let timer = Timer::builder().wheel(wheel).build().unwrap();
    let (over, together) = (AtomicBool::new(false), Barrier::new(3));
    let pause = random.usize(..2_000);
    let (handed_back, accepted, cancelled) = std::thread::scope(|scope| {
        let (give, given) = std::sync::mpsc::channel::<Timeout>();
        let (timer, over, together) = (&timer, &over, &together);
        let scheduling = scope.spawn(move || {
            give.send(timer.new_timeout(FAR, |_| ()).unwrap()).unwrap();
            together.wait();
            schedule_until_stopped(timer)
        });
        let busy = scope.spawn(move || {
            let far = given.recv().unwrap();
            together.wait();
            while !over.load(Ordering::Acquire) && far.reset(2 * FAR) {
                far.reset(FAR);
            }
        });
        together.wait();
        (0..pause).for_each(|_| std::hint::spin_loop());
        let handed_back = timer.stop().unwrap().len() as u64;
        over.store(true, Ordering::Release);
        busy.join().unwrap();
        let (accepted, cancelled) = scheduling.join().unwrap();
        (handed_back, accepted + 1, cancelled)
    });
    let stats = timer.stats();
    let seen = (stats.scheduled, stats.cancelled, stats.rejected, stats.pending);
    assert_eq!(seen, (accepted, cancelled + handed_back, 1, 0), "scheduled, cancelled, rejected, pending of timer {n}");
    assert_eq!(handed_back, accepted - cancelled, "handed back of timer {n}");
    Counts::from_stats(&stats, handed_back)
}

/// Schedules until the timer rejects a call, and returns the numbers of accepted and cancelled
/// timeouts.
fn schedule_until_stopped(timer: &Timer) -> (u64, u64) {
    let (mut accepted, mut cancelled) = (0, 0);
    loop {
        match timer.new_timeout(FAR, |_| ()) {
            Ok(timeout) => {
                accepted += 1;
                cancelled += u64::from(accepted % 4 == 0 && timeout.cancel());
            }
            Err(rejected) => {
                assert_eq!(rejected.reason, RejectReason::Stopped);
                return (accepted, cancelled);
            }
        }
    }
}
