//! Drives the program `timeouts` as a child process, ends the child in every way that can go wrong,
//! and balances its answers.
//!
//! The child prints an answer when it is durable, so the parent knows at any moment which timeouts
//! must not be lost and which must not begin. A child that is killed is followed by another one on
//! the same file. The last child has to end everything that is open.
//!
//! The environment variable `TIMER_LEDGER_KILLS` sets the number of kills (24).
#![cfg(unix)]
#![allow(clippy::expect_used, reason = "tests")]

mod account;
mod child;
mod folder;
mod load;
mod shim;

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use child::{Options, Running, signal};
use folder::Folder;
use load::Load;

fn kills() -> u64 {
    let Ok(text) = std::env::var("TIMER_LEDGER_KILLS") else { return 24 };
    text.parse().unwrap_or_else(|_| panic!("TIMER_LEDGER_KILLS: '{text}' given; allowed: a whole number"))
}

fn seed() -> u64 {
    std::env::var("TIMER_LEDGER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| fastrand::u64(..))
}

fn assert_balanced(faults: &[String]) {
    assert!(faults.is_empty(), "{} faults, first:\n{}", faults.len(), faults[..faults.len().min(10)].join("\n"));
}

/// Half of the kills of the ledger. The child dies at a random moment, under load or while it
/// stops.
#[test]
fn nothing_is_lost_by_kills_at_random() {
    at_random("random", kills() / 2, false);
}

/// Kills a child whose store is the example on redb, a quarter as many times.
#[test]
fn nothing_is_lost_by_kills_of_a_store_on_redb() {
    at_random("redb", kills() / 4, true);
}

fn at_random(name: &str, rounds: u64, is_redb: bool) {
    let mut load = Load::new(seed());
    let folder = Folder::new(name);
    let options = |handler| Options { store: folder.store(), is_redb, handler, ..Options::default() };
    for round in 0..rounds {
        // A slow handler is certainly running when its child dies, and its timeout has to run
        // again.
        let handler = if round % 4 == 3 { account::SLOW } else { Duration::ZERO };
        let mut child = Running::start(&options(handler), &load.ledger);
        let time = Duration::from_millis(load.random.u64(20..250));
        load.send_for(&mut child, time);
        if round % 5 == 4 {
            child.tell("quit");
            std::thread::sleep(Duration::from_micros(load.random.u64(0..3_000)));
        }
        child.kill();
    }
    assert_balanced(&load.settle(&options(Duration::ZERO)));
}

/// The other half. The child dies before a write, before a sync or after it.
#[test]
fn nothing_is_lost_by_kills_in_a_commit() {
    in_commits("commits", kills() - kills() / 2, |_| None);
}

/// A power cut loses the writes since the last sync, or some of them.
#[test]
fn nothing_is_lost_by_power_cuts() {
    in_commits("power", kills() / 2, |round| Some(if round % 2 == 0 { "all".to_owned() } else { round.to_string() }));
}

fn in_commits(name: &str, rounds: u64, power: impl Fn(u64) -> Option<String>) {
    if shim::library().is_none() {
        return;
    }
    let mut load = Load::new(seed());
    let folder = Folder::new(name);
    let mut deaths = 0;
    for round in 0..rounds {
        let point = ["write", "sync", "synced"][load.random.usize(..3)];
        let number = if round % 3 == 0 { load.random.u32(1..12) } else { load.random.u32(1..120) };
        let mut shim = vec![("SHIM_FILE", "timeouts.db".to_owned()), ("SHIM_KILL", format!("{point}:{number}"))];
        shim.extend(power(round).map(|power| ("SHIM_POWER", power)));
        let options = Options { store: folder.store(), shim, ..Options::default() };
        let mut child = Running::start(&options, &load.ledger);
        deaths += u64::from(!load.send_for(&mut child, Duration::from_secs(3)));
        child.signal("KILL");
        child.wait();
    }
    assert!(deaths >= rounds / 4, "the shim has killed {deaths} of {rounds} children");
    assert_balanced(&load.settle(&Options { store: folder.store(), ..Options::default() }));
}

/// A frozen child goes on where it was.
#[test]
fn nothing_is_lost_by_a_freeze() {
    let mut load = Load::new(seed());
    let folder = Folder::new("freeze");
    let options = Options { store: folder.store(), ..Options::default() };
    let mut child = Running::start(&options, &load.ledger);
    for _ in 0..3 {
        load.send_for(&mut child, Duration::from_millis(100));
        signal(child.id(), "STOP");
        std::thread::sleep(Duration::from_millis(300));
        signal(child.id(), "CONT");
    }
    assert!(load.stop(child), "a child that was frozen stops as usual");
    assert_balanced(&load.settle(&options));
}

/// On a full disk each call fails with an error, and nothing that was accepted before is lost.
#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let mut load = Load::new(seed());
    let folder = Folder::new("full");
    let options = Options { store: folder.store(), file_limit: Some(600), ..Options::default() };
    let mut child = Running::start(&options, &load.ledger);
    while load.ledger.account().totals().errors < 5 && load.schedule(&mut child, 30_000) {}
    let totals = load.ledger.account().totals();
    assert!(totals.errors >= 5 && totals.scheduled > 0, "{totals:?}");
    child.kill();
    // These are due in half a minute. The clock of the next child is ahead.
    assert_balanced(&with_clock(&mut load, &Options { store: folder.store(), ..Options::default() }, 60));
}

/// A commit whose sync has failed is in the log all the same, and a kill lets the next start read
/// it. So the outcome of a call is unknown.
#[test]
fn a_failed_sync_leaves_the_outcome_open() {
    if shim::library().is_none() {
        return;
    }
    let mut failed = 0;
    for sync in 1..16 {
        let folder = Folder::new("sync");
        let shim = vec![("SHIM_FILE", "timeouts.db".to_owned()), ("SHIM_KILL", format!("fail:{sync}"))];
        let mut command = Options { store: folder.store(), shim, ..Options::default() }.command();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.expect("timeouts starts");
        let mut input = child.stdin.take().expect("a pipe");
        let mut answer = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        // A child that could not open the file has closed its input.
        for key in 0..4 {
            _ = writeln!(input, "schedule k{key} 600000");
            answer.clear();
            _ = output.read_line(&mut answer);
            if answer.starts_with("error") {
                failed += 1;
                assert!(answer.contains("it is unknown whether"), "sync {sync}: {answer}");
                // The next call comes while the store cannot be joined yet, and writes nothing.
                break;
            }
        }
        signal(child.id(), "KILL");
        child.wait().expect("the child ends");
    }
    assert!(failed > 0, "no sync of a commit has failed");
}

/// The store's clock never goes back, and a step of the wall clock starts nothing
/// early.
#[test]
fn nothing_is_early_or_lost_when_the_clock_steps() {
    if shim::library().is_none() {
        return;
    }
    let mut load = Load::new(seed());
    let folder = Folder::new("clock");
    let clock = folder.store().with_extension("clock");
    set_clock(&clock, 0);
    let shim = vec![("SHIM_CLOCK", clock.display().to_string())];
    let options = Options { store: folder.store(), shim, ..Options::default() };
    let mut child = Running::start(&options, &load.ledger);
    for seconds in [0, 600, 599, 1_200, 1_198, 1_199] {
        set_clock(&clock, seconds);
        load.send_for(&mut child, Duration::from_millis(150));
    }
    child.kill();
    set_clock(&clock, 1_197);
    assert_balanced(&load.settle(&options));
}

/// Settles the account with a child whose clock is ahead by this number of seconds.
fn with_clock(load: &mut Load, options: &Options, seconds: i64) -> Vec<String> {
    if shim::library().is_none() {
        return std::mem::take(&mut load.ledger.account().faults);
    }
    let clock = options.store.with_extension("clock");
    set_clock(&clock, seconds);
    let shim = vec![("SHIM_CLOCK", clock.display().to_string())];
    load.settle(&Options { shim, ..options.clone() })
}

/// Writes the file that shifts the clock of a child by this number of seconds. The file keeps its
/// length, because the child has mapped it.
fn set_clock(path: &Path, seconds: i64) {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).expect("the clock's file");
    file.write_all_at(&(seconds * 1_000_000).to_ne_bytes(), 0).expect("the clock's file");
}
