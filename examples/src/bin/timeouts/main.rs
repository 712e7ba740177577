//! Durable timeouts by lines of text, for tests and for programs in other languages.
//!
//! The program reads one command per line and answers when the effect is durable. Commands do not
//! wait for each other, so answers come in the order of the commits.
//!
//! | command | answer |
//! |---|---|
//! | `schedule KEY DELAY_MS [PAYLOAD]` | `scheduled KEY`, also if the key is pending already |
//! | `cancel KEY` | `cancelled KEY`, `running KEY` or `unknown KEY` |
//! | `reset KEY DELAY_MS` | `reset KEY`, `running KEY` or `unknown KEY` |
//! | `quit`, or the end of the input | none; the program stops and exits with 0 |
//!
//! A command that fails is answered by `error KEY TEXT`. `fired KEY ATTEMPT LAG_US` tells that a
//! handler begins, and `done KEY ATTEMPT` that its end is durable. The lag is the time from the due
//! time until the attempt begins, in microseconds of the store's clock.
#![forbid(unsafe_code)]

mod announcing;

use std::error::Error;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use announcing::Announcing;
use examples::cli::{self, Args, Checks, Refused, Stop};
use examples::durable::{LEASE, StoreName};
use redb_store::RedbStore;
use timer_durable::store::Store;
use timer_durable::{CancelAnswer, Due, DurableTimer, ResetAnswer, Schedule, Topic};
use timer_executor::ThreadPoolExecutor;
use tokio::runtime::Runtime;

const USAGE: &str = "\
Keeps timeouts in a store. Reads commands from standard input and prints answers, one per line.

  schedule KEY DELAY_MS [PAYLOAD] | cancel KEY | reset KEY DELAY_MS | quit

Usage: timeouts --store STORE [OPTIONS]

  --store STORE      sqlite:FILE, redb:FILE or postgres://URL
  --node NAME        the name of this process among those that share the store [default: none]
  --ttl SECONDS      the lease on a store that is shared, 1..=3600 [default: 15]
  --handler-ms N     how long each handler takes, 0..=3600000 [default: 0]
  -h, --help         print this
";

/// The process may be killed many times in a row through no fault of its handlers.
const TOPIC: Topic<String> = Topic::new("timeouts").attempts(u32::MAX);

/// The number of handlers that can take their time at once.
const THREADS: usize = 16;

/// The time that handlers get to end when the program stops.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The allowed values of `--store`.
const STORES: &str = "sqlite:FILE, redb:FILE, postgres://URL";

/// The value of `--store`.
enum StoreArg {
    Redb(PathBuf),
    Other(StoreName),
}

impl StoreArg {
    fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix("redb:") {
            Some(file) => (!file.is_empty()).then(|| Self::Redb(file.into())),
            None => StoreName::parse(text).map(Self::Other),
        }
    }

    fn open(&self, node: Option<&str>, lease: Duration) -> Result<Box<dyn Store>, Refused> {
        match self {
            Self::Redb(file) => match RedbStore::open(file) {
                Ok(store) => Ok(store.into()),
                Err(error) => Err(Refused(error.to_string())),
            },
            Self::Other(store) => store.open(node, lease).map(|(store, _)| store),
        }
    }
}

struct Options {
    store: StoreArg,
    node: Option<String>,
    lease: Duration,
    handler: Duration,
}

fn main() -> ExitCode {
    cli::main("timeouts", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut store = None;
    let mut node = None;
    let mut lease = LEASE;
    let mut handler = Duration::ZERO;
    while let Some(option) = args.option()? {
        match option {
            "--store" => store = Some(args.value(STORES, StoreArg::parse)?),
            "--node" => node = Some(args.value("a name", |name| (!name.is_empty()).then(|| name.to_owned()))?),
            "--ttl" => lease = Duration::from_secs(args.number(1..=3600)?),
            "--handler-ms" => handler = args.millis(0..=3_600_000)?,
            _ => return Err(args.unknown(option)),
        }
    }
    let store = store.ok_or_else(|| Stop::Refused(Refused(format!("--store is missing; allowed: {STORES}"))))?;
    Ok(Options { store, node, lease, handler })
}

fn run(Options { store, node, lease, handler }: Options) -> Result<Checks, Box<dyn Error>> {
    let (lines, printed) = mpsc::channel::<String>();
    let printer = thread::spawn(move || printed.iter().for_each(|line| print(&line)));
    let store = store.open(node.as_deref(), lease)?;
    let (store, begun) = Announcing::new(store, lines.clone());
    let timer = DurableTimer::builder()
        .name(node.as_deref().unwrap_or("timeouts"))
        .executor(ThreadPoolExecutor::new(THREADS))
        .topic(TOPIC, move |due: &Due<String>| {
            let key = due.key().unwrap_or_default();
            let lag = begun.lag(due.id()).unwrap_or_default();
            // Before the handler returns, so that no end is durable whose begin was not printed.
            print(&format!("fired {key} {} {lag}", due.attempt()));
            thread::sleep(handler);
            Ok(())
        })
        .open(store)
        .wait()?;

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    for line in io::stdin().lock().lines() {
        match line {
            Ok(line) if line.trim() == "quit" => break,
            Ok(line) => answer(&runtime, &timer, &lines, &line),
            // A line that is not text.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => _ = lines.send(format!("error - {error}")),
            Err(error) => {
                _ = lines.send(format!("error - {error}"));
                break;
            }
        }
    }
    let report = timer.stop(STOP_LIMIT).wait()?;
    if report.unfinished > 0 {
        eprintln!("timeouts: {} handlers were still running; their timeouts run again", report.unfinished);
    }
    drop((timer, lines));
    runtime.shutdown_timeout(STOP_LIMIT);
    _ = printer.join();
    Ok(Checks::default())
}

/// Prints one line at once.
fn print(line: &str) {
    let mut output = io::stdout().lock();
    // Without a reader there is nobody to tell, and the timeouts still have to run.
    _ = writeln!(output, "{line}").and_then(|()| output.flush());
}

/// Makes the call of one line, and prints its answer once it is there.
fn answer(runtime: &Runtime, timer: &DurableTimer, lines: &Sender<String>, line: &str) {
    let lines = lines.clone();
    let mut words = line.splitn(4, ' ');
    let mut word = || words.next().filter(|word| !word.is_empty());
    let verb = word();
    let key = word().unwrap_or("-").to_owned();
    let delay = word().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let payload = word().unwrap_or_default().to_owned();
    let failed = |key: &str, error: &dyn std::fmt::Display| format!("error {key} {error}").replace('\n', " ");
    match (verb, delay) {
        (_, _) if key == "-" => _ = lines.send(failed(&key, &"a command and a key are needed")),
        (Some("schedule"), Some(delay)) => {
            let call = timer.schedule(TOPIC, Schedule::after(delay).key(&key), &payload);
            runtime.spawn(async move {
                _ = lines.send(match call.await {
                    Ok(_) => format!("scheduled {key}"),
                    Err(error) => failed(&key, &error),
                });
            });
        }
        (Some("cancel"), None) => {
            let call = timer.cancel(TOPIC, &key);
            runtime.spawn(async move {
                _ = lines.send(match call.await {
                    Ok(CancelAnswer::Cancelled) => format!("cancelled {key}"),
                    Ok(CancelAnswer::QueuedCancelled) => format!("queued-cancelled {key}"),
                    Ok(CancelAnswer::Running) => format!("running {key}"),
                    Ok(_) => format!("unknown {key}"),
                    Err(error) => failed(&key, &error),
                });
            });
        }
        (Some("reset"), Some(delay)) => {
            let call = timer.reset(TOPIC, &key, delay);
            runtime.spawn(async move {
                _ = lines.send(match call.await {
                    Ok(ResetAnswer::Reset) => format!("reset {key}"),
                    Ok(ResetAnswer::QueuedReset) => format!("queued-reset {key}"),
                    Ok(ResetAnswer::Running) => format!("running {key}"),
                    Ok(_) => format!("unknown {key}"),
                    Err(error) => failed(&key, &error),
                });
            });
        }
        _ => {
            let allowed = "schedule KEY DELAY_MS [PAYLOAD], cancel KEY, reset KEY DELAY_MS, quit";
            _ = lines.send(failed(&key, &format!("'{line}' given; allowed: {allowed}")));
        }
    }
}
