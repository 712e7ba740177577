//! What the operating system knows of the calling thread: its CPU, its slack, its signals; and what this crate remembers of it.

use super::{AtomicUsize, OnceLock, Ordering};
use std::cell::{Cell, RefCell};

/// The number of the CPU that the caller runs on just now, or of its thread where the system does not tell.
#[inline]
pub(crate) fn cpu() -> usize {
    // Miri has no `sched_getcpu`.
    #[cfg(all(target_os = "linux", not(miri)))]
    return nix::sched::sched_getcpu().unwrap_or(0);
    #[cfg(not(all(target_os = "linux", not(miri))))]
    return thread_slot();
}

/// How many CPUs the system has, those included that this process may not use; 1 if it does not say.
pub(crate) fn cpus() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| {
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        #[cfg(unix)]
        let all = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_CONF).ok().flatten();
        #[cfg(not(unix))]
        let all: Option<i64> = None;
        usable.max(all.and_then(|all| usize::try_from(all).ok()).unwrap_or(1))
    })
}

/// A small number of the calling thread's own, handed out in the order in which threads first ask.
#[inline]
pub(crate) fn thread_slot() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            // ORDERING: Relaxed, the number only has to differ from the other threads'.
            slot.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        slot.get()
    })
}

/// What a thread counts anew in each period: the period, and the count.
struct InPeriod(Cell<(u64, u64)>);

impl InPeriod {
    const fn new() -> Self {
        Self(Cell::new((0, 0)))
    }

    /// Adds `n`; the count before.
    fn add(&self, period: u64, n: u64) -> u64 {
        let (then, count) = self.0.get();
        let before = if then == period { count } else { 0 };
        self.0.set((period, before.saturating_add(n)));
        before
    }
}

/// Whether the calling thread may leave one more request: at most `quota` in one and the same `period`.
pub(crate) fn within_quota(period: u64, quota: u64) -> bool {
    thread_local! {
        static REQUESTS: InPeriod = const { InPeriod::new() };
    }
    REQUESTS.with(|requests| requests.add(period, 1)) < quota
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// The calling thread is a timer's worker: [`give_way`] does nothing there.
pub(crate) fn never_give_way() {
    IS_WORKER.set(true);
}

/// The calling thread has done `n` things more: lets other threads have its CPU when that makes `many` in one and the same `period`.
/// Whether it did.
pub(crate) fn give_way(period: u64, n: u64, many: u64) -> bool {
    thread_local! {
        static DONE: InPeriod = const { InPeriod::new() };
    }
    let before = DONE.with(|done| done.add(period, n));
    let gives_way = before < many && many <= before.saturating_add(n) && !IS_WORKER.get();
    if gives_way {
        std::thread::yield_now();
    }
    gives_way
}

/// Keeps signals away from the calling thread, but for those that its own faults raise: a handler must not run on the worker.
pub(crate) fn block_signals() {
    // Miri has no signals.
    #[cfg(all(unix, not(miri)))]
    {
        use nix::sys::signal::{SigSet, Signal};
        let mut signals = SigSet::all();
        for fault in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL, Signal::SIGTRAP, Signal::SIGABRT]
        {
            signals.remove(fault);
        }
        let _ = signals.thread_block();
    }
}

/// Calls `wait` with the system asked to end the calling thread's waits when they are due: Linux lets them run 50 us over by
/// default, so that wake-ups of several threads fall together. Afterwards it is as before, so that what a task starts does not
/// inherit it.
pub(crate) fn wait_on_time(wait: impl FnOnce()) {
    // Miri has no `prctl`.
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use nix::sys::prctl::{get_timerslack, set_timerslack};
        let before = get_timerslack().ok().and_then(|nanos| u64::try_from(nanos).ok());
        let _ = set_timerslack(1);
        wait();
        // 0 is the thread's default.
        let _ = set_timerslack(before.unwrap_or(0));
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    wait();
}

/// A task that runs: the addresses of its timeout and of its timer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) timeout: usize,
    pub(crate) timer: usize,
}

const NONE: Running = Running { timeout: 0, timer: 0 };

thread_local! {
    static INNERMOST: Cell<Running> = const { Cell::new(NONE) };
    /// Those on whose stack it runs.
    static OUTER: RefCell<Vec<Running>> = const { RefCell::new(Vec::new()) };
}

/// Calls `run`, which is a run of `task`, and tells [`is_running`] of it. `run` must not unwind.
#[inline]
pub(crate) fn while_running<R>(task: Running, run: impl FnOnce() -> R) -> R {
    let outer = INNERMOST.replace(task);
    // `try_with`: the thread may be at its end, and the list gone. Then a run within a run is not noted.
    if outer != NONE {
        let _ = OUTER.try_with(|all| all.borrow_mut().push(outer));
    }
    let result = run();
    if outer != NONE {
        let _ = OUTER.try_with(|all| all.borrow_mut().pop());
    }
    INNERMOST.set(outer);
    result
}

/// Whether a run for which `is_it` says so is on the calling thread's stack, at any depth.
pub(crate) fn is_running(is_it: impl Fn(Running) -> bool) -> bool {
    is_it(INNERMOST.get()) || OUTER.try_with(|all| all.borrow().iter().copied().any(is_it)).unwrap_or(false)
}
