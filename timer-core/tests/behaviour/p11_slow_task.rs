//! Promise 11. A slow task on the immediate executor delays others, and the timer traces a warning.
//! On rayon or a thread pool it delays none.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use timer_core::{LateCause, Timeout, Timer, named as with_name};
use timer_executor::{RayonExecutor, TaskExecutor, ThreadPoolExecutor};
use tracing::Level;

#[test]
fn a_task_longer_than_a_tick_causes_a_warning() {
    let complaints = log::complaints("slow");
    let timer = Timer::builder().name("slow").tick_duration(20 * MILLI).build().unwrap();
    let (ran, received) = channel();
    let short = ran.clone();
    accepted(timer.new_timeout(Duration::ZERO, move |_| short.send(()).unwrap()));
    next(&received);
    accepted(timer.new_timeout(Duration::ZERO, move |me: &Timeout| {
        for _ in 0..5 {
            drop(me.timer().map(|timer| timer.new_timeout(Duration::ZERO, |_| {})));
        }
        // A task that blocks is slow even if it loses the CPU.
        watch_for(30 * MILLI);
    }));
    let event = next(&complaints);
    assert_eq!((event.level, event.timer.as_str()), (Level::WARN, "slow"));
    assert!(event.message.contains("longer than a tick"), "{event:?}");
    assert!(event.fields.contains("at_most=") && event.fields.contains("tasks=1"), "{event:?}");
    assert!(event.fields.contains("p11_slow_task::a_task_longer") && event.fields.contains("waited=5"), "{event:?}");
    wait_until(|| timer.stats().longest_batch >= 30 * MILLI);
    let worst = timer.worst();
    assert!(worst.iter().any(|run| run.behind.is_some_and(|task| task.contains("a_task_longer"))), "{worst:?}");
}

#[test]
fn a_closure_can_have_a_name() {
    let complaints = log::complaints("closure-name");
    let timer = Timer::builder().name("closure-name").tick_duration(20 * MILLI).build().unwrap();
    accepted(timer.new_timeout_task(Duration::ZERO, with_name!("close idle connection", |_| watch_for(30 * MILLI))));
    let event = next(&complaints);
    assert!(event.fields.contains("close idle connection"), "{event:?}");
    assert_eq!(format!("{:?}", with_name!("ping", |_| {})), "Named(\"ping\")");
}

#[test]
fn a_closure_has_its_name_by_each_way_to_schedule() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let (ran, counts) = channel();
    let mut runs = 0;
    let moved = ran.clone();
    accepted(timer.new_timeout_task(NANO, with_name!("after", |_| drop(moved))));
    accepted(timer.new_timeout_task_at(Instant::now(), with_name!("at", |_: &Timeout| {})));
    accepted(timer.new_timeout_task_with_slack(NANO, NANO, with_name!("with slack", ignore)));
    let repeats = with_name!("fixed rate", move |_| {
        runs += 1;
        ran.send(runs).unwrap();
    });
    accepted(timer.schedule_task_at_fixed_rate(NANO, HOUR, repeats));
    accepted(timer.schedule_task_with_fixed_delay(NANO, HOUR, with_name!("fixed delay", ignore)));
    timer.new_timeout_tasks([(NANO, with_name!("many", |_| {}))]).into_iter().for_each(|one| drop(accepted(one)));
    spin(10 * MILLI);
    while driver.turn().expired == 0 {}
    assert_eq!(next(&counts), 1);
    let mut names: Vec<&str> = timer.worst().iter().map(|run| run.task).collect();
    names.sort_unstable();
    assert_eq!(names, ["after", "at", "fixed delay", "fixed rate", "many", "with slack"]);
}

fn ignore(_: &Timeout) {}

#[test]
fn finding_many_due_timeouts_is_blamed_on_no_task() {
    let complaints = log::complaints("many-due");
    // A thread that does not run for a tick looks like a slow task, but not three times in a row.
    assert!((0..3).any(|_| many_are_found(&complaints).is_empty()));
}

/// Lets a driver find many timeouts of which one runs, and returns its warnings.
fn many_are_found(complaints: &Receiver<log::Event>) -> Vec<log::Event> {
    let builder = Timer::builder().name("many-due").tick_duration(5 * MILLI);
    let (timer, mut driver) = builder.build_driven().unwrap();
    for _ in 0..100_000 {
        accepted(timer.new_timeout(NANO, |_| {})).cancel();
        accepted(timer.new_timeout(NANO, |_| {})).reset(HOUR);
    }
    accepted(timer.new_timeout(NANO, |_| {}));
    spin(5 * MILLI);
    while driver.turn().expired == 0 {}
    complaints.try_iter().collect()
}

#[test]
fn short_tasks_cause_no_warning_although_a_batch_exceeds_a_tick() {
    let complaints = log::complaints("short");
    let is_silent = || {
        let (timer, mut driver) = Timer::builder().name("short").tick_duration(20 * MICRO).build_driven().unwrap();
        for _ in 0..64 {
            accepted(timer.new_timeout(NANO, |_| spin(2 * MICRO)));
        }
        spin(20 * MICRO);
        while driver.turn().expired == 0 {}
        assert!(timer.stats().longest_batch > 20 * MICRO);
        complaints.try_iter().count() == 0
    };
    // A thread that does not run for a millisecond looks like slow tasks, but not three times in a
    // row.
    assert!((0..3).any(|_| is_silent()));
}

#[test]
fn warnings_of_slow_tasks_do_not_flood() {
    let complaints = log::complaints("slow-flood");
    let timer = Timer::builder().name("slow-flood").tick_duration(MICRO).build().unwrap();
    let (ran, received) = channel();
    for _ in 0..100 {
        let ran = ran.clone();
        accepted(timer.new_timeout(Duration::ZERO, move |_| {
            spin(100 * MICRO);
            let _ = ran.send(());
        }));
    }
    drop(ran);
    all_gone(&received);
    drop(timer.stop().unwrap());
    next(&complaints);
    let warnings = 1 + complaints.try_iter().count();
    assert!((1..=20).contains(&warnings), "{warnings} warnings for 100 slow tasks");
}

/// Checks that a slow task delays no other. It ends only after the others have run, so one thread
/// would hang.
fn delays_no_other(name: &str, executor: impl TaskExecutor) {
    let complaints = log::complaints(name);
    let timer = Timer::builder().name(name).executor(executor).build().unwrap();
    for same_tick in [true, false] {
        let (begun, inside) = channel();
        let (others, ran) = channel();
        let (done, ended) = channel();
        let slow = move |_: &_| {
            begun.send(()).unwrap();
            for _ in 0..50 {
                next(&ran);
            }
            done.send(()).unwrap();
        };
        accepted(timer.new_timeout(2 * MILLI, slow));
        if !same_tick {
            next(&inside);
        }
        for id in 0..50 {
            let others = others.clone();
            let delay = if same_tick { 2 * MILLI } else { id * 20 * MICRO };
            accepted(timer.new_timeout(delay, move |_| others.send(()).unwrap()));
        }
        next(&ended);
    }
    drop(timer.stop().unwrap());
    assert_eq!(complaints.try_iter().map(|event| event.message).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(timer.stats().longest_batch, Duration::ZERO);
}

#[test]
fn a_slow_task_delays_none_on_a_thread_pool() {
    delays_no_other("slow-threadpool", ThreadPoolExecutor::new(2));
}

#[test]
fn a_slow_task_delays_none_on_rayon() {
    // The global pool has as many threads as the machine, and a single thread could not run the
    // others.
    if std::thread::available_parallelism().is_ok_and(|threads| threads.get() > 1) {
        delays_no_other("slow-rayon", RayonExecutor::global());
    }
}

/// Other threads take the worker's CPU during a task.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_loses_its_cpu_blames_no_task() {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};
    let allowed = sched_getaffinity(None).unwrap();
    let cpu = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
    let pin = move || {
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one).unwrap();
    };
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.clone();
            std::thread::spawn(move || {
                pin();
                while !stop.load(Ordering::Relaxed) {}
            })
        })
        .collect();
    let timer = Timer::builder().on_worker_start(pin).build().unwrap();
    let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let (done, ended) = channel();
    accepted(timer.new_timeout(Duration::ZERO, move |_| {
        let begin = (used(), Instant::now());
        // Until the others have had the CPU for longer.
        while used() - begin.0 < 20 * MILLI || begin.1.elapsed() < 3 * (used() - begin.0) {}
        done.send(()).unwrap();
    }));
    next(&ended);
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    wait_until(|| !timer.worst().is_empty());
    let lateness = timer.worst()[0].lateness;
    assert!(lateness.part(LateCause::System) > lateness.part(LateCause::Tasks), "{lateness:?}");
    assert!(lateness.part(LateCause::Tasks) >= 19 * MILLI, "{lateness:?}");
}
