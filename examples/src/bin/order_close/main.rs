//! Orders of a shop that close after half an hour unless they are paid, also if the shop crashes.
//!
//! Each order has a durable timeout that closes it, and most have a second one for the customer's
//! payment. A card that is declined makes the payment a dead letter. Both handlers write the state
//! of the order in the transaction that ends the timeout, so each order gets exactly one state,
//! whatever dies and when. The second start finishes the orders of the first.
//!
//!     cargo run -p examples --features durable --bin order_close -- --crash-after 2000
//!     cargo run -p examples --features durable --bin order_close
#![forbid(unsafe_code)]

mod orders;

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Stop};
use examples::durable::{LEASE, StoreName};
use indicatif::{ProgressBar, ProgressStyle};
use orders::Orders;
use timer_durable::{Due, DurableTimer, Retry, Schedule, Topic};
use timer_live::{ListenAddr, LivePage, Server};
use timer_metrics::{DurableMetrics, TimerMetrics};

const USAGE: &str = "\
Opens orders that close after half an hour unless they are paid. Three customers in four pay, some of them too late. A
start after a crash finishes the orders. On PostgreSQL, several programs share them, and if one dies the others finish.

Usage: order_close [OPTIONS]

  --store STORE          sqlite:FILE or postgres://URL [default: sqlite:orders.db]
  --node NAME            the name of this program among those that share the store [default: none]
  --ttl SECONDS          the lease on a store that is shared, 1..=3600 [default: 15]
  --orders N             how many, 1..=100000 [default: 1000]
  --speed N              how many seconds of the shop pass in one second, 1..=1800 [default: 300]
  --metrics ADDR         serve /metrics and a live page: a port (on 127.0.0.1), or an IP address and a port
  --actions              let everybody who reaches the page cancel, run and requeue timeouts and pause topics
  --crash-after MILLIS   abort the program in the middle, 1..=3600000
  -h, --help             print this
";

const HALF_AN_HOUR: Duration = Duration::from_secs(1800);
const CLOSE: Topic<String> = Topic::new("order.close");
const PAY: Topic<String> = Topic::new("order.pay");

/// The states of an order.
const PAID: &str = "paid";
const CLOSED: &str = "closed";

/// One payment in this number is declined.
const DECLINED: u32 = 97;

/// The time between two looks at the orders.
const PROGRESS: Duration = Duration::from_millis(100);

/// The time that handlers get to end when all orders have a state.
const STOP_LIMIT: Duration = Duration::from_secs(10);

struct Options {
    store: StoreName,
    node: Option<String>,
    lease: Duration,
    orders: u32,
    speed: u32,
    metrics: Option<ListenAddr>,
    has_actions: bool,
    crash_after: Option<Duration>,
}

fn main() -> ExitCode {
    cli::main("order_close", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut store = StoreName::Sqlite("orders.db".into());
    let mut node = None;
    let mut lease = LEASE;
    let mut orders = 1_000;
    let mut speed = 300;
    let mut metrics = None;
    let mut has_actions = false;
    let mut crash_after = None;
    while let Some(option) = args.option()? {
        match option {
            "--store" => store = StoreName::from_args(args)?,
            "--node" => node = Some(args.value("a name", |name| (!name.is_empty()).then(|| name.to_owned()))?),
            "--ttl" => lease = Duration::from_secs(args.number(1..=3600)?),
            "--orders" => orders = args.number(1..=100_000)? as u32,
            "--speed" => speed = args.number(1..=1800)? as u32,
            "--metrics" => {
                metrics = Some(args.value("a port, or an IP address and a port", |given| given.parse().ok())?);
            }
            "--actions" => has_actions = true,
            "--crash-after" => crash_after = Some(args.millis(1..=3_600_000)?),
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(Options { store, node, lease, orders, speed, metrics, has_actions, crash_after })
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let (store, sqlite) = options.store.open(options.node.as_deref(), options.lease)?;
    let orders = Orders::of(&options.store, sqlite)?;
    let (states, ended) = mpsc::channel();
    let timer = DurableTimer::builder()
        .name("orders")
        .topic(CLOSE, handler(orders.clone(), CLOSED, states.clone()))
        .topic(PAY, handler(orders.clone(), PAID, states))
        .open(store)
        .wait()?;
    // The page is served until it is dropped at the end.
    let _page = options.metrics.map(|addr| serve(addr, &timer, options.has_actions)).transpose()?;
    let before = orders.open(&timer)?;
    let was_open = timer.counts().wait()?.pending;
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
    let new = (0..options.orders).filter(|number| !before.contains(number));
    place(&timer, new, options.speed)?;
    let bar = progress(u64::from(options.orders), before.len() as u64);
    let (paid, closed, again) = wait(&orders, &timer, &ended, &bar)?;
    bar.finish_and_clear();
    let lag = timer.stats().lag;
    timer.stop(STOP_LIMIT).wait()?;
    println!("{} orders, finished in {:.1?}", options.orders, began.elapsed());
    println!("{paid:>8} paid in time");
    println!("{closed:>8} closed unpaid");
    println!("{again:>8} begun again, because the first attempt had not ended");
    println!("{:>8} timeouts ran, the latest {:.1?} late", lag.count(), lag.max());
    let mut checks = Checks::default();
    // The number is the primary key, so no order has two. Other programs may add orders.
    let orders = u64::from(options.orders).max(before.len() as u64);
    checks.that(paid + closed >= orders, "every order has exactly one state");
    match options.store {
        StoreName::Sqlite(file) => println!("remove {} to begin with new orders", file.display()),
        StoreName::Postgres(_) => println!("drop the table orders to begin with new orders"),
    }
    Ok(checks)
}

/// Serves the live page of a timer.
fn serve(addr: ListenAddr, timer: &DurableTimer, has_actions: bool) -> io::Result<Server> {
    let durable = DurableMetrics::new();
    durable.watch(timer);
    let page = LivePage::new(&TimerMetrics::new()).durable(&durable).actions(has_actions).serve(addr)?;
    eprintln!("live page http://{0}/, metrics http://{0}/metrics", page.local_addr());
    Ok(page)
}

/// Schedules the end of each order, and its payment if the customer pays.
fn place(timer: &DurableTimer, orders: impl Iterator<Item = u32>, speed: u32) -> Result<(), timer_durable::Error> {
    for number in orders {
        let key = number.to_string();
        if let Some(share) = payment(number) {
            let delay = HALF_AN_HOUR.mul_f64(share) / speed;
            timer.schedule(PAY, Schedule::after(delay).key(&key), &key).wait()?;
        }
        timer.schedule(CLOSE, Schedule::after(HALF_AN_HOUR / speed).key(&key), &key).wait()?;
    }
    Ok(())
}

/// Waits until all orders have a state. Returns how many were paid and closed, and how often a
/// handler was called again.
fn wait(
    orders: &Orders,
    timer: &DurableTimer,
    ended: &Receiver<u32>,
    bar: &ProgressBar,
) -> Result<(u64, u64, u64), Box<dyn Error>> {
    let mut again = 0;
    loop {
        // Other programs end orders too, and late payments find their orders closed.
        let paid = orders.count(timer, PAID)?;
        let closed = orders.count(timer, CLOSED)?;
        bar.set_position(paid + closed);
        if paid + closed >= bar.length().unwrap_or(0) && timer.counts().wait()?.pending == 0 {
            return Ok((paid, closed, again));
        }
        let until = Instant::now() + PROGRESS;
        loop {
            match ended.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(attempt) => again += u64::from(attempt > 1),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err("the handlers are gone".into()),
            }
        }
    }
}

/// Returns the handler that gives an order the state unless it has one, and sends its attempt.
fn handler(
    orders: Orders,
    state: &'static str,
    ended: Sender<u32>,
) -> impl Fn(&Due<String>) -> Result<(), Retry> + Send + Sync + 'static {
    move |due| {
        let number: u32 = due.payload().parse()?;
        if state == PAID && number % DECLINED == DECLINED - 1 {
            return Err(Retry::dead("the card was declined"));
        }
        orders.end(due, number, state).map_err(Retry::new)?;
        // The program may have all its answers already.
        _ = ended.send(due.attempt());
        Ok(())
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
