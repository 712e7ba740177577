//! The whole timer under real threads, with a ledger that says who has ended each timeout.
//!
//! Each test is so many rounds of a fixed amount of work, drawn from a seed; nothing depends on how fast it goes. The
//! round is printed, so that a failure shows it. `TIMER_STRESS_SEED` gives another seed, `TIMER_STRESS_ROUNDS`
//! multiplies the rounds: a long run is `TIMER_STRESS_ROUNDS=100 cargo test --release --test stress`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

mod busy_stop;
mod capture;
mod executors;
mod ledger;
mod random;
mod round;
mod storm;
mod wakes;
mod work;

use executors::Executor;
use random::Random;
use round::Round;
use timer_core::WheelKind;

/// Operations of each thread in a round.
const AMOUNT: usize = 800;
/// Both wheels with all four ends, twice.
const ROUNDS: usize = 16;

/// A number from the environment; hexadecimal if it begins with `0x`.
fn setting(name: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(name) else { return otherwise };
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|_| panic!("{name} is {text:?}: a number is wanted, decimal or after 0x"))
}

fn seed() -> u64 {
    let seed = setting("TIMER_STRESS_SEED", 0x7135_0A4E);
    println!("TIMER_STRESS_SEED={seed:#x}");
    seed
}

fn times() -> usize {
    setting("TIMER_STRESS_ROUNDS", 1) as usize
}

fn storms(executor: Executor, driven: bool, rounds: usize) {
    let seed = seed();
    for n in 0..rounds * times() {
        Round::nth(seed, n, AMOUNT, executor, driven).run();
    }
}

#[test]
fn each_timeout_ends_once_with_tasks_on_the_worker() {
    storms(Executor::Immediate, false, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_tasks_on_rayon() {
    storms(Executor::Rayon, false, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_tasks_on_a_thread_pool() {
    storms(Executor::ThreadPool, false, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_a_pool_that_refuses_tasks() {
    storms(Executor::Bounded, false, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_tasks_given_to_a_thread_by_a_closure() {
    storms(Executor::Closure, false, ROUNDS);
}

#[test]
fn each_timeout_ends_once_with_an_executor_that_loses_tasks_and_panics() {
    storms(Executor::Unruly, false, ROUNDS);
}

#[test]
fn each_timeout_of_a_driven_timer_ends_once() {
    for executor in [Executor::Immediate, Executor::ThreadPool, Executor::Unruly] {
        storms(executor, true, ROUNDS / 2);
    }
}

#[test]
fn no_wake_up_of_the_worker_is_missed() {
    on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT, wheel, false, false));
}

#[test]
fn no_wake_up_of_a_driven_loop_is_missed() {
    on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT, wheel, true, false));
}

#[test]
fn no_task_that_another_thread_loses_is_forgotten() {
    on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT / 4, wheel, false, true));
    on_both_wheels(|seed, wheel| wakes::wake_ups(seed, AMOUNT / 4, wheel, true, true));
}

#[test]
fn what_comes_to_a_busy_shard_during_a_stop_is_accepted_or_refused() {
    on_both_wheels(|seed, wheel| busy_stop::stops(seed, AMOUNT / 4, wheel));
}

fn on_both_wheels(scenario: impl Fn(u64, WheelKind)) {
    let seed = seed();
    for n in 0..2 * times() {
        let wheel = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 256 }][n % 2];
        scenario(Random::part(seed, n).next(), wheel);
    }
}
