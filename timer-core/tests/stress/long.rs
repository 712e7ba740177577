//! The long storm, which runs every scenario in turn, each round with a seed of its own, until its
//! time is over.
//!
//! `cargo xtask stress` runs it. `TIMER_STRESS_MINUTES` sets its duration and `TIMER_STRESS_SEED`
//! its first seed. `TIMER_STRESS_ROUND` repeats a single round instead.

use crate::counts::{Table, grouped};
use crate::progress::Progress;
use crate::scenario::{Scenario, TURN};
use crate::support::settings::{minutes, seed, setting};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[test]
#[ignore = "takes minutes: cargo xtask stress"]
fn a_long_storm() {
    let (seed, total) = (seed(), minutes());
    let only = std::env::var_os("TIMER_STRESS_ROUND").map(|_| setting("TIMER_STRESS_ROUND", 0) as usize);
    let (progress, mut table) = (Progress::begin(seed, total), Table::default());
    let mut rounds = 0;
    while rounds == 0 || progress.elapsed() < total {
        let round = only.unwrap_or(rounds);
        let scenario = Scenario::nth(seed, round);
        progress.round(round, scenario.to_string());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let counts = scenario.run();
            assert!(counts.balances(), "{counts:?} does not balance");
            counts
        }));
        match outcome {
            Ok(counts) => {
                progress.add(counts);
                table.add(&scenario.row(), counts);
            }
            Err(panic) => {
                // The panic hook has printed the message, so this line is the last one.
                progress.fail();
                resume_unwind(panic);
            }
        }
        rounds += 1;
    }
    progress.end();
    let sum = table.sum();
    println!("\n{table}");
    match only {
        Some(round) => println!("round {round}, {} times", grouped(rounds as u64)),
        None => println!("{} rounds: {}", grouped(rounds as u64), coverage(rounds / TURN)),
    }
    assert!(sum.balances(), "{sum:?}");
    println!("the ledger balances: {} timeouts, each ended once", grouped(sum.accepted));
}

fn coverage(turns: usize) -> String {
    match turns {
        0 => format!("all combinations come within {TURN} rounds"),
        1 => "every combination has come".to_owned(),
        _ => format!("every combination has come at least {turns} times"),
    }
}
