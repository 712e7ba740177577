//! The timer of the process, and the timer that a thread has entered in its place.

use super::timer::Timer;
use crate::resolution::Resolution;
use crate::sync::{Arc, OnceLock};
use core::cell::RefCell;
use core::marker::PhantomData;

static GLOBAL: OnceLock<Timer> = OnceLock::new();

/// Takes the place of the timer of the process while no shard is left for one.
static WITHOUT_SHARDS: OnceLock<Timer> = OnceLock::new();

thread_local! {
    /// The timer that the thread has entered.
    static ENTERED: RefCell<Option<Arc<Timer>>> = const { RefCell::new(None) };
}

impl Timer {
    /// Returns the timer of the process.
    ///
    /// This is the timer given to [`set_global`](Self::set_global). If there is none, the first
    /// call makes one with all defaults, named "global". Its worker starts with the first timeout
    /// or the first future. It is never stopped, so [`stop`](Self::stop) and
    /// [`stop_and_wait`](Self::stop_and_wait) return
    /// [`StopError::Global`](crate::StopError::Global).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::{StopError, Timer};
    ///
    /// Timer::global().new_timeout(Duration::from_secs(5), |_| println!("no reply"))?.cancel();
    /// assert_eq!(Timer::global().stop().unwrap_err(), StopError::Global);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn global() -> &'static Timer {
        get_or_build(&GLOBAL, "global")
    }

    /// Makes `timer` the timer of the process.
    ///
    /// Call this at the start of `main`, before anything uses [`Timer::global`] or the functions of
    /// [`time`](crate::time). A manual timer gives the whole program virtual time. For a single
    /// thread, such as that of one test, use [`time::enter`](crate::time::enter).
    ///
    /// # Errors
    ///
    /// Returns `timer` if the process has a timer already, either from an earlier call or because
    /// something has used it. A timer that got no shards does not count.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_core::Timer;
    ///
    /// let timer = Timer::builder().name("server").tick_duration(Duration::from_millis(10)).build()?;
    /// Timer::set_global(timer).expect("nothing has used the timer of the process yet");
    /// assert_eq!(Timer::global().name(), "server");
    /// assert!(Timer::set_global(Timer::new()).is_err());
    /// # Ok::<(), timer_core::BuildError>(())
    /// ```
    #[doc(alias = "set_global_default")]
    pub fn set_global(timer: Timer) -> Result<(), Timer> {
        GLOBAL.set(timer)
    }

    /// Returns a handle to the timer that the functions of [`time`](crate::time) use.
    ///
    /// This is the timer that the calling thread has [entered](crate::time::enter), or
    /// [`Timer::global`] if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_core::Timer;
    /// assert_eq!(Timer::current().name(), "global");
    /// ```
    pub fn current() -> Timer {
        with_current(Timer::clone)
    }

    /// Returns `true` if this is the timer of the process.
    pub(super) fn is_global(&self) -> bool {
        let is_self = |global: &Timer| Arc::ptr_eq(&global.engine, &self.engine);
        [&GLOBAL, &WITHOUT_SHARDS].into_iter().filter_map(OnceLock::get).any(is_self)
    }

    /// Returns `true` if a [`ManualDriver`](crate::ManualDriver) moves the time of this timer.
    pub(crate) fn has_virtual_time(&self) -> bool {
        matches!(self.engine.context.resolution, Resolution::Exact(_))
    }

    /// Returns `true` if this timer is on real time, has no bound and is not stopped. It then
    /// refuses a future only if the system has no thread or the process no shard for it.
    fn takes_refused_futures(&self) -> bool {
        let context = &self.engine.context;
        !self.has_virtual_time() && context.limit.is_none() && !context.is_stopped()
    }
}

/// Returns the timer in `cell`, or builds one with this name. A timer that gets no shards is not
/// put there, so that a later call tries again.
///
/// A new timer may warn that there are many, and the subscriber may use the timer of the process.
/// Therefore the timer is built before the initialization, in which other threads and the
/// subscriber would wait.
fn get_or_build(cell: &'static OnceLock<Timer>, name: &str) -> &'static Timer {
    cell.get().unwrap_or_else(|| {
        let timer = Timer::builder().name(name).build_default();
        let cell = if timer.engine.lease.block.id.is_some() { cell } else { &WITHOUT_SHARDS };
        cell.get_or_init(|| timer)
    })
}

/// Returns the timer for futures that their own timer has refused.
pub(crate) fn fallback() -> &'static Timer {
    static FALLBACK: OnceLock<Timer> = OnceLock::new();
    let global = Timer::global();
    if global.takes_refused_futures() {
        return global;
    }
    get_or_build(&FALLBACK, "fallback")
}

/// Calls `call` with the timer that the calling thread has entered, or else with that of the
/// process.
#[inline]
pub(crate) fn with_current<R>(call: impl FnOnce(&Timer) -> R) -> R {
    match ENTERED.try_with(|entered| entered.borrow().clone()) {
        Ok(Some(timer)) => call(&timer),
        // The thread has entered no timer, or it is ending.
        _ => call(Timer::global()),
    }
}

/// Exchanges the timer that the calling thread has entered and returns the former one.
fn swap_entered(timer: Option<Arc<Timer>>) -> Option<Arc<Timer>> {
    ENTERED.try_with(|entered| entered.replace(timer)).unwrap_or(None)
}

/// Makes `timer` the one that the functions of [`time`](crate::time) use on this thread, until
/// the guard is dropped.
///
/// Tests use it with a manual timer, which gives virtual time to all code on the thread. Other
/// threads and [`Timer::global`] are not affected. Guards nest and must be dropped in the reverse
/// order.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_core::{Timer, time};
///
/// let (timer, mut driver) = Timer::builder().build_manual()?;
/// let _entered = time::enter(timer);
/// driver.block_on(async {
///     let begin = time::now();
///     time::sleep(Duration::from_secs(3600)).await;
///     assert_eq!(time::now() - begin, Duration::from_secs(3600));
/// });
/// # Ok::<(), timer_core::BuildError>(())
/// ```
pub fn enter(timer: Timer) -> EnterGuard {
    EnterGuard { outer: swap_entered(Some(Arc::new(timer))), not_send: PhantomData }
}

/// A guard returned by [`enter`], which restores the former timer of the thread when it is dropped.
///
/// # Examples
///
/// ```
/// use timer_core::{Timer, time};
///
/// let entered = time::enter(Timer::builder().name("test").build()?);
/// assert_eq!(Timer::current().name(), "test");
/// drop(entered);
/// assert_eq!(Timer::current().name(), "global");
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[must_use = "the timer is left when the guard is dropped"]
#[derive(Debug)]
pub struct EnterGuard {
    outer: Option<Arc<Timer>>,
    /// The guard must be dropped on its thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for EnterGuard {
    fn drop(&mut self) {
        drop(swap_entered(self.outer.take()));
    }
}
