//! Stress tests of the whole timer on real threads, with a ledger of the end of each timeout.
//!
//! Each test runs a number of rounds with a fixed amount of work, drawn from a seed. No result
//! depends on the speed. Each round is printed, so a failure shows it. `TIMER_STRESS_SEED` sets
//! another seed and `TIMER_STRESS_ROUNDS` multiplies the rounds. `cargo xtask stress` runs the same
//! rounds for minutes or hours.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "../support/mod.rs"]
mod support;

mod busy_stop;
mod capture;
mod clock;
mod counts;
mod drive;
mod executors;
mod ledger;
mod long;
mod overload;
mod progress;
mod round;
mod scenario;
mod storm;
mod wakes;
mod work;

use counts::Counts;
use drive::Drive;
use executors::Executor;
use round::Round;
use support::random::part;
use support::settings::{repetitions, seed};
use timer_core::WheelKind;

/// Operations of each thread in a round.
const AMOUNT: usize = 800;
/// Twice both wheels with all four ends.
const ROUNDS: usize = 16;

fn storms(executor: Executor, drive: Drive, rounds: usize) {
    let seed = seed();
    for n in 0..rounds * repetitions() {
        Round::nth(seed, n, AMOUNT, executor, drive).run();
    }
}

#[test]
fn each_timeout_ends_once_with_tasks_on_the_worker() {
    storms(Executor::Immediate, Drive::Worker, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_tasks_on_rayon() {
    storms(Executor::Rayon, Drive::Worker, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_tasks_on_a_thread_pool() {
    storms(Executor::ThreadPool, Drive::Worker, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_a_rejecting_pool() {
    storms(Executor::Bounded, Drive::Worker, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_a_closure_and_a_thread() {
    storms(Executor::Closure, Drive::Worker, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_an_unruly_executor() {
    storms(Executor::Unruly, Drive::Worker, ROUNDS);
}

#[test]
fn each_timeout_of_a_driven_timer_ends_once() {
    for executor in [Executor::Immediate, Executor::ThreadPool, Executor::Unruly] {
        storms(executor, Drive::Loop, ROUNDS / 2);
    }
}

#[test]
fn each_timeout_ends_once_while_virtual_time_jumps() {
    for executor in Executor::ALL {
        storms(executor, Drive::Jumps, ROUNDS / 2);
    }
}

#[test]
fn no_wake_up_of_the_worker_is_missed() {
    run_on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT, wheel, false, false));
}

#[test]
fn no_wake_up_of_a_driven_loop_is_missed() {
    run_on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT, wheel, true, false));
}

#[test]
fn no_task_that_another_thread_drops_is_lost() {
    run_on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT / 4, wheel, false, true));
    run_on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT / 4, wheel, true, true));
}

#[test]
fn stop_beside_a_busy_shard_accepts_or_rejects() {
    run_on_both_wheels(|seed, wheel| busy_stop::stops(seed, AMOUNT / 4, wheel));
}

fn run_on_both_wheels(scenario: impl Fn(u64, WheelKind) -> Counts) {
    let seed = seed();
    for n in 0..2 * repetitions() {
        let wheel = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 256 }][n % 2];
        assert!(scenario(part(seed, n).u64(..), wheel).balances());
    }
}
