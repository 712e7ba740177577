//! The usual calls of Netty's `HashedWheelTimer` and their counterparts here. Of three timeouts,
//! one is cancelled and one blocks.
//!
//! | Netty | here |
//! |---|---|
//! | `new HashedWheelTimer(threadFactory, 100, MILLISECONDS, 512)` | [`start`] without an executor |
//! | `new HashedWheelTimer(.., leakDetection, maxPending, executor)` | [`start`] with a pool |
//! | `timer.newTimeout(task, 200, MILLISECONDS)` | `timer.new_timeout(Duration::from_millis(200), task)` |
//! | `TimerTask.run(Timeout)` | a closure with a `&Timeout` argument |
//! | `timeout.cancel()`, `isCancelled()`, `isExpired()` | the same names |
//! | `timer.stop()`, a set of pending timeouts | `timer.stop()`, a `Vec` of them, which can still run |
//!
//! Netty runs tasks on the worker thread unless it has an executor, and so does this timer. A task
//! that blocks the worker makes the next one late, and on a pool it does not. The program runs both
//! side by side.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Stop};
use timer_core::{BuildError, Timeout, Timer, TimerBuilder, WheelKind};
use timer_executor::ThreadPoolExecutor;

const USAGE: &str = "\
Starts three timeouts as Netty's users do, on a hashed wheel of 512 ticks of 100 ms: the first is cancelled, the second
blocks its thread, the third follows. Does so on the immediate executor and on a pool, side by side.

Usage: migrating_from_netty [OPTIONS]

  --block MILLIS        for how long the second task blocks, 500..=60000 [default: 5000]
  -h, --help            print this
";

/// Netty's default tick. Deadlines are rounded up to ticks, so a task may be late by as much
/// without a fault.
const TICK: Duration = Duration::from_millis(100);
const DELAYS: [Duration; 3] = [Duration::from_millis(300), Duration::from_millis(100), Duration::from_millis(200)];
const NAMES: [&str; 3] = ["first", "second", "third"];

fn main() -> ExitCode {
    cli::main("migrating_from_netty", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Duration, Stop> {
    let mut block = Duration::from_secs(5);
    while let Some(option) = args.option()? {
        match option {
            "--block" => block = args.millis(500..=60_000)?,
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(block)
}

fn run(block: Duration) -> Result<Checks, Box<dyn Error>> {
    let immediate = start(|builder| builder)?;
    let pool = start(|builder| builder.executor(ThreadPoolExecutor::new(2)))?;
    // Both timers run at the same time, so that neither run waits for the other.
    let on_worker = ThreeTimeouts::begin(&immediate, block)?;
    let on_pool = ThreeTimeouts::begin(&pool, block)?;

    println!("three timeouts, the first is cancelled and the second blocks for {block:?}");
    println!("{:<12}{:<8}{:>8}{:>10}{:>10}", "executor", "task", "due", "ran", "late");
    let on_worker = on_worker.end("immediate");
    let on_pool = on_pool.end("pool");

    let mut checks = Checks::default();
    checks.that(on_worker.first_was_cancelled && on_pool.first_was_cancelled, "the first was cancelled and never ran");
    checks.that(on_worker.late[1..].iter().chain(&on_pool.late[1..]).all(Option::is_some), "the others ran");
    // The third can start when the second has returned.
    let blocked = block - (DELAYS[2] - DELAYS[1]);
    checks.that(on_worker.late[2] >= Some(blocked), format!("immediate: the third is at least {blocked:?} late"));
    checks.that(on_pool.late[2] < Some(blocked), "pool: the third does not wait for the second");
    let left = immediate.stop()?.len() + pool.stop()?.len();
    let pending = immediate.pending_timeouts() + pool.pending_timeouts();
    checks.that(left + pending == 0, "stop() hands back none, and none is pending");
    Ok(checks)
}

/// Corresponds to `new HashedWheelTimer()`. `with` adds the arguments of Netty's longer
/// constructors.
fn start(with: impl FnOnce(TimerBuilder) -> TimerBuilder) -> Result<Timer, BuildError> {
    let netty = Timer::builder().tick_duration(TICK).wheel(WheelKind::Hashed { ticks_per_wheel: 512 });
    with(netty).build()
}

/// The three timeouts of one timer.
struct ThreeTimeouts {
    begun: Instant,
    first_was_cancelled: bool,
    runs: mpsc::Receiver<(usize, Instant)>,
}

/// The results of the three timeouts.
struct ThreeResults {
    first_was_cancelled: bool,
    late: [Option<Duration>; 3],
}

impl ThreeTimeouts {
    fn begin(timer: &Timer, block: Duration) -> Result<Self, Box<dyn Error>> {
        let (say, runs) = mpsc::channel();
        let begun = Instant::now();
        let first = timer.new_timeout(DELAYS[0], task(0, Duration::ZERO, &say))?;
        timer.new_timeout(DELAYS[1], task(1, block, &say))?;
        timer.new_timeout(DELAYS[2], task(2, Duration::ZERO, &say))?;
        let first_was_cancelled = first.cancel() && first.is_cancelled() && !first.is_expired();
        Ok(Self { begun, first_was_cancelled, runs })
    }

    /// Waits for the last task. Each task holds a sender until it has run or is dropped.
    fn end(self, executor: &str) -> ThreeResults {
        let mut late = [None; 3];
        for (number, ran) in self.runs {
            let ran = ran.duration_since(self.begun);
            let by = ran.saturating_sub(DELAYS[number]);
            let due = format!("{:?}", DELAYS[number]);
            println!("{executor:<12}{:<8}{due:>8}{:>7} ms{:>7} ms", NAMES[number], ran.as_millis(), by.as_millis());
            late[number] = Some(by);
        }
        ThreeResults { first_was_cancelled: self.first_was_cancelled && late[0].is_none(), late }
    }
}

fn task(number: usize, block: Duration, say: &Sender<(usize, Instant)>) -> impl FnOnce(&Timeout) + Send + use<> {
    let say = say.clone();
    move |_| {
        // The receiver outlives all senders.
        _ = say.send((number, Instant::now()));
        thread::sleep(block);
    }
}
