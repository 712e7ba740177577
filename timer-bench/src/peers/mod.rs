//! The timers that are compared, behind one trait.
//!
//! Each peer is used the cheapest way its interface has. Those that run closures get a closure which captures one pointer.
//! Those whose timers are futures get neither a task nor a spawn: each future is polled once, with a waker that does the
//! work itself, inline; that is less than a program pays. A peer that is made for one owner stands behind a mutex.
//!
//! The trait is static all the way: nothing is boxed or dispatched on behalf of the comparison.

#[cfg(feature = "peers")]
mod async_io;
mod btree;
#[cfg(feature = "peers")]
mod delay_queue;
mod heap;
#[cfg(feature = "peers")]
mod hhwt;
mod ours;
#[cfg(feature = "peers")]
mod pingora;
mod shared;
#[cfg(feature = "peers")]
mod tokio;
#[cfg(feature = "peers")]
mod wakers;

use crate::settings::Settings;
use crate::workloads::{self, HeapSize, Stop};
use std::time::Duration;

/// The tick of all workloads that do not say otherwise.
pub const TICK: Duration = Duration::from_millis(1);

/// Ours, to which the others are compared.
pub const OURS: &str = "timer";

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

    /// Moves a pending timer to `delay` from now. Never called if there is a reason in [`NO_RESET`](Self::NO_RESET).
    fn reset(&mut self, handle: &mut Self::Handle, delay: Duration);

    /// How many timers it holds, cancelled ones that it still keeps included; `None` if it does not say.
    fn pending(&self) -> Option<usize>;

    /// Ends it and its threads, and frees what it holds.
    fn stop(self) {}
}

/// Runs one workload on one peer.
type Run = fn(&str, &Settings, Option<HeapSize>) -> Result<(), Stop>;

/// One peer that was built in.
pub struct Entry {
    /// What it is called.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    run: Run,
}

/// Every peer that was built in, ours first.
pub const ALL: &[Entry] = &[
    entry::<ours::Hierarchical>("this workspace, hierarchical wheel"),
    entry::<ours::Hashed>("this workspace, hashed wheel"),
    #[cfg(feature = "peers")]
    entry::<tokio::Tokio>("tokio::time::sleep, polled once"),
    #[cfg(feature = "peers")]
    entry::<delay_queue::Queue>("tokio_util::time::DelayQueue behind a mutex, polled by a task"),
    #[cfg(feature = "peers")]
    entry::<pingora::Pingora>("pingora_timeout::fast_timeout::fast_sleep, polled once"),
    #[cfg(feature = "peers")]
    entry::<async_io::AsyncIo>("async_io::Timer, polled once"),
    #[cfg(feature = "peers")]
    entry::<hhwt::Hhwt>("the timer with a thread of hierarchical_hash_wheel_timer"),
    entry::<btree::BTree>("std: Mutex<BTreeMap> and a thread at a condition variable"),
    entry::<heap::Heap>("std: Mutex<BinaryHeap> and a thread, cancelled entries left inside"),
];

const fn entry<P: Peer>(what: &'static str) -> Entry {
    Entry { name: P::NAME, what, run: workloads::run::<P> }
}

/// Runs `workload` on the peer called `name`; `None` if there is no such peer.
pub fn run(name: &str, workload: &str, settings: &Settings, heap: Option<HeapSize>) -> Option<Result<(), Stop>> {
    let entry = ALL.iter().find(|entry| entry.name == name)?;
    Some((entry.run)(workload, settings, heap))
}

#[cfg(test)]
mod tests {
    use super::{ALL, OURS, run};
    use crate::settings::Settings;
    use crate::workloads::Stop;

    #[test]
    fn every_name_is_found_and_no_other() {
        for entry in ALL {
            let ran = run(entry.name, "W0", &Settings::default(), None);
            assert!(matches!(ran, Some(Err(Stop::Unknown))), "{}", entry.name);
        }
        assert_eq!(ALL[0].name, OURS);
        assert!(run("no-such-timer", "W1", &Settings::default(), None).is_none());
    }
}
