//! The machine and the software of a run.

use super::host::CpuTime;
use std::fs;
use std::process::Command;
use std::thread::{self, available_parallelism};
use std::time::Duration;

/// The crates whose versions matter to readers of the figures.
const CRATES: &[&str] = &["async-io", "mimalloc", "pingora-timeout", "timer-core", "tokio", "tokio-util"];

/// The machine of a run.
pub(super) struct Machine {
    /// The name of the processor.
    pub(super) cpu: String,
    /// The machine, its software, the commit and the date in words.
    pub(super) text: String,
}

impl Machine {
    /// Describes this machine. Facts that cannot be determined are empty.
    pub(super) fn of_this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu = field(&read("/proc/cpuinfo"), "model name").unwrap_or_default();
        let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let gib = memory.split(' ').next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() >> 20;
        let cores = available_parallelism().map_or(0, usize::from);
        let before = CpuTime::now();
        thread::sleep(Duration::from_secs(1));
        // The load average of a minute would include the compilation.
        let busy = (CpuTime::now().since(before)).busy() * cores as f64;
        let versions = versions(include_str!("../../../Cargo.lock"));
        let text = format!(
            "{}, {cpu}, {cores} CPUs, {gib} GiB, {}, {}, commit {}\n{}\n{busy:.1} CPUs were busy just before the run{}\n",
            said("date", &["-u", "+%Y-%m-%d %H:%M UTC"]),
            said("uname", &["-sr"]),
            said("rustc", &["--version"]),
            said("git", &["describe", "--always", "--dirty"]),
            versions
                .filter(|(name, _)| CRATES.contains(name))
                .map(|(name, version)| format!("{name} {version}"))
                .collect::<Vec<_>>()
                .join(", "),
            if busy > 0.3 { ". Do not trust the figures." } else { "" }
        );
        Self { cpu, text }
    }

    /// Returns the name of a folder for the results of such a machine.
    pub(super) fn folder(&self) -> String {
        let words = self.cpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let name = words.collect::<Vec<_>>().join("-").to_lowercase();
        if name.is_empty() { "unknown".to_owned() } else { name }
    }
}

/// Returns the text after `name :` in one of the lines.
fn field(text: &str, name: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(field, _)| field.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Returns the name and version of each package in a lock file.
fn versions(lock: &str) -> impl Iterator<Item = (&str, &str)> {
    lock.split("[[package]]").skip(1).filter_map(|package| {
        let value =
            |key: &str| package.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim_matches('"'));
        Some((value("name = ")?, value("version = ")?))
    })
}

/// Returns the first line of a program's output, or an empty text.
fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Machine, versions};

    #[test]
    fn versions_are_read_from_a_lock_file() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.2\"\n\n[[package]]\nname = \"b\"\nversion = \"3\"\n";
        assert_eq!(versions(lock).collect::<Vec<_>>(), [("a", "1.2"), ("b", "3")]);
    }

    #[test]
    fn a_folder_has_a_plain_name() {
        let machine = Machine { cpu: "Intel(R) Xeon(R) CPU @ 2.60GHz".to_owned(), text: String::new() };
        assert_eq!(machine.folder(), "intel-r-xeon-r-cpu-2-60ghz");
    }
}
