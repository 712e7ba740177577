//! Single calls while the timer fires 100,000 timers a second. Those are scheduled before, over the
//! measured time. Then one call every 10 us, with a delay of an hour, is timed.
//!
//! `ns-p50` and so on are quantiles of the time of one call, including one reading of the clock (20
//! to 40 ns). All handles are kept, so the calls take fresh memory, and at least one in a hundred
//! meets a page that the kernel has yet to provide. On a virtual machine the p99.9 depends on how
//! fast the host provides it. With `GLIBC_TUNABLES=glibc.malloc.hugetlb=1`, which makes few page
//! faults, it was 1.7 us instead of 8 to 32.

use crate::caller::{Counter, room, run_here};
use crate::out::{Run, Stop, quantile};
use crate::peer::{FLOOR, Peer, TICK};
use crate::random::SplitMix64;
use crate::row::short;
use std::hint::spin_loop;
use std::thread;
use std::time::{Duration, Instant};

const PER_SECOND: usize = 100_000;
const PERIOD: Duration = Duration::from_micros(10);
const FAR: Duration = Duration::from_secs(3600);

pub(crate) fn run<P: Peer>(run: &Run) -> Result<(), Stop> {
    let span = run.settings.millis("ms", 2_000);
    let lead = run.settings.millis("lead-ms", 500);
    let firing = (PER_SECOND as f64 * span.as_secs_f64()) as usize;
    let peer = P::build(TICK);
    let counter = Counter::leak();
    let begin = Instant::now() + lead;
    let (fired, mut nanos) = run_here(&peer, |caller| {
        let work = P::work(counter);
        let mut random = SplitMix64::delays(0);
        let background = (0..firing).map(|_| {
            let due = begin + random.duration(&(Duration::ZERO..span));
            caller.schedule(due.saturating_duration_since(Instant::now()), &work)
        });
        let background: Vec<_> = background.collect();
        let (handles, nanos, fired) = timed(caller, begin, span, counter);
        drop((background, handles));
        (fired, nanos)
    });
    // A timer that is far behind would look good, because its tasks run after the measurement.
    if P::NAME != FLOOR && (fired as usize) < firing / 2 {
        return Err(Stop::because(format!("only {fired} of {firing} fired in time")));
    }
    nanos.sort_unstable();
    let params = format!("fired={}/s", short(PER_SECOND));
    for (q, unit) in [(0.5, "ns-p50"), (0.99, "ns-p99"), (0.999, "ns-p99.9"), (1.0, "ns-max")] {
        run.figure(&params, f64::from(quantile(&nanos, q)), unit);
    }
    peer.stop();
    Ok(())
}

/// Makes timed calls from `begin` on. Returns their handles, their times, and the number of other
/// timers that fired in that time.
fn timed<P: Peer>(
    caller: &mut P,
    begin: Instant,
    span: Duration,
    others: &Counter,
) -> (Vec<Option<P::Handle>>, Vec<u32>, u64) {
    let calls = (span.as_nanos() / PERIOD.as_nanos()) as usize;
    let mut handles = room(calls);
    let mut nanos = vec![0_u32; calls];
    let far = P::work(Counter::leak());
    thread::sleep(begin.saturating_duration_since(Instant::now()));
    let before = others.count();
    let mut at = begin;
    for (handle, nanos) in handles.iter_mut().zip(&mut nanos) {
        at += PERIOD;
        while Instant::now() < at {
            spin_loop();
        }
        let start = Instant::now();
        *handle = Some(caller.schedule(FAR, &far));
        *nanos = start.elapsed().as_nanos().min(u128::from(u32::MAX)) as u32;
    }
    let fired = others.count() - before;
    (handles, nanos, fired)
}
