//! A clock for the durable timers of a test, which follows the time of a timer in memory.
//!
//! Each keeper on the clock notes the time of its next turn when a turn has ended. The clock has
//! one timeout in memory, the *alarm*, at the earliest of these times. So the driver of the timer
//! in memory cannot move the time past it. When the alarm runs, the keepers that are due take their
//! turns and run their handlers, one keeper after the other in the order in which they were opened.

use crate::store::Micros;
use crate::time::{VIRTUAL_START, between};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use timer_core::{Timeout, Timer};

/// A keeper that a clock drives.
pub(crate) trait Driven: Send + Sync {
    /// Takes the turns that are due and runs their handlers.
    fn run_due(&self) -> usize;

    /// Drops the keeper as a crash does.
    fn crash(&self);
}

/// A clock that durable timers share with a timer in memory, for tests on virtual time.
///
/// The clock begins at 2001-09-09 and follows the time of a [`Timer`] to the microsecond. In a test
/// the timer is one of [`build_manual`](timer_core::TimerBuilder::build_manual), or the current one
/// in `timer_adapters::tokio::paused`. Whoever moves its time moves that of all timers that
/// [`open_on`](crate::DurableTimerBuilder::open_on) puts on this clock.
///
/// No thread takes part. A call of a durable timer commits before it returns. The thread that moves
/// the time runs the handlers, so time stands still during a commit and a blocking handler. A
/// handler must not wait for a task of that thread. An async one may.
///
/// The order of all runs depends only on the calls, so a test that makes the same calls has the
/// same runs. The timeouts of one instant run in this order:
///
/// 1. timeouts in memory
/// 2. durable timeouts, timer by timer in the order of `open_on`, and in a timer by due time and
///    id. An id that the timer makes is greater than all that it has made before.
/// 3. tasks of the runtime
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::Timer;
/// use timer_durable::{Due, DurableTimer, MemoryStore, Topic, VirtualClock};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let (memory, mut driver) = Timer::builder().build_manual()?;
/// let clock = VirtualClock::new(&memory);
/// let builder = DurableTimer::builder().topic(CLOSE, |due: &Due<String>| {
///     println!("closing order {}", due.payload());
///     Ok(())
/// });
/// let orders = builder.open_on(MemoryStore::new(), &clock)?;
/// orders.new_timeout(CLOSE, Duration::from_secs(1800), "17").wait()?;
/// memory.new_timeout(Duration::from_secs(30), |_| println!("closing an idle connection"))?;
/// driver.advance(Duration::from_secs(3600));
/// assert_eq!(orders.stats().done, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[doc(alias = "MockClock")]
#[doc(alias = "TestClock")]
#[doc(alias = "simulation")]
pub struct VirtualClock {
    inner: Arc<Inner>,
}

struct Inner {
    timer: Timer,
    /// The time of the timer at [`VIRTUAL_START`].
    begin: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    opened: u64,
    /// The keepers with their next turns, in the order in which they were opened.
    keepers: BTreeMap<u64, (Weak<dyn Driven>, Option<Micros>)>,
    /// The time of the alarm.
    armed: Option<Micros>,
    alarm: Option<Timeout>,
}

impl VirtualClock {
    /// Returns a clock that begins now by the time of `timer`.
    #[must_use]
    pub fn new(timer: &Timer) -> Self {
        let inner = Inner { timer: timer.clone(), begin: timer.now(), state: Mutex::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the time on this clock, by which timeouts are due.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        UNIX_EPOCH + between(0, self.inner.now())
    }

    /// Drops the timers on this clock as the death of a process does. Handlers that have begun do
    /// not report, and calls find the timers stopped. The stores keep what was committed. They can
    /// be opened again on this clock, a file by a new store of its path.
    pub fn crash(&self) {
        let keepers = std::mem::take(&mut self.inner.lock().keepers);
        keepers.into_values().filter_map(|(keeper, _)| keeper.upgrade()).for_each(|keeper| keeper.crash());
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Micros {
        let passed = self.timer.now().saturating_duration_since(self.begin).as_micros();
        VIRTUAL_START.saturating_add(Micros::try_from(passed).unwrap_or(Micros::MAX))
    }

    /// Sets the alarm to the next turn of a keeper, unless it is set to it already.
    fn arm(self: &Arc<Self>) {
        let (first, old) = {
            let mut state = self.lock();
            let first = state.keepers.values().filter_map(|(_, next)| *next).min();
            if state.armed == first {
                return;
            }
            state.armed = first;
            (first, state.alarm.take())
        };
        // The timer calls a function of the user, so nothing is locked.
        let alarm = first.and_then(|first| self.set_alarm(first));
        let stale = {
            let mut state = self.lock();
            // Another thread may have set the alarm in between.
            if state.armed == first { std::mem::replace(&mut state.alarm, alarm) } else { alarm }
        };
        old.into_iter().chain(stale).for_each(|alarm| _ = alarm.cancel());
    }

    fn set_alarm(self: &Arc<Self>, time: Micros) -> Option<Timeout> {
        let deadline = self.begin.checked_add(between(VIRTUAL_START, time))?;
        let clock = Arc::downgrade(self);
        let ring = move |alarm: &Timeout| {
            // All other timeouts in memory that are due now run before the second one.
            let ring = move |_: &Timeout| _ = clock.upgrade().map(|clock| clock.ring());
            let second = alarm.timer().map(|timer| timer.new_timeout(Duration::ZERO, ring));
            if let Some(Err(refused)) = second {
                refused.into_inner()(alarm);
            }
        };
        match self.timer.new_timeout_at(deadline, ring) {
            Ok(alarm) => Some(alarm),
            Err(error) => {
                tracing::warn!(%error, "the timer in memory refuses to drive durable timers");
                None
            }
        }
    }

    /// Takes the turns of the keepers that are due and runs their handlers.
    fn ring(self: &Arc<Self>) {
        let now = self.now();
        let is_due = |next: &Option<Micros>| next.is_some_and(|next| next <= now);
        let due: Vec<Weak<dyn Driven>> = {
            let mut state = self.lock();
            if is_due(&state.armed) {
                state.armed = None;
                state.alarm = None;
            }
            let due = state.keepers.values_mut().filter(|(_, next)| is_due(next));
            due.map(|(keeper, next)| {
                // Its turn sets it again.
                *next = None;
                keeper.clone()
            })
            .collect()
        };
        due.iter().filter_map(Weak::upgrade).for_each(|keeper| _ = keeper.run_due());
        self.arm();
    }
}

/// The place of a keeper on a clock.
pub(crate) struct Place {
    clock: Arc<Inner>,
    number: u64,
    /// The time by which the store is ahead of the clock, because its file is from a later time.
    ahead: OnceLock<Micros>,
}

impl Place {
    pub(crate) fn new(clock: &VirtualClock) -> Self {
        let mut state = clock.inner.lock();
        state.opened += 1;
        Self { clock: clock.inner.clone(), number: state.opened, ahead: OnceLock::new() }
    }

    /// Returns the time of the clock.
    pub(crate) fn now(&self) -> Micros {
        self.clock.now()
    }

    /// Puts a keeper on the clock. `now` is the time of its store.
    pub(crate) fn enter(&self, keeper: Weak<dyn Driven>, now: Micros) {
        let _first = self.ahead.set(now.saturating_sub(self.now()).max(0));
        self.clock.lock().keepers.insert(self.number, (keeper, None));
    }

    /// Returns the time that the store should have.
    pub(crate) fn store_time(&self) -> Option<Micros> {
        self.ahead.get().map(|ahead| self.now().saturating_add(*ahead))
    }

    /// Notes the time of the keeper's next turn. The keeper is locked.
    pub(crate) fn set_next(&self, next: Option<Micros>) {
        let next = next.map(|next| next.saturating_sub(self.ahead.get().copied().unwrap_or(0)));
        if let Some((_, noted)) = self.clock.lock().keepers.get_mut(&self.number) {
            *noted = next;
        }
    }

    pub(crate) fn arm(&self) {
        self.clock.arm();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.clock.lock().keepers.remove(&self.number);
        self.clock.arm();
    }
}
