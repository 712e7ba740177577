//! Requests over TCP on tokio, a hundred thousand of them in flight, each with a deadline.
//!
//! A few connections carry all calls, and a reply finds its call by number. The server answers
//! after a while, and some requests never. Each call ends once, either answered or timed out. If
//! the reply and the deadline come together, the caller decides. With `--timer ours` the runtime
//! has no timer.
//!
//! | file | contents |
//! |---|---|
//! | `clock` | the deadlines, from this library or from tokio |
//! | `client`, `server` | the two ends of a connection |
//! | `call`, `wire` | the number of a call, and its format on the wire |
#![forbid(unsafe_code)]

mod call;
mod client;
mod clock;
mod server;
mod wire;

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::{Broken, Connection};
use clock::Clock;
use examples::cli::{self, Args, Checks, Stop};
use examples::ledger::Ledger;
use server::Manners;
use timer_core::Timer;
use timer_live::{ListenAddr, LivePage};
use timer_metrics::TimerMetrics;
use tokio::net::TcpListener;
use tokio::runtime;

const USAGE: &str = "\
Callers that make one call after the other over a few TCP connections, each call with a deadline. One reply in ten never
comes. Prints how many calls a second ended, and whether each ended exactly once.

Usage: rpc_timeouts [OPTIONS]

  --timer KIND          whose deadlines: ours | tokio [default: ours]
  --in-flight N         callers, 1..=1000000 [default: 100000]
  --rounds N            calls of each, one after the other, 1..=1000 [default: 5]
  --deadline MILLIS     of each call, 1..=600000 [default: 1500]
  --service MILLIS      how long the server takes, 0..=600000 [default: 300]
  --lose N              one reply in N never comes, 0 for none, 0..=1000000 [default: 10]
  --connections N       TCP connections that the callers share, 1..=200 [default: 8]
  --workers N           threads of the runtime, 1..=64 [default: 2]
  --metrics ADDR        serve /metrics and a live page of our timer: a port (on 127.0.0.1), or an IP address and a port
  -h, --help            print this
";

/// The pending deadlines are sampled each time the number of calls in flight grows by this many.
const SAMPLE: usize = 100;

#[derive(Clone, Copy)]
struct Options {
    ours: bool,
    callers: usize,
    rounds: usize,
    deadline: Duration,
    service: Duration,
    lose: u64,
    connections: usize,
    workers: usize,
    metrics: Option<ListenAddr>,
}

fn main() -> ExitCode {
    cli::main("rpc_timeouts", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options {
        ours: true,
        callers: 100_000,
        rounds: 5,
        deadline: Duration::from_millis(1500),
        service: Duration::from_millis(300),
        lose: 10,
        connections: 8,
        workers: 2,
        metrics: None,
    };
    while let Some(option) = args.option()? {
        match option {
            "--timer" => options.ours = args.choice(&[("ours", true), ("tokio", false)])?,
            "--in-flight" => options.callers = args.count(1..=1_000_000)?,
            "--rounds" => options.rounds = args.count(1..=1000)?,
            "--deadline" => options.deadline = args.millis(1..=600_000)?,
            "--service" => options.service = args.millis(0..=600_000)?,
            "--lose" => options.lose = args.number(0..=1_000_000)?,
            "--connections" => options.connections = args.count(1..=200)?,
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
    let timer = Timer::builder().name("rpc").build()?;
    let metrics = TimerMetrics::from_iter([&timer]);
    let page = options.metrics.map(|addr| LivePage::new(&metrics).serve(addr)).transpose()?;
    if let Some(page) = &page {
        eprintln!("live page http://{0}/, metrics http://{0}/metrics", page.local_addr());
    }
    let clock = if options.ours {
        Clock::Ours(timer)
    } else {
        runtime.enable_time();
        Clock::Tokio
    };
    runtime.build()?.block_on(calls(options, clock))
}

/// The state that all callers share.
struct Shared {
    options: Options,
    clock: Clock,
    connections: Vec<Connection>,
    ledger: Ledger,
    in_flight: AtomicUsize,
}

/// The results of calls.
#[derive(Default)]
struct Ends {
    answered: u64,
    timed_out: u64,
    failed: u64,
    early: u64,
    lateness: Duration,
    most_in_flight: usize,
    most_pending: usize,
}

async fn calls(options: Options, clock: Clock) -> Result<Checks, Box<dyn Error>> {
    let Options { callers, rounds, deadline, service, lose, .. } = options;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let manners = Manners { clock: clock.clone(), service, lose };
    let server = tokio::spawn(server::serve(listener, options.connections, manners));
    let mut connections = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..options.connections {
        let (connection, reader) = Connection::open(address).await?;
        connections.push(connection);
        readers.push(reader);
    }

    let ledger = Ledger::new(callers * rounds);
    let in_flight = AtomicUsize::new(0);
    let shared = Arc::new(Shared { options, clock, connections, ledger, in_flight });
    let began = Instant::now();
    let tasks: Vec<_> = (0..callers).map(|caller| tokio::spawn(call_after_call(shared.clone(), caller))).collect();
    let mut ends = Ends::default();
    for task in tasks {
        ends.add(task.await?);
    }
    let took = began.elapsed();

    let Some(Shared { clock, ledger, connections, .. }) = Arc::into_inner(shared) else {
        return Err("a caller has not ended".into());
    };
    drop(connections);
    let mut late = 0;
    for reader in readers {
        late += reader.await??;
    }
    server.await??;

    let all = callers * rounds;
    let rate = all as f64 / took.as_secs_f64();
    println!("{all} calls of {callers} callers over {} connections, deadline {deadline:?}", options.connections);
    println!(
        "{rate:>10.0} calls a second, {took:.2?} in all, with {} timer",
        if options.ours { "our" } else { "tokio's" }
    );
    println!("{:>10} in flight at once, at most", ends.most_in_flight);
    println!("{:>10} answered in time", ends.answered);
    println!(
        "{:>10} timed out, {:.1?} late on average; {late} replies came too late",
        ends.timed_out,
        ends.mean_lateness()
    );
    match clock.pending() {
        Some(pending) => println!("{pending:>10} deadlines pending, at most {} while it ran", ends.most_pending),
        None => println!("{:>10} deadlines pending; tokio does not report their number", "?"),
    }

    let mut checks = Checks::default();
    let never = ledger.never();
    let again = ledger.again();
    checks.that(ledger.holds(), format!("every call ended exactly once ({never} never, {again} again)"));
    checks.that(ends.failed == 0, "none failed");
    checks.that(ends.early == 0, "none timed out before its deadline");
    let lost = if lose == 0 { 0 } else { lost(callers, rounds, lose) };
    checks.that(ends.timed_out >= lost, format!("the {lost} calls whose reply never comes timed out"));
    if let Some(pending) = clock.pending() {
        checks.that(pending == 0, "no deadline is left behind");
    }
    Ok(checks)
}

async fn call_after_call(shared: Arc<Shared>, caller: usize) -> Ends {
    let Options { callers, rounds, deadline, .. } = shared.options;
    let connection = &shared.connections[caller % shared.connections.len()];
    let mut ends = Ends::default();
    for round in 0..rounds {
        let number = call::number(caller, round);
        // ORDERING: Relaxed, because this is only a count.
        let in_flight = shared.in_flight.fetch_add(1, Ordering::Relaxed) + 1;
        ends.most_in_flight = ends.most_in_flight.max(in_flight);
        if in_flight.is_multiple_of(SAMPLE) {
            ends.most_pending = ends.most_pending.max(shared.clock.pending().unwrap_or(0));
        }
        let began = Instant::now();
        match shared.clock.with_deadline(deadline, connection.call(number)).await {
            Ok(Ok(())) => ends.answered += 1,
            Err(_elapsed) => {
                let took = began.elapsed();
                ends.timed_out += 1;
                ends.early += u64::from(took < deadline);
                ends.lateness += took.saturating_sub(deadline);
                connection.forget(number);
            }
            Ok(Err(Broken)) => ends.failed += 1,
        }
        // ORDERING: Relaxed, because this is only a count.
        shared.in_flight.fetch_sub(1, Ordering::Relaxed);
        shared.ledger.end(round * callers + caller);
    }
    ends
}

/// Returns the number of calls that never get a reply.
fn lost(callers: usize, rounds: usize, lose: u64) -> u64 {
    let sums = (0..rounds as u64).flat_map(|round| (0..callers as u64).map(move |caller| round + caller));
    sums.filter(|sum| sum.is_multiple_of(lose)).count() as u64
}

impl Ends {
    fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.timed_out += other.timed_out;
        self.failed += other.failed;
        self.early += other.early;
        self.lateness += other.lateness;
        self.most_in_flight = self.most_in_flight.max(other.most_in_flight);
        self.most_pending = self.most_pending.max(other.most_pending);
    }

    fn mean_lateness(&self) -> Duration {
        u32::try_from(self.timed_out).ok().and_then(|n| self.lateness.checked_div(n)).unwrap_or_default()
    }
}
