//! What a timer does, as Prometheus sees it: a second of load, then one scrape on the terminal.
//!
//! With `--serve` the same is under `/metrics` for as long as the load lasts: `--serve 9184` is
//! `http://127.0.0.1:9184/metrics`, seen by this machine only. The executors differ most in
//! `timer_timeout_lag_seconds`: on the worker itself, a slow task delays all others.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Stop};
use timer_core::{RejectReason, Timer};
use timer_executor::{RayonExecutor, ThreadPoolExecutor};
use timer_metrics::{ListenAddr, TimerMetrics, Watch};

const USAGE: &str = "\
Makes a second of load on a timer and prints what Prometheus would scrape.

Usage: metrics_export [OPTIONS]

  --executor KIND       where tasks run: immediate | rayon | threadpool [default: immediate]
  --serve ADDR          serve the metrics meanwhile: a port (on 127.0.0.1), or an IP address and a port
  -h, --help            print this
";

const LOAD: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_millis(200);

#[derive(Clone, Copy)]
enum Executor {
    Immediate,
    Rayon,
    ThreadPool,
}

struct Options {
    executor: Executor,
    serve: Option<ListenAddr>,
}

fn main() -> ExitCode {
    cli::main("metrics_export", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    use Executor::{Immediate, Rayon, ThreadPool};
    let mut options = Options { executor: Immediate, serve: None };
    while let Some(option) = args.option()? {
        match option {
            "--executor" => {
                let all = [("immediate", Immediate), ("rayon", Rayon), ("threadpool", ThreadPool)];
                options.executor = args.choice(&all)?;
            }
            "--serve" => {
                options.serve = Some(args.value("a port, or an IP address and a port", |given| given.parse().ok())?);
            }
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let builder = Timer::builder().name("requests");
    let timer = match options.executor {
        Executor::Immediate => builder,
        Executor::Rayon => builder.executor(RayonExecutor::global()),
        Executor::ThreadPool => builder.executor(ThreadPoolExecutor::new(2)),
    }
    .build()?;
    let metrics = TimerMetrics::new();
    // A timer does not know the longest delay that it will be given, and an alert needs it.
    let watch = Watch::new().longest_delay(LONGEST_DELAY);
    metrics.watch_with(&timer, watch);
    let server = options.serve.map(|addr| metrics.serve(addr)).transpose()?;
    if let Some(server) = &server {
        eprintln!("for a second: http://{}/metrics", server.local_addr());
    }
    load(&timer)?;
    print!("{}", metrics.to_openmetrics()?);
    Ok(Checks::default())
}

/// Requests with deadlines, of which nine in ten are answered in time; and now and then a task that takes its time.
fn load(timer: &Timer) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut refused = 0_u64;
    let cleanup = Duration::from_millis(50);
    let slow = timer.schedule_with_fixed_delay(cleanup, cleanup, |_| thread::sleep(Duration::from_millis(10)))?;
    for request in 0_u32.. {
        let deadline = LONGEST_DELAY * (request % 100) / 100;
        match timer.new_timeout(deadline, |_| {}) {
            Ok(timeout) if request % 10 != 0 => _ = timeout.cancel(),
            Ok(_) => {}
            Err(rejected) if matches!(rejected.reason, RejectReason::TooManyPending { .. }) => refused += 1,
            Err(rejected) => return Err(rejected.to_string().into()),
        }
        if request % 100 == 0 {
            if start.elapsed() >= LOAD {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
    slow.cancel();
    eprintln!("{refused} requests were refused at the bound");
    Ok(())
}
