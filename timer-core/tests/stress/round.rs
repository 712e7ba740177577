//! A round of a storm, in which threads storm a timer that ends in one of four ways.

use crate::clock::Clock;
use crate::counts::Counts;
use crate::drive::{AnyDriver, Drive};
use crate::executors::Executor;
use crate::ledger::{Ledger, MAX_WAIT, Unknown};
use crate::progress::announce;
use crate::storm::Storm;
use crate::support::random::{Draw, Rng, part};
use std::sync::atomic::Ordering;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Barrier};
use std::thread::available_parallelism;
use std::time::Duration;
use timer_core::{MissedTickBehavior, Timer, TimerBuilder, WheelKind};

/// Returns a number of threads above the number of cores.
fn threads() -> usize {
    available_parallelism().map_or(0, |cores| cores.get() + 2).max(6)
}

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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) seed: u64,
    /// Operations of each thread.
    pub(crate) amount: usize,
    pub(crate) executor: Executor,
    pub(crate) wheel: WheelKind,
    pub(crate) end: End,
    pub(crate) drive: Drive,
}

impl Round {
    /// Returns round `n`. Ends and wheels take turns, so that all pairs come. The rest is random.
    pub(crate) fn nth(seed: u64, n: usize, amount: usize, executor: Executor, drive: Drive) -> Self {
        let mut random = part(seed, n);
        let wheel = wheel(!(n / End::ALL.len()).is_multiple_of(2), &mut random);
        Self { seed: random.u64(..), amount, executor, wheel, end: End::ALL[n % End::ALL.len()], drive }
    }

    pub(crate) fn run(&self) -> Counts {
        let mut random = Rng::with_seed(self.seed);
        let tick = random.pick(&[Duration::from_micros(1), Duration::from_micros(50), Duration::from_millis(1)]);
        let bound = random.one_in(2).then(|| 20 + random.usize(..200));
        let missed_runs = random.pick(&[MissedTickBehavior::Skip, MissedTickBehavior::Skip, MissedTickBehavior::Burst]);
        announce(format!("{self:?}, tick {tick:?}, bound {bound:?}, {missed_runs:?}"));
        let mut builder = Timer::builder().wheel(self.wheel).tick_duration(tick).missed_runs(missed_runs);
        if let Some(bound) = bound {
            builder = builder.max_pending_timeouts(bound);
        }
        let (builder, ended) = self.executor.add_to(builder, self.seed);
        let counts = self.storm(builder, bound, &mut random);
        if let Some(ended) = ended {
            assert_eq!(
                ended.recv_timeout(MAX_WAIT),
                Err(RecvTimeoutError::Disconnected),
                "the executor was not dropped"
            );
        }
        counts
    }

    fn storm(&self, builder: TimerBuilder, bound: Option<usize>, random: &mut Rng) -> Counts {
        let (timer, driver) = self.drive.build(builder);
        let ledger = Arc::new(Ledger::new(driver.as_ref().map_or(Clock::Real, AnyDriver::clock)));
        let storm = Arc::new(Storm::new(ledger.clone(), &timer, bound, self.end == End::StopRace));
        let driving = driver.map(|driver| driver.start(storm.clone(), Rng::with_seed(random.u64(..))));
        let end = |storm: &Storm, timer: &mut Option<Timer>| {
            storm.ends.store(true, Ordering::Release);
            match (&driving, self.end) {
                (Some(driving), End::DropRace) => driving.drop_driver(),
                (Some(driving), _) => driving.stop(),
                (None, End::DropRace) => drop(timer.take()),
                (None, _) => storm.stop(),
            }
        };
        let mut timer = Some(timer);
        let races = matches!(self.end, End::StopRace | End::DropRace);
        let threads = threads();
        std::thread::scope(|scope| {
            let together = Arc::new(Barrier::new(threads));
            for n in 1..threads {
                let (storm, together) = (storm.clone(), together.clone());
                let random = part(random.u64(..), n);
                scope.spawn(move || {
                    together.wait();
                    storm.thread(random, self.amount, self.end == End::Quiet, None::<fn()>);
                });
            }
            let halfway = races.then_some(|| end(&storm, &mut timer));
            together.wait();
            storm.thread(part(random.u64(..), 0), self.amount, self.end == End::Quiet, halfway);
        });
        if self.end == End::Stop {
            end(&storm, &mut timer);
        }
        ledger.wait_until_closed();
        storm.clear();
        let unknown = match self.end {
            End::Quiet => Unknown::None,
            End::Stop | End::StopRace => Unknown::Periodic,
            End::DropRace => Unknown::Any,
        };
        let counts = ledger.balance(unknown, timer.as_ref().map(|timer| || timer.stats()));
        if self.end == End::Quiet {
            end(&storm, &mut timer);
        }
        if let Some(driving) = driving {
            driving.join();
        }
        ledger.report();
        assert!(races || ledger.records().len() > self.amount, "the storm had too few timeouts");
        counts
    }
}

/// Returns the hierarchical wheel, or a hashed one with a random number of slots.
pub(crate) fn wheel(hashed: bool, random: &mut Rng) -> WheelKind {
    let ticks_per_wheel = 1 << random.usize(..11);
    if hashed { WheelKind::Hashed { ticks_per_wheel } } else { WheelKind::Hierarchical }
}
