//! W21, the longest time for which a thread holds the lock of a shard, under the loads that cause
//! the most work under it. Another thread schedules and cancels a timeout of ten seconds, at most
//! every 50 us. The workload also runs with mimalloc, if `workload-mimalloc` is built with the
//! feature `held`.
//!
//! | case | load |
//! |---|---|
//! | 1 | a hashed wheel of 262,144 slots whose 2.9 million timeouts are all due, a round late |
//! | 2 | a hierarchical wheel that moves a crowd of 1, 3 and 4 million to finer levels |
//! | 3 | a million timeouts of one shard that are due at once, and one of another shard 2 ms later |
//! | 4 | a hashed wheel with 20,000 timeouts of an hour, and 3,700 pairs a second |
//! | 5 | no timer: pieces of work as long as a step of a wheel, and first writes to new pages |
//!
//! Cases 1 and 2 run twice, first in memory that may be new to the process, and then (`touched`) in
//! memory that the process has used before.
//!
//! `us-held-max` is the longest hold in CPU time of the holder, which includes its page faults.
//! `us-call-max` and `cpu-us-call-max` are the longest call of that other thread. The tick of the
//! cases 1 and 2 is 1 us, so that a coarse slot and a round take 262 ms. `ms-late` is the lateness
//! of the lone timeout, and `turns/s` is the number of turns of the worker, of which two would be
//! enough. `us-piece-max` of case 5 is the longest piece in CPU time, and `us-page-max` is the
//! longest first write to a page, for which a virtual machine may have to get the page from its
//! host. Both are due to the machine alone. No bound on a hold can be lower than `us-piece-max`,
//! and no bound on a hold that takes new memory can be lower than `us-page-max`.

use super::Stop;
use super::caller::Counter;
use super::kept::touch;
use super::out::{Out, millis};
use crate::peers::{Job, TICK};
use crate::random::SplitMix64;
use crate::row::short;
use crate::scheduling::thread_cpu;
use crate::settings::Settings;
use std::fmt::Display;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use timer_core::{Driver, Timer, WheelKind};

/// The span of a coarse slot, and of a round.
const SPAN: Duration = Duration::from_micros(1 << 18);
/// The time between two pairs of the other thread.
const PERIOD: Duration = Duration::from_micros(50);
/// An upper bound of the memory that a timeout takes.
const MAX_BYTES_PER_TIMEOUT: usize = 384;

pub(super) fn run(settings: &Settings, out: &Out) -> Result<(), Stop> {
    Timer::record_holds(|| thread_cpu().as_nanos() as u64);
    for case in settings.list("case", &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]) {
        match case {
            1 => run_new_and_touched(settings.number("n", 2_900_000, 290_000), |params, n| {
                late_round(params, n, settings, out)
            })?,
            2 => {
                let crowds = settings.list("n", &[1_000_000, 3_000_000, 4_000_000], &[100_000]);
                crowds
                    .into_iter()
                    .try_for_each(|n| run_new_and_touched(n, |params, n| crowd(params, n, settings, out)))?;
            }
            3 => lone(settings.number("n", 1_000_000, 100_000), settings, out)?,
            4 => standing(settings, out)?,
            _ => machine_floor(settings.number("n", 2_900_000, 290_000), out),
        }
    }
    Ok(())
}

/// Returns the time in which `n` timeouts are scheduled, before the first one is due.
fn lead(n: usize, settings: &Settings) -> Duration {
    Duration::from_millis(settings.number("lead-ms", 500 + n / 500, 500 + n / 100) as u64)
}

fn unavailable(error: impl Display) -> Stop {
    Stop::Unavailable(error.to_string().replace(char::is_whitespace, " "))
}

/// Runs a case with `n` timeouts in new memory and in touched memory.
fn run_new_and_touched(n: usize, run: impl Fn(&str, usize) -> Result<(), Stop>) -> Result<(), Stop> {
    run(&format!("n={}", short(n)), n)?;
    let _pin = touch(n * MAX_BYTES_PER_TIMEOUT);
    run(&format!("n={},touched", short(n)), n)
}

/// Case 1.
fn late_round(params: &str, n: usize, settings: &Settings, out: &Out) -> Result<(), Stop> {
    let (timer, driver) = driven(WheelKind::Hashed { ticks_per_wheel: 1 << 18 })?;
    let begin = fill(&timer, n, settings)?;
    thread::sleep((begin + SPAN).saturating_duration_since(Instant::now()));
    expire(&format!("case=1,{params}"), &timer, driver, out);
    Ok(())
}

/// Case 2.
fn crowd(params: &str, n: usize, settings: &Settings, out: &Out) -> Result<(), Stop> {
    let (timer, driver) = driven(WheelKind::Hierarchical)?;
    fill(&timer, n, settings)?;
    expire(&format!("case=2,{params}"), &timer, driver, out);
    Ok(())
}

fn driven(wheel: WheelKind) -> Result<(Timer, Driver), Stop> {
    let builder = Timer::builder().wheel(wheel).tick_duration(Duration::from_micros(1)).shards(1);
    builder.backpressure_sleep(false).build_driven().map_err(unavailable)
}

/// Schedules timeouts that are due within [`SPAN`], and returns its beginning.
fn fill(timer: &Timer, n: usize, settings: &Settings) -> Result<Instant, Stop> {
    let begin = Instant::now() + lead(n, settings);
    let (counter, mut random) = (Counter::leak(), SplitMix64::delays(0));
    for _ in 0..n {
        let deadline = begin + random.duration(&(Duration::ZERO..SPAN));
        timer.new_timeout_at(deadline, |_| counter.run()).map_err(unavailable)?;
    }
    in_time(begin).map(|()| begin)
}

/// Fails if scheduling took until `due`, because the load would then be a different one.
fn in_time(due: Instant) -> Result<(), Stop> {
    if Instant::now() < due { Ok(()) } else { Err(unavailable("the machine was too slow to schedule in time")) }
}

/// Turns until no timeout is left.
fn expire(params: &str, timer: &Timer, mut driver: Driver, out: &Out) {
    watch(params, timer, PERIOD, out, || {
        // The other thread has one timeout at a time.
        while let Some(next) = driver.turn().next.filter(|_| timer.pending_timeouts() > 1) {
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
    });
}

/// Case 3.
fn lone(n: usize, settings: &Settings, out: &Out) -> Result<(), Stop> {
    Timer::spread_by_thread(true);
    let timer = Timer::builder().tick_duration(TICK).shards(2).build().map_err(unavailable)?;
    let due = Instant::now() + lead(n, settings);
    let (counter, params) = (Counter::leak(), format!("case=3,n={}", short(n)));
    let (sender, lateness) = mpsc::channel();
    // Threads that follow each other schedule in different shards.
    let crowd = || (0..n).try_for_each(|_| timer.new_timeout_at(due, |_| counter.run()).map(drop).map_err(unavailable));
    let late = Duration::from_millis(2);
    let task = move |timeout: &timer_core::Timeout| {
        let _ = sender.send(Instant::now().saturating_duration_since(timeout.deadline()));
    };
    let lone = || timer.new_timeout_at(due + late, task).map(drop).map_err(unavailable);
    thread::scope(|scope| scope.spawn(crowd).join()).unwrap_or(Err(Stop::Endless))?;
    thread::scope(|scope| scope.spawn(lone).join()).unwrap_or(Err(Stop::Endless))?;
    in_time(due)?;
    let lateness = watch(&params, &timer, PERIOD, out, || {
        let lateness = lateness.recv_timeout(Duration::from_secs(60));
        while timer.pending_timeouts() > 1 {
            thread::sleep(Duration::from_millis(1));
        }
        lateness
    });
    match lateness {
        Ok(lateness) => out.figure(&params, millis(lateness), "ms-late"),
        Err(_) => out.unavailable(&params, "ms-late", "it has not run"),
    }
    Ok(())
}

/// Case 4.
fn standing(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let (n, span) = (settings.number("standing", 20_000, 2_000), settings.number("ms", 5_000, 1_000));
    let wheel = WheelKind::Hashed { ticks_per_wheel: 1 << 16 };
    let timer = Timer::builder().wheel(wheel).tick_duration(TICK).build().map_err(unavailable)?;
    let (span, params) = (Duration::from_millis(span as u64), format!("case=4,standing={}", short(n)));
    for _ in 0..n {
        timer.new_timeout(Duration::from_secs(3600), |_| ()).map_err(unavailable)?;
    }
    let before = timer.stats().turns;
    watch(&params, &timer, Duration::from_secs(1) / 3_700, out, || thread::sleep(span));
    out.figure(&params, (timer.stats().turns - before) as f64 / span.as_secs_f64(), "turns/s");
    Ok(())
}

/// Case 5. A piece reads and writes as many places of a large array as a step of a wheel visits.
/// Then each page of a new array is written to once.
fn machine_floor(n: usize, out: &Out) {
    const PLACES: usize = 128;
    const PAGE: usize = 4 << 10;
    let (mut values, mut random) = (vec![[1_u64; 8]; n], SplitMix64::new(0));
    let mut times = Vec::with_capacity(n / PLACES + 1);
    for _ in 0..=n / PLACES {
        let began = thread_cpu();
        for _ in 0..PLACES {
            let place = &mut values[random.below(n as u64) as usize];
            place[0] = place[0].wrapping_mul(31) ^ place[7];
        }
        times.push(thread_cpu() - began);
    }
    std::hint::black_box(values);
    times.sort_unstable();
    let params = format!("case=5,n={}", short(n));
    let mut new = vec![0_u8; n * MAX_BYTES_PER_TIMEOUT];
    let writes = new.chunks_mut(PAGE).map(|page| {
        let began = thread_cpu();
        page[0] = 1;
        thread_cpu() - began
    });
    let longest = writes.max();
    std::hint::black_box(new);
    match longest {
        Some(longest) => out.figure(&params, longest.as_secs_f64() * 1e6, "us-page-max"),
        None => out.unavailable(&params, "us-page-max", "no page"),
    }
    for (time, unit) in [(times[times.len() / 2], "us-piece-median"), (times[times.len() - 1], "us-piece-max")] {
        out.figure(&params, time.as_secs_f64() * 1e6, unit);
    }
}

/// Runs `body` while another thread makes a pair each `period`. Reports the longest hold and call.
fn watch<R>(params: &str, timer: &Timer, period: Duration, out: &Out, body: impl FnOnce() -> R) -> R {
    let ends = AtomicBool::new(false);
    // Forgets the holds so far.
    let _ = Timer::longest_hold();
    let (result, longest) = thread::scope(|scope| {
        let caller = scope.spawn(|| call(timer, period, &ends));
        let result = body();
        // ORDERING: Relaxed, because it only ends the calls.
        ends.store(true, Ordering::Relaxed);
        (result, caller.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    match Timer::longest_hold() {
        0 => out.unavailable(params, "us-held-max", "no hold was recorded"),
        nanos => out.figure(params, nanos as f64 / 1e3, "us-held-max"),
    }
    for (time, unit) in [(longest.0, "us-call-max"), (longest.1, "cpu-us-call-max")] {
        out.figure(params, time.as_secs_f64() * 1e6, unit);
    }
    result
}

/// Schedules and cancels a timeout each `period`, at least once. Returns the longest call in wall
/// and CPU time.
fn call(timer: &Timer, period: Duration, ends: &AtomicBool) -> (Duration, Duration) {
    let (mut wall, mut cpu, mut at) = (Duration::ZERO, Duration::ZERO, Instant::now());
    loop {
        let mut timed = |call: &mut dyn FnMut()| {
            let (began, used) = (Instant::now(), thread_cpu());
            call();
            wall = wall.max(began.elapsed());
            cpu = cpu.max(thread_cpu() - used);
        };
        let (mut timeout, mut is_won) = (None, false);
        timed(&mut || timeout = timer.new_timeout(Duration::from_secs(10), |_| ()).ok());
        timed(&mut || is_won = timeout.as_ref().is_some_and(|timeout| timeout.cancel()));
        // The times of calls that fail are not those of a pair.
        assert!(is_won, "a timeout of ten seconds could not be scheduled and cancelled");
        // ORDERING: Relaxed, because it only ends the calls.
        if ends.load(Ordering::Relaxed) {
            return (wall, cpu);
        }
        at = (at + period).max(Instant::now());
        thread::sleep(at - Instant::now().min(at));
    }
}
