//! Counts the instructions of this program under valgrind's callgrind, and those that lock the
//! memory bus (by a `lock` prefix or by an exchange with memory), which objdump identifies.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, process};

/// The executions of each instruction, by the file that holds it and its address there.
#[derive(Default)]
struct Profile(HashMap<String, HashMap<u64, u64>>);

impl Profile {
    /// Parses the output of callgrind with `--dump-instr=yes` and without compression.
    fn parse(text: &str) -> Self {
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
                    *profile.0.entry(file.clone()).or_default().entry(address).or_default() += count;
                }
                is_of_call = false;
            }
        }
        profile
    }
}

/// Returns the reason why nothing can be counted here, if there is one.
pub(crate) fn missing() -> Option<String> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success());
    let missing = ["valgrind", "objdump"].into_iter().find(|program| !runs(program));
    missing.map(|program| format!("skipped: there is no {program}"))
}

/// Runs this program with these words. Returns the number of its instructions and of those that
/// lock, or `None` if the run has no figures.
pub(crate) fn count(words: &[String], objdump: &mut Objdump) -> Result<Option<[u64; 2]>, String> {
    let this = env::current_exe().map_err(|error| format!("this program is not found: {error}"))?;
    let path: PathBuf = env::temp_dir().join(format!("timer-bench-{}", process::id()));
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--dump-instr=yes", "--compress-pos=no", "--compress-strings=no", "-q"]);
    command.arg(format!("--callgrind-out-file={}", path.display())).arg(this).args(words);
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
    let Profile(files) = Profile::parse(&text.map_err(|error| format!("no counts: {error}"))?);
    let all = files.values().flat_map(HashMap::values).sum();
    let locked = objdump.locked(&files).map_err(|error| format!("objdump: {error}"))?;
    Ok(Some([all, locked]))
}

/// The addresses of the instructions that lock, by file. Each file is read once.
#[derive(Default)]
pub(crate) struct Objdump {
    files: HashMap<String, HashSet<u64>>,
}

impl Objdump {
    /// Returns the number of executions of instructions that lock.
    fn locked(&mut self, files: &HashMap<String, HashMap<u64, u64>>) -> io::Result<u64> {
        let mut locked = 0;
        for (file, counts) in files {
            // The part that the system maps into every process is not a file and locks nothing.
            if !Path::new(file).is_file() {
                continue;
            }
            if !self.files.contains_key(file) {
                let output = Command::new("objdump")
                    .args(["-d", "--no-show-raw-insn", file])
                    .stdin(Stdio::null())
                    .stderr(Stdio::null())
                    .output()?;
                self.files.insert(file.clone(), addresses(&String::from_utf8_lossy(&output.stdout)));
            }
            let addresses = self.files.get(file);
            let of_file = counts.iter().filter(|(at, _)| addresses.is_some_and(|addresses| addresses.contains(at)));
            locked += of_file.map(|(_, count)| count).sum::<u64>();
        }
        Ok(locked)
    }
}

/// Returns the addresses of the instructions that lock.
fn addresses(text: &str) -> HashSet<u64> {
    text.lines()
        .filter_map(|line| {
            let (address, instruction) = line.split_once(":\t")?;
            locks(instruction).then(|| u64::from_str_radix(address.trim(), 16).ok())?
        })
        .collect()
}

/// Returns `true` if the instruction has the prefix or exchanges with memory.
fn locks(instruction: &str) -> bool {
    let mut words = instruction.split_whitespace();
    match words.next() {
        Some("lock") => true,
        // This includes `xchgb` and the like. An exchange between registers, which also serves as a
        // no-op, does not lock.
        Some(name) if name.starts_with("xchg") => words.any(|word| word.contains('(')),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Profile, addresses};

    #[test]
    fn an_instruction_counts_once_at_its_address() {
        let text = "events: Ir\nsummary: 60\n\nob=/a\nfl=x.rs\nfn=one\n0x10 3 5\n0x14 3 5\ncob=/b\ncfn=two\n\
                    calls=5 0x20\n0x14 3 50\n0x18 4 5\n\nob=/b\nfn=two\n0x20 1 25\n0x24 1 20\nfi=y.rs\n0x20 2 5\n";
        let profile = Profile::parse(text);
        assert_eq!(profile.0.values().flat_map(|file| file.values()).sum::<u64>(), 65);
        assert_eq!(profile.0["/a"][&0x14], 5);
        assert_eq!(profile.0["/b"][&0x20], 30);
    }

    #[test]
    fn prefixes_and_exchanges_with_memory_lock() {
        let text = "\n0000000000014400 <main>:\n   14473:\tlock xadd %rax,0x40(%rsp)\n   14479:\tmov    (%rax),%rcx\n\
                    \x20  1447d:\txchg   %ax,%ax\n   1447f:\txchg   %rax,(%rdi)\n   14482:\txchgb  %al,0x8(%rdi)\n\
                    \x20  14485:\tcall   14400 <a::lock::b>\n   14490:\txchg   %rdx,%rax\n";
        let mut found: Vec<u64> = addresses(text).into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [0x14473, 0x1447f, 0x14482]);
    }
}
