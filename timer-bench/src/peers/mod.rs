//! The compared timers behind one trait.
//!
//! Each peer is used in the cheapest way that its interface offers. Peers that run closures get a
//! closure that captures a copy of the job, which is mostly a pointer. Peers whose timers are
//! futures get neither a task nor a spawn. Each future is polled once with a waker that does the
//! work inline, which is less than a program pays. A peer that is made for one owner stands behind
//! a mutex.
//!
//! Storms need the trait `storming::Storming`, tasks that sleep need `tasks::Tasks`, and delay
//! queues have traits of their own. Not every peer has them.
//!
//! All dispatch is static, and the comparison boxes nothing.

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
#[cfg(feature = "peers")]
pub(crate) mod queues;
mod shared;
pub(crate) mod shared_queues;
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
#[cfg(feature = "peers")]
use timer_core::delay_queue::DelayQueue;
use timer_core::delay_queue::SharedDelayQueue;

/// The tick of all workloads that do not set another one.
pub const TICK: Duration = Duration::from_millis(1);

/// The name of ours, to which the others are compared.
pub const OURS: &str = "timer";

/// The name of the floor, which is the least cost of a timer and shows the effect of the scheduler
/// on a call.
pub const FLOOR: &str = "floor";

/// The work of a timer when it is due. The task captures a copy of the job, which is mostly a
/// pointer.
pub trait Job: Copy + Send + Sync + 'static {
    /// Runs the job.
    fn run(self);
}

/// A timer. Clones are handles of the same timer for other threads.
pub trait Peer: Clone + Send + Sized + 'static {
    /// The name on the command line and in the tables.
    const NAME: &'static str;

    /// The reason why a pending timer cannot be moved, if it cannot.
    const NO_RESET: Option<&'static str> = None;

    /// Set if [`build`](Self::build) uses its tick.
    const HAS_TICK: bool = false;

    /// A pending timer. For some peers, dropping it cancels.
    type Handle: Send;

    /// A job in the form that `schedule` takes. It may serve for many timers.
    type Work<J: Job>: Send;

    /// Builds a timer with this tick, if it has one.
    fn build(tick: Duration) -> Self;

    /// Runs `body` in the context that callers of this timer need.
    fn on_thread<R>(&self, body: impl FnOnce() -> R) -> R {
        body()
    }

    /// Converts a job into the form that `schedule` takes.
    fn work<J: Job>(job: J) -> Self::Work<J>;

    /// Schedules one run of `work` in `delay`.
    fn schedule<J: Job>(&mut self, delay: Duration, work: &Self::Work<J>) -> Self::Handle;

    /// Cancels a pending timer.
    fn cancel(&mut self, handle: Self::Handle);

    /// Cancels several pending timers, in one call if there is such a call.
    fn cancel_batch(&mut self, handles: Vec<Self::Handle>) {
        handles.into_iter().for_each(|handle| self.cancel(handle));
    }

    /// Moves a pending timer to `delay` from now. Not called if [`NO_RESET`](Self::NO_RESET) has a
    /// reason.
    fn reset(&mut self, handle: &mut Self::Handle, delay: Duration);

    /// Returns the number of timers it holds, including cancelled ones, or `None` if the peer does
    /// not report it.
    fn pending(&self) -> Option<usize>;

    /// Stops the timer and its threads and frees its memory.
    fn stop(self) {}
}

/// Runs one workload on one peer.
type Run = fn(&str, &Settings, Program) -> Result<(), Stop>;

/// A built-in peer.
pub struct Entry {
    /// The name of the peer.
    pub name: &'static str,
    /// A description of the peer.
    pub what: &'static str,
    plain: Option<Run>,
    storms: Option<Run>,
    tasks: Option<Run>,
    queues: Option<Run>,
    shared_queues: Option<Run>,
    http: Option<Run>,
    counts: Option<Run>,
}

impl Entry {
    const fn new(name: &'static str, what: &'static str) -> Self {
        Self {
            name,
            what,
            plain: None,
            storms: None,
            tasks: None,
            queues: None,
            shared_queues: None,
            http: None,
            counts: None,
        }
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

    #[cfg(feature = "peers")]
    const fn queues<Q: queues::Queue>(mut self) -> Self {
        self.queues = Some(workloads::queues::<Q>);
        self
    }

    const fn shared_queues<Q: shared_queues::SharedQueue>(mut self) -> Self {
        self.shared_queues = Some(workloads::shared_queues::<Q>);
        self
    }

    #[cfg(feature = "peers")]
    const fn http(mut self, run: Run) -> Self {
        self.http = Some(run);
        self
    }

    fn run(&self, workload: &str) -> Option<Run> {
        match workloads::family(workload)? {
            Family::Plain => self.plain,
            Family::Storms => self.storms,
            Family::Tasks => self.tasks,
            Family::Queues => self.queues,
            Family::SharedQueues => self.shared_queues,
            Family::Http => self.http,
            Family::Counts => self.counts,
        }
    }

    /// Returns `true` if the peer takes part in `workload`.
    pub fn does(&self, workload: &str) -> bool {
        self.run(workload).is_some()
    }
}

const fn ours() -> Entry {
    let entry = Entry::new(OURS, "this workspace, hierarchical wheel")
        .plain::<ours::Hierarchical>()
        .storms::<ours::Hierarchical>()
        .shared_queues::<SharedDelayQueue<u64>>()
        .counts::<ours::Hierarchical>();
    // Workloads of tasks need a runtime.
    #[cfg(feature = "peers")]
    let entry = entry.tasks::<ours_tasks::Tasks>().queues::<DelayQueue<u64>>().http(workloads::http_of_ours);
    entry
}

const fn floor() -> Entry {
    let entry = Entry::new(FLOOR, "no timer: a clock reading, an allocation, two locks; for tasks, the runtime alone")
        .storms::<floor::Floor>()
        .counts::<floor::Floor>();
    #[cfg(feature = "peers")]
    let entry = entry.tasks::<floor_tasks::Tasks>().http(workloads::http_of_floor);
    entry
}

/// All built-in peers, ours first.
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
        .tasks::<tokio::TokioTasks>()
        .http(workloads::http_of_tokio),
    #[cfg(feature = "peers")]
    Entry::new("delay-queue", "tokio_util::time::DelayQueue behind a mutex, polled by a task")
        .plain::<delay_queue::Queue>()
        .queues::<tokio_util::time::DelayQueue<u64>>(),
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
    Entry::new("heap", "std: Mutex<BinaryHeap> and a thread, cancelled entries left inside")
        .plain::<heap::Heap>()
        .shared_queues::<shared_queues::Heap>(),
    floor(),
];

/// Returns `true` if the peer `name` takes part in `workload`.
pub fn does(name: &str, workload: &str) -> bool {
    ALL.iter().any(|entry| entry.name == name && entry.does(workload))
}

/// Runs `workload` on the peer `name`. Returns `None` if there is no such peer.
pub fn run(name: &str, workload: &str, settings: &Settings, program: Program) -> Option<Result<(), Stop>> {
    let entry = ALL.iter().find(|entry| entry.name == name)?;
    if workloads::family(workload).is_none() || !program.runs(workload) {
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
    fn every_name_is_found_and_others_are_not() {
        for entry in ALL {
            let ran = run(entry.name, "W0", &Settings::default(), Program::Timing);
            assert!(matches!(ran, Some(Err(Stop::Unknown))), "{}", entry.name);
        }
        assert_eq!(ALL[0].name, OURS);
        assert!(run("no-such-timer", "W1", &Settings::default(), Program::Timing).is_none());
    }

    #[test]
    fn the_floor_takes_no_part_in_plain_workloads() {
        assert!(does(OURS, "W1") && does(OURS, "W15") && does("btree", "W15") && !does("heap", "W15"));
        assert!(does(FLOOR, "W15") && !does(FLOOR, "W1") && !does(FLOOR, "W0"));
    }
}
