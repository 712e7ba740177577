//! A server of expiring keys, written for `tokio::time`, on either timer.
//!
//! The server is one file that takes `time` from the module above it. There are two such modules:
//! `on_tokio` says `use tokio::time`, and `on_ours` says `use timer_core::time`. The only other
//! difference is the runtime without a timer for `--timer ours`. The program itself is the client.
//! It talks to the server over TCP and prints the answers, which are the same with both timers. The
//! docs of `timer_core::time` list possible differences.
//!
//! | file | contents |
//! |---|---|
//! | `server` | the server: `sleep_until`, `timeout`, `timeout_at`, `interval`, `Instant` |
//! | `on_tokio`, `on_ours` | the `use` line |
//! | `client` | a blocking client |
#![forbid(unsafe_code)]

mod client;
mod on_ours;
mod on_tokio;

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use client::Client;
use examples::cli::{self, Args, Checks, Stop};
use tokio::net::TcpListener;
use tokio::runtime;

const USAGE: &str = "\
A server of keys that expire, written for tokio::time, with tokio's timer or with its use line changed. Says what a client
hears from it over TCP, and whether anything came too early or not at all.

Usage: key_store [OPTIONS]

  --timer KIND       whose timer: ours | tokio [default: ours]
  --keys N           keys that expire, 1..=100000 [default: 1000]
  --life MILLIS      of the first of these keys, the last lives twice as long, 1..=60000 [default: 500]
  --idle MILLIS      one connection says nothing, and is closed after so long, 1..=50000 [default: 1000]
  --period MILLIS    from one count of the keys to the next, 1..=60000 [default: 10]
  -h, --help         print this
";

struct Options {
    ours: bool,
    keys: usize,
    life: Duration,
    idle: Duration,
    period: Duration,
}

fn main() -> ExitCode {
    cli::main("key_store", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let millis = Duration::from_millis;
    let mut options = Options { ours: true, keys: 1000, life: millis(500), idle: millis(1000), period: millis(10) };
    while let Some(option) = args.option()? {
        match option {
            "--timer" => options.ours = args.choice(&[("ours", true), ("tokio", false)])?,
            "--keys" => options.keys = args.count(1..=100_000)?,
            "--life" => options.life = args.millis(1..=60_000)?,
            "--idle" => options.idle = args.millis(1..=50_000)?,
            "--period" => options.period = args.millis(1..=60_000)?,
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_io();
    if !options.ours {
        builder.enable_time();
    }
    let runtime = builder.build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let server = listener.local_addr()?;
    let began = Instant::now();
    if options.ours {
        runtime.spawn(on_ours::server::serve(listener, options.period));
    } else {
        runtime.spawn(on_tokio::server::serve(listener, options.period));
    }

    let mut checks = Checks::default();
    println!("{} keys, with {} timer", options.keys, if options.ours { "our" } else { "tokio's" });
    talk(server, &mut checks)?;
    expire(server, &options, &mut checks)?;
    take(server, &mut checks)?;
    idle(server, options.idle, &mut checks)?;
    sample(server, options.period, began, &mut checks)?;
    Ok(checks)
}

/// Exchanges commands and answers that do not depend on time.
fn talk(server: SocketAddr, checks: &mut Checks) -> io::Result<()> {
    let mut client = Client::connect(server)?;
    let said = [
        ("get colour", "nil"),
        ("set colour red", "ok"),
        ("get colour", "red"),
        ("set colour blue 3600000", "ok"),
        ("take colour 0", "blue"),
        ("get colour", "nil"),
        ("take colour 0", "nil"),
        ("keys", "0"),
        ("set colour red soon", "error: 'soon' given; allowed: milliseconds, 0..=86400000"),
    ];
    let mut as_expected = true;
    for (command, expected) in said {
        let answer = client.ask(command)?;
        println!("  {command:<24} {answer}");
        as_expected &= answer == expected;
    }
    checks.that(as_expected, "every answer is the right one");
    Ok(())
}

/// Lets keys expire while one key is extended and another one stays.
fn expire(server: SocketAddr, options: &Options, checks: &mut Checks) -> io::Result<()> {
    let mut client = Client::connect(server)?;
    client.ask("set stays here")?;
    client.ask(&format!("set pushed back {}", options.life.as_millis()))?;
    let lives = |key: usize| options.life + options.life.mul_f64(key as f64 / options.keys as f64);
    let mut set = Vec::new();
    for key in 0..options.keys {
        let life = Duration::from_millis(lives(key).as_millis() as u64);
        // This is earlier than the server's reading, so a key that is gone before it expired too
        // early.
        set.push(Instant::now() + life);
        client.ask(&format!("set key{key} {key} {}", life.as_millis()))?;
    }
    client.ask("set pushed back 3600000")?;
    let mut early = 0;
    let mut lateness = Duration::ZERO;
    for (key, due) in set.into_iter().enumerate() {
        while client.ask(&format!("get key{key}"))? != "nil" {
            thread::sleep(Duration::from_millis(1));
        }
        let now = Instant::now();
        early += usize::from(now < due);
        lateness = lateness.max(now.saturating_duration_since(due));
    }
    println!("{:>10} keys expired, at most {lateness:.1?} late", options.keys);
    checks.that(early == 0, "no key expired too early");
    let left = client.number("keys")?;
    checks.that(left == 2, "the extended key and the one without an end are there");
    Ok(())
}

/// Waits for a key that never comes, and for a key that another client sets.
fn take(server: SocketAddr, checks: &mut Checks) -> Result<(), Box<dyn Error>> {
    let mut client = Client::connect(server)?;
    let began = Instant::now();
    let limit = Duration::from_millis(30);
    let answer = client.ask("take parcel 30")?;
    let took = began.elapsed();
    println!("{took:>10.1?} waited for a key that never came");
    checks.that(answer == "nil" && took >= limit, "a client that waits in vain waits for the time that it has given");

    let waiting = thread::spawn(move || client.ask("take parcel 60000"));
    thread::sleep(limit);
    Client::connect(server)?.ask("set parcel tea")?;
    let answer = waiting.join().map_err(|_| "a client panicked")??;
    checks.that(answer == "tea", "a client that waits for a key gets it when it is set");
    Ok(())
}

/// Opens a connection that sends nothing.
fn idle(server: SocketAddr, limit: Duration, checks: &mut Checks) -> io::Result<()> {
    let began = Instant::now();
    let mut client = Client::connect(server)?;
    client.ask(&format!("idle {}", limit.as_millis()))?;
    client.until_closed()?;
    let took = began.elapsed();
    println!("{took:>10.1?} until an idle connection was closed");
    checks.that(took >= limit, "it was not closed too early");
    Ok(())
}

/// Checks how often the server has counted its keys.
fn sample(server: SocketAddr, period: Duration, began: Instant, checks: &mut Checks) -> io::Result<()> {
    let samples = Client::connect(server)?.number("samples")?;
    let periods = began.elapsed().as_nanos() / period.as_nanos();
    println!("{samples:>10} samples in {periods} periods");
    // There is one sample at once and one in each period.
    checks.that(samples >= 1 && u128::from(samples) <= periods + 1, "no tick came too early");
    Ok(())
}
