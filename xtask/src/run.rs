//! Running child processes, with their command lines printed and their exit codes passed on.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{LazyLock, OnceLock};
use std::thread;

use xshell::{Cmd, Shell, cmd};

pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// The file that keeps the output of the steps, if the user asked for one.
static LOG: OnceLock<File> = OnceLock::new();

thread_local! {
    /// The file that gets the output of this thread, if another thread uses the terminal.
    static OUTPUT: RefCell<Option<File>> = const { RefCell::new(None) };
    /// The CPU seconds of the children of this thread's step.
    static CPU: Cell<Option<f64>> = const { Cell::new(None) };
}

/// Runs a command, and writes the times of this shell and then of its children into a file.
const TIMED: &str = r#""$@"; code=$?; times >"$0"; exit $code"#;

/// The reason why a command failed or was skipped, with the exit code of xtask.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { code: 1, message: message.into() }
    }

    /// Returns a skipped step. A missing tool is no fault of the code.
    pub(crate) fn skipped(missing: &str) -> Self {
        Self { code: 0, message: format!("skipped, because this machine has no {missing}") }
    }

    /// Returns the failure for a wrong command line.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { code: 2, message: format!("{message}; see `cargo xtask help`") }
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(error.to_string())
    }
}

/// Returns the root of the workspace. Cargo tells it to the program that it runs. A program from a
/// copied build folder would otherwise work on the workspace in which it was built.
pub(crate) fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        Path::new(&here).parent().unwrap_or(Path::new(".")).to_owned()
    });
    &ROOT
}

/// Returns the folder into which cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns a shell in the root of the workspace.
pub(crate) fn shell() -> Result<Shell> {
    let sh = Shell::new()?;
    sh.change_dir(root());
    Ok(sh)
}

/// Empties a folder and copies the wanted files that git has or would add into it.
pub(crate) fn copy_sources(sh: &Shell, folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let list = cmd!(sh, "git ls-files --cached --others --exclude-standard").quiet().read()?;
    for path in list.lines().filter(|path| is_wanted(path) && root().join(path).is_file()) {
        let copy = folder.join(path);
        fs::create_dir_all(copy.parent().unwrap_or(folder))?;
        fs::write(copy, fs::read(root().join(path))?)?;
    }
    Ok(())
}

/// Sends the output of all children to a file from now on.
pub(crate) fn log_to(path: &Path) -> Result {
    LOG.set(File::create(path)?).map_err(|_| Failure::new("the log has been chosen already"))
}

/// Sends the output of this thread and of its children to a new file until `work` returns.
pub(crate) fn into_file(path: &Path, work: impl FnOnce()) -> Result {
    OUTPUT.set(Some(File::create(path)?));
    work();
    OUTPUT.set(None);
    Ok(())
}

/// Prints a text on the terminal, and into the log if there is one.
pub(crate) fn report(text: &str) {
    let written = OUTPUT.with_borrow_mut(|file| {
        if let Some(file) = file {
            return file.write_all(text.as_bytes());
        }
        eprint!("{text}");
        LOG.get().map_or(Ok(()), |mut log| log.write_all(text.as_bytes()))
    });
    if let Err(error) = written {
        eprintln!("cannot write the log: {error}");
    }
}

/// Returns the result of `work` and the CPU seconds of the commands that it [runs](run) on this
/// thread, with all of their children that they waited for.
pub(crate) fn with_cpu<R>(work: impl FnOnce() -> R) -> (R, f64) {
    CPU.set(Some(0.0));
    let result = work();
    (result, CPU.take().unwrap_or_default())
}

/// Runs a command whose output goes to the file of this thread, to the log, or else to the output
/// of xtask.
pub(crate) fn run(cmd: Cmd<'_>) -> Result {
    run_with(cmd, |_| ())
}

/// Runs a command after `change`, which sets options that xshell lacks.
pub(crate) fn run_with(cmd: Cmd<'_>, change: impl FnOnce(&mut Command)) -> Result {
    start(cmd, change, Command::status)
}

/// Runs a command and passes the lines of its standard output to `on_line`.
pub(crate) fn run_reading(cmd: Cmd<'_>, mut on_line: impl FnMut(&str)) -> Result {
    start(
        cmd,
        |_| (),
        |command| {
            let mut child = command.stdout(Stdio::piped()).spawn()?;
            for line in child.stdout.take().into_iter().flat_map(|output| BufReader::new(output).split(b'\n')) {
                let line = String::from_utf8_lossy(&line?).into_owned();
                match output()? {
                    Some(mut file) => writeln!(file, "{line}")?,
                    None => println!("{line}"),
                }
                on_line(&line);
            }
            child.wait()
        },
    )
}

/// Returns the file that gets the output of children, or `None` if that is the output of xtask.
fn output() -> std::io::Result<Option<File>> {
    OUTPUT.with_borrow(|file| file.as_ref().or(LOG.get()).map(File::try_clone)).transpose()
}

/// Prints the command line, and runs the command by `wait`.
fn start(
    cmd: Cmd<'_>,
    change: impl FnOnce(&mut Command),
    wait: impl FnOnce(&mut Command) -> std::io::Result<ExitStatus>,
) -> Result {
    let line = cmd.to_string();
    let command = Command::from(cmd);
    let set = command.get_envs().map(|(name, value)| format!("{}={:?} ", name.display(), value.unwrap_or_default()));
    report(&format!("$ {}{line}\n", set.collect::<String>()));
    let times = target_dir().join(format!("times-{:?}", thread::current().id()));
    let mut command = if cfg!(unix) && CPU.get().is_some() { timed(&command, &times) } else { command };
    if let Some(file) = output()? {
        command.stdout(file.try_clone()?).stderr(file);
    }
    change(&mut command);
    let status = wait(&mut command).map_err(|error| Failure::new(format!("cannot run `{line}`: {error}")))?;
    if let Ok(text) = fs::read_to_string(&times) {
        CPU.set(CPU.get().map(|before| before + cpu_seconds(&text)));
        fs::remove_file(times)?;
    }
    // A child that a signal ended has no code.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    if status.success() { Ok(()) } else { Err(Failure { code, message: format!("`{line}` failed ({status})") }) }
}

/// Returns a command that runs another one by [`TIMED`].
fn timed(command: &Command, times: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", TIMED]).arg(times).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.get_current_dir().map(|folder| shell.current_dir(folder));
    shell
}

/// Returns the sum of the second line of `times`, which is for example `1m2.34s 0m0.50s`.
fn cpu_seconds(times: &str) -> f64 {
    let seconds = |time: &str| {
        let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    times.lines().nth(1).unwrap_or_default().split(' ').filter_map(seconds).sum()
}

/// Returns the first failure after all commands have run, so that it does not hide the others.
pub(crate) fn first_failure(results: impl IntoIterator<Item = Result>) -> Result {
    results.into_iter().fold(Ok(()), Result::and)
}

/// Returns a skipped step if `line` cannot run here, because `tool` is missing.
pub(crate) fn need(line: &str, tool: &str) -> Result {
    let (program, args) = line.split_once(' ').unwrap_or((line, ""));
    let output = Command::new(program).args(args.split(' ')).output();
    if output.is_ok_and(|output| output.status.success()) { Ok(()) } else { Err(Failure::skipped(tool)) }
}

/// Unpacks a package of the registry of npm below the target folder, unless that is done. Returns
/// its folder. Nothing of the package runs.
pub(crate) fn npm_package(sh: &Shell, name: &str, version: &str) -> Result<PathBuf> {
    let folder = target_dir().join("npm").join(format!("{}-{version}", name.rsplit('/').next().unwrap_or(name)));
    let unpacked = folder.join("unpacked");
    if !unpacked.is_dir() {
        need("npm --version", "npm (apt-get install npm)")?;
        fs::create_dir_all(&folder)?;
        let file = cmd!(sh, "npm pack --silent --pack-destination {folder} {name}@{version}").read()?;
        let file = folder.join(file);
        cmd!(sh, "tar -xzf {file} -C {folder}").run()?;
        fs::remove_file(file)?;
        fs::rename(folder.join("package"), &unpacked)?;
    }
    Ok(unpacked)
}

/// Returns the flags in the environment's `variable`, followed by `more`.
pub(crate) fn flags_and(variable: &str, more: &str) -> String {
    format!("{} {more}", std::env::var(variable).unwrap_or_default()).trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_failed_line_does_not_hide_the_next() {
        let mut runs = 0;
        let results = [Err(super::Failure::new("first")), Err(super::Failure::new("second")), Ok(())];
        let failure = super::first_failure(results.into_iter().inspect(|_| runs += 1)).unwrap_err();
        assert_eq!((failure.message.as_str(), runs), ("first", 3));
    }

    #[test]
    #[cfg(unix)]
    fn the_cpu_time_of_children_is_counted() {
        let sh = super::shell().unwrap();
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3";
        let (result, cpu) = super::with_cpu(|| super::run(xshell::cmd!(sh, "sh -c {count}")));
        assert!(result.unwrap_err().code == 3 && (0.01..60.0).contains(&cpu), "{cpu}");
        assert!((super::cpu_seconds("0m0.00s 0m0.01s\n1m2.34s 0m0.50s\n") - 62.84).abs() < 1e-9);
    }
}
