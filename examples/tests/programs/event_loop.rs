use super::{command_line, number, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_event_loop");

#[test]
fn silent_clients_are_closed_and_alarms_wake_the_poll() {
    let output = success(PROGRAM, &["--clients", "9", "--idle", "1000", "--alarms", "5"]);
    assert!(output.contains("9 connections: 5 hung up, 4 closed after 1s of silence"), "{output}");
    assert_eq!((number(&output, "lines echoed"), number(&output, "alarms from")), (36, 5));
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--clients", "401"], "--clients: '401' given; allowed: a whole number in 1..=400"),
            (&["--idle", "99"], "--idle: '99' given; allowed: a whole number in 100..=60000"),
            (&["--alarms", "many"], "--alarms: 'many' given; allowed: a whole number in 1..=10000"),
        ],
    );
}
