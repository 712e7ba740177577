//! The threads that take the turns: a worker, a loop that pauses now and then as on a suspended
//! machine, or a thread that moves virtual time by jumps of up to months.

use crate::callers::Shared;
use crate::support::random::{Draw, Rng};
use crate::work::hold_up;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{JoinHandle, park, park_timeout, yield_now};
use std::time::{Duration, Instant};
use timer_core::{Driver, ManualDriver, Timer, TimerBuilder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drive {
    Worker,
    Loop,
    Jumps,
}

impl Drive {
    pub(crate) fn build(self, builder: TimerBuilder) -> (Timer, Option<AnyDriver>) {
        match self {
            Drive::Worker => (builder.build().unwrap(), None),
            Drive::Loop => {
                let (timer, driver) = builder.build_driven().unwrap();
                (timer, Some(AnyDriver::Loop(driver)))
            }
            Drive::Jumps => {
                let (timer, driver) = builder.build_manual().unwrap();
                (timer, Some(AnyDriver::Jumps(driver)))
            }
        }
    }
}

/// A driver for a thread of the test.
pub(crate) enum AnyDriver {
    Loop(Driver),
    Jumps(ManualDriver),
}

impl AnyDriver {
    pub(crate) fn start(self, shared: Arc<Shared>, random: Rng) -> Driving {
        let command = Arc::new(AtomicU8::new(GO_ON));
        let received = command.clone();
        let thread = std::thread::spawn(move || match self {
            AnyDriver::Loop(driver) => turn_until_ended(driver, &shared, &received, random),
            AnyDriver::Jumps(driver) => jump_until_ended(driver, &shared, &received, random),
        });
        Driving { command, thread }
    }
}

const GO_ON: u8 = 0;
const STOP: u8 = 1;
const DROP: u8 = 2;

/// The thread that owns the driver.
pub(crate) struct Driving {
    command: Arc<AtomicU8>,
    thread: JoinHandle<()>,
}

impl Driving {
    pub(crate) fn stop(&self) {
        self.send(STOP);
    }

    pub(crate) fn drop_driver(&self) {
        self.send(DROP);
    }

    pub(crate) fn join(self) {
        self.thread.join().unwrap();
    }

    fn send(&self, command: u8) {
        self.command.store(command, Ordering::Release);
        self.thread.thread().unpark();
    }
}

/// Takes turns, and sleeps until the next instant or a wake-up.
fn turn_until_ended(mut driver: Driver, shared: &Shared, command: &AtomicU8, mut random: Rng) {
    let me = std::thread::current();
    driver.on_wake(move || me.unpark());
    let suspends = random.one_in(2);
    loop {
        let next = driver.turn().next_deadline;
        match command.load(Ordering::Acquire) {
            STOP => return shared.take_back(driver.stop()),
            DROP => return drop(driver),
            _ => {}
        }
        if suspends && random.one_in(32) {
            hold_up(random.micros(10_000));
            continue;
        }
        match next {
            None => park(),
            Some(next) => park_timeout(next.saturating_duration_since(Instant::now())),
        }
    }
}

/// The uptime after which jumps are short, because deadlines are no longer exact beyond 18 years.
const LONG_UPTIME: Duration = Duration::from_secs(10 * 365 * 86_400);

fn jump_until_ended(mut driver: ManualDriver, shared: &Shared, command: &AtomicU8, mut random: Rng) {
    loop {
        match command.load(Ordering::Acquire) {
            STOP => return shared.take_back(driver.stop()),
            DROP => return drop(driver),
            _ => {}
        }
        let next = driver.next_deadline().map(|next| next.saturating_duration_since(driver.now()));
        let next = next.filter(|next| *next < LONG_UPTIME);
        driver.advance(match random.usize(..32) {
            0 if driver.elapsed() < LONG_UPTIME => {
                Duration::from_nanos(random.u64(..) >> random.pick(&[11, 14, 18, 22, 27, 32]))
            }
            1..8 => next.unwrap_or_default(),
            8 => random.micros(2_000),
            9..16 => random.micros(200),
            _ => random.micros(20),
        });
        (0..random.usize(..8)).for_each(|_| yield_now());
    }
}
