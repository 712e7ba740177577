//! How many instructions an operation takes, and how many of those lock the memory bus (a `lock` prefix, or an exchange with
//! memory, which locks by itself). valgrind's callgrind counts each instruction by its address, and objdump says what it is.
//!
//! A program runs under callgrind twice, with so many operations and with five times as many: the difference is what the
//! operations took, allocator and library calls included, start and end of the program not.
//!
//! `pair`: W2 on one thread. `schedule`: timeouts of 10 s to an hour. `cancel`: those in random order. `reset`: W9 with 1,000
//! connections. `expiry`: 100 are due in each tick, on the thread that drives the timer, without statistics of an executor.

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

/// So many times more in the second run.
const MORE: usize = 5;

pub(super) fn run<P: Expiring>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    if let Some(why) = callgrind::missing() {
        return Err(Stop::Unavailable(format!("skipped: {why}")));
    }
    let n = settings.number("n", 5_000, 2_000);
    let mut objdump = Objdump::default();
    for Operation { name, less } in OPERATIONS {
        let params = format!("op={name}");
        match net::<P>(name, *less, n, &mut objdump) {
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

/// What one operation takes, of all instructions and of those that lock, without those of `less`.
fn net<P: Expiring>(
    name: &str,
    less: Option<&str>,
    n: usize,
    objdump: &mut Objdump,
) -> Result<Option<[f64; 2]>, String> {
    let Some(spent) = gross::<P>(name, n, objdump)? else { return Ok(None) };
    let Some(less) = less else { return Ok(Some(spent)) };
    let less = gross::<P>(less, n, objdump)?;
    Ok(less.map(|less| [spent[0] - less[0], spent[1] - less[1]]))
}

fn gross<P: Expiring>(name: &str, n: usize, objdump: &mut Objdump) -> Result<Option<[f64; 2]>, String> {
    let Some(few) = executed(P::NAME, name, n)? else { return Ok(None) };
    let Some(many) = executed(P::NAME, name, n * MORE)? else { return Ok(None) };
    let each = |few: u64, many: u64| many.saturating_sub(few) as f64 / (n * (MORE - 1)) as f64;
    let mut locked = |profile: &Profile| objdump.locked(profile).map_err(|error| format!("objdump: {error}"));
    Ok(Some([each(few.all(), many.all()), each(locked(&few)?, locked(&many)?)]))
}
