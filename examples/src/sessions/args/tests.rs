use super::*;

fn options(args: &[&str]) -> Options {
    match parse(args) {
        Ok(Command::Replay(options)) => options,
        other => panic!("{args:?} gave {other:?}"),
    }
}

fn refusal(args: &[&str]) -> String {
    parse(args).expect_err("a refusal").to_string()
}

#[test]
fn the_default_is_the_log_at_2400_times_its_speed() {
    assert_eq!(options(&[]), Options::default());
    assert_eq!(options(&[]).clock, Clock::Real { speed: 2400 });
    assert_eq!(options(&[]).idle, 1800);
}

#[test]
fn options_are_read_in_both_spellings_and_any_order() {
    let wanted = Options {
        file: Some("a.csv".into()),
        idle: 60,
        wheel: Wheel::Hashed,
        executor: Executor::ThreadPool,
        tick: Duration::from_micros(250),
        clock: Clock::Real { speed: 7 },
        metrics: Some(ListenAddr::from(9184)),
        linger: Duration::from_secs(9),
        report: Some("a.html".into()),
    };
    let spaced = ["a.csv", "--idle", "60", "--wheel", "hashed", "--executor", "threadpool"];
    let spaced = [&spaced[..], &["--tick", "250", "--speed", "7"]].concat();
    let spaced = [&spaced[..], &["--metrics", "9184", "--linger", "9", "--report", "a.html"]].concat();
    assert_eq!(options(&spaced), wanted);
    let seen = ["--report=a.html", "--linger=9", "--metrics=127.0.0.1:9184"];
    let inline = ["--speed=7", "--tick=250", "--executor=threadpool", "--wheel=hashed", "--idle=60", "a.csv"];
    assert_eq!(options(&[&inline[..], &seen].concat()), wanted);
    assert_eq!(options(&["--executor", "rayon"]).executor, Executor::Rayon);
    assert_eq!(options(&["--virtual"]).clock, Clock::Virtual);
}

#[test]
fn each_range_ends_at_its_documented_bounds() {
    for (name, low, high) in
        [("--idle", 1, 31_536_000), ("--tick", 1, 60_000_000), ("--speed", 1, 1_000_000), ("--linger", 1, 86_400)]
    {
        for good in [low, high] {
            options(&["--metrics=0", name, &good.to_string()]);
        }
        for bad in ["0".to_owned(), (high + 1).to_string(), "99999999999999999999999".to_owned()] {
            let text = format!("{name}: '{bad}' given; allowed: a whole number in {low}..={high}");
            assert_eq!(refusal(&[name, &bad]), text);
        }
    }
}

#[test]
fn a_refusal_of_a_value_names_the_allowed_ones() {
    for bad in ["", "x", "-1", "+1", "1.5", "1e3", " 1", "1_000"] {
        let text = format!("--idle: '{bad}' given; allowed: a whole number in 1..=31536000");
        assert_eq!(refusal(&["--idle", bad]), text);
    }
}

#[test]
fn a_refusal_of_a_kind_names_the_known_ones() {
    assert_eq!(refusal(&["--wheel", "square"]), "--wheel: 'square' given; allowed: hashed, hierarchical");
    let text = "--executor: 'tokio' given; allowed: immediate, rayon, threadpool";
    assert_eq!(refusal(&["--executor=tokio"]), text);
}

#[test]
fn a_missing_value_is_refused() {
    let text = "--speed needs a value; allowed: a whole number in 1..=1000000";
    assert_eq!(refusal(&["--speed"]), text);
    assert_eq!(refusal(&["--wheel"]), "--wheel needs a value; allowed: hashed, hierarchical");
}

#[test]
fn contradicting_options_are_refused() {
    let text = "--speed and --virtual both given; allowed: one of them";
    assert_eq!(refusal(&["--speed", "10", "--virtual"]), text);
    assert_eq!(refusal(&["--virtual", "--speed", "10"]), text);
    assert_eq!(refusal(&["--idle", "1", "--idle=2"]), "--idle given twice; allowed: once");
    assert_eq!(refusal(&["a", "b"]), "FILE: 'a' and 'b' given; allowed: one");
    assert_eq!(refusal(&["--virtual=yes"]), "--virtual takes no value, but 'yes' was given");
    assert_eq!(refusal(&[""]), "FILE: '' given; allowed: the path of a log");
}

#[test]
fn metrics_and_report_need_a_value() {
    assert!(
        refusal(&["--metrics", "here"]).starts_with("--metrics: `here` is not an address to listen on: allowed are")
    );
    assert!(refusal(&["--metrics", "65536"]).contains("a port from 0 to 65535"));
    assert_eq!(refusal(&["--metrics"]), "--metrics needs a value; allowed: a port, or an IP address and a port");
    assert_eq!(refusal(&["--linger", "1"]), "--linger given without --metrics; allowed: both");
    assert_eq!(refusal(&["--report="]), "--report needs a value; allowed: the path of the page");
}

#[test]
fn a_refusal_of_an_option_names_the_known_ones() {
    assert_eq!(refusal(&["--fast"]), format!("unknown option '--fast'; allowed: {OPTIONS}"));
    assert_eq!(refusal(&["-v"]), format!("unknown option '-v'; allowed: {OPTIONS}"));
    assert_eq!(refusal(&["--fast=9"]), format!("unknown option '--fast'; allowed: {OPTIONS}"));
}

#[test]
fn help_is_recognized_and_a_double_dash_ends_options() {
    assert_eq!(parse(["--help"]), Ok(Command::Help));
    assert_eq!(parse(["--virtual", "-h"]), Ok(Command::Help));
    assert_eq!(options(&["--", "--idle"]).file, Some("--idle".into()));
}

#[test]
fn usage_names_every_option_within_120_columns() {
    for name in OPTIONS.split(", ") {
        assert!(USAGE.contains(name), "{name}");
    }
    assert!(USAGE.lines().all(|line| line.len() <= 120));
}
