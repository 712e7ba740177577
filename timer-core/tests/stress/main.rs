//! A stress test of the whole timer on real threads, in which each timeout must end exactly once.
//!
//! More threads than cores schedule, cancel, move and forget timeouts, whose tasks do the same. The
//! timer is stopped or dropped amid the calls, or every timeout ends by itself. The rounds go
//! through all executors, drives, ends and wheels. A round has a fixed amount of work,
//! drawn from a seed, so no result depends on the speed.
//!
//! `cargo xtask stress` sets the seed and repeats the rounds for minutes or hours. A round that
//! fails prints its number, which `--round` repeats.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test")]

#[path = "../support/mod.rs"]
mod support;

mod callers;
mod drive;
mod executors;
mod ledger;
mod round;
mod work;

use drive::Drive;
use executors::Executor;
use round::{End, Round};
use std::time::Instant;
use support::SECOND;

/// The number of rounds of a drive that contain each executor with each end on both wheels.
const ROUNDS: usize = Executor::ALL.len() * End::ALL.len() * 2;

/// Reads a number from the environment, hexadecimal if it begins with `0x`.
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(number.unwrap_or_else(|_| panic!("{name} is {text:?}, not a decimal number or a hexadecimal one after 0x")))
}

fn each_timeout_ends_once(drive: Drive) {
    let seed = setting("TIMER_STRESS_SEED").unwrap_or(0x7135_0A4E);
    let seconds = setting("TIMER_STRESS_SECONDS").unwrap_or(0);
    let only = setting("TIMER_STRESS_ROUND");
    let begun = Instant::now();
    let mut timeouts = 0;
    for round in 0.. {
        if round >= ROUNDS && begun.elapsed() >= seconds as u32 * SECOND {
            return println!("{drive:?}: {round} rounds, {timeouts} timeouts, each ended once");
        }
        timeouts += Round::nth(seed, only.map_or(round, |only| only as usize), drive).run();
    }
}

#[test]
fn each_timeout_of_a_worker_ends_once() {
    each_timeout_ends_once(Drive::Worker);
}

#[test]
fn each_timeout_of_a_driven_timer_ends_once() {
    each_timeout_ends_once(Drive::Loop);
}

#[test]
fn each_timeout_ends_once_while_virtual_time_jumps() {
    each_timeout_ends_once(Drive::Jumps);
}
