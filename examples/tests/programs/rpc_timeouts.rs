use super::{command_line, number, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rpc_timeouts");

#[test]
fn every_call_ends_once_with_both_timers() {
    for timer in ["ours", "tokio"] {
        let sizes =
            ["--in-flight", "1000", "--rounds", "3", "--deadline", "400", "--service", "20", "--connections", "3"];
        let output = success(PROGRAM, &[&sizes[..], &["--timer", timer]].concat());
        assert!(output.starts_with("3000 calls of 1000 callers over 3 connections"), "{output}");
        assert!(output.contains("the 300 calls whose reply never comes timed out"), "{output}");
        assert_eq!(number(&output, "answered in time") + number(&output, "timed out, "), 3000);
        assert!(number(&output, "timed out, ") >= 300 && number(&output, "in flight at once") > 100, "{output}");
    }
}

#[test]
fn a_server_slower_than_the_deadline_answers_none() {
    let sizes = ["--in-flight", "200", "--rounds", "2", "--deadline", "50", "--service", "2000", "--lose", "0"];
    let output = success(PROGRAM, &sizes);
    assert_eq!((number(&output, "answered in time"), number(&output, "timed out, ")), (0, 400), "{output}");
    assert!(output.contains("400 replies came too late"), "{output}");
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--timer", "sundial"], "--timer: 'sundial' given; allowed: ours, tokio"),
            (&["--in-flight", "0"], "--in-flight: '0' given; allowed: a whole number in 1..=1000000"),
            (&["--rounds", "1e3"], "--rounds: '1e3' given; allowed: a whole number in 1..=1000"),
            (&["--connections", "1000"], "--connections: '1000' given; allowed: a whole number in 1..=200"),
            (&["--workers"], "--workers needs a value; allowed: a whole number in 1..=64"),
        ],
    );
}
