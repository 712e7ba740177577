//! A million timers are due within a span of 200 ms that begins 2 s after scheduling began. The
//! task is one relaxed atomic increment.
//!
//! `ms-late` is the time from the first due instant to the last task, minus the span. `cpu-s` is
//! the CPU time of the process from the first due instant to the last task, and of dropping all
//! handles after that. Some timers free the memory of a task right after its run, and the handles
//! of others keep it. So the frees count in `cpu-s` for all, but in `ms-late` only for the former.

use crate::caller::run_here;
use crate::out::{Run, Stop, millis};
use crate::peer::{Job, Peer, TICK};
use crate::process;
use crate::random::SplitMix64;
use crate::row::short;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

const SPAN: Duration = Duration::from_millis(200);

/// A count of the tasks. The last task records its time.
struct Count {
    ran: AtomicU64,
    of: u64,
    last: OnceLock<(Instant, Duration)>,
    waiting: Thread,
}

impl Job for &'static Count {
    #[inline]
    fn run(self) {
        // ORDERING: Relaxed, because this is a count. The lock of the cell publishes the time of
        // the last task.
        if self.ran.fetch_add(1, Ordering::Relaxed) + 1 == self.of {
            self.last.get_or_init(|| (Instant::now(), process::cpu()));
            self.waiting.unpark();
        }
    }
}

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let n = run.settings.number("n", 1_000_000);
    let lead = run.settings.millis("lead-ms", 2_000);
    let params = format!("n={}", short(n));
    let peer = P::build(TICK);
    let count: &'static Count = Box::leak(Box::new(Count {
        ran: AtomicU64::new(0),
        of: n as u64,
        last: OnceLock::new(),
        waiting: thread::current(),
    }));
    let first_due = Instant::now() + lead;
    let handles = run_here(&peer, |caller| {
        let work = P::work(count);
        let mut random = SplitMix64::delays(0);
        let spans = Duration::ZERO..SPAN;
        let delay =
            |random: &mut SplitMix64| (first_due + random.duration(&spans)).saturating_duration_since(Instant::now());
        let handles = (0..n).map(|_| caller.schedule(delay(&mut random), &work));
        handles.collect::<Vec<_>>()
    });
    let now = Instant::now();
    if now > first_due {
        return Err(Stop::because(format!("scheduling took longer than {lead:?}")));
    }
    thread::sleep(first_due - now);
    let before = process::cpu();
    let limit = first_due + SPAN + Duration::from_secs(60);
    while count.last.get().is_none() && Instant::now() < limit {
        thread::park_timeout(Duration::from_secs(1));
    }
    let at_drop = process::cpu();
    drop(handles);
    let freeing = process::cpu() - at_drop;
    match count.last.get() {
        Some((last, cpu)) => {
            let late = millis(last.saturating_duration_since(first_due)) - millis(SPAN);
            run.figure(&params, late, "ms-late");
            run.figure(&params, (cpu.saturating_sub(before) + freeing).as_secs_f64(), "cpu-s");
        }
        None => {
            // ORDERING: Relaxed, because this is only a count.
            let ran = count.ran.load(Ordering::Relaxed);
            run.unavailable(&params, "ms-late", &format!("only {ran} of {n} ran within a minute"));
        }
    }
    peer.stop();
    Ok(())
}
