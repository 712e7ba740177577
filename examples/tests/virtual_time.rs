//! The log on virtual time. The sessions of the replay equal those of an independent count, one by
//! one.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

mod oracle;

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use examples::sessions::args::{Clock, Executor, Options, Wheel};
use examples::sessions::log::Log;
use examples::sessions::replay::{Outcome, replay, timer};
use timer_executor::Task;

const WHEELS: [Wheel; 2] = [Wheel::Hashed, Wheel::Hierarchical];

fn on_virtual_time(idle: u64, wheel: Wheel, tick: Duration) -> Options {
    Options { idle, wheel, tick, clock: Clock::Virtual, ..Options::default() }
}

fn rows(log: &Log, outcome: &Outcome) -> Vec<(u64, String, u64, u64)> {
    let rows = outcome.sessions.iter();
    let mut rows: Vec<_> = rows.map(|s| (s.first, log.hosts[s.host].clone(), s.last, s.requests)).collect();
    rows.sort();
    rows
}

/// A log, and its sessions for each idle timeout by the independent count.
struct Case<'a> {
    csv: &'a str,
    log: Log,
    wanted: HashMap<u64, Vec<(u64, String, u64, u64)>>,
}

impl<'a> Case<'a> {
    fn new(csv: &'a str) -> Self {
        Self { csv, log: Log::parse(csv.as_bytes()).unwrap(), wanted: HashMap::new() }
    }

    fn check(&mut self, options: &Options) -> Outcome {
        let outcome = replay(&self.log, options, timer(options), &mut |_| {}).unwrap();
        let wanted = self.wanted.entry(options.idle).or_insert_with(|| oracle::sessions(self.csv, options.idle));
        assert_eq!(outcome.sessions.len(), wanted.len(), "{options:?}");
        assert_eq!(rows(&self.log, &outcome), *wanted, "{options:?}");
        let counts = outcome.counts;
        assert_eq!(counts.opened, wanted.len() as u64);
        assert_eq!(counts.ran, counts.opened + counts.rearmed, "each arming ran once");
        outcome
    }
}

#[test]
fn the_default_idle_timeout_gives_2989_sessions() {
    assert_eq!(oracle::sessions(oracle::CSV, 1800).len(), 2989);
}

#[test]
fn sessions_equal_those_of_the_independent_count() {
    let mut case = Case::new(oracle::log());
    for wheel in WHEELS {
        for idle in [1, 1800, 31_536_000] {
            let outcome = case.check(&on_virtual_time(idle, wheel, Duration::from_millis(1)));
            assert_eq!(outcome.counts.rearmed, 0, "whole seconds are whole ticks, so nothing is early");
        }
    }
}

#[test]
fn sessions_do_not_depend_on_the_tick() {
    let mut case = Case::new(oracle::log());
    for wheel in WHEELS {
        for micros in [1, 7_000, 60_000_000] {
            let tick = Duration::from_micros(micros);
            case.check(&on_virtual_time(60, wheel, tick));
        }
    }
}

#[test]
fn sessions_do_not_depend_on_the_executor() {
    let mut case = Case::new(oracle::log());
    for executor in [Executor::Immediate, Executor::Rayon, Executor::ThreadPool] {
        let options = on_virtual_time(1800, Wheel::Hierarchical, Duration::from_secs(5));
        case.check(&Options { executor, ..options });
    }
}

#[test]
fn sessions_do_not_depend_on_the_order_of_tasks() {
    let log = Log::parse(oracle::log().as_bytes()).unwrap();
    let (sender, queue) = mpsc::channel::<Task>();
    let backwards = thread::spawn(move || {
        while let Ok(task) = queue.recv() {
            let mut tasks: Vec<Task> = queue.try_iter().collect();
            tasks.insert(0, task);
            tasks.into_iter().rev().for_each(Task::run);
        }
    });
    let options = on_virtual_time(60, Wheel::Hierarchical, Duration::from_secs(5));
    let builder = timer(&options).executor(move |task: Task| drop(sender.send(task)));
    let outcome = replay(&log, &options, builder, &mut |_| {}).unwrap();
    assert_eq!(rows(&log, &outcome), oracle::sessions(oracle::log(), 60));
    backwards.join().unwrap();
}

#[test]
fn a_request_at_the_deadline_begins_a_new_session() {
    let csv = "time,host,status,bytes\n0,a,200,1\n59,a,200,1\n119,a,200,1\n";
    let mut case = Case::new(csv);
    for wheel in WHEELS {
        for tick in [1, 1_000, 7_000, 60_000_000] {
            let options = on_virtual_time(60, wheel, Duration::from_micros(tick));
            let outcome = case.check(&options);
            let firsts: Vec<u64> = outcome.sessions.iter().map(|s| s.first).collect();
            assert_eq!(firsts, [0, 119], "gaps of 59 s and of 60 s");
        }
    }
}

#[test]
fn the_rule_is_exact_to_the_second_after_a_century() {
    let mut csv = "time,host,status,bytes\n0,a,200,1\n".to_owned();
    for second in (4_200_000_000_u64..4_200_009_000).step_by(59).chain((4_200_010_000..4_200_020_000).step_by(60)) {
        csv += &format!("{second},a,200,1\n{second},b,200,1\n");
    }
    let mut case = Case::new(&csv);
    for wheel in WHEELS {
        for tick in [1, 1_000, 5_000_000] {
            case.check(&on_virtual_time(60, wheel, Duration::from_micros(tick)));
        }
    }
}

#[test]
fn progress_never_decreases_and_reaches_the_end() {
    let log = Log::parse(oracle::log().as_bytes()).unwrap();
    let options = on_virtual_time(1800, Wheel::Hierarchical, Duration::from_millis(1));
    let mut seen = Vec::new();
    replay(&log, &options, timer(&options), &mut |second| seen.push(second)).unwrap();
    assert!(seen.is_sorted());
    assert_eq!(seen.last(), Some(&(log.span() + 1800)));
}
