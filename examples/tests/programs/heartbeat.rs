use super::{command_line, number, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_heartbeat");

#[test]
fn silent_ones_are_closed_after_three_heartbeats() {
    let output = success(PROGRAM, &["--connections", "30", "--interval", "250"]);
    assert!(output.starts_with("30 connections on one timer, a heartbeat after 250ms of silence"), "{output}");
    assert_eq!((number(&output, "fell silent"), number(&output, "closed, after")), (10, 10));
    // To each, two are answered and three are not; a busy machine may answer late, which takes one more.
    let line = output.lines().find(|line| line.contains("fell silent")).unwrap();
    let sent: u64 = line.split_whitespace().find_map(|word| word.parse().ok().filter(|n| *n != 10)).unwrap();
    assert!((50..=70).contains(&sent), "{output}");
}

#[test]
fn its_command_line() {
    command_line(
        PROGRAM,
        &[
            (&["--connections", "0"], "--connections: '0' given; allowed: a whole number in 1..=20000"),
            (&["--interval", "1s"], "--interval: '1s' given; allowed: a whole number in 50..=60000"),
            (&["--interval"], "--interval needs a value"),
        ],
    );
}
