//! The number of instructions of an operation, and of those that lock the memory bus (by a `lock`
//! prefix or by an exchange with memory). valgrind's callgrind counts the executions by address,
//! and objdump identifies the instructions.
//!
//! The program runs under callgrind twice, with n operations and with five times as many. The
//! difference is the cost of the operations, including the allocator and library calls, but not the
//! start and the end of the program.
//!
//! `pair` is W2 on one thread. `schedule` has timeouts of 10 s to an hour in new memory, and
//! `cancel` cancels those in random order. `reset` is W9 with 1,000 connections. In `expiry` 100
//! timeouts are due in each tick, and the thread that drives a manual timer runs them.

pub(super) mod callgrind;
mod objdump;
mod operations;

use super::Stop;
use super::out::Out;
use crate::peers::storming::Expiring;
use crate::settings::Settings;
use callgrind::{Profile, executed};
use objdump::Objdump;
pub(super) use operations::operation;
use operations::{OPERATIONS, Operation};
use std::collections::HashMap;

/// The factor between the two runs.
const FACTOR: usize = 5;

pub(super) fn run<P: Expiring>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    if let Some(why) = callgrind::missing() {
        return Err(Stop::Unavailable(format!("skipped: {why}")));
    }
    let n = settings.number("n", 5_000, 2_000);
    let mut counts = PeerCounts { peer: P::NAME, n, objdump: Objdump::default(), known: HashMap::new() };
    for Operation { name, less } in OPERATIONS {
        let params = format!("op={name}");
        match counts.net(name, *less) {
            Ok(Some([all, locked])) => {
                out.figure(&params, all, "instructions");
                out.figure(&params, locked, "locked-instructions");
            }
            // The timer has no such operation.
            Ok(None) => {}
            Err(why) => out.unavailable(&params, "instructions", &why),
        }
    }
    Ok(())
}

/// The cost of one operation, as all instructions and those that lock, or `None` if the timer has
/// no such operation.
type Cost = Option<[f64; 2]>;

/// The counts of one peer.
struct PeerCounts {
    peer: &'static str,
    n: usize,
    objdump: Objdump,
    known: HashMap<&'static str, Cost>,
}

impl PeerCounts {
    /// Returns the cost of one operation without the cost of `less`.
    fn net(&mut self, name: &'static str, less: Option<&'static str>) -> Result<Cost, String> {
        let spent = self.gross(name)?;
        let Some(less) = less.filter(|_| spent.is_some()) else { return Ok(spent) };
        let less = self.gross(less)?;
        Ok(spent.zip(less).map(|(spent, less)| [spent[0] - less[0], spent[1] - less[1]]))
    }

    fn gross(&mut self, name: &'static str) -> Result<Cost, String> {
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        let spent = self.difference(name)?;
        self.known.insert(name, spent);
        Ok(spent)
    }

    fn difference(&mut self, name: &str) -> Result<Cost, String> {
        let workload = format!("instructions:{name}");
        let Some(few) = executed(self.peer, &workload, &[format!("n={}", self.n)])? else { return Ok(None) };
        let Some(many) = executed(self.peer, &workload, &[format!("n={}", self.n * FACTOR)])? else { return Ok(None) };
        let operations = (self.n * (FACTOR - 1)) as f64;
        let each = |few: u64, many: u64| many.saturating_sub(few) as f64 / operations;
        let mut locked = |profile: &Profile| self.objdump.locked(profile).map_err(|error| format!("objdump: {error}"));
        Ok(Some([each(few.all(), many.all()), each(locked(&few)?, locked(&many)?)]))
    }
}
