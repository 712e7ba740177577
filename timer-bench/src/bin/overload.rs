//! Overload: threads schedule timeouts of 1 to 3 ms faster than the worker can expire them.
//!
//! The program prints the worst lag of each quarter of a second, the pending timeouts and the
//! growth of resident memory at its end, and a summary. With `stall-ms=N` one task blocks the
//! worker for N ms after two seconds, and with `stop-ms=N` a second process stops this one for N ms
//! by SIGSTOP. `svg=FILE` plots lag and pending timeouts over time. The lag counts from the
//! timeout's deadline, so it does not include the time for which a caller was preempted before the
//! call read the clock. It does include preemption later in the call, when the timeout is not in
//! the wheel yet. The longest pause shows how long a caller is preempted outside of calls. It is
//! the longest time between two readings of the clock that follow each other.
//!
//! The slowest call includes preemption. The longest block of a call does not, because it is only
//! the time for which the thread slept or waited for a lock, also in the kernel. It is measured for
//! one call in [`SAMPLED`], and only on Linux.
//!
//!     cargo run --release -p timer-bench --bin overload -- threads=64 cancel=30 stall-ms=4000
#![forbid(unsafe_code)]

use std::fs::File;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plotters::prelude::*;
use timer_bench::process;
use timer_bench::scheduling::thread_cpu;
use timer_core::Timer;
use timer_executor::{RayonExecutor, ThreadPoolExecutor};

const USAGE: &str = "usage: overload [threads=4] [cancel=0] [seconds=16] [stall-ms=0] [stop-ms=0] \
                     [executor=immediate|rayon|threadpool] [sleep=1] [svg=FILE]";

/// One call in this many has its block measured, because that takes longer than the call.
const SAMPLED: u64 = 61;
/// The length of a row.
const WINDOW_LENGTH: Duration = Duration::from_millis(250);
/// The time before the stall.
const WARM_UP: Duration = Duration::from_secs(2);

struct Options {
    threads: u64,
    /// Percentage of the timeouts that are cancelled at once.
    cancel: u64,
    seconds: u64,
    stall: Duration,
    stop: Duration,
    executor: String,
    sleep: bool,
    /// The file for a plot of lag and pending timeouts over time.
    svg: Option<String>,
}

impl Options {
    fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            threads: 4,
            cancel: 0,
            seconds: 16,
            stall: Duration::ZERO,
            stop: Duration::ZERO,
            executor: "immediate".to_owned(),
            sleep: true,
            svg: None,
        };
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not NAME=VALUE"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("`{word}`: a number is needed"));
            match name {
                "threads" => options.threads = number()?.max(1),
                "cancel" => options.cancel = number()?.min(100),
                "seconds" => options.seconds = number()?.max(1),
                "stall-ms" => options.stall = Duration::from_millis(number()?),
                "stop-ms" => options.stop = Duration::from_millis(number()?),
                "executor" if ["immediate", "rayon", "threadpool"].contains(&value) => {
                    options.executor = value.to_owned();
                }
                "sleep" => options.sleep = number()? != 0,
                "svg" => options.svg = Some(value.to_owned()),
                _ => return Err(format!("unknown option `{word}`")),
            }
        }
        Ok(options)
    }
}

/// The figures of one window, which tasks and callers update.
///
/// All orderings are `Relaxed`, because nothing but the printed figures depends on them.
#[derive(Default)]
struct Window {
    worst_lag: AtomicU64,
    worst_call: AtomicU64,
    worst_block: AtomicU64,
    /// The longest time between two readings of the clock with no call of the timer between them.
    worst_pause: AtomicU64,
    ran: AtomicU64,
}

fn main() -> ExitCode {
    match Options::parse(std::env::args().skip(1)) {
        Ok(options) => match run(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("overload: {error}");
                ExitCode::FAILURE
            }
        },
        Err(error) => {
            eprintln!("overload: {error}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let builder = Timer::builder().backpressure_sleep(options.sleep);
    let timer = match options.executor.as_str() {
        "rayon" => builder.executor(RayonExecutor::global()).build()?,
        "threadpool" => builder.executor(ThreadPoolExecutor::new(2)).build()?,
        _ => builder.build()?,
    };
    let (window, ends) = (Arc::new(Window::default()), Arc::new(AtomicBool::new(false)));
    let resident = process::resident().unwrap_or(0);
    let callers: Vec<_> = (0..options.threads)
        .map(|seed| {
            let (timer, window, ends, cancel) = (timer.clone(), window.clone(), ends.clone(), options.cancel);
            thread::spawn(move || call(&timer, &window, &ends, cancel, seed))
        })
        .collect();
    println!(
        "{:>6} {:>12} {:>10} {:>8} {:>12} {:>16} {:>16} {:>16}",
        "s", "lag ms", "pending", "MB", "runs/s", "slowest call ms", "longest block ms", "longest pause ms"
    );
    let begin = Instant::now();
    let mut stall = Some(options.stall).filter(|stall| !stall.is_zero());
    let mut stop = Some(options.stop).filter(|stop| !stop.is_zero());
    let (mut worst_lag, mut worst_pending, mut worst_memory, mut worst_pause) = (0.0_f64, 0, 0.0_f64, 0.0_f64);
    let (mut worst_call, mut worst_block) = (0.0_f64, 0.0_f64);
    let (mut lags, mut pendings) = (Vec::new(), Vec::new());
    while begin.elapsed() < Duration::from_secs(options.seconds) {
        if begin.elapsed() >= WARM_UP {
            if let Some(stall) = stall.take() {
                timer.new_timeout(Duration::ZERO, move |_| thread::sleep(stall))?;
            }
            if let Some(stop) = stop.take() {
                stop_this_process(stop)?;
            }
        }
        thread::sleep(WINDOW_LENGTH);
        // ORDERING: Relaxed, only printed.
        let lag = window.worst_lag.swap(0, Ordering::Relaxed) as f64 / 1e6;
        let call = window.worst_call.swap(0, Ordering::Relaxed) as f64 / 1e6;
        let block = window.worst_block.swap(0, Ordering::Relaxed) as f64 / 1e6;
        let pause = window.worst_pause.swap(0, Ordering::Relaxed) as f64 / 1e6;
        let runs = window.ran.swap(0, Ordering::Relaxed) as f64 / WINDOW_LENGTH.as_secs_f64();
        let pending = timer.pending_timeouts();
        let memory = process::resident().unwrap_or(0).saturating_sub(resident) as f64 / 1e6;
        worst_lag = worst_lag.max(lag);
        (worst_call, worst_block, worst_pause) = (worst_call.max(call), worst_block.max(block), worst_pause.max(pause));
        worst_pending = worst_pending.max(pending);
        worst_memory = worst_memory.max(memory);
        lags.push((begin.elapsed().as_secs_f64(), lag));
        pendings.push((begin.elapsed().as_secs_f64(), pending as f64));
        println!(
            "{:>6.2} {lag:>12.1} {pending:>10} {memory:>8.1} {runs:>12.0} {call:>16.1} {block:>16.1} {pause:>16.1}",
            begin.elapsed().as_secs_f64()
        );
    }
    let before = Instant::now();
    let unprocessed = timer.stop()?.len();
    let stop_took = before.elapsed();
    // ORDERING: Relaxed, only printed.
    ends.store(true, Ordering::Relaxed);
    callers.into_iter().try_for_each(|caller| caller.join().map_err(|_| "a caller panicked"))?;
    println!(
        "worst lag {worst_lag:.1} ms beside pauses of {worst_pause:.1} ms, {worst_pending} pending, {worst_memory:.1} MB; \
         slowest call {worst_call:.1} ms, longest block {worst_block:.1} ms; \
         stop took {:.1} ms and returned {unprocessed}",
        stop_took.as_secs_f64() * 1e3
    );
    if let Some(path) = &options.svg {
        let title = format!("{} threads, {} % cancelled", options.threads, options.cancel);
        plot(path, &title, [("worst lag, ms", &lags), ("pending", &pendings)])?;
    }
    Ok(())
}

/// Draws lag and pending timeouts over time.
fn plot(path: &str, title: &str, panels: [(&str, &[(f64, f64)]); 2]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (800, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let halves = root.titled(title, ("sans-serif", 16))?.split_evenly((2, 1));
    for (half, (name, points)) in halves.iter().zip(panels) {
        let last = points.last().map_or(1.0, |point| point.0);
        let most = points.iter().map(|point| point.1).fold(1.0, f64::max);
        let mut chart = ChartBuilder::on(half)
            .margin(8)
            .x_label_area_size(32)
            .y_label_area_size(80)
            .build_cartesian_2d(0.0..last, 0.0..most * 1.05)?;
        chart.configure_mesh().x_desc("s").y_desc(name).draw()?;
        chart.draw_series([PathElement::new(points.to_vec(), RGBColor(0xd9, 0x54, 0x1e).stroke_width(2))])?;
    }
    Ok(root.present()?)
}

/// The times of the calling thread that are no block, which are its CPU time and its wait for a
/// CPU.
struct Runnable(Option<File>);

impl Runnable {
    fn of_this_thread() -> Self {
        Self(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Returns the sum of both so far, or `None` if the system does not report it.
    #[cfg(unix)]
    fn time(&self) -> Option<Duration> {
        let mut text = [0; 64];
        let length = std::os::unix::fs::FileExt::read_at(self.0.as_ref()?, &mut text, 0).ok()?;
        let waited = std::str::from_utf8(&text[..length]).ok()?.split_whitespace().nth(1)?.parse().ok()?;
        Some(thread_cpu() + Duration::from_nanos(waited))
    }

    #[cfg(not(unix))]
    fn time(&self) -> Option<Duration> {
        None
    }
}

/// Schedules at full speed until `ends` is set or the timer is stopped.
fn call(timer: &Timer, window: &Arc<Window>, ends: &AtomicBool, cancel: u64, seed: u64) {
    let mut random = timer_bench::random::SplitMix64::new(seed);
    let (runnable, mut ended) = (Runnable::of_this_thread(), Instant::now());
    for n in 0.. {
        // ORDERING: Relaxed, only printed.
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let delay = Duration::from_nanos(1_000_000 + random.below(2_000_000));
        let before = if n % SAMPLED == 0 { runnable.time() } else { None };
        let (called, inner) = (Instant::now(), window.clone());
        window.worst_pause.fetch_max((called - ended).as_nanos() as u64, Ordering::Relaxed);
        let task = move |timeout: &timer_core::Timeout| {
            let lag = Instant::now().saturating_duration_since(timeout.deadline());
            // ORDERING: Relaxed, only printed.
            inner.worst_lag.fetch_max(lag.as_nanos() as u64, Ordering::Relaxed);
            inner.ran.fetch_add(1, Ordering::Relaxed);
        };
        let Ok(timeout) = timer.new_timeout(delay, task) else { return };
        let took = called.elapsed();
        // ORDERING: Relaxed here and below, only printed.
        window.worst_call.fetch_max(took.as_nanos() as u64, Ordering::Relaxed);
        if let Some((before, after)) = before.and_then(|before| Some((before, runnable.time()?))) {
            let block = took.saturating_sub(after.saturating_sub(before));
            window.worst_block.fetch_max(block.as_nanos() as u64, Ordering::Relaxed);
        }
        if random.below(100) < cancel {
            timeout.cancel();
        }
        ended = Instant::now();
    }
}

/// Lets another process stop this one by SIGSTOP for `duration`.
fn stop_this_process(duration: Duration) -> std::io::Result<()> {
    let process = std::process::id();
    let script = format!("kill -STOP {process}; sleep {}; kill -CONT {process}", duration.as_secs_f64());
    Command::new("sh").args(["-c", &script]).spawn().map(drop)
}
