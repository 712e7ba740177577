//! The timers that are compared, behind one trait.
//!
//! Each peer is used the cheapest way its interface has. Those that run closures get a closure which captures one pointer.
//! Those whose timers are futures get neither a task nor a spawn: each future is polled once, with a waker that does the
//! work itself, inline; that is less than a program pays. A peer that is made for one owner stands behind a mutex.
//!
//! Storms need more than that, `storming::Storming`, and so do tasks that sleep, `tasks::Tasks`: not every peer has it.
//!
//! The trait is static all the way: nothing is boxed or dispatched on behalf of the comparison.

#[cfg(feature = "peers")]
mod async_io;
pub(crate) mod btree;
#[cfg(feature = "peers")]
mod delay_queue;
pub(crate) mod floor;
#[cfg(feature = "peers")]
mod floor_tasks;
#[cfg(feature = "peers")]
mod futures_timer;
mod heap;
#[cfg(feature = "peers")]
mod hhwt;
pub(crate) mod ours;
#[cfg(feature = "peers")]
mod ours_tasks;
#[cfg(feature = "peers")]
mod pingora;
mod shared;
#[cfg(feature = "peers")]
mod sleeping;
pub(crate) mod storming;
#[cfg(feature = "peers")]
pub(crate) mod tasks;
#[cfg(feature = "peers")]
mod tokio;

use crate::settings::Settings;
use crate::workloads::{self, Family, Program, Stop};
use std::time::Duration;
use storming::{Expiring, Storming};

/// The tick of all workloads that do not say otherwise.
pub const TICK: Duration = Duration::from_millis(1);

/// Ours, to which the others are compared.
pub const OURS: &str = "timer";

/// What is measured without any timer: the least that a timer could cost, and what the scheduler alone does to a call.
pub const FLOOR: &str = "floor";

/// What a timer has to do when it is due. A copy of it is what the task captures: a pointer, mostly.
pub trait Job: Copy + Send + Sync + 'static {
    /// Does it.
    fn run(self);
}

/// A timer. A clone of it is one thread's handle to the same timer.
pub trait Peer: Clone + Send + Sized + 'static {
    /// What it is called on the command line and in the tables.
    const NAME: &'static str;

    /// Why a pending timer cannot be moved, if it cannot.
    const NO_RESET: Option<&'static str> = None;

    /// Whether [`build`](Self::build) heeds its tick.
    const HAS_TICK: bool = false;

    /// One pending timer. For some, dropping it cancels.
    type Handle: Send;

    /// A job in the form that `schedule` takes. May serve for many timers.
    type Work<J: Job>: Send;

    /// A new timer, with a tick of so much if it has one.
    fn build(tick: Duration) -> Self;

    /// Runs `body` in whatever context the callers of this timer must be in.
    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// Brings a job into the form that `schedule` takes.
    fn work<J: Job>(job: J) -> Self::Work<J>;

    /// Does `work` once, `delay` from now.
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Self::Handle;

    /// Cancels a pending timer.
    fn cancel(&mut self, handle: Self::Handle);

    /// Cancels several pending timers, in one call if there is such a call.
    fn cancel_batch(&mut self, handles: Vec<Self::Handle>) {
        handles.into_iter().for_each(|handle| self.cancel(handle));
    }

    /// Moves a pending timer to `delay` from now. Never called if there is a reason in [`NO_RESET`](Self::NO_RESET).
    fn reset(&mut self, handle: &mut Self::Handle, delay: Duration);

    /// How many timers it holds, cancelled ones that it still keeps included; `None` if it does not say.
    fn pending(&self) -> Option<usize>;

    /// Ends it and its threads, and frees what it holds.
    fn stop(self) {}
}

/// Runs one workload on one peer.
type Run = fn(&str, &Settings, Program) -> Result<(), Stop>;

/// One peer that was built in.
pub struct Entry {
    /// What it is called.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    plain: Option<Run>,
    storms: Option<Run>,
    tasks: Option<Run>,
    counts: Option<Run>,
}

impl Entry {
    const fn new(name: &'static str, what: &'static str) -> Self {
        Self { name, what, plain: None, storms: None, tasks: None, counts: None }
    }

    const fn plain<P: Peer>(mut self) -> Self {
        self.plain = Some(workloads::plain::<P>);
        self
    }

    const fn storms<P: Storming>(mut self) -> Self {
        self.storms = Some(workloads::storms::<P>);
        self
    }

    const fn counts<P: Expiring>(mut self) -> Self {
        self.counts = Some(workloads::counts::<P>);
        self
    }

    #[cfg(feature = "peers")]
    const fn tasks<P: tasks::Tasks>(mut self) -> Self {
        self.tasks = Some(workloads::tasks::<P>);
        self
    }

    fn run(&self, workload: &str) -> Option<Run> {
        match workloads::family(workload)? {
            Family::Plain => self.plain,
            Family::Storms => self.storms,
            Family::Tasks => self.tasks,
            Family::Counts => self.counts,
        }
    }

    /// Whether it takes part in `workload`.
    pub fn does(&self, workload: &str) -> bool {
        self.run(workload).is_some()
    }
}

const fn ours() -> Entry {
    let entry = Entry::new(OURS, "this workspace, hierarchical wheel")
        .plain::<ours::Hierarchical>()
        .storms::<ours::Hierarchical>()
        .counts::<ours::Hierarchical>();
    // Tasks need a runtime.
    #[cfg(feature = "peers")]
    let entry = entry.tasks::<ours_tasks::Tasks>();
    entry
}

const fn floor() -> Entry {
    let entry = Entry::new(FLOOR, "no timer: a clock reading, an allocation, two locks; for tasks, the runtime alone")
        .storms::<floor::Floor>()
        .counts::<floor::Floor>();
    #[cfg(feature = "peers")]
    let entry = entry.tasks::<floor_tasks::Tasks>();
    entry
}

/// Every peer that was built in, ours first.
pub const ALL: &[Entry] = &[
    ours(),
    Entry::new("timer-hashed", "this workspace, hashed wheel")
        .plain::<ours::Hashed>()
        .storms::<ours::Hashed>()
        .counts::<ours::Hashed>(),
    #[cfg(feature = "peers")]
    Entry::new("tokio", "tokio::time::sleep, polled once")
        .plain::<tokio::Tokio>()
        .storms::<tokio::Tokio>()
        .tasks::<tokio::OfTasks>(),
    #[cfg(feature = "peers")]
    Entry::new("delay-queue", "tokio_util::time::DelayQueue behind a mutex, polled by a task")
        .plain::<delay_queue::Queue>(),
    #[cfg(feature = "peers")]
    Entry::new("pingora", "pingora_timeout::fast_timeout::fast_sleep, polled once")
        .plain::<pingora::Pingora>()
        .storms::<pingora::Pingora>(),
    #[cfg(feature = "peers")]
    Entry::new("async-io", "async_io::Timer, polled once").plain::<async_io::AsyncIo>().tasks::<async_io::AsyncIo>(),
    #[cfg(feature = "peers")]
    Entry::new("futures-timer", "futures_timer::Delay").tasks::<futures_timer::FuturesTimer>(),
    #[cfg(feature = "peers")]
    Entry::new("hhwt", "the timer with a thread of hierarchical_hash_wheel_timer").plain::<hhwt::Hhwt>(),
    Entry::new("btree", "std: Mutex<BTreeMap> and a thread at a condition variable")
        .plain::<btree::BTree>()
        .storms::<btree::BTree>(),
    Entry::new("heap", "std: Mutex<BinaryHeap> and a thread, cancelled entries left inside").plain::<heap::Heap>(),
    floor(),
];

/// Whether the peer called `name` takes part in `workload`.
pub fn does(name: &str, workload: &str) -> bool {
    ALL.iter().any(|entry| entry.name == name && entry.does(workload))
}

/// Runs `workload` on the peer called `name`; `None` if there is no such peer.
pub fn run(name: &str, workload: &str, settings: &Settings, program: Program) -> Option<Result<(), Stop>> {
    let entry = ALL.iter().find(|entry| entry.name == name)?;
    if workloads::family(workload).is_none() {
        return Some(Err(Stop::Unknown));
    }
    let Some(run) = entry.run(workload) else {
        return Some(Err(Stop::Unavailable("takes no part".to_owned())));
    };
    Some(run(workload, settings, program))
}

#[cfg(test)]
mod tests {
    use super::{ALL, FLOOR, OURS, does, run};
    use crate::settings::Settings;
    use crate::workloads::{Program, Stop};

    #[test]
    fn every_name_is_found_and_no_other() {
        for entry in ALL {
            let ran = run(entry.name, "W0", &Settings::default(), Program::Timing);
            assert!(matches!(ran, Some(Err(Stop::Unknown))), "{}", entry.name);
        }
        assert_eq!(ALL[0].name, OURS);
        assert!(run("no-such-timer", "W1", &Settings::default(), Program::Timing).is_none());
    }

    #[test]
    fn only_storms_have_the_floor_beside_them() {
        assert!(does(OURS, "W1") && does(OURS, "W15") && does("btree", "W15") && !does("heap", "W15"));
        assert!(does(FLOOR, "W15") && !does(FLOOR, "W1") && !does(FLOOR, "W0"));
    }
}
