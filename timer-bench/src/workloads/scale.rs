//! W11: scale. The cost of each operation with 1k to 100M pending timers of 600 to 3600 s. One
//! thread schedules as in W1 and cancels as in W8, and 100k further timers fire within 100 ms while
//! the others are pending.
//!
//! `ns/schedule` and `ns/cancel` are wall time. The timer is filled and emptied once before, and
//! small sizes repeatedly, so all sizes are measured in memory that was used before, without its
//! page faults. A timer that keeps cancelled entries until they are due has those of all rounds.
//! `cpu-ns/expiry` is the CPU time of the process per timer while the 100k fire and their handles
//! are dropped. Other timers go up to 1M, the hashed wheel up to 10M, and the hierarchical wheel up
//! to the limit of memory.

use super::Stop;
use super::caller::{Counter, room, run_here};
use super::kept::HeapPin;
use super::out::Out;
use crate::peers::{OURS, Peer, TICK};
use crate::process;
use crate::random::{SEED, SplitMix64, seconds};
use crate::row::short;
use crate::settings::Settings;
use std::thread;
use std::time::{Duration, Instant};

const UNITS: &[&str] = &["ns/schedule", "ns/cancel", "cpu-ns/expiry"];

const FULL: &[usize] = &[1_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const QUICK: &[usize] = &[1_000, 100_000];
/// The largest size of other timers, which would take minutes for more.
const MAX_PEER_SIZE: usize = 1_000_000;
/// The largest size of the hashed wheel.
const MAX_HASHED_SIZE: usize = 10_000_000;

/// The least number of operations that are timed.
const MIN_OPERATIONS: usize = 200_000;

const FIRING: usize = 100_000;
const SPAN: Duration = Duration::from_millis(100);

/// The greatest number of bytes that a pending timer takes, to predict which sizes fit. Ours needs
/// less than the others.
const MAX_BYTES: u64 = 200;
const OUR_MAX_BYTES: u64 = 150;
/// The limit of memory on any machine.
const MAX_MEMORY: u64 = 20 << 30;

pub(super) fn run<P: Peer>(settings: &Settings, out: &Out) -> Result<(), Stop> {
    let lead = Duration::from_millis(settings.number("lead-ms", 500, 300) as u64);
    for n in settings.list("n", FULL, QUICK) {
        let params = format!("n={}", short(n));
        match reason_against::<P>(n) {
            Some(why) => UNITS.iter().for_each(|unit| out.unavailable(&params, unit, &why)),
            None => once::<P>(n, lead, &params, out),
        }
    }
    Ok(())
}

fn once<P: Peer>(n: usize, lead: Duration, params: &str, out: &Out) {
    let peer = P::build(TICK);
    let mut handles = room(n);
    let rounds = MIN_OPERATIONS.div_ceil(n.max(1));
    let (mut scheduling, mut cancelling) = (Duration::ZERO, Duration::ZERO);
    let mut expiring = Err("not measured");
    run_here(&peer, |caller| {
        fill(caller, &mut handles);
        // Keeps the allocator from returning the memory of this round.
        let _pin = HeapPin::default();
        empty(caller, &mut handles);
        process::until_quiet(Duration::from_secs(5));
        for round in 1..=rounds {
            scheduling += fill(caller, &mut handles);
            if round == rounds {
                process::until_quiet(Duration::from_secs(5));
                expiring = fire(caller, lead);
            }
            cancelling += empty(caller, &mut handles);
        }
    });
    out.each(params, scheduling, n * rounds, "ns/schedule");
    out.each(params, cancelling, n * rounds, "ns/cancel");
    match expiring {
        Ok(cpu) => out.each(params, cpu, FIRING, "cpu-ns/expiry"),
        Err(why) => out.unavailable(params, "cpu-ns/expiry", why),
    }
    peer.stop();
}

fn fill<P: Peer>(caller: &mut P, handles: &mut [Option<P::Handle>]) -> Duration {
    let (work, mut random, delays) = (P::work(Counter::leak()), SplitMix64::delays(0), seconds(600, 3600));
    let begin = Instant::now();
    for handle in handles {
        *handle = Some(caller.schedule(random.duration(&delays), &work));
    }
    begin.elapsed()
}

fn empty<P: Peer>(caller: &mut P, handles: &mut [Option<P::Handle>]) -> Duration {
    SplitMix64::new(SEED + 1).shuffle(handles);
    let begin = Instant::now();
    for handle in handles.iter_mut().filter_map(Option::take) {
        caller.cancel(handle);
    }
    begin.elapsed()
}

/// Returns the CPU time for firing the further timers, or the reason why it is unknown.
fn fire<P: Peer>(caller: &mut P, lead: Duration) -> Result<Duration, &'static str> {
    let counter = Counter::leak();
    let (work, mut random, spans) = (P::work(counter), SplitMix64::delays(0), Duration::ZERO..SPAN);
    let begin = Instant::now() + lead;
    let firing = (0..FIRING).map(|_| {
        let due = begin + random.duration(&spans);
        caller.schedule(due.saturating_duration_since(Instant::now()), &work)
    });
    let firing: Vec<_> = firing.collect();
    let now = Instant::now();
    if now > begin {
        return Err("scheduling took longer than the lead");
    }
    thread::sleep(begin - now);
    let before = process::cpu();
    let limit = Instant::now() + Duration::from_secs(10);
    while counter.count() < FIRING as u64 && Instant::now() < limit {
        thread::sleep(Duration::from_millis(5));
    }
    let all = counter.count() >= FIRING as u64;
    drop(firing);
    let cpu = process::cpu() - before;
    if all { Ok(cpu) } else { Err("not all fired within 10 s") }
}

/// Returns the reason why a size is not tried, if there is one.
fn reason_against<P: Peer>(n: usize) -> Option<String> {
    let ours = P::NAME.starts_with(OURS);
    let most = match P::NAME {
        OURS => usize::MAX,
        _ if ours => MAX_HASHED_SIZE,
        _ => MAX_PEER_SIZE,
    };
    if n > most {
        return Some("not tried with so many".to_owned());
    }
    let needed = n as u64 * if ours { OUR_MAX_BYTES } else { MAX_BYTES };
    let available = process::available().unwrap_or(u64::MAX).min(MAX_MEMORY);
    (needed > available).then(|| format!("needs up to {} GiB of memory", needed.div_ceil(1 << 30)))
}
