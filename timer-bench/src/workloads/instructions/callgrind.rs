//! Runs this program under callgrind and reads the number of executions of each instruction.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs, process};

/// The executions of each instruction, by the file that holds it and its address there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Profile {
    pub(super) files: HashMap<String, HashMap<u64, u64>>,
}

impl Profile {
    /// Returns the number of executed instructions.
    pub(in super::super) fn all(&self) -> u64 {
        self.files.values().flat_map(HashMap::values).sum()
    }

    /// Parses the output of callgrind with `--dump-instr=yes` and without compression.
    pub(super) fn parse(text: &str) -> Self {
        let mut profile = Self::default();
        let mut file = String::new();
        let mut is_of_call = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("ob=") {
                file = name.to_owned();
            } else if line.starts_with("calls=") {
                // The next line has the cost of the callee, which the callee's own lines have as
                // well.
                is_of_call = true;
            } else if let Some(rest) = line.strip_prefix("0x") {
                let mut words = rest.split(' ');
                let address = words.next().and_then(|word| u64::from_str_radix(word, 16).ok());
                let count = words.nth(1).and_then(|word| word.parse::<u64>().ok());
                if let Some((address, count)) = address.zip(count).filter(|_| !is_of_call) {
                    *profile.files.entry(file.clone()).or_default().entry(address).or_default() += count;
                }
                is_of_call = false;
            }
        }
        profile
    }
}

/// Returns the reason why nothing can be counted here, if there is one.
pub(in super::super) fn missing() -> Option<String> {
    let runs = |program: &str| {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let missing = ["valgrind", "objdump"].into_iter().find(|program| !runs(program));
    missing.map(|program| format!("there is no {program}"))
}

/// Returns the profile of this program for a workload with these settings, or `None` if the peer
/// does not have it.
pub(in super::super) fn executed(peer: &str, workload: &str, settings: &[String]) -> Result<Option<Profile>, String> {
    let this = env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
    let path: PathBuf = env::temp_dir().join(format!("timer-bench-{}-{}", process::id(), workload.replace(':', "-")));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no", "-q"]);
    command.arg(format!("--callgrind-out-file={}", path.display())).arg(this);
    command.args([peer, workload]).args(settings);
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("valgrind: {error}"))?;
    let text = fs::read_to_string(&path);
    // The file may be missing, which needs no handling.
    let _removed: std::io::Result<()> = fs::remove_file(&path);
    if !output.status.success() {
        return Err(format!("valgrind failed ({})", output.status));
    }
    if String::from_utf8_lossy(&output.stdout).contains(" n/a ") {
        return Ok(None);
    }
    text.map(|text| Some(Profile::parse(&text))).map_err(|error| format!("no counts: {error}"))
}

#[cfg(test)]
mod tests {
    use super::Profile;

    #[test]
    fn an_instruction_counts_once_at_its_address() {
        let text = "events: Ir\nsummary: 60\n\nob=/a\nfl=x.rs\nfn=one\n0x10 3 5\n0x14 3 5\ncob=/b\ncfn=two\n\
                    calls=5 0x20\n0x14 3 50\n0x18 4 5\n\nob=/b\nfn=two\n0x20 1 25\n0x24 1 20\nfi=y.rs\n0x20 2 5\n";
        let profile = Profile::parse(text);
        assert_eq!(profile.all(), 65);
        assert_eq!(profile.files["/a"][&0x14], 5);
        assert_eq!(profile.files["/b"][&0x20], 30);
    }
}
