//! An HTTP server on hyper whose timeouts all come from one timer.
//!
//! The server closes connections that do not send a request in time, whether they are new or idle
//! after a request, and answers requests that take too long with 504. The program makes its own
//! load: clients that make requests, some of which never end by themselves, and clients that send
//! nothing. With `--timer ours` the runtime has no timer, and with `--timer limits` each connection
//! makes one sleep for all of its requests. With `--timer tokio` the same server uses tokio's.
//!
//! | file | contents |
//! |---|---|
//! | `clock` | the timeouts, from this library or from tokio |
//! | `server`, `client` | the two ends of a connection |
#![forbid(unsafe_code)]

mod client;
mod clock;
mod server;

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use client::Tally;
use clock::Clock;
use examples::cli::{self, Args, Checks, Stop};
use indicatif::{ProgressBar, ProgressStyle};
use server::Limits;
use timer_core::Timer;
use timer_live::{ListenAddr, LivePage};
use timer_metrics::TimerMetrics;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::task::JoinSet;

const USAGE: &str = "\
Serves HTTP to its own clients, with timeouts for headers, idle connections and requests. Prints how many requests a
second were answered, and whether each timeout did its work.

Usage: http_server [OPTIONS]

  --timer KIND          whose timeouts: ours | limits (ours, with one sleep per connection) | tokio [default: ours]
  --connections N       clients that make requests, 1..=10000 [default: 200]
  --requests N          requests of each, 1..=1000000 [default: 500]
  --stuck N             one request in N never ends by itself, 1..=1000000 [default: 100]
  --silent N            clients that send nothing, 0..=10000 [default: 50]
  --header MILLIS       limit for a header and for an idle connection, 10..=600000 [default: 1000]
  --request MILLIS      limit for a request, 10..=600000 [default: 200]
  --workers N           threads of the runtime, 1..=64 [default: 2]
  --metrics ADDR        serve /metrics and a live page of our timer: a port (on 127.0.0.1), or an IP address and a port
  -h, --help            print this
";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ours,
    Limits,
    Tokio,
}

#[derive(Clone, Copy)]
struct Options {
    kind: Kind,
    connections: usize,
    requests: u64,
    stuck: u64,
    silent: usize,
    limits: Limits,
    workers: usize,
    metrics: Option<ListenAddr>,
}

fn main() -> ExitCode {
    cli::main("http_server", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options {
        kind: Kind::Ours,
        connections: 200,
        requests: 500,
        stuck: 100,
        silent: 50,
        limits: Limits { header: Duration::from_millis(1000), request: Duration::from_millis(200) },
        workers: 2,
        metrics: None,
    };
    while let Some(option) = args.option()? {
        match option {
            "--timer" => {
                options.kind =
                    args.choice(&[("ours", Kind::Ours), ("limits", Kind::Limits), ("tokio", Kind::Tokio)])?;
            }
            "--connections" => options.connections = args.count(1..=10_000)?,
            "--requests" => options.requests = args.number(1..=1_000_000)?,
            "--stuck" => options.stuck = args.number(1..=1_000_000)?,
            "--silent" => options.silent = args.count(0..=10_000)?,
            "--header" => options.limits.header = args.millis(10..=600_000)?,
            "--request" => options.limits.request = args.millis(10..=600_000)?,
            "--workers" => options.workers = args.count(1..=64)?,
            "--metrics" => {
                options.metrics = Some(args.value("a port, or an IP address and a port", |given| given.parse().ok())?);
            }
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let mut runtime = runtime::Builder::new_multi_thread();
    runtime.worker_threads(options.workers).enable_io();
    let timer = Timer::builder().name("http").build()?;
    let metrics = TimerMetrics::from_iter([&timer]);
    let page = options.metrics.map(|addr| LivePage::new(&metrics).serve(addr)).transpose()?;
    if let Some(page) = &page {
        eprintln!("live page http://{0}/, metrics http://{0}/metrics", page.local_addr());
    }
    let clock = match options.kind {
        Kind::Ours => Clock::Ours(timer.clone()),
        Kind::Limits => Clock::Limits(timer.clone()),
        Kind::Tokio => {
            runtime.enable_time();
            Clock::Tokio
        }
    };
    runtime.build()?.block_on(exchange(options, clock))
}

async fn exchange(options: Options, clock: Clock) -> Result<Checks, Box<dyn Error>> {
    let Options { connections, requests, stuck, silent, limits, .. } = options;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(server::serve(listener, connections + silent, limits, clock.clone()));
    let all = connections as u64 * requests;
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} requests, {per_sec}")?;
    let bar = ProgressBar::new(all).with_style(style);

    let began = Instant::now();
    let mut clients = JoinSet::new();
    (0..connections).for_each(|_| _ = clients.spawn(client::active(address, requests, stuck, bar.clone())));
    (0..silent).for_each(|_| _ = clients.spawn(client::silent(address)));
    let mut tally = Tally::default();
    let mut most_pending = 0;
    while let Some(client) = clients.join_next().await {
        tally.add(client?.map_err(|error| error.to_string())?);
        most_pending = most_pending.max(clock.counts().map_or(0, |(pending, _)| pending));
    }
    bar.finish_and_clear();
    let took = began.elapsed();
    server.await??;

    let kind = if options.kind == Kind::Tokio { "tokio's" } else { "our" };
    println!("{all} requests over {connections} connections, and {silent} silent clients, with {kind} timer");
    println!(
        "{:>10.0} requests a second, {took:.2?} with the wait for idle connections",
        all as f64 / took.as_secs_f64()
    );
    println!("{:>10} answered", tally.answered);
    println!("{:>10} timed out", tally.timed_out);
    let first = tally.idle.iter().min();
    let last = tally.idle.iter().max();
    let closed = tally.idle.len();
    println!(
        "{closed:>10} idle connections closed, after {:.1?} to {:.1?}",
        first.unwrap_or(&took),
        last.unwrap_or(&took)
    );
    if let Some((_, scheduled)) = clock.counts() {
        println!("{scheduled:>10} timeouts scheduled, at most {most_pending} pending as clients ended");
    }

    let mut checks = Checks::default();
    let expected = connections as u64 * (requests / stuck);
    checks.that(tally.wrong == 0 && tally.answered + tally.timed_out == all, "every request got its answer");
    checks.that(tally.timed_out == expected, format!("the {expected} stuck requests timed out"));
    checks.that(closed == connections + silent, "every connection was closed by the server");
    // hyper starts the limit of an idle connection before the client has read the last response.
    let early = limits.header.mul_f64(0.5);
    checks.that(first.is_some_and(|first| *first >= early), "no connection was closed before its time");
    if let Some((pending, _)) = clock.counts() {
        checks.that(pending == 0, "no timeout is left behind");
    }
    Ok(checks)
}
