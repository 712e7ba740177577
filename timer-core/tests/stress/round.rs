//! One round of a storm: a timer is built, stormed upon, and ended in one of four ways.

use crate::executors::Executor;
use crate::ledger::{LOST, Ledger, Unknown};
use crate::random::Random;
use crate::storm::Storm;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};
use timer_core::{Driver, Timer, TimerBuilder, WheelKind};

/// More than there are cores.
const THREADS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything ends by itself.
    Quiet,
    /// The timer is stopped when the threads are done.
    Stop,
    /// The timer is stopped, also by tasks, while the threads go on.
    StopRace,
    /// The timer's, or the driver's, last handle is dropped while the threads go on.
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
    /// By a loop of our own instead of the worker.
    pub(crate) driven: bool,
}

impl Round {
    /// Round `n`: its end and its wheel are each other's partners in turn, the rest is drawn.
    pub(crate) fn nth(seed: u64, n: usize, amount: usize, executor: Executor, driven: bool) -> Self {
        let mut random = Random::part(seed, n);
        let hashed = WheelKind::Hashed { ticks_per_wheel: 1 << random.below(11) };
        let wheel = if (n / End::ALL.len()).is_multiple_of(2) { WheelKind::Hierarchical } else { hashed };
        Self { seed: random.next(), amount, executor, wheel, end: End::ALL[n % End::ALL.len()], driven }
    }

    pub(crate) fn run(&self) {
        let mut random = Random::new(self.seed);
        let tick = random.pick(&[Duration::from_micros(1), Duration::from_micros(50), Duration::from_millis(1)]);
        let bound = random.one_in(2).then(|| 20 + random.below(200));
        println!("{self:?}, tick {tick:?}, bound {bound:?}");
        let mut builder = Timer::builder().wheel(self.wheel).tick_duration(tick);
        if let Some(bound) = bound {
            builder = builder.max_pending_timeouts(bound);
        }
        let (builder, ended) = self.executor.add_to(builder, self.seed);
        self.storm(builder, bound, &mut random);
        if let Some(ended) = ended {
            assert_eq!(ended.recv_timeout(LOST), Err(RecvTimeoutError::Disconnected), "the executor was never dropped");
        }
    }

    fn storm(&self, builder: TimerBuilder, bound: Option<usize>, random: &mut Random) {
        let (timer, driver) = if self.driven {
            let (timer, driver) = builder.build_driven().unwrap();
            (timer, Some(driver))
        } else {
            (builder.build().unwrap(), None)
        };
        let ledger = Arc::new(Ledger::default());
        let storm = Arc::new(Storm::new(ledger.clone(), &timer, bound, self.end == End::StopRace));
        let looping = driver.map(|driver| Loop::start(driver, storm.clone()));
        let end = |storm: &Storm, timer: &mut Option<Timer>| {
            storm.ends.store(true, Ordering::Release);
            match (&looping, self.end) {
                (Some(looping), End::DropRace) => looping.tell(DROP),
                (Some(looping), _) => looping.tell(STOP),
                (None, End::DropRace) => drop(timer.take()),
                (None, _) => storm.stop(),
            }
        };
        let mut timer = Some(timer);
        let races = matches!(self.end, End::StopRace | End::DropRace);
        std::thread::scope(|scope| {
            let together = Arc::new(Barrier::new(THREADS));
            for n in 1..THREADS {
                let (storm, together) = (storm.clone(), together.clone());
                let random = Random::part(random.next(), n);
                scope.spawn(move || {
                    together.wait();
                    storm.thread(random, self.amount, self.end == End::Quiet, None::<fn()>);
                });
            }
            let halfway = races.then_some(|| end(&storm, &mut timer));
            together.wait();
            storm.thread(Random::part(random.next(), 0), self.amount, self.end == End::Quiet, halfway);
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
        ledger.balance(unknown, timer.as_ref().map(|timer| || timer.stats()));
        if self.end == End::Quiet {
            end(&storm, &mut timer);
        }
        if let Some(looping) = looping {
            looping.thread.join().unwrap();
        }
        ledger.report();
        assert!(races || ledger.records().len() > self.amount, "there was no storm");
    }
}

const GO_ON: u8 = 0;
const STOP: u8 = 1;
const DROP: u8 = 2;

/// The loop of a driven timer: sleeps until the next instant or until it is woken.
struct Loop {
    command: Arc<AtomicU8>,
    thread: std::thread::JoinHandle<()>,
}

impl Loop {
    fn start(driver: Driver, storm: Arc<Storm>) -> Self {
        let command = Arc::new(AtomicU8::new(GO_ON));
        let told = command.clone();
        Self { command, thread: std::thread::spawn(move || turn_until_told(driver, &storm, &told)) }
    }

    fn tell(&self, command: u8) {
        self.command.store(command, Ordering::Release);
        self.thread.thread().unpark();
    }
}

fn turn_until_told(mut driver: Driver, storm: &Storm, command: &AtomicU8) {
    let me = std::thread::current();
    driver.set_waker(move || me.unpark());
    loop {
        let next = driver.turn().next;
        match command.load(Ordering::Acquire) {
            STOP => return storm.take_back(driver.stop()),
            DROP => return drop(driver),
            _ => {}
        }
        match next {
            None => std::thread::park(),
            Some(next) => std::thread::park_timeout(next.saturating_duration_since(Instant::now())),
        }
    }
}
