//! The metrics of a timer under load, as Prometheus and the live page show them.
//!
//! The program makes a second of load and prints one scrape. With `--serve 9184` the live page is
//! at `http://127.0.0.1:9184/` and the metrics are at `/metrics`, for this machine only. With
//! `--linger 60` the load and the server last for another minute.
//!
//! The executors differ most in the lags. A slow task on the worker itself delays the hand-over of
//! all others (`timer_timeout_lag_seconds`). With an executor it delays no hand-over, and only the
//! start of tasks in the queue (`timer_start_lag_seconds`).
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Stop};
use timer_core::{LagSnapshot, RejectReason, Timer};
use timer_executor::{RayonExecutor, ThreadPoolExecutor};
use timer_live::{ListenAddr, LivePage};
use timer_metrics::{TimerMetrics, Watch};

const USAGE: &str = "\
Makes a second of load on a timer and prints its metrics as Prometheus scrapes them.

Usage: metrics_export [OPTIONS]

  --executor KIND       where tasks run: immediate | rayon | threadpool [default: immediate]
  --serve ADDR          serve /metrics and a live page: a port (on 127.0.0.1), or an IP address and a port
  --linger SECONDS      continue load and server for so long, on a free port unless --serve is given
  -h, --help            print this
";

const LOAD: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_millis(200);
/// The bound on pending timeouts, which the load does not reach unless the machine is busy.
const BOUND: usize = 5_000;

#[derive(Clone, Copy)]
enum Executor {
    Immediate,
    Rayon,
    ThreadPool,
}

struct Options {
    executor: Executor,
    serve: Option<ListenAddr>,
    linger: Duration,
}

fn main() -> ExitCode {
    cli::main("metrics_export", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    use Executor::{Immediate, Rayon, ThreadPool};
    let mut options = Options { executor: Immediate, serve: None, linger: Duration::ZERO };
    while let Some(option) = args.option()? {
        match option {
            "--executor" => {
                let all = [("immediate", Immediate), ("rayon", Rayon), ("threadpool", ThreadPool)];
                options.executor = args.choice(&all)?;
            }
            "--serve" => {
                options.serve = Some(args.value("a port, or an IP address and a port", |given| given.parse().ok())?);
            }
            "--linger" => options.linger = Duration::from_secs(args.number(1..=86_400)?),
            _ => return Err(args.unknown(option)),
        }
    }
    if !options.linger.is_zero() {
        options.serve = options.serve.or(Some(ListenAddr::from(0)));
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let builder = Timer::builder().name("requests").max_pending_timeouts(BOUND);
    let timer = match options.executor {
        Executor::Immediate => builder,
        Executor::Rayon => builder.executor(RayonExecutor::global()),
        Executor::ThreadPool => builder.executor(ThreadPoolExecutor::new(2)),
    }
    .build()?;
    let metrics = TimerMetrics::new();
    // An alert needs the longest delay, which a timer does not know.
    let watch = Watch::new().longest_delay(LONGEST_DELAY);
    metrics.watch_with(&timer, watch);
    let server = options.serve.map(|addr| LivePage::new(&metrics).serve(addr)).transpose()?;
    if let Some(server) = &server {
        let addr = server.local_addr();
        let seconds = (LOAD + options.linger).as_secs();
        eprintln!("for {seconds} s: live page http://{addr}/, metrics http://{addr}/metrics");
    }
    load(&timer, LOAD)?;
    print!("{}", metrics.to_openmetrics()?);
    summarize(&timer);
    if !options.linger.is_zero() {
        load(&timer, options.linger)?;
        summarize(&timer);
    }
    Ok(Checks::default())
}

/// Schedules the deadlines of requests for `span`. Nine of ten requests are answered in time. A
/// slow task of 10 ms starts 50 ms after the end of its former run.
fn load(timer: &Timer, span: Duration) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let cleanup = Duration::from_millis(50);
    let slow = timer.schedule_with_fixed_delay(cleanup, cleanup, |_| thread::sleep(Duration::from_millis(10)))?;
    for request in 0_u32.. {
        let deadline = LONGEST_DELAY * (request % 100) / 100;
        match timer.new_timeout(deadline, |_| {}) {
            Ok(timeout) if request % 10 != 0 => _ = timeout.cancel(),
            Ok(_) => {}
            Err(rejected) if matches!(rejected.reason, RejectReason::TooManyPending { .. }) => {}
            Err(rejected) => return Err(rejected.to_string().into()),
        }
        if request % 100 == 0 {
            if start.elapsed() >= span {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    slow.cancel();
    Ok(())
}

/// Prints the bound and the lags. They are hard to see in the text of a scrape.
fn summarize(timer: &Timer) {
    let stats = timer.stats();
    eprintln!("{} of at most {BOUND} timeouts pending, {} refused at the bound", stats.pending, stats.rejected);
    let lag = |name: &str, lag: &LagSnapshot| {
        let [p50, p99] = [0.5, 0.99].map(|q| lag.quantile(q));
        eprintln!("{name}: p50 {p50:.1?}, p99 {p99:.1?}, max {:.1?}", lag.max());
    };
    lag("deadline to hand-over", &stats.timeout_lag);
    lag("deadline to start    ", &stats.start_lag);
}
