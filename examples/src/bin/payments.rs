//! Orders of a shop that close unless they are paid in time, and a payment provider that often
//! fails.
//!
//! Shops often keep such orders in a delay queue that a thread polls. Here each order has a timeout
//! that closes it, and a payment cancels that timeout. `cancel` returns `true` only if the order
//! has not closed, so a late payment is noticed at once and refunded. A failed payment call is
//! tried again by a separate timeout, with twice the delay each time.
//!
//! The shop never reads a clock, so it also runs on virtual time (`--clock virtual`).
#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use examples::cli::{self, Args, Checks, Stop};
use examples::ledger::Ledger;
use timer_core::{Timeout, Timer};

const USAGE: &str = "\
Opens orders that close themselves unless they are paid in time. Three customers in four pay, some of them too late; the
payment call fails every second time and is tried again, with exponential backoff.

Usage: payments [OPTIONS]

  --orders N            how many, 1..=1000000 [default: 20000]
  --close-after MILLIS  how long an order stays open unpaid, 100..=3600000 [default: 2000]
  --backoff MILLIS      wait before the first retry; doubles with each, 1..=60000 [default: 50]
  --clock KIND          real | virtual: virtual time takes no time [default: real]
  -h, --help            print this
";

/// The number of attempts to make a payment.
const ATTEMPTS: u32 = 6;

#[derive(Clone, Copy)]
struct Options {
    orders: usize,
    close_after: Duration,
    backoff: Duration,
    virtual_time: bool,
}

fn main() -> ExitCode {
    cli::main("payments", USAGE, parse, run)
}

fn parse(args: &mut Args) -> Result<Options, Stop> {
    let mut options = Options {
        orders: 20_000,
        close_after: Duration::from_secs(2),
        backoff: Duration::from_millis(50),
        virtual_time: false,
    };
    while let Some(option) = args.option()? {
        match option {
            "--orders" => options.orders = args.count(1..=1_000_000)?,
            "--close-after" => options.close_after = args.millis(100..=3_600_000)?,
            "--backoff" => options.backoff = args.millis(1..=60_000)?,
            "--clock" => options.virtual_time = args.choice(&[("real", false), ("virtual", true)])?,
            _ => return Err(args.unknown(option)),
        }
    }
    Ok(options)
}

fn run(options: Options) -> Result<Checks, Box<dyn Error>> {
    let began = Instant::now();
    let (events, inbox) = mpsc::channel();
    let (timer, driver) = if options.virtual_time {
        let (timer, driver) = Timer::builder().name("orders").build_manual()?;
        (timer, Some(driver))
    } else {
        (Timer::builder().name("orders").build()?, None)
    };

    for number in 0..options.orders {
        let close = events.clone();
        let closes = timer.new_timeout(options.close_after, move |_| _ = close.send(Event::Closed(number)))?;
        let customer = Customer::of(number);
        if let Some(share) = customer.pays_after {
            let timer = timer.clone();
            let events = events.clone();
            let begins = options.close_after.mul_f64(share);
            let payment = Arc::new(Payment { number, closes, customer, backoff: options.backoff, timer, events });
            let begun = payment.clone();
            payment.later(begins, move || begun.attempt(1));
        }
    }
    // The remaining senders belong to timeouts, so the inbox closes when all of them have ended.
    drop(events);
    if let Some(mut driver) = driver {
        while driver.advance_to_next().is_some() {}
    }

    let ledger = Ledger::new(options.orders);
    let mut paid = 0_usize;
    let mut closed = 0_usize;
    let mut retries = 0_u64;
    let mut refunded = 0_usize;
    let mut given_up = 0_usize;
    for event in inbox {
        match event {
            Event::Paid(number) => {
                ledger.end(number);
                paid += 1;
            }
            Event::Closed(number) => {
                ledger.end(number);
                closed += 1;
            }
            Event::Retry => retries += 1,
            Event::Refunded => refunded += 1,
            Event::GaveUp => given_up += 1,
        }
    }

    let clock = if options.virtual_time { "virtual" } else { "real" };
    let Options { orders, close_after, .. } = options;
    println!("{orders} orders, open for {close_after:?}, on the {clock} clock, in {:.0?}", began.elapsed());
    println!("{paid:>8} paid in time, their closing was cancelled");
    println!("{closed:>8} closed unpaid");
    println!("{retries:>8} payment calls tried again, {given_up} payments given up after {ATTEMPTS} tries");
    println!("{refunded:>8} payments came too late and went back");
    let stats = timer.stats();
    let mut checks = Checks::default();
    checks.that(
        ledger.holds(),
        format!("every order ended exactly once ({} never, {} again)", ledger.never(), ledger.again()),
    );
    checks.that(stats.cancelled == paid as u64, "as many timeouts were cancelled as orders paid");
    checks.that(stats.scheduled == stats.expired + stats.cancelled, "every timeout ran or was cancelled");
    checks.that(timer.pending_timeouts() == 0, "pending: 0");
    Ok(checks)
}

/// An entry in the books of the shop.
enum Event {
    Paid(usize),
    Closed(usize),
    Retry,
    Refunded,
    GaveUp,
}

/// The payment of one order by a customer, until it succeeds or is given up.
struct Payment {
    number: usize,
    closes: Timeout,
    customer: Customer,
    backoff: Duration,
    timer: Timer,
    events: Sender<Event>,
}

impl Payment {
    /// Calls the provider, which takes a while to answer.
    fn attempt(self: Arc<Self>, attempt: u32) {
        // No money is taken for an order that has closed.
        if !self.closes.is_expired() {
            let payment = self.clone();
            self.later(self.customer.takes, move || payment.answered(attempt));
        }
    }

    fn answered(self: Arc<Self>, attempt: u32) {
        // Sending cannot fail, because the inbox is read until the last sender is gone.
        _ = self.events.send(if self.customer.provider_accepts(attempt) {
            // The order may have closed during the call. In that case `cancel` returns `false`.
            if self.closes.cancel() { Event::Paid(self.number) } else { Event::Refunded }
        } else if attempt == ATTEMPTS {
            Event::GaveUp
        } else {
            let wait = self.backoff * 2_u32.pow(attempt - 1);
            let payment = self.clone();
            self.later(wait, move || payment.attempt(attempt + 1));
            Event::Retry
        });
    }

    fn later(&self, wait: Duration, step: impl FnOnce() + Send + 'static) {
        // Only a stopped timer refuses a timeout, and this timer is never stopped.
        _ = self.timer.new_timeout(wait, move |_| step());
    }
}

/// The behavior of a customer and the payment provider. It derives from the order's number, so
/// every run is the same.
#[derive(Clone, Copy)]
struct Customer {
    seed: u64,
    /// The beginning of the payment as a share of the time that the order is open.
    pays_after: Option<f64>,
    /// The duration of a payment call.
    takes: Duration,
}

impl Customer {
    fn of(number: usize) -> Self {
        let seed = mix(number as u64);
        let share = (seed >> 8 & 0xfff) as f64 / 4096.0 * 1.1;
        let takes = Duration::from_millis(5 + (seed >> 20) % 40);
        Self { seed, pays_after: (!seed.is_multiple_of(4)).then_some(share), takes }
    }

    fn provider_accepts(&self, attempt: u32) -> bool {
        mix(self.seed ^ u64::from(attempt)).is_multiple_of(2)
    }
}

/// The mixing step of SplitMix64.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
