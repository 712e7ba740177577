//! The longest time for which a thread holds the lock of a shard, under the two loads with the most
//! work under it. Another thread schedules and cancels a timeout of ten seconds every 50 us.
//!
//! In case 1 a hashed wheel of 262,144 slots is a round late, and all of its 2.9 million timeouts
//! are due. In case 2 a hierarchical wheel moves a crowd of 3 million to finer levels. The tick is
//! 1 us, so that a round and a coarse slot take 262 ms.
//!
//! `us-held-max` is the longest hold in CPU time of the holder, which includes its page faults. A
//! first write to a page can take up to 0.4 ms on a virtual machine. `us-call-max` is the longest
//! call of the other thread in wall time.

use crate::caller::Counter;
use crate::out::{Run, Stop, micros};
use crate::peer::Job;
use crate::random::SplitMix64;
use crate::row::short;
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use timer_core::{Timer, WheelKind};

/// The span of a coarse slot, and of a round.
const SPAN: Duration = Duration::from_micros(1 << 18);
const PERIOD: Duration = Duration::from_micros(50);

pub(crate) fn run(run: &Run) -> Result<(), Stop> {
    Timer::record_holds(|| {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos() as u64
    });
    for case in run.settings.list("case", &[1, 2]) {
        let (wheel, n, late) = match case {
            1 => (WheelKind::Hashed { ticks_per_wheel: 1 << 18 }, 2_900_000, SPAN),
            _ => (WheelKind::Hierarchical, 3_000_000, Duration::ZERO),
        };
        once(&format!("case={case}"), wheel, run.settings.number("n", n), late, run)?;
    }
    Ok(())
}

fn once(case: &str, wheel: WheelKind, n: usize, late: Duration, run: &Run) -> Result<(), Stop> {
    let builder = Timer::builder().wheel(wheel).tick_duration(Duration::from_micros(1)).shards(1);
    let (timer, mut driver) = builder.backpressure_sleep(false).build_driven().map_err(Stop::because)?;
    let begin = Instant::now() + Duration::from_millis(500) + Duration::from_micros(2 * n as u64);
    let counter = Counter::leak();
    let mut random = SplitMix64::delays(0);
    for _ in 0..n {
        let deadline = begin + random.duration(&(Duration::ZERO..SPAN));
        timer.new_timeout_at(deadline, |_| counter.run()).map_err(Stop::because)?;
    }
    if Instant::now() > begin {
        return Err(Stop::because("scheduling took too long"));
    }
    thread::sleep((begin + late).saturating_duration_since(Instant::now()));
    let over = AtomicBool::new(false);
    // Forgets the holds so far.
    let _ = Timer::longest_hold();
    let longest = thread::scope(|scope| {
        let caller = scope.spawn(|| call(&timer, &over));
        // The other thread has one timeout at a time.
        while let Some(next) = driver.turn().next_deadline.filter(|_| timer.pending_timeouts() > 1) {
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        // ORDERING: Relaxed, because it only ends the calls.
        over.store(true, Ordering::Relaxed);
        caller.join().map_err(|_| Stop::because("a call failed"))
    })?;
    let params = format!("{case},n={}", short(n));
    run.figure(&params, Timer::longest_hold() as f64 / 1e3, "us-held-max");
    run.figure(&params, micros(longest), "us-call-max");
    Ok(())
}

/// Schedules and cancels a timeout each period. Returns the longest call.
fn call(timer: &Timer, over: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    // ORDERING: Relaxed, because it only ends the calls.
    while !over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let timeout = timer.new_timeout(Duration::from_secs(10), |_| ());
        let scheduled = Instant::now();
        assert!(timeout.is_ok_and(|timeout| timeout.cancel()), "a pair of calls failed");
        longest = longest.max(scheduled - begin).max(scheduled.elapsed());
        thread::sleep(PERIOD);
    }
    longest
}
