//! Caches whose entries expire, under the mixes of 23 production clusters (`data/`).
//!
//! A task makes 400 calls in each millisecond, N in all, on a map with about 100,000 entries.
//! `cpu-ns/call` is the CPU time of a call with its share of the expirations, which the task takes
//! out once in each millisecond. In `awaited`, the task waits for expirations and for its next
//! calls, and the figures include all wake-ups. It waits by a sleep of its runtime if the map
//! allows that, and in `by-thread` it is a thread of the timer that wakes the task. `us-p50`,
//! `us-p99` and `us-max` are the times from the deadlines until the task has the entries. The
//! figures of `all` are the medians of the clusters.
//!
//! `B/entry` is the heap memory of an entry of two numbers, in a process that counts its
//! allocations, on average over sizes of 100,000 to 200,000 entries.

use crate::cache_mixes::{self, Call, Mix, Verb};
use crate::out::{Heap, Run, Stop, quantile};
use crate::peer::TtlMap;
use crate::process::{cpu, thread_cpu};
use crate::random::{SEED, SplitMix64};
use std::future::poll_fn;
use std::hint::spin_loop;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// The time in which the task makes [`CALLS`] calls.
const SLOT: Duration = Duration::from_millis(1);
const CALLS: usize = 400;

/// Marks a value that was changed. Values are deadlines in microseconds.
const CHANGED: u64 = 1 << 63;

pub(crate) fn run<M: TtlMap>(run: &Run) -> Result<(), Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(Stop::because)?;
    let _entered = runtime.enter();
    if let Heap::Counting(heap) = run.heap {
        memory::<M>(run, heap);
        return Ok(());
    }
    let n = run.settings.number("n", 100_000);
    let entries = run.settings.number("standing", 100_000);
    let clusters = run.settings.list("case", &[]);
    let mut mixes = cache_mixes::all();
    mixes.retain(|mix| clusters.is_empty() || clusters.contains(&mix.cluster));
    let replay = |mode: Mode| {
        let mut all = Vec::new();
        for mix in &mixes {
            let outcome = runtime.block_on(Replay::<M>::new(mix, n, entries).run(mode));
            all.push(outcome.report(run, mode, mix));
        }
        run.figure(&format!("{}=all", mode.name()), median(&mut all), "cpu-ns/call");
    };
    replay(Mode::BySlots);
    match M::NO_POLL {
        Some(reason) => run.unavailable("awaited=all", "cpu-ns/call", reason),
        None => replay(Mode::Awaited),
    }
    if M::HAS_THREAD {
        replay(Mode::ByThread);
    }
    Ok(())
}

/// How the task takes out the entries that have expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Once in each millisecond, without waiting.
    BySlots,
    /// It waits, by a sleep of its runtime if the map allows that.
    Awaited,
    /// It waits, and a thread of the timer wakes it.
    ByThread,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::BySlots => "cluster",
            Self::Awaited => "awaited",
            Self::ByThread => "by-thread",
        }
    }
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    quantile(all, 0.5)
}

/// The CPU time of a replay, and the lateness of its expirations.
struct Outcome {
    used: Duration,
    calls: usize,
    /// Microseconds from the deadlines to the expirations.
    late: Vec<u64>,
}

impl Outcome {
    /// Prints the figures. Returns the CPU time of a call in nanoseconds.
    fn report(mut self, run: &Run, mode: Mode, mix: &Mix) -> f64 {
        let params = format!("{}={}", mode.name(), mix.cluster);
        let each = self.used.as_nanos() as f64 / self.calls.max(1) as f64;
        run.figure(&params, each, "cpu-ns/call");
        self.late.sort_unstable();
        for (q, unit) in [(0.5, "us-p50"), (0.99, "us-p99"), (1.0, "us-max")] {
            if self.late.is_empty() {
                run.unavailable(&params, unit, "no entry came out");
            } else {
                run.figure(&params, quantile(&self.late, q) as f64, unit);
            }
        }
        each
    }
}

/// A map with its entries, and the calls that it is about to get.
struct Replay<M> {
    map: M,
    calls: Vec<Call>,
    begin: Instant,
    late: Vec<u64>,
}

impl<M: TtlMap> Replay<M> {
    fn new(mix: &Mix, n: usize, entries: usize) -> Self {
        let mut random = SplitMix64::new(SEED);
        let calls = mix.calls(&mut random, n, entries, CALLS);
        let filling = mix.entries(&mut random, entries, CALLS);
        let mut replay = Self { map: M::new(), calls, begin: Instant::now(), late: Vec::with_capacity(2 * entries) };
        for call in filling {
            let now = replay.micros();
            apply(&mut replay.map, &call, now);
        }
        replay.map.maintain();
        replay
    }

    fn micros(&self) -> u64 {
        self.begin.elapsed().as_micros() as u64
    }

    /// Makes the calls of a slot. The clock is read once for all of them, so their deadlines are a
    /// little later than their values say.
    fn make_calls(&mut self, slot: usize) {
        let now = self.micros();
        for call in self.calls.iter().skip(slot * CALLS).take(CALLS) {
            apply(&mut self.map, call, now);
        }
    }

    fn note(&mut self, value: u64) {
        self.late.push(self.micros().saturating_sub(value & !CHANGED));
    }

    fn outcome(self, used: Duration) -> Outcome {
        Outcome { used, calls: self.calls.len(), late: self.late }
    }

    async fn run(self, mode: Mode) -> Outcome {
        match mode {
            Mode::BySlots => self.by_slots().await,
            Mode::Awaited => self.awaited(false).await,
            Mode::ByThread => self.awaited(true).await,
        }
    }

    /// Makes the calls at fixed times, between which the thread spins. Only the CPU time of the
    /// calls and that of other threads is counted.
    async fn by_slots(mut self) -> Outcome {
        let begin = Instant::now();
        let others = cpu_of_others();
        let mut used = Duration::ZERO;
        for slot in 0..self.calls.len().div_ceil(CALLS) {
            while begin.elapsed() < SLOT * slot as u32 {
                spin_loop();
            }
            let before = thread_cpu();
            // A queue on the runtime's timer sees the time only after a turn of the runtime.
            tokio::task::yield_now().await;
            self.map.maintain();
            poll_fn(|context| {
                while let Some(value) = self.map.try_next(context) {
                    self.note(value);
                }
                Poll::Ready(())
            })
            .await;
            self.make_calls(slot);
            used += thread_cpu() - before;
        }
        used += cpu_of_others().saturating_sub(others);
        self.outcome(used)
    }

    /// Waits for expirations, and makes the calls at fixed times.
    async fn awaited(mut self, by_thread: bool) -> Outcome {
        let mut slots = tokio::time::interval(SLOT);
        let mut sleep = pin!(tokio::time::sleep(Duration::ZERO));
        let before = cpu();
        for slot in 0..self.calls.len().div_ceil(CALLS) {
            poll_fn(|context| {
                match self.map.next_deadline().filter(|_| !by_thread) {
                    Some(_) => self.take_beside(sleep.as_mut(), context),
                    None => self.take_by_poll(context),
                }
                slots.poll_tick(context)
            })
            .await;
            self.make_calls(slot);
        }
        let used = cpu() - before;
        self.outcome(used)
    }

    fn take_by_poll(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some(value)) = self.map.poll(context) {
            self.note(value);
        }
    }

    /// Lets the sleep of the runtime wake the task.
    fn take_beside(&mut self, mut sleep: Pin<&mut Sleep>, context: &mut Context<'_>) {
        while let Some(value) = self.map.try_next(context) {
            self.note(value);
        }
        let Some(next) = self.map.next_deadline() else { return };
        if sleep.deadline() != next.into() {
            sleep.as_mut().reset(next.into());
        }
        if sleep.poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
    }
}

/// Returns the CPU time of the other threads so far.
fn cpu_of_others() -> Duration {
    let own = thread_cpu();
    cpu().saturating_sub(own)
}

/// Makes a call. The value of an entry is its deadline.
#[inline]
fn apply<M: TtlMap>(map: &mut M, call: &Call, now: u64) {
    let lifetime = call.lifetime();
    let due = now + lifetime.as_micros() as u64;
    let has = match call.verb {
        Verb::Get => map.get(call.key).is_some(),
        Verb::Change => map.change(call.key, |value| *value |= CHANGED),
        Verb::Set => false,
        Verb::Remove => {
            map.remove(call.key);
            true
        }
    };
    if !has {
        map.set(call.key, due, lifetime);
    }
}

fn memory<M: TtlMap>(run: &Run, heap: fn() -> usize) {
    const HOUR: Duration = Duration::from_secs(3_600);
    let entries = run.settings.number("standing", 100_000);
    // One doubling of a table that doubles, so that no size is in its favor.
    let sizes = [1.0, 1.19, 1.41, 1.68].map(|factor| (entries as f64 * factor) as usize);
    let each = sizes.map(|size| {
        let before = heap();
        let mut map = M::new();
        (0..size as u64).for_each(|key| map.set(key, key, HOUR));
        map.maintain();
        heap().saturating_sub(before) as f64 / size.max(1) as f64
    });
    run.figure("-", each.iter().sum::<f64>() / each.len() as f64, "B/entry");
}
