//! What a timer does, as Prometheus sees it: a second of load, then one scrape on the terminal.
//!
//! `metrics_export [immediate | rayon | threadpool] [--serve ADDR]`
//!
//! With `--serve` the same is under `/metrics` for as long as the load lasts: `--serve 9184` is
//! `http://127.0.0.1:9184/metrics`, seen by this machine only. The executors differ most in
//! `timer_timeout_lag_seconds`: on the worker itself, a slow task delays all others.
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use timer_core::{RejectReason, Timer, TimerBuilder};
use timer_executor::{RayonExecutor, ThreadPoolExecutor};
use timer_metrics::{ListenAddr, TimerMetrics, Watch};

const USAGE: &str = "usage: metrics_export [immediate | rayon | threadpool] [--serve ADDR]";
const LOAD: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_millis(200);

fn main() -> ExitCode {
    let result = match parse(std::env::args().skip(1)) {
        Ok((builder, addr)) => run(builder, addr).map_err(|error| error.to_string()),
        Err(error) => Err(format!("{error}\n{USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<(TimerBuilder, Option<ListenAddr>), String> {
    let (mut builder, mut addr) = (Timer::builder(), None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "immediate" => {}
            "rayon" => builder = builder.executor(RayonExecutor::global()),
            "threadpool" => builder = builder.executor(ThreadPoolExecutor::new(2)),
            "--serve" => {
                let given = words.next().ok_or("--serve needs an address")?;
                addr = Some(given.parse::<ListenAddr>().map_err(|error| error.to_string())?);
            }
            other => return Err(format!("`{other}` is neither an executor nor an option")),
        }
    }
    Ok((builder, addr))
}

fn run(builder: TimerBuilder, addr: Option<ListenAddr>) -> Result<(), Box<dyn Error>> {
    let timer = builder.name("requests").build()?;
    let metrics = TimerMetrics::new();
    // The bound and the longest delay are for the alerts; a timer does not tell them itself.
    let watch = Watch::new().longest_delay(LONGEST_DELAY);
    metrics.watch_with(&timer, watch);
    let server = addr.map(|addr| metrics.serve(addr)).transpose()?;
    if let Some(server) = &server {
        eprintln!("for a second: http://{}/metrics", server.local_addr());
    }
    load(&timer)?;
    print!("{}", metrics.to_openmetrics()?);
    Ok(())
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
