use super::{command_line, number, success};

const PROGRAM: &str = env!("CARGO_BIN_EXE_http_server");

#[test]
fn every_request_is_answered_with_each_timer() {
    for timer in ["ours", "limits", "tokio"] {
        let sizes = ["--connections", "20", "--requests", "40", "--stuck", "20", "--silent", "5"];
        let limits = ["--header", "2000", "--request", "30", "--metrics", "127.0.0.1:0"];
        let output = success(PROGRAM, &[&sizes[..], &limits, &["--timer", timer]].concat());
        assert!(output.starts_with("800 requests over 20 connections, and 5 silent clients"), "{output}");
        assert_eq!((number(&output, "answered"), number(&output, "timed out")), (760, 40), "{output}");
        assert_eq!(number(&output, "idle connections closed"), 25, "{output}");
        if timer == "limits" {
            // An entry is scheduled anew only after it has expired.
            assert!(number(&output, "timeouts scheduled") < 200, "{output}");
        }
    }
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--timer", "sundial"], "--timer: 'sundial' given; allowed: ours, limits, tokio"),
            (&["--connections", "0"], "--connections: '0' given; allowed: a whole number in 1..=10000"),
            (&["--header", "1"], "--header: '1' given; allowed: a whole number in 10..=600000"),
            (&["--metrics", "here"], "--metrics: 'here' given; allowed: a port, or an IP address and a port"),
        ],
    );
}
