//! `cargo xtask demo`: the sessions example on the real clock, sped up to half a minute. While it runs it serves its metrics,
//! at its end it writes a page; the example itself says where.

use crate::args::Args;
use crate::cargo::{Cargo, Failure, root, target_dir};

/// The log's 46,321 s and the idle tail of 1,800 s take 30 s at this speed.
const SPEED: &str = "1600";

/// The same at every run, so that a Prometheus can be told of it once.
const METRICS: &str = "127.0.0.1:9184";

/// The page's name in the target folder.
const REPORT: &str = "sessions.html";

/// How many sessions the log holds; any other number is a fault of the timer or of the example.
const LAST_LINE: &str = "sessions: 2989";

/// `--virtual` is known here, what else the example knows stands after `--`.
pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let on_virtual_time = args.flag("--virtual");
    let mut rest = args.done_with_rest()?;
    if on_virtual_time && !rest.iter().any(|arg| arg == "--virtual") {
        rest.push("--virtual".to_owned());
    }
    sessions().rest(&with_defaults(rest, &report())).run()
}

/// Where the page is written, from the root if it lies below.
fn report() -> String {
    let path = target_dir().join(REPORT);
    path.strip_prefix(root()).unwrap_or(&path).display().to_string()
}

/// The example on virtual time, judged by what it prints last.
pub(crate) fn smoke() -> Result<(), Failure> {
    let output = sessions().rest(&["--virtual".to_owned()]).output()?;
    check(&output)
}

fn sessions() -> Cargo {
    Cargo::new("run --release -p examples --bin sessions")
}

/// A default gives way to the caller's own choice; virtual time has no speed, and is over before one can look.
fn with_defaults(rest: Vec<String>, report: &str) -> Vec<String> {
    let given = |name: &str| rest.iter().any(|arg| arg == name || arg.starts_with(&format!("{name}=")));
    let mut args = Vec::new();
    if !given("--speed") && !given("--virtual") {
        args.extend(["--speed".to_owned(), SPEED.to_owned()]);
    }
    if !given("--executor") && !given("--virtual") {
        args.extend(["--executor".to_owned(), "rayon".to_owned()]);
    }
    if !given("--metrics") && !given("--virtual") {
        args.extend(["--metrics".to_owned(), METRICS.to_owned()]);
    }
    if !given("--report") {
        args.extend(["--report".to_owned(), report.to_owned()]);
    }
    args.extend(rest);
    args
}

fn check(output: &str) -> Result<(), Failure> {
    match output.lines().last().map(str::trim_end) {
        Some(LAST_LINE) => Ok(()),
        last => Err(Failure::new(format!("the demo's last line is `{}`, not `{LAST_LINE}`", last.unwrap_or_default()))),
    }
}

#[cfg(test)]
mod tests {
    use super::{check, with_defaults};

    fn line(rest: &str) -> String {
        with_defaults(rest.split_whitespace().map(str::to_owned).collect(), "a.html").join(" ")
    }

    #[test]
    fn defaults_give_way_to_what_is_asked_for() {
        let look = "--metrics 127.0.0.1:9184 --report a.html";
        assert_eq!(line(""), format!("--speed 1600 --executor rayon {look}"));
        assert_eq!(line("--speed 9 --quiet"), format!("--executor rayon {look} --speed 9 --quiet"));
        assert_eq!(line("--executor=immediate"), format!("--speed 1600 {look} --executor=immediate"));
        assert_eq!(line("--virtual"), "--report a.html --virtual");
        assert_eq!(line("--virtual --report=b --metrics 1"), "--virtual --report=b --metrics 1");
    }

    #[test]
    fn any_other_last_line_fails() {
        assert!(check("replaying\nsessions: 2989\n").is_ok());
        assert!(check("sessions: 2989\nsessions: 2990\n").is_err());
        assert!(check("sessions: 29890\n").is_err());
        assert!(check("").is_err());
    }
}
