use super::*;

fn options(args: &[&str]) -> Options {
    read(args).unwrap_or_else(|stop| panic!("{args:?} gave {stop:?}"))
}

fn read(args: &[&str]) -> Result<Options, Stop> {
    parse(&mut Args::new(USAGE, args.iter().map(Into::into)))
}

fn refusal(args: &[&str]) -> String {
    match read(args) {
        Err(Stop::Refused(Refused(text))) => text,
        other => panic!("{args:?} gave {other:?}"),
    }
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
fn a_refusal_of_a_kind_names_the_known_ones() {
    assert_eq!(refusal(&["--wheel", "square"]), "--wheel: 'square' given; allowed: hashed, hierarchical");
    let text = "--executor: 'tokio' given; allowed: immediate, rayon, threadpool";
    assert_eq!(refusal(&["--executor=tokio"]), text);
}

#[test]
fn contradicting_options_are_refused() {
    let text = "--speed and --virtual both given; allowed: one of them";
    assert_eq!(refusal(&["--speed", "10", "--virtual"]), text);
    assert_eq!(refusal(&["--virtual", "--speed", "10"]), text);
    assert_eq!(refusal(&["--linger", "1"]), "--linger given without --metrics; allowed: both");
}

#[test]
fn addresses_and_paths_are_checked() {
    let text = "--metrics: '65536' given; allowed: a port, or an IP address and a port";
    assert_eq!(refusal(&["--metrics", "65536"]), text);
    assert_eq!(refusal(&["--report="]), "--report: '' given; allowed: the path of the page");
    assert_eq!(refusal(&[""]), "FILE: '' given; allowed: the path of a log");
}

#[test]
fn usage_fits_into_120_columns() {
    assert!(USAGE.lines().all(|line| line.len() <= 120));
}
