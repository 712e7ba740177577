use super::{command_line, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_key_store");

/// Returns the lines that are the same in every run, namely commands, answers and checks without
/// figures.
fn heard(timer: &str) -> Vec<String> {
    let sizes = ["--timer", timer, "--keys", "200", "--life", "100", "--idle", "300", "--period", "5"];
    let output = success(PROGRAM, &sizes);
    let same = |line: &&str| {
        line.starts_with("    ok  ")
            || line.starts_with("  set")
            || line.starts_with("  get")
            || line.starts_with("  take")
    };
    output.lines().filter(same).map(str::to_owned).collect()
}

#[test]
fn a_tokio_program_gets_equal_answers_from_both_timers() {
    let ours = heard("ours");
    let tokio = heard("tokio");
    assert_eq!(ours, tokio);
    assert_eq!(ours.iter().filter(|line| line.starts_with("    ok  ")).count(), 7, "{ours:#?}");
    assert!(ours.contains(&format!("  {:<24} blue", "take colour 0")), "{ours:#?}");
}

#[test]
fn the_two_versions_differ_in_their_use_line() {
    let code = |text: &str| -> Vec<String> {
        let is_code = |line: &&str| !line.starts_with("//") && !line.starts_with("#[allow") && !line.is_empty();
        text.lines().filter(is_code).map(str::to_owned).collect()
    };
    let ours = code(include_str!("../../src/bin/key_store/on_ours.rs"));
    let tokio = code(include_str!("../../src/bin/key_store/on_tokio.rs"));
    assert_eq!((&*ours[0], &*tokio[0]), ("use timer_core::time;", "use tokio::time;"));
    assert_eq!(ours[1..], tokio[1..]);
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--timer", "sundial"], "--timer: 'sundial' given; allowed: ours, tokio"),
            (&["--keys", "0"], "--keys: '0' given; allowed: a whole number in 1..=100000"),
            (&["--life", "1s"], "--life: '1s' given; allowed: a whole number in 1..=60000"),
            (&["--idle", "0"], "--idle: '0' given; allowed: a whole number in 1..=50000"),
            (&["--period"], "--period needs a value; allowed: a whole number in 1..=60000"),
        ],
    );
}
