//! The cases of PostgreSQL.
//!
//! | case | work | figure |
//! |---|---|---|
//! | P1 | one thread schedules and has at most 4,096 calls open | inserts per second, until the last call has its answer |
//! | P2, P3 | timeouts are in flight at each node, as in E3; P3 has one | lives per second of all nodes |
//! | P4, P9 | timeouts come due at a fixed rate, as in E4 | lag; P9 gives dead rows and size, too. With `goal=1` it fails if a goal is missed |
//! | P5, P8 | a node is killed; P8 has many pending timeouts | time until its first timeout runs elsewhere |
//! | P6 | a thousand timeouts are pending, and nothing is due | transactions per minute |
//! | P7 | as P2 | bytes of the write-ahead log per life |

use crate::cluster::{number, transactions};
use crate::long_run::Watch;
use crate::ours::{Ours, TOPIC};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use timer_bench::durable::cases::{HOUR, IDLE_PARAMS, lives, transactions_per_minute};
use timer_bench::durable::{OnRun, Subject, lags, payload, row};
use timer_bench::process;
use timer_bench::row::Row;
use timer_bench::settings::Settings;
use timer_durable::PostgresStore;

/// The peer of all rows.
const PEER: &str = "timer";
/// The greatest number of calls of P1 without an answer.
const OPEN_CALLS: usize = 4_096;
/// The lease of P5 and P8.
const LEASE: Duration = Duration::from_secs(3);
/// The longest wait for shards, and for the first orphan.
const MAX_WAIT: Duration = Duration::from_secs(90);

/// Runs the case in the database of `url`, and returns `None` if there is no such case.
pub(crate) fn run(url: &str, case: &str, settings: &Settings, print: fn(Row)) -> Option<Result<(), String>> {
    Some(match case {
        "P1" => inserts(url, settings, print),
        "P2" | "P3" | "P7" => all_lives(url, case, settings, print),
        "P4" => lag(url, case, settings, print).map(drop),
        "P5" => orphans(url, case, print),
        "P8" => fill(url, settings).and_then(|()| orphans(url, case, print)),
        "P5-victim" => die(url),
        "P6" => idle(url, settings, print),
        "P9" => {
            let watch = Watch::start(PEER, url, print);
            lag(url, case, settings, print).and_then(|lags| match settings.number("goal", 0, 0) {
                0 => Ok(()),
                _ => watch.judge(&lags),
            })
        }
        _ => return None,
    })
}

/// Opens a node with a lease.
fn open(url: &str, lease: Duration, on_run: OnRun) -> Result<Ours, String> {
    let store = PostgresStore::connect(url).map_err(|error| error.to_string())?;
    Ours::open(Box::new(store.lease(lease)), on_run)
}

/// Opens one of `nodes` nodes and waits until it owns its share of the shards.
fn join(url: &str, lease: Duration, nodes: usize, on_run: OnRun) -> Result<Ours, String> {
    let node = open(url, lease, on_run)?;
    await_share(&node, nodes)?;
    Ok(node)
}

fn await_share(Ours(timer): &Ours, nodes: usize) -> Result<(), String> {
    let begin = Instant::now();
    let is_settled = || {
        let membership = timer.stats().membership;
        membership.is_some_and(|now| now.nodes as usize == nodes && now.shards as usize == 64 / nodes)
    };
    while !is_settled() {
        if begin.elapsed() > MAX_WAIT {
            return Err(format!("no share of the shards: {:?}", timer.stats().membership));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn inserts(url: &str, settings: &Settings, print: fn(Row)) -> Result<(), String> {
    let span = Duration::from_millis(settings.number("ms", 3_000, 300) as u64);
    let Ours(timer) = join(url, LEASE, 1, Arc::new(|_| ()))?;
    let (begin, mut calls, mut count) = (Instant::now(), VecDeque::new(), 0_u64);
    while begin.elapsed() < span {
        calls.push_back(timer.new_timeout_async(TOPIC, HOUR, &payload()));
        if calls.len() >= OPEN_CALLS
            && let Some(call) = calls.pop_front()
        {
            futures::executor::block_on(call).map_err(|error| error.to_string())?;
            count += 1;
        }
    }
    // The calls that are still open were made within the span, so they count like the others.
    for call in calls {
        futures::executor::block_on(call).map_err(|error| error.to_string())?;
        count += 1;
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    print(row(PEER, "P1", &format!("open={OPEN_CALLS}"), rate, "inserts/s"));
    Ok(())
}

fn all_lives(url: &str, case: &str, settings: &Settings, print: fn(Row)) -> Result<(), String> {
    let span = Duration::from_millis(settings.number("ms", 3_000, 300) as u64);
    let nodes = settings.number("nodes", 1, 1);
    let in_flight = settings.number("n", 512, 64);
    let log = |url: &str| number(url, "select pg_current_wal_lsn() - '0/0'");
    let before = log(url)?;
    // A node that ends gives its shards away, so none may end before all have their share.
    let all_joined = Barrier::new(nodes);
    let rates: Vec<Result<f64, String>> = thread::scope(|scope| {
        let node = || {
            lives(in_flight, 1, span, |on_run| {
                let joined = join(url, Duration::from_secs(15), nodes, on_run);
                all_joined.wait();
                joined
            })
        };
        let threads: Vec<_> = (0..nodes).map(|_| scope.spawn(node)).collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a node panicked".to_owned())?).collect()
    });
    // The failure of one node may be the reason for that of another.
    let failures: Vec<&str> = rates.iter().filter_map(|rate| rate.as_ref().err()).map(String::as_str).collect();
    if !failures.is_empty() {
        return Err(failures.join("; "));
    }
    let rate = rates.into_iter().flatten().sum::<f64>();
    let params = format!("nodes={nodes},in-flight={in_flight}");
    if case == "P7" {
        // The first lives are written, too, although the rate leaves them out.
        let count = rate * span.as_secs_f64() + in_flight as f64;
        print(row(PEER, case, &params, (log(url)? - before) / count, "B-wal/life"));
    } else {
        print(row(PEER, case, &params, rate, "lives/s"));
    }
    Ok(())
}

fn lag(url: &str, case: &str, settings: &Settings, print: fn(Row)) -> Result<Vec<Row>, String> {
    let rows = lags::run(PEER, case, settings, |on_run| join(url, Duration::from_secs(15), 1, on_run))?;
    rows.iter().cloned().for_each(print);
    Ok(rows)
}

/// Fills the database in a process of its own, which ends as after a kill.
fn fill(url: &str, settings: &Settings) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let total = format!("n={}", settings.number("n", 10_000_000, 20_000));
    let mut command = Command::new(program);
    command.args(["--store", url, "--one", PEER, "E6", &total]);
    let ended = command.status().map_err(|error| error.to_string())?;
    // It ends by an abort, and by an exit code after an error.
    ended.code().map_or(Ok(()), |code| Err(format!("the database could not be filled, exit code {code}")))
}

/// Kills a node that owns half of the shards.
fn orphans(url: &str, case: &str, print: fn(Row)) -> Result<(), String> {
    let (ran, runs) = mpsc::channel();
    // This node schedules nothing, so all that runs is an orphan.
    let node = open(url, LEASE, Arc::new(move |_| _ = ran.send(Instant::now())))?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(["--store", url, "--one", PEER, "P5-victim"]).stdout(Stdio::piped());
    let mut victim = command.spawn().map_err(|error| error.to_string())?;
    let mut line = String::new();
    let read = victim.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
    let killed = Instant::now();
    victim.kill().and_then(|()| victim.wait()).map_err(|error| error.to_string())?;
    read.transpose().map_err(|error| error.to_string())?;
    if line.trim() != READY {
        return Err(format!("the victim said `{line}`"));
    }
    let first = runs.recv_timeout(MAX_WAIT).map_err(|_| "no orphan has run")?;
    let params = format!("lease={}s", LEASE.as_secs());
    print(row(PEER, case, &params, (first - killed).as_secs_f64() * 1e3, "ms-first-orphan"));
    thread::sleep(Duration::from_secs(2));
    print(row(PEER, case, &params, node.0.stats().in_memory as f64, "timeouts-loaded"));
    if let Some(bytes) = process::resident() {
        print(row(PEER, case, &params, bytes as f64 / 1e6, "MB-resident"));
    }
    // The store is not left in good order, because it goes with its database.
    std::process::exit(0)
}

/// The line of a victim that waits for its end.
const READY: &str = "ready";

/// Owns half of the shards and waits to be killed.
fn die(url: &str) -> Result<(), String> {
    let node = join(url, LEASE, 2, Arc::new(|_| ()))?;
    // A node that has joined a moment ago looks twice before it takes over. The case is about nodes
    // that have run for a while.
    thread::sleep(LEASE * 2);
    for _ in 0..100 {
        node.schedule(LEASE / 3)?;
    }
    println!("{READY}");
    loop {
        thread::park();
    }
}

fn idle(url: &str, settings: &Settings, print: fn(Row)) -> Result<(), String> {
    let span = Duration::from_millis(settings.number("ms", 60_000, 2_000) as u64);
    let node = join(url, Duration::from_secs(15), 1, Arc::new(|_| ()))?;
    let rate = transactions_per_minute(&node, span, || transactions(url))?;
    print(row(PEER, "P6", IDLE_PARAMS, rate, "transactions/min"));
    Ok(())
}
