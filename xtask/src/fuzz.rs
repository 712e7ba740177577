//! `cargo xtask fuzz`: arbitrary bytes as operations on the wheels and on the timer, against the models of the tests.
//!
//! What libFuzzer prints goes to a log beside what is built; here there is one line for each doubling of the
//! executions, and one of results for each target. Without AddressSanitizer, unless asked for: a wheel is safe code, and
//! the models find a fault by its effect, so four times the executions are worth more.

mod outcome;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::{fs, thread};

use self::outcome::{Outcome, judge};
use crate::args::{Args, usage};
use crate::cargo::{Failure, root, target_dir};

const FOLDER: &str = "timer-core/fuzz";

/// Inputs that have found something once; the tests run them as well.
const KEPT: &str = "timer-core/tests/fuzz_inputs";

/// An input of 512 bytes is about 150 operations on a wheel, 60 on a timer.
const LIMITS: [&str; 5] =
    ["-max_len=512", "-len_control=0", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"];

const NO_NIGHTLY: &str = "there is no nightly toolchain, which the instrumentation needs; install one:\n  \
    rustup toolchain install nightly --profile minimal";
const NO_CARGO_FUZZ: &str = "there is no cargo-fuzz; install it:\n  cargo install cargo-fuzz --locked";

pub(crate) fn command(mut args: Args) -> Result<(), Failure> {
    let address = args.flag("--address");
    let minutes = number(&mut args, "--minutes")?.unwrap_or(1);
    let jobs = number(&mut args, "--jobs")?;
    let filter = args.positional().unwrap_or_default();
    args.done()?;
    let targets = select(targets()?, &filter)?;
    check_tools()?;

    let sanitizer = if address { "address" } else { "none" };
    // Next to each other: other flags for the compiler would have all built again.
    let built = target_dir().join(format!("fuzz-{sanitizer}"));
    let fuzz = Fuzz { built, sanitizer, seconds: minutes * 60 };
    fuzz.build(if let [one] = &targets[..] { Some(one) } else { None })?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let jobs = jobs.and_then(|jobs| usize::try_from(jobs).ok()).unwrap_or(cores).clamp(1, targets.len());
    judge(&fuzz.run_all(&targets, jobs)?)
}

fn number(args: &mut Args, name: &str) -> Result<Option<u64>, Failure> {
    let Some(word) = args.value(name)? else { return Ok(None) };
    match word.parse() {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => Err(usage(format!("`{name} {word}`: not a number from 1 on"))),
    }
}

/// The names of the files that hold a target each.
fn targets() -> Result<Vec<String>, Failure> {
    let folder = root().join(FOLDER).join("fuzz_targets");
    let files = fs::read_dir(&folder).map_err(|error| cannot("read", &folder, &error))?;
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let mut names: Vec<String> =
        paths.filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".rs").map(str::to_owned)).collect();
    names.sort();
    Ok(names)
}

/// Those whose name contains `filter`.
fn select(targets: Vec<String>, filter: &str) -> Result<Vec<String>, Failure> {
    let found: Vec<String> = targets.iter().filter(|name| name.contains(filter)).cloned().collect();
    if found.is_empty() {
        return Err(usage(format!("no target has `{filter}` in its name; there are {}", targets.join(", "))));
    }
    Ok(found)
}

fn check_tools() -> Result<(), Failure> {
    let works = |args: &[&str]| {
        let status = nightly(args).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    match (works(&["--version"]), works(&["fuzz", "--version"])) {
        (false, _) => Err(Failure::new(NO_NIGHTLY)),
        (true, false) => Err(Failure::new(NO_CARGO_FUZZ)),
        (true, true) => Ok(()),
    }
}

/// Not the cargo that started this program: that one belongs to a toolchain and cannot take another.
fn nightly(args: &[impl AsRef<str>]) -> Command {
    let mut command = Command::new("cargo");
    command.arg("+nightly").args(args.iter().map(AsRef::as_ref)).current_dir(root());
    command
}

fn cannot(what: &str, path: &std::path::Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {what} {}: {error}", path.display()))
}

struct Fuzz {
    built: PathBuf,
    sanitizer: &'static str,
    seconds: u64,
}

impl Fuzz {
    /// `cargo fuzz VERB` with all that decides what is compiled.
    fn words(&self, verb: &str) -> Vec<String> {
        let built = self.built.to_string_lossy();
        [
            "fuzz",
            verb,
            "--fuzz-dir",
            FOLDER,
            "--sanitizer",
            self.sanitizer,
            "--no-trace-compares",
            "--target-dir",
            &built,
        ]
        .map(str::to_owned)
        .into()
    }

    fn build(&self, only: Option<&String>) -> Result<(), Failure> {
        let mut words = self.words("build");
        words.extend(only.cloned());
        eprintln!("$ cargo +nightly {}", words.join(" "));
        let status = nightly(&words).status().map_err(|error| Failure::new(format!("cannot run cargo: {error}")))?;
        if status.success() { Ok(()) } else { Err(Failure::new(format!("the targets do not build ({status})"))) }
    }

    /// So many at a time.
    fn run_all(&self, targets: &[String], jobs: usize) -> Result<Vec<Outcome>, Failure> {
        let waiting = Mutex::new(targets.iter());
        let next = || waiting.lock().ok()?.next();
        let outcomes = thread::scope(|scope| {
            let worker = || std::iter::from_fn(next).map(|target| self.run(target)).collect::<Vec<_>>();
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
            let done = workers.into_iter().map(|worker| worker.join().map_err(|_| Failure::new("a run panicked")));
            done.collect::<Result<Vec<_>, _>>()
        });
        outcomes?.into_iter().flatten().collect()
    }

    fn run(&self, target: &str) -> Result<Outcome, Failure> {
        // The first folder is the one that new inputs are put into.
        let corpus = format!("{FOLDER}/corpus/{target}");
        fs::create_dir_all(root().join(&corpus)).map_err(|error| cannot("make", corpus.as_ref(), &error))?;
        let kept = format!("{KEPT}/{target}");
        let mut words = self.words("run");
        words.push(target.to_owned());
        let again = format!("cargo +nightly {}", words.join(" "));
        words.push(corpus);
        words.extend(root().join(&kept).is_dir().then_some(kept));
        words.push("--".to_owned());
        words.extend(LIMITS.map(str::to_owned));
        words.push(format!("-max_total_time={}", self.seconds));
        eprintln!("$ cargo +nightly {}", words.join(" "));

        let log = self.built.join(format!("{target}.log"));
        let mut file = fs::File::create(&log).map_err(|error| cannot("write", &log, &error))?;
        let mut outcome = Outcome::new(target, log.clone(), again);
        let ended = nightly(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().and_then(|mut child| {
            for line in child.stderr.take().into_iter().flat_map(|pipe| BufReader::new(pipe).split(b'\n')) {
                let line = line?;
                let line = String::from_utf8_lossy(&line);
                writeln!(file, "{line}")?;
                if outcome.see(&line) {
                    println!("{target}: {line}");
                }
            }
            child.wait()
        });
        let ended = ended.map_err(|error| Failure::new(format!("cannot run {target}: {error}")))?;
        outcome.failed = !ended.success();
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::{command, select, targets};
    use crate::args::Args;

    #[test]
    fn a_filter_that_fits_nothing_lists_the_targets() {
        let all = targets().unwrap();
        assert_eq!(select(all.clone(), "wheel").unwrap(), ["wheel_hashed", "wheel_hierarchical"]);
        assert!(select(all, "wheels").unwrap_err().what.contains("timer_virtual"));
        let line = ["--minutes", "0"].map(str::to_owned);
        assert_eq!(command(Args::new(line.into_iter())).unwrap_err().code, 2);
    }
}
