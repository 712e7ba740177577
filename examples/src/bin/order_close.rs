//! Orders of a shop that close after half an hour unless they are paid, also if the shop crashes.
//!
//! Each order has two durable timeouts, one that closes it and one for the customer's payment. Both
//! handlers write the state of the order in the transaction that ends the timeout, so each order
//! gets exactly one state, whatever dies and when. The second start finishes the orders of the
//! first.
//!
//!     cargo run -p examples --bin order_close -- --crash-after 2000
//!     cargo run -p examples --bin order_close
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Refused, Stop};
use examples::durable::{LEASE, StoreName, with_usage};
use indicatif::{ProgressBar, ProgressStyle};
use rusqlite::Connection;
use timer_durable::{CompleteError, Due, DurableTimer, IfPending, Retry};

const USAGE: &str = "\
Opens orders that close after half an hour unless they are paid. Three customers in four pay, some of them too late. The
orders are in a file. A start after a crash finishes them.

Usage: order_close [OPTIONS]

  --store STORE          sqlite:FILE [default: sqlite:orders.db]
  --orders N             how many, 1..=100000 [default: 1000]
  --speed N              how many seconds of the shop pass in one second, 1..=1800 [default: 300]
  --crash-after MILLIS   abort the program in the middle, 1..=3600000
  -h, --help             print this
";

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);
const CLOSE: &str = "order.close";
const PAY: &str = "order.pay";

/// The time that handlers get to end when all orders have a state.
const STOP_LIMIT: Duration = Duration::from_secs(10);

struct Options {
    file: PathBuf,
    store: StoreName,
    orders: u32,
    speed: u32,
    crash_after: Option<Duration>,
}

fn main() -> ExitCode {
    cli::main("order_close", USAGE, |args| parse(args).map_err(|stop| with_usage(stop, USAGE)), run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut store = StoreName::Sqlite("orders.db".into());
    let (mut orders, mut speed, mut crash_after) = (1_000, 300, None);
    while let Some(option) = args.option()? {
        match option {
            "--store" => store = StoreName::from_args(args)?,
            "--orders" => orders = args.number(1..=100_000)? as u32,
            "--speed" => speed = args.number(1..=1800)? as u32,
            "--crash-after" => crash_after = Some(args.millis(1..=3_600_000)?),
            _ => return Err(args.unknown(option)),
        }
    }
    let StoreName::Sqlite(file) = &store else {
        return Err(Stop::Refused(Refused("--store: allowed: sqlite:FILE".to_owned())));
    };
    Ok(Options { file: file.clone(), store, orders, speed, crash_after })
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let store = options.store.open(None, LEASE)?;
    // The store has the file to itself, so the orders are read and written through its connection.
    let (states, ended) = mpsc::channel();
    let timer = DurableTimer::builder()
        .name("orders")
        .topic(CLOSE, handler("closed", states.clone()))
        .topic(PAY, handler("paid", states))
        .open(store)?;
    let before = timer.with_connection(|connection: &mut Connection| {
        connection
            .execute_batch("create table if not exists orders(number integer primary key, state text not null)")?;
        let mut query = connection.prepare("select number from orders")?;
        let numbers = query.query_map([], |row| row.get::<_, u32>(0))?.collect::<Result<HashSet<_>, _>>()?;
        Ok(numbers)
    })?;
    let was_open = timer.counts()?.pending;
    if let Some(after) = options.crash_after {
        thread::spawn(move || {
            thread::sleep(after);
            eprintln!("\ncrashing, as after a power failure; start again to finish the orders");
            std::process::abort();
        });
    }
    if was_open > 0 || !before.is_empty() {
        println!("{} orders have ended before, {was_open} timeouts are pending", before.len());
    }

    let began = Instant::now();
    for number in (0..options.orders).filter(|number| !before.contains(number)) {
        let (key, share) = (number.to_string(), payment(number));
        if let Some(share) = share {
            let delay = HALF_AN_HOUR.mul_f64(share) / options.speed;
            timer.new_timeout_keyed(PAY, &key, delay, &key, IfPending::Keep)?;
        }
        timer.new_timeout_keyed(CLOSE, &key, HALF_AN_HOUR / options.speed, &key, IfPending::Keep)?;
    }
    let bar = progress(u64::from(options.orders), before.len() as u64);
    let (mut done, mut again) = (before.len() as u64, 0_u64);
    while done < u64::from(options.orders) {
        let State { is_new, attempt } = ended.recv()?;
        done += u64::from(is_new);
        again += u64::from(attempt > 1);
        bar.set_position(done);
    }
    bar.finish_and_clear();
    // Late payments still come, and find their orders closed.
    while timer.counts()?.pending > 0 {
        let State { attempt, .. } = ended.recv()?;
        again += u64::from(attempt > 1);
    }
    let count = |state: &'static str| {
        timer.with_connection(move |connection: &mut Connection| {
            let count = "select count(*) from orders where state = ?1";
            Ok(connection.query_row(count, [state], |row| row.get::<_, u32>(0))?)
        })
    };
    let (paid, closed) = (count("paid")?, count("closed")?);
    let lag = timer.stats().lag;
    timer.stop(STOP_LIMIT)?;
    println!("{} orders, finished in {:.1?}", options.orders, began.elapsed());
    println!("{paid:>8} paid in time");
    println!("{closed:>8} closed unpaid");
    println!("{again:>8} attempts repeated after a crash");
    println!("{:>8} timeouts ran, the latest {:.1?} late", lag.count(), lag.max);
    let mut checks = Checks::default();
    checks.that(paid + closed == options.orders.max(before.len() as u32), "every order has exactly one state");
    println!("remove {} to begin with new orders", options.file.display());
    Ok(checks)
}

/// An order that has a state.
struct State {
    /// Whether this handler has given it the state.
    is_new: bool,
    attempt: u32,
}

/// Returns the handler that gives an order the state unless it has one.
fn handler(
    state: &'static str,
    states: Sender<State>,
) -> impl Fn(&Due<String>) -> Result<(), Retry> + Send + Sync + 'static {
    move |due| {
        let number: u32 = due.payload().parse()?;
        let (written, is_new) = mpsc::channel();
        let result = due.complete_in(move |connection: &mut Connection| {
            let insert = "insert into orders(number, state) values (?1, ?2) on conflict do nothing";
            _ = written.send(connection.execute(insert, (number, state))? == 1);
            Ok(())
        });
        match result {
            Ok(()) => {
                let is_new = is_new.recv().unwrap_or(false);
                // The program may have its answer already.
                _ = states.send(State { is_new, attempt: due.attempt() });
                Ok(())
            }
            // Another attempt has begun, and it gives the order its state.
            Err(CompleteError::Fenced) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns when the customer of an order pays, as a share of the half hour. Every fourth customer
/// does not pay, and some pay too late.
fn payment(number: u32) -> Option<f64> {
    // The mixing step of SplitMix64, so that each run has the same customers.
    let mut seed = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    seed ^= seed >> 27;
    (seed % 4 != 0).then_some((seed >> 8 & 0xfff) as f64 / 4096.0 * 1.1)
}

fn progress(orders: u64, done: u64) -> ProgressBar {
    let bar = ProgressBar::new(orders).with_position(done);
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} orders, {elapsed}") {
        bar.set_style(style);
    }
    bar
}
