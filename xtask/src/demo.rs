//! `cargo xtask demo`: the sessions example on the real clock, sped up to half a minute.

use crate::args::Args;
use crate::cargo::{Cargo, Failure};

/// The log's 46,321 s and the idle tail of 1,800 s take 30 s at this speed.
const SPEED: &str = "1600";

/// How many sessions the log holds; any other number is a fault of the timer or of the example.
const LAST_LINE: &str = "sessions: 2989";

pub(crate) fn command(args: Args) -> Result<(), Failure> {
    let rest = args.done_with_rest()?;
    sessions().rest(&with_defaults(rest)).run()
}

/// The example on virtual time, judged by what it prints last.
pub(crate) fn smoke() -> Result<(), Failure> {
    let output = sessions().rest(&["--virtual".to_owned()]).output()?;
    check(&output)
}

fn sessions() -> Cargo {
    Cargo::new("run --release -p examples --bin sessions")
}

/// A default gives way to the caller's own choice; virtual time has no speed.
fn with_defaults(rest: Vec<String>) -> Vec<String> {
    let given = |name: &str| rest.iter().any(|arg| arg == name || arg.starts_with(&format!("{name}=")));
    let mut args = Vec::new();
    if !given("--speed") && !given("--virtual") {
        args.extend(["--speed".to_owned(), SPEED.to_owned()]);
    }
    if !given("--executor") && !given("--virtual") {
        args.extend(["--executor".to_owned(), "rayon".to_owned()]);
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
        with_defaults(rest.split_whitespace().map(str::to_owned).collect()).join(" ")
    }

    #[test]
    fn defaults_give_way_to_what_is_asked_for() {
        assert_eq!(line(""), "--speed 1600 --executor rayon");
        assert_eq!(line("--speed 9 --quiet"), "--executor rayon --speed 9 --quiet");
        assert_eq!(line("--executor=immediate"), "--speed 1600 --executor=immediate");
        assert_eq!(line("--virtual"), "--virtual");
    }

    #[test]
    fn any_other_last_line_fails() {
        assert!(check("replaying\nsessions: 2989\n").is_ok());
        assert!(check("sessions: 2989\nsessions: 2990\n").is_err());
        assert!(check("sessions: 29890\n").is_err());
        assert!(check("").is_err());
    }
}
