use super::{command_line, number, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_heartbeat");

#[test]
fn connections_close_after_three_intervals_of_silence_and_connect_again() {
    let output = success(PROGRAM, &["--connections", "30", "--interval", "500"]);
    assert!(output.starts_with("30 connections on one timer, a heartbeat after 500ms of silence"), "{output}");
    assert_eq!(["fell silent", "closed, after", "connected again"].map(|words| number(&output, words)), [10; 3]);
    // A silent peer answers two heartbeats and misses two or three. On a busy machine a late answer
    // adds one.
    let line = output.lines().find(|line| line.contains("fell silent")).unwrap();
    let sent: u64 = line.split_whitespace().find_map(|word| word.parse().ok().filter(|n| *n != 10)).unwrap();
    assert!((40..=60).contains(&sent), "{output}");
    // The program checks the lower bound of three intervals. The first of ten closes soon after.
    let line = output.lines().find(|line| line.contains("closed, after")).unwrap();
    let least = line.split_whitespace().find_map(|word| word.strip_suffix('s')?.parse::<f64>().ok()).unwrap();
    assert!((1.5..3.0).contains(&least), "{output}");
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--connections", "0"], "--connections: '0' given; allowed: a whole number in 1..=20000"),
            (&["--interval", "1s"], "--interval: '1s' given; allowed: a whole number in 50..=60000"),
            (&["--interval"], "--interval needs a value"),
        ],
    );
}
