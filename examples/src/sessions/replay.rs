//! The replay of a log through a timer.
//!
//! Every request opens a session with `new_timeout` or moves its host's timeout with `reset`. A
//! timeout that runs closes its session. The sessions are those of the log, whatever the wheel,
//! tick, executor and speed. The head of [`super::ledger`] has the rule that ensures this. After
//! the last request the replay waits until the timeouts have closed all sessions and the timer is
//! empty. The module prints nothing.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use timer_core::{BuildError, RejectReason, Timeout, Timer, TimerBuilder, TimerStats, WheelKind, named};
use timer_executor::{ImmediateExecutor, RayonExecutor, ThreadPoolExecutor};

use super::args::{Clock, Executor, Options, Wheel};
use super::clock::{Behind, RealClock, ReplayClock, VirtualClock};
use super::ledger::{Answer, Arming, Ledger, Session};
use super::log::Log;
use super::watch::Watch;

/// The longest time that a due timeout may take to run before the replay reports it as lost.
const MAX_LATENESS: Duration = Duration::from_secs(60);

/// The size of the hashed wheel. At the default tick it covers 1.024 s, about one idle timeout at
/// the default speed. On virtual time an idle timeout takes 1,758 rounds.
const TICKS_PER_WHEEL: usize = 1024;

/// The result of a replay and its cost.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// All sessions in the order of their first request.
    pub sessions: Vec<Session>,
    /// The number of calls to the timer.
    pub counts: Counts,
    /// The timer's own counts and lags.
    pub stats: TimerStats,
    /// The delay behind the real clock, or `None` on virtual time.
    pub behind: Option<Behind>,
    /// The real time from the first request until all sessions were closed.
    pub took: Duration,
}

/// The number of calls to the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Sessions opened, each with a new timeout.
    pub opened: u64,
    /// Timeouts moved by a request of their host.
    pub moved: u64,
    /// Timeouts scheduled again because they ran before the replay reached their second.
    pub rearmed: u64,
    /// Timeouts that ran.
    pub ran: u64,
}

/// The reason why a replay failed.
#[derive(Debug)]
pub enum ReplayError {
    /// The timer cannot be built with these options.
    Build(BuildError),
    /// The timer refused a timeout.
    Rejected(RejectReason),
    /// A timeout was due and did not run.
    Lost {
        /// The host whose session stayed open, or `None` after the last request.
        host: Option<String>,
    },
    /// All sessions are closed, but the timer still counts pending timeouts.
    Pending(usize),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Build(error) => write!(f, "{error}"),
            Self::Rejected(reason) => write!(f, "the timer refused a timeout: {reason}"),
            Self::Lost { host: Some(host) } => {
                write!(f, "the idle timeout of {host} was due and did not run")
            }
            Self::Lost { host: None } => write!(f, "idle timeouts were due after the last request and did not run"),
            Self::Pending(count) => write!(f, "all sessions are closed, but {count} timeouts are pending"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// Returns a builder of a timer with the executor that the options name.
pub fn timer(options: &Options) -> TimerBuilder {
    let builder = Timer::builder().name("sessions");
    match options.executor {
        Executor::Immediate => builder.executor(ImmediateExecutor),
        Executor::Rayon => builder.executor(RayonExecutor::global()),
        Executor::ThreadPool => {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            builder.executor(ThreadPoolExecutor::new(threads))
        }
    }
}

/// Replays `log` on a timer with the options' wheel, tick and clock. Reports the progress to
/// `watch`.
///
/// ```
/// use examples::sessions::{args::{Clock, Options}, log::Log, replay};
///
/// let log = Log::parse(b"time,host,status,bytes\n0,a,200,1\n59,a,200,1\n119,a,200,1\n")?;
/// let options = Options { idle: 60, clock: Clock::Virtual, ..Options::default() };
/// let outcome = replay::replay(&log, &options, replay::timer(&options), &mut |_| {})?;
/// assert_eq!(outcome.sessions.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// Fails if the timer cannot be built. Also fails if the timer refuses, loses or keeps a timeout,
/// which would be a fault of the timer.
pub fn replay(
    log: &Log,
    options: &Options,
    timer: TimerBuilder,
    watch: &mut dyn Watch,
) -> Result<Outcome, ReplayError> {
    let wheel = match options.wheel {
        Wheel::Hashed => WheelKind::Hashed { ticks_per_wheel: TICKS_PER_WHEEL },
        Wheel::Hierarchical => WheelKind::Hierarchical,
    };
    let timer = timer.wheel(wheel).tick_duration(options.tick);
    match options.clock {
        Clock::Real { speed } => {
            let timer = timer.build().map_err(ReplayError::Build)?;
            Replay::new(log, options.idle, timer, RealClock::start(speed)).run(watch)
        }
        Clock::Virtual => {
            let (timer, driver) = timer.build_manual().map_err(ReplayError::Build)?;
            let clock = VirtualClock::new(driver, timer.clone(), options.tick);
            Replay::new(log, options.idle, timer, clock).run(watch)
        }
    }
}

struct Replay<'a, C> {
    log: &'a Log,
    idle: u64,
    timer: Timer,
    clock: C,
    ledger: Arc<Ledger>,
    /// The timeout of each host's last arming.
    timeouts: Vec<Option<Timeout>>,
    counts: Counts,
}

impl<'a, C: ReplayClock> Replay<'a, C> {
    fn new(log: &'a Log, idle: u64, timer: Timer, clock: C) -> Self {
        let hosts = log.hosts.len();
        let ledger = Arc::new(Ledger::new(hosts, idle));
        Self { log, idle, timer, clock, ledger, timeouts: vec![None; hosts], counts: Counts::default() }
    }

    fn run(mut self, watch: &mut dyn Watch) -> Result<Outcome, ReplayError> {
        watch.built(&self.timer);
        let began = Instant::now();
        let mut entered = None;
        for request in &self.log.requests {
            if entered != Some(request.second) {
                entered = Some(request.second);
                // The ledger comes first, because timeouts that become due on the way may close
                // their sessions.
                self.enter(request.second)?;
                self.clock.reach(request.second);
                watch.reached(request.second);
            }
            self.request(request.host, request.second)?;
        }
        self.close_all(watch)?;
        Ok(self.outcome(began.elapsed()))
    }

    fn enter(&mut self, second: u64) -> Result<(), ReplayError> {
        for arming in self.ledger.enter(second) {
            self.counts.rearmed += 1;
            self.arm(arming, Duration::ZERO)?;
        }
        Ok(())
    }

    fn request(&mut self, host: usize, second: u64) -> Result<(), ReplayError> {
        let mut answer = self.ledger.request(host);
        if answer == Answer::Overdue {
            self.wait_closed(host)?;
            answer = self.ledger.request(host);
        }
        match answer {
            Answer::Opened(arming) => {
                self.counts.opened += 1;
                self.arm(arming, self.clock.until(second + self.idle))
            }
            Answer::Extended => self.extend(host, second + self.idle),
            Answer::Overdue => Err(self.lost(Some(host))),
        }
    }

    fn extend(&mut self, host: usize, deadline: u64) -> Result<(), ReplayError> {
        let delay = self.clock.until(deadline);
        if self.timeouts[host].as_ref().is_some_and(|timeout| timeout.reset(delay)) {
            self.counts.moved += 1;
            return Ok(());
        }
        self.counts.rearmed += 1;
        self.arm(self.ledger.rearm(host), delay)
    }

    fn arm(&mut self, arming: Arming, delay: Duration) -> Result<(), ReplayError> {
        let ledger = Arc::clone(&self.ledger);
        let end = named!("end of a session", move |_| ledger.ran(arming));
        match self.timer.new_timeout_task(delay, end) {
            Ok(timeout) => self.timeouts[arming.host] = Some(timeout),
            Err(rejected) => return Err(ReplayError::Rejected(rejected.reason)),
        }
        Ok(())
    }

    fn wait_closed(&mut self, host: usize) -> Result<(), ReplayError> {
        let handed_over = match &self.timeouts[host] {
            Some(timeout) => self.clock.hand_over(timeout),
            None => false,
        };
        if handed_over && self.ledger.wait_closed(host, Instant::now() + MAX_LATENESS) {
            return Ok(());
        }
        Err(self.lost(Some(host)))
    }

    fn close_all(&mut self, watch: &mut dyn Watch) -> Result<(), ReplayError> {
        // No request remains, so every timeout that runs from here on may close its session.
        self.enter(u64::MAX)?;
        let end = self.log.span() + self.idle;
        let limit = Instant::now() + self.clock.until(end) + MAX_LATENESS;
        self.clock.finish(end, watch);
        if !self.ledger.wait_all_closed(limit, || watch.reached(self.clock.position().min(end))) {
            return Err(self.lost(None));
        }
        match self.timer.pending_timeouts() {
            0 => Ok(()),
            left => Err(ReplayError::Pending(left)),
        }
    }

    fn lost(&self, host: Option<usize>) -> ReplayError {
        ReplayError::Lost { host: host.map(|host| self.log.hosts[host].clone()) }
    }

    fn outcome(self, took: Duration) -> Outcome {
        let stats = self.timer.stats();
        Outcome {
            sessions: self.ledger.take_sessions(),
            counts: Counts { ran: stats.expired, ..self.counts },
            stats,
            behind: self.clock.behind(),
            took,
        }
    }
}
