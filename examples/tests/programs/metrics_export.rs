use super::{command_line, run};

const PROGRAM: &str = env!("CARGO_BIN_EXE_metrics_export");

#[test]
fn a_scrape_has_the_load_with_every_executor() {
    for executor in ["immediate", "rayon", "threadpool"] {
        let output = run(PROGRAM, &["--executor", executor, "--serve", "0"]);
        let out = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{error}");
        assert!(error.contains("http://127.0.0.1:") && out.ends_with("# EOF\n"), "{error}{out}");
        let value = |name: &str| {
            let line = out.lines().find_map(|line| line.strip_prefix(&format!("{name}{{timer=\"requests\"}} ")));
            line.unwrap_or_else(|| panic!("no {name} in {out}")).parse::<u64>().unwrap()
        };
        assert!(value("timer_timeouts_scheduled_total") > 100 && value("timer_timeouts_cancelled_total") > 90, "{out}");
        assert!(value("timer_timeouts_expired_total") > 0, "{out}");
    }
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--executor", "tokio"], "--executor: 'tokio' given; allowed: immediate, rayon, threadpool"),
            (&["--serve", "there"], "--serve: 'there' given; allowed: a port, or an IP address and a port"),
            (&["--serve"], "--serve needs a value"),
            (&["rayon"], "operand: 'rayon' given"),
        ],
    );
}
