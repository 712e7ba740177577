//! The instructions of a program or library that lock the memory bus, as objdump shows them.

use super::callgrind::Profile;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The addresses of the instructions that lock, by file. Each file is read once.
#[derive(Default)]
pub(super) struct Objdump {
    files: HashMap<String, HashSet<u64>>,
}

impl Objdump {
    /// Returns the number of executions of instructions that lock.
    pub(super) fn locked(&mut self, profile: &Profile) -> io::Result<u64> {
        let mut locked = 0;
        for (file, counts) in &profile.files {
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
    use super::addresses;

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
