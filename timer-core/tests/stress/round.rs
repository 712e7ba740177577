//! A round, in which threads use a timer that ends in one of four ways.

use crate::callers::Shared;
use crate::drive::Drive;
use crate::executors::Executor;
use crate::ledger::{Ledger, Unknown};
use crate::support::random::{Draw, Rng, part};
use crate::support::{MAX_WAIT, MICRO, MILLI, accepted, wait_until};
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Barrier};
use std::thread::available_parallelism;
use std::time::Duration;
use timer_core::{MissedTickBehavior, Timer, TimerBuilder, WheelKind};

/// Operations of each thread.
const AMOUNTS: [usize; 2] = [300, 1_000];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Every timeout ends by itself.
    Quiet,
    /// The timer is stopped when the threads are done.
    Stop,
    /// The timer is stopped while the threads go on, also by tasks.
    StopRace,
    /// The last handle of the timer or its driver is dropped while the threads go on.
    DropRace,
}

impl End {
    pub(crate) const ALL: [End; 4] = [End::Quiet, End::Stop, End::StopRace, End::DropRace];
}

#[derive(Debug)]
pub(crate) struct Round {
    /// The number that repeats the round.
    round: usize,
    seed: u64,
    executor: Executor,
    wheel: WheelKind,
    end: End,
    drive: Drive,
}

/// Prints the round if it fails.
impl Drop for Round {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("round {}: {self:?}", self.round);
        }
    }
}

impl Round {
    /// Returns round `n` of a seed. Executors, ends and wheels take turns. The rest is random.
    pub(crate) fn nth(seed: u64, n: usize, drive: Drive) -> Self {
        let mut random = part(seed, n);
        let executor = Executor::ALL[n % Executor::ALL.len()];
        let variant = n / Executor::ALL.len();
        let ticks_per_wheel = 1 << random.usize(..11);
        let wheels = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel }];
        let end = End::ALL[variant % End::ALL.len()];
        let wheel = wheels[variant / End::ALL.len() % 2];
        Self { round: n, seed: random.u64(..), executor, wheel, end, drive }
    }

    /// Runs the round and returns the number of its timeouts.
    pub(crate) fn run(&self) -> usize {
        let mut random = Rng::with_seed(self.seed);
        let tick = random.pick(&[MICRO, 50 * MICRO, MILLI]);
        let bound = random.one_in(2).then(|| 20 + random.usize(..200));
        let missed_runs = random.pick(&[MissedTickBehavior::Skip, MissedTickBehavior::Skip, MissedTickBehavior::Burst]);
        let mut builder = Timer::builder().wheel(self.wheel).tick_duration(tick).missed_runs(missed_runs);
        if let Some(bound) = bound {
            builder = builder.max_pending_timeouts(bound);
        }
        let (builder, ended) = self.executor.add_to(builder, self.seed);
        let timeouts = self.call(builder, bound, &mut random);
        if let Some(ended) = ended {
            let ended = ended.recv_timeout(MAX_WAIT);
            assert_eq!(ended, Err(RecvTimeoutError::Disconnected), "the executor was not dropped");
        }
        timeouts
    }

    fn call(&self, builder: TimerBuilder, bound: Option<usize>, random: &mut Rng) -> usize {
        let (timer, driver) = self.drive.build(builder);
        let ledger = Arc::new(Ledger::default());
        let has_virtual_time = self.drive == Drive::Jumps;
        let shared = Arc::new(Shared::new(ledger.clone(), &timer, bound, has_virtual_time, self.end == End::StopRace));
        let driving = driver.map(|driver| driver.start(shared.clone(), Rng::with_seed(random.u64(..))));
        let end = |timer: &mut Option<Timer>| {
            shared.ends.store(true, Ordering::Release);
            match (&driving, self.end) {
                (Some(driving), End::DropRace) => driving.drop_driver(),
                (Some(driving), _) => driving.stop(),
                (None, End::DropRace) => drop(timer.take()),
                (None, _) => shared.stop(),
            }
        };
        let mut timer = Some(timer);
        let races = matches!(self.end, End::StopRace | End::DropRace);
        let threads = available_parallelism().map_or(0, |cores| cores.get() + 2).max(6);
        let amount = random.pick(&AMOUNTS);
        let ends_all = self.end == End::Quiet;
        std::thread::scope(|scope| {
            let together = Arc::new(Barrier::new(threads));
            for n in 1..threads {
                let shared = shared.clone();
                let together = together.clone();
                let random = part(random.u64(..), n);
                scope.spawn(move || {
                    together.wait();
                    shared.call(random, amount, ends_all, None::<fn()>);
                });
            }
            let halfway = races.then_some(|| end(&mut timer));
            together.wait();
            shared.call(part(random.u64(..), 0), amount, ends_all, halfway);
        });
        if self.end == End::Stop {
            end(&mut timer);
        }
        ledger.wait_until_closed();
        shared.clear();
        let unknown = match self.end {
            End::Quiet => Unknown::None,
            End::Stop | End::StopRace => Unknown::Periodic,
            End::DropRace => Unknown::Any,
        };
        let timeouts = ledger.balance(unknown, timer.as_ref());
        if let (End::Quiet, Some(live), Some(bound)) = (self.end, &timer, bound) {
            all_permits_are_free(live, bound);
        }
        if self.end == End::Quiet {
            end(&mut timer);
        }
        if let Some(driving) = driving {
            driving.join();
        }
        ledger.report();
        assert!(races || timeouts > amount, "the round had too few timeouts");
        timeouts
    }
}

fn all_permits_are_free(timer: &Timer, bound: usize) {
    let held: Vec<_> =
        (0..bound).map(|_| accepted(timer.new_timeout(Duration::MAX, |_| {})).cancel_on_drop()).collect();
    assert!(timer.new_timeout(Duration::MAX, |_| {}).is_err(), "more than the bound of {bound}");
    drop(held);
    wait_until(|| timer.pending_timeouts() == 0);
}
