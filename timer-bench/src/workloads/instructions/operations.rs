//! The operations that the program runs under callgrind, on one thread and without anything but the
//! timer.

use super::super::Stop;
use super::super::caller::{Counter, room, run_here};
use crate::peers::TICK;
use crate::peers::storming::{Expiring, Treatment};
use crate::random::{SEED, SplitMix64, seconds};
use crate::settings::Settings;
use std::hint::black_box;
use std::time::Duration;

pub(super) struct Operation {
    pub(super) name: &'static str,
    /// The additional work that has to be subtracted.
    pub(super) less: Option<&'static str>,
}

pub(super) const OPERATIONS: &[Operation] = &[
    Operation { name: "pair", less: None },
    Operation { name: "schedule", less: None },
    Operation { name: "cancel", less: Some("schedule") },
    Operation { name: "reset", less: None },
    Operation { name: "expiry", less: Some("unexpired") },
];

const WINDOW: usize = 1_000;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs an operation `n` times.
pub(in super::super) fn operation<P: Expiring>(name: &str, settings: &Settings) -> Result<(), Stop> {
    let n = settings.number("n", 5_000, 2_000);
    let known = match name {
        "expiry" => P::expire(n, &P::work(Counter::leak()), Treatment::Run),
        "unexpired" => P::expire(n, &P::work(Counter::leak()), Treatment::Drop),
        "reset" if P::NO_RESET.is_some() => false,
        _ => {
            let peer = P::build(TICK);
            let known = run_here(&peer, |caller| on_one_thread(name, n, caller));
            // The cost of dropping the peer does not belong to an operation.
            std::mem::forget(peer);
            known
        }
    };
    if known { Ok(()) } else { Err(Stop::Unavailable(format!("has no operation `{name}`"))) }
}

fn on_one_thread<P: Expiring>(name: &str, n: usize, caller: &mut P) -> bool {
    let work = P::work(Counter::leak());
    match name {
        "pair" => {
            let mut window = room(WINDOW);
            window.fill_with(|| Some(caller.schedule(TIMEOUT, &work)));
            for at in 0..n {
                let newest = caller.schedule(TIMEOUT, &work);
                if let Some(oldest) = window[at % WINDOW].replace(newest) {
                    caller.cancel(oldest);
                }
            }
            std::mem::forget(window);
        }
        "schedule" | "cancel" => {
            let (mut random, delays) = (SplitMix64::delays(0), seconds(10, 3600));
            let mut handles = room(n);
            for handle in &mut handles {
                *handle = Some(caller.schedule(random.duration(&delays), &work));
            }
            SplitMix64::new(SEED + 1).shuffle(&mut handles);
            if name == "cancel" {
                handles.iter_mut().filter_map(Option::take).for_each(|handle| caller.cancel(handle));
            }
            std::mem::forget(handles);
        }
        "reset" => {
            let mut handles: Vec<_> = (0..WINDOW).map(|_| caller.schedule(TIMEOUT, &work)).collect();
            for at in 0..n {
                caller.reset(&mut handles[at % WINDOW], TIMEOUT);
            }
            std::mem::forget(black_box(handles));
        }
        _ => return false,
    }
    true
}
