use std::process::Command;

use super::{command_line, redis_stand_in, run_command, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_lock_watchdog");
const SIZES: [&str; 4] = ["--lease", "900", "--work", "2"];

fn is_told(output: &str) {
    assert!(output.contains("a lease of 900ms, renewed every 300ms"), "{output}");
    assert!(
        output.contains("Alice worked for 1.8s") && output.contains("another process held it for 1.8s"),
        "{output}"
    );
}

#[test]
fn a_lock_lasts_as_long_as_its_holder() {
    let url = redis_stand_in::start();
    is_told(&success(PROGRAM, &[&SIZES[..], &["--redis", &url]].concat()));
}

#[test]
fn a_lock_in_a_real_redis_lasts_as_long_as_its_holder() {
    if Command::new("redis-server").arg("--version").output().is_err() {
        println!("skipped: redis-server is not installed");
        return;
    }
    is_told(&success(PROGRAM, &SIZES));
}

#[test]
fn without_redis_the_program_says_how_to_install_it() {
    let output = run_command(Command::new(PROGRAM).env("PATH", "/nonexistent"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("apt-get install redis-server") && output.stdout.is_empty(), "{error}");
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--lease", "299"], "--lease: '299' given; allowed: a whole number in 300..=600000"),
            (&["--work", "1"], "--work: '1' given; allowed: a whole number in 2..=1000"),
            (&["--redis", "somewhere"], "--redis: 'somewhere' given; allowed: redis://HOST:PORT"),
            (&["--role", "guard"], "--role: 'guard' given; allowed: play, hold"),
            (&["--role", "hold"], "--role hold without --redis; allowed: both"),
            (&["--redis", "redis://127.0.0.1:1"], "allowed: a running server"),
        ],
    );
}
