//! The command line, the checks and the exit code of the small programs.
//!
//! Every argument of a command line must be valid. A refusal names the given and the allowed
//! values, and shows the usage. The exit code is 0 on success, 1 if a check fails or an error
//! occurs, and 2 for a mistake that the user can correct. The usage text lists the options that
//! exist, so that the help and the refusals cannot differ. Short options other than `-h` are not
//! supported.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::ops::RangeInclusive;
use std::process::ExitCode;
use std::time::Duration;

use lexopt::Arg;

/// Runs a program. Reads its arguments with `parse`, prints `usage` for `--help`, and turns the
/// result of `run` into the exit code. An error that is a [`Refused`] gives code 2, any other error
/// 1.
///
/// ```no_run
/// use examples::cli::{self, Checks};
///
/// const USAGE: &str = "Counts.\n\n  --to N   1..=100 [default: 10]\n  -h, --help   print this\n";
///
/// fn main() -> std::process::ExitCode {
///     let parse = |args: &mut cli::Args| {
///         let mut to = 10;
///         while let Some(option) = args.option()? {
///             match option {
///                 "--to" => to = args.number(1..=100)?,
///                 _ => return Err(args.unknown(option)),
///             }
///         }
///         Ok(to)
///     };
///     let run = |to| {
///         let mut checks = Checks::default();
///         checks.that((1..=to).count() as u64 == to, "every number was counted once");
///         Ok(checks)
///     };
///     cli::main("count", USAGE, parse, run)
/// }
/// ```
pub fn main<O>(
    program: &str,
    usage: &'static str,
    parse: impl FnOnce(&mut Args) -> Result<O, Stop>,
    run: impl FnOnce(O) -> Result<Checks, Box<dyn Error>>,
) -> ExitCode {
    let mut args = Args::new(usage, std::env::args_os().skip(1));
    let options = match parse(&mut args) {
        Ok(options) => options,
        Err(Stop::Help) => {
            print!("{usage}");
            return ExitCode::SUCCESS;
        }
        Err(Stop::Refused(refused)) => return refuse(program, usage, &refused),
    };
    match run(options) {
        Ok(checks) if checks.failed == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => match error.downcast_ref() {
            Some(refused) => refuse(program, usage, refused),
            None => {
                eprintln!("{program}: {error}");
                ExitCode::FAILURE
            }
        },
    }
}

/// Prints a refusal with the usage line of the program.
fn refuse(program: &str, usage: &str, refused: &Refused) -> ExitCode {
    let usage = usage.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
    eprintln!("{program}: {refused}\n{usage}\nSee {program} --help.");
    ExitCode::from(2)
}

/// A refusal, which names the given and the allowed values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Refused {}

/// The reason why a program does not start.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop {
    /// `--help` was given.
    Help,
    /// The command line is wrong.
    Refused(Refused),
}

/// The checks of a program on its own result.
#[derive(Debug, Default)]
pub struct Checks {
    failed: usize,
}

impl Checks {
    /// Prints a claim and whether it holds.
    pub fn that(&mut self, holds: bool, what: impl fmt::Display) {
        println!("{} {what}", if holds { "    ok " } else { "FAILED " });
        self.failed += usize::from(!holds);
    }
}

/// The arguments, read one option at a time.
#[derive(Debug)]
pub struct Args {
    parser: lexopt::Parser,
    allowed: Vec<&'static str>,
    /// The name of the only operand, if the program takes one.
    operand: Option<&'static str>,
    /// The operand that was read last.
    given: Option<OsString>,
    seen: Vec<&'static str>,
}

impl Args {
    /// Reads `args` as options of a program with this usage text.
    pub fn new(usage: &'static str, args: impl IntoIterator<Item = OsString>) -> Self {
        // An indented line that begins with an option or with a word in capitals lists it.
        let names = usage.lines().filter_map(|line| {
            let line = line.strip_prefix("  ")?;
            line.strip_prefix("-h, ").unwrap_or(line).split(' ').next()
        });
        let is_operand = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase());
        let operand = names.clone().find(|name| is_operand(name));
        let allowed = names.filter(|name| name.starts_with("--")).collect();
        Self { parser: lexopt::Parser::from_args(args), allowed, operand, given: None, seen: Vec::new() }
    }

    /// Returns the next option or operand as the usage text spells it, or `None` at the end.
    ///
    /// # Errors
    ///
    /// Fails for `--help`, for an option that is unknown or repeated, for a value after a flag, and
    /// for an operand that the usage text does not list.
    pub fn option(&mut self) -> Result<Option<&'static str>, Stop> {
        let allowed = self.allowed.join(", ");
        let given = match self.parser.next() {
            Ok(None) => return Ok(None),
            Ok(Some(Arg::Long("help") | Arg::Short('h'))) => return Err(Stop::Help),
            Ok(Some(Arg::Long(name))) => format!("--{name}"),
            Ok(Some(Arg::Short(name))) => format!("-{name}"),
            Ok(Some(Arg::Value(value))) => match self.operand {
                None => return Err(refused("operand", Some(&value), &allowed)),
                Some(operand) => {
                    self.given = Some(value);
                    operand.to_owned()
                }
            },
            Err(error) => return Err(Stop::Refused(Refused(format!("{error}; allowed: {allowed}")))),
        };
        let Some(option) = self.allowed.iter().copied().chain(self.operand).find(|option| *option == given) else {
            return Err(self.unknown(&given));
        };
        if self.seen.contains(&option) {
            return Err(Stop::Refused(Refused(format!("{option} given twice; allowed: once"))));
        }
        self.seen.push(option);
        Ok(Some(option))
    }

    /// Reads the arguments of a program that has no options.
    ///
    /// # Errors
    ///
    /// Fails for any argument, `--help` included.
    pub fn none(&mut self) -> Result<(), Stop> {
        match self.option()? {
            None => Ok(()),
            Some(option) => Err(self.unknown(option)),
        }
    }

    /// Returns the refusal of an option that the program does not know.
    pub fn unknown(&self, option: &str) -> Stop {
        Stop::Refused(Refused(format!("unknown option '{option}'; allowed: {}", self.allowed.join(", "))))
    }

    /// Reads the value of the last option as a whole number.
    ///
    /// # Errors
    ///
    /// Fails if there is no value or if it is out of range.
    pub fn number(&mut self, allowed: RangeInclusive<u64>) -> Result<u64, Stop> {
        let text = format!("a whole number in {}..={}", allowed.start(), allowed.end());
        self.value(&text, |given| {
            // `parse` also accepts a leading plus sign.
            let digits = given.bytes().all(|byte| byte.is_ascii_digit());
            given.parse().ok().filter(|number| digits && allowed.contains(number))
        })
    }

    /// Reads the value of the last option as a count.
    ///
    /// # Errors
    ///
    /// Fails like [`number`](Self::number).
    pub fn count(&mut self, allowed: RangeInclusive<u32>) -> Result<usize, Stop> {
        let number = self.number(u64::from(*allowed.start())..=u64::from(*allowed.end()))?;
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    /// Reads the value of the last option in milliseconds.
    ///
    /// # Errors
    ///
    /// Fails like [`number`](Self::number).
    pub fn millis(&mut self, allowed: RangeInclusive<u64>) -> Result<Duration, Stop> {
        self.number(allowed).map(Duration::from_millis)
    }

    /// Reads the value of the last option as one of several words.
    ///
    /// # Errors
    ///
    /// Fails if there is no value or another word.
    pub fn choice<T: Copy>(&mut self, all: &[(&str, T)]) -> Result<T, Stop> {
        let words: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
        self.value(&words.join(", "), |given| all.iter().find(|(word, _)| *word == given).map(|(_, value)| *value))
    }

    /// Reads the value of the last option with `read`. `allowed` describes the values that
    /// `read` accepts.
    ///
    /// # Errors
    ///
    /// Fails if there is no value or if `read` returns `None`.
    pub fn value<T>(&mut self, allowed: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Stop> {
        let option = self.seen.last().copied().unwrap_or_default();
        let given = self.given.take().map_or_else(|| self.parser.value(), Ok);
        let given = given.map_err(|_| refused(option, None, allowed))?;
        given.to_str().and_then(read).ok_or_else(|| refused(option, Some(&given), allowed))
    }
}

fn refused(subject: &str, given: Option<&OsString>, allowed: &str) -> Stop {
    Stop::Refused(Refused(match given {
        Some(given) => format!("{subject}: '{}' given; allowed: {allowed}", given.display()),
        None => format!("{subject} needs a value; allowed: {allowed}"),
    }))
}

#[cfg(test)]
mod tests {
    use super::{Args, Refused, Stop};
    use std::time::Duration;

    const USAGE: &str = "Does it.\n\nUsage: it [OPTIONS]\n\n  --size N       how many --really\n  --wait MILLIS  so long\n  --how KIND  a | b\n  -h, --help  print this\n";
    const WITH_OPERAND: &str = "Usage: it [FILE]\n\n  FILE    the input\n  --now   at once\n";

    fn parse(args: &[&str]) -> Result<(u64, Duration, char), Stop> {
        let mut args = Args::new(USAGE, args.iter().map(Into::into));
        let mut found = (1, Duration::ZERO, 'a');
        while let Some(option) = args.option()? {
            match option {
                "--size" => found.0 = args.number(1..=9)?,
                "--wait" => found.1 = args.millis(0..=99)?,
                "--how" => found.2 = args.choice(&[("a", 'a'), ("b", 'b')])?,
                _ => return Err(args.unknown(option)),
            }
        }
        Ok(found)
    }

    #[test]
    fn options_are_read_in_either_form_and_any_order() {
        assert_eq!(parse(&[]), Ok((1, Duration::ZERO, 'a')));
        assert_eq!(parse(&["--how=b", "--size", "9", "--wait=5"]), Ok((9, Duration::from_millis(5), 'b')));
        assert_eq!(parse(&["--size", "2", "--help"]), Err(Stop::Help));
        assert_eq!(parse(&["-h"]), Err(Stop::Help));
    }

    #[test]
    fn an_operand_and_a_flag_are_read() {
        let parse = |args: &[&str]| {
            let mut args = Args::new(WITH_OPERAND, args.iter().map(Into::into));
            let mut found = (String::new(), false);
            while let Some(option) = args.option()? {
                match option {
                    "FILE" => found.0 = args.value("a path", |given| (!given.is_empty()).then(|| given.to_owned()))?,
                    _ => found.1 = true,
                }
            }
            Ok(found)
        };
        assert_eq!(parse(&["--now", "a.csv"]), Ok(("a.csv".to_owned(), true)));
        assert_eq!(parse(&["--", "--now"]), Ok(("--now".to_owned(), false)));
        for (args, text) in [
            (&["a", "b"][..], "FILE given twice; allowed: once"),
            (&[""], "FILE: '' given; allowed: a path"),
            (&["--now=yes"], "unexpected argument for option '--now': \"yes\"; allowed: --now"),
        ] {
            assert_eq!(parse(args), Err(Stop::Refused(Refused(text.to_owned()))));
        }
    }

    #[test]
    fn a_refusal_names_the_given_and_allowed_values() {
        for (args, text) in [
            (&["--size", "0"][..], "--size: '0' given; allowed: a whole number in 1..=9"),
            (&["--size", "+1"], "--size: '+1' given; allowed: a whole number in 1..=9"),
            (&["--size"], "--size needs a value; allowed: a whole number in 1..=9"),
            (&["--wait", "soon"], "--wait: 'soon' given; allowed: a whole number in 0..=99"),
            (&["--how", "c"], "--how: 'c' given; allowed: a, b"),
            (&["--size", "1", "--size=1"], "--size given twice; allowed: once"),
            (&["--really", "1"], "unknown option '--really'; allowed: --size, --wait, --how, --help"),
            (&["-s"], "unknown option '-s'; allowed: --size, --wait, --how, --help"),
            (&["it"], "operand: 'it' given; allowed: --size, --wait, --how, --help"),
        ] {
            assert_eq!(parse(args), Err(Stop::Refused(Refused(text.to_owned()))));
        }
    }
}
