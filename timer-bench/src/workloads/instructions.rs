//! The number of instructions of an operation, and of those that lock the memory bus.
//!
//! The program runs under callgrind twice, with n operations and with five times as many. The
//! difference is the cost of the operations, including the allocator and library calls, but not the
//! start and the end of the program.
//!
//! `pair` schedules a timeout of 30 s and cancels the oldest of a thousand. `schedule` has timeouts
//! of 10 s to an hour in new memory, and `cancel` cancels those in random order. `reset` moves the
//! timeouts of a thousand connections. In `expiry` 100 timeouts are due in each tick, and the
//! thread that drives a manual timer runs them.

use crate::caller::{Counter, room, run_here};
use crate::callgrind::{self, Objdump, count};
use crate::out::{Run, Stop};
use crate::peer::{Peer, TICK};
use crate::random::{SEED, SplitMix64, seconds};
use std::hint::black_box;
use std::time::Duration;

/// The factor between the two runs.
const FACTOR: usize = 5;

/// The operations, each with the work that has to be subtracted.
const OPERATIONS: &[(&str, Option<&str>)] =
    &[("pair", None), ("schedule", None), ("cancel", Some("schedule")), ("reset", None), ("expiry", Some("unexpired"))];

const WINDOW: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Counts the operations, or runs one of them if the workload is `instructions:OPERATION`.
pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let n = run.settings.number("n", 5_000);
    if let Some((_, operation)) = run.workload.split_once(':') {
        return operate::<P>(operation, n);
    }
    if let Some(why) = callgrind::missing() {
        return Err(Stop::because(why));
    }
    let mut objdump = Objdump::default();
    let mut gross = |operation: &str| {
        let mut counted = |n: usize| {
            let words = [P::NAME.to_owned(), format!("instructions:{operation}"), "--n".to_owned(), n.to_string()];
            count(&words, &mut objdump).map_err(Stop::because)
        };
        let few = counted(n)?;
        let many = counted(n * FACTOR)?;
        let each = |few: u64, many: u64| many.saturating_sub(few) as f64 / (n * (FACTOR - 1)) as f64;
        Ok(few.zip(many).map(|(few, many)| [each(few[0], many[0]), each(few[1], many[1])]))
    };
    for (operation, less) in OPERATIONS {
        let less = less.map_or(Ok(Some([0.0; 2])), &mut gross)?;
        // A timer may not have the operation.
        let Some((all, less)) = gross(operation)?.zip(less) else { continue };
        run.figure(&format!("op={operation}"), all[0] - less[0], "instructions");
        run.figure(&format!("op={operation}"), all[1] - less[1], "locked-instructions");
    }
    Ok(())
}

/// Runs an operation `n` times. The cost of dropping things does not belong to it.
fn operate<P: Peer>(operation: &str, n: usize) -> Result<(), Stop> {
    let work = P::work(Counter::leak());
    let is_known = match operation {
        "expiry" => P::expire(n, &work, true),
        "unexpired" => P::expire(n, &work, false),
        "reset" if P::NO_RESET.is_some() => false,
        _ => {
            let peer = P::build(TICK);
            run_here(&peer, |caller| on_one_thread(operation, n, caller));
            std::mem::forget(peer);
            true
        }
    };
    if is_known { Ok(()) } else { Err(Stop::because(format!("has no operation `{operation}`"))) }
}

fn on_one_thread<P: Peer>(operation: &str, n: usize, caller: &mut P) {
    let work = P::work(Counter::leak());
    if ["schedule", "cancel"].contains(&operation) {
        let mut random = SplitMix64::delays(0);
        let delays = seconds(10, 3600);
        let mut handles = room(n);
        for handle in &mut handles {
            *handle = Some(caller.schedule(random.duration(&delays), &work));
        }
        SplitMix64::new(SEED + 1).shuffle(&mut handles);
        if operation == "cancel" {
            handles.iter_mut().filter_map(Option::take).for_each(|handle| caller.cancel(handle));
        }
        std::mem::forget(black_box(handles));
        return;
    }
    let mut handles = room(WINDOW);
    handles.fill_with(|| Some(caller.schedule(TIMEOUT, &work)));
    for at in 0..n {
        let slot = &mut handles[at % WINDOW];
        if operation == "pair" {
            let newest = caller.schedule(TIMEOUT, &work);
            if let Some(oldest) = slot.replace(newest) {
                caller.cancel(oldest);
            }
        } else if let Some(handle) = slot {
            caller.reset(handle, TIMEOUT);
        }
    }
    std::mem::forget(black_box(handles));
}
