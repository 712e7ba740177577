//! How many instructions an operation takes, and how many of those lock the memory bus (a `lock` prefix, or an exchange with
//! memory, which locks by itself). valgrind's callgrind counts each instruction by its address, and objdump says what it is.
//!
//! A program runs under callgrind twice, with so many operations and with five times as many: the difference is what the
//! operations took, allocator and library calls included, start and end of the program not.
//!
//! `pair`: W2 on one thread. `schedule`: timeouts of 10 s to an hour, in memory that is new. `cancel`: those in random order.
//! `reset`: W9 with 1,000 connections. `expiry`: 100 are due in each tick, run by the thread that drives a manual timer.

mod callgrind;
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

/// So many times more in the second run.
const MORE: usize = 5;

pub(super) fn run<P: Expiring>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    if let Some(why) = callgrind::missing() {
        return Err(Stop::Unavailable(format!("skipped: {why}")));
    }
    let n = settings.number("n", 5_000, 2_000);
    let mut counted = Counted { peer: P::NAME, n, objdump: Objdump::default(), known: HashMap::new() };
    for Operation { name, less } in OPERATIONS {
        let params = format!("op={name}");
        match counted.net(name, *less) {
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

/// Of one operation: all instructions, and those that lock.
type Spent = Option<[f64; 2]>;

/// What was counted of one peer.
struct Counted {
    peer: &'static str,
    n: usize,
    objdump: Objdump,
    known: HashMap<&'static str, Spent>,
}

impl Counted {
    /// What one operation takes without `less`.
    fn net(&mut self, name: &'static str, less: Option<&'static str>) -> Result<Spent, String> {
        let spent = self.gross(name)?;
        let Some(less) = less.filter(|_| spent.is_some()) else { return Ok(spent) };
        let less = self.gross(less)?;
        Ok(spent.zip(less).map(|(spent, less)| [spent[0] - less[0], spent[1] - less[1]]))
    }

    fn gross(&mut self, name: &'static str) -> Result<Spent, String> {
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        let spent = self.difference(name)?;
        self.known.insert(name, spent);
        Ok(spent)
    }

    fn difference(&mut self, name: &str) -> Result<Spent, String> {
        let Some(few) = executed(self.peer, name, self.n)? else { return Ok(None) };
        let Some(many) = executed(self.peer, name, self.n * MORE)? else { return Ok(None) };
        let operations = (self.n * (MORE - 1)) as f64;
        let each = |few: u64, many: u64| many.saturating_sub(few) as f64 / operations;
        let mut locked = |profile: &Profile| self.objdump.locked(profile).map_err(|error| format!("objdump: {error}"));
        Ok(Some([each(few.all(), many.all()), each(locked(&few)?, locked(&many)?)]))
    }
}
