//! State of the calling thread: its CPU, timer slack and signals in the operating system, and the
//! counts that this crate keeps for it.

use super::{AtomicUsize, OnceLock, Ordering};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::time::Duration;

#[cfg(feature = "__tests")]
static SPREADS_BY_THREAD: super::AtomicBool = super::AtomicBool::new(false);

/// Sets whether [`current_cpu`] returns the number of the thread, whatever the system reports.
#[cfg(feature = "__tests")]
pub(crate) fn spread_by_thread(is_on: bool) {
    // ORDERING: Relaxed, because any spread is correct.
    SPREADS_BY_THREAD.store(is_on, Ordering::Relaxed);
}

/// Returns the number of the CPU on which the caller is running, or of its thread if the system
/// does not report the CPU.
#[inline]
pub(crate) fn current_cpu() -> usize {
    // ORDERING: Relaxed, as in `spread_by_thread`.
    #[cfg(feature = "__tests")]
    if SPREADS_BY_THREAD.load(Ordering::Relaxed) {
        return thread_slot();
    }
    // Miri has no `sched_getcpu`.
    #[cfg(all(target_os = "linux", not(miri)))]
    return nix::sched::sched_getcpu().unwrap_or(0);
    #[cfg(not(all(target_os = "linux", not(miri))))]
    return thread_slot();
}

/// Returns the number of CPUs of the system, including any that this process may not use. Returns 1
/// if the number is unknown.
pub(crate) fn cpu_count() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| {
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        #[cfg(target_os = "linux")]
        let all = nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_CONF).ok().flatten();
        #[cfg(not(target_os = "linux"))]
        let all: Option<i64> = None;
        usable.max(all.and_then(|all| usize::try_from(all).ok()).unwrap_or(1))
    })
}

/// Returns a small number that no other thread has. Threads get their numbers in the order of their
/// first calls.
#[inline]
#[allow(dead_code, reason = "only systems that do not report the CPU and tests use it")]
fn thread_slot() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SLOT: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    SLOT.with(|slot| {
        if slot.get() == usize::MAX {
            // ORDERING: Relaxed, because the numbers only have to differ.
            slot.set(THREADS.fetch_add(1, Ordering::Relaxed));
        }
        slot.get()
    })
}

/// Adds `n` to the count of a period, which begins at zero, and returns the count before.
fn add_in_period(count: &Cell<(u64, u64)>, period: u64, n: u64) -> u64 {
    let (then, before) = count.get();
    let before = if then == period { before } else { 0 };
    count.set((period, before.saturating_add(n)));
    before
}

/// Counts a request of the calling thread. Returns `true` if it is among the thread's first `quota`
/// requests in `period`.
pub(crate) fn within_quota(period: u64, quota: u64) -> bool {
    thread_local! {
        static REQUESTS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    REQUESTS.with(|requests| add_in_period(requests, period, 1)) < quota
}

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

/// Marks the calling thread as a worker, for which [`is_burst`] and [`may_pause`] are always
/// `false`.
pub(crate) fn never_slow_down() {
    IS_WORKER.set(true);
}

/// Returns `true` for the first `most` calls of the calling thread in `period`. Returns `false` on
/// a worker and inside a task, which delay other tasks if they pause.
pub(crate) fn may_pause(period: u64, most: u64) -> bool {
    thread_local! {
        static CALLS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let may_block = !IS_WORKER.get() && INNERMOST.get() == NOT_RUNNING;
    may_block && CALLS.with(|calls| add_in_period(calls, period, 1)) < most
}

/// Adds `n` to the timeouts that the calling thread has scheduled in `period`. Returns `true` for
/// the one call in a period by which their number reaches `burst`. Returns `false` on a worker.
pub(crate) fn is_burst(period: u64, n: u64, burst: u64) -> bool {
    thread_local! {
        static SCHEDULED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let before = SCHEDULED.with(|scheduled| add_in_period(scheduled, period, n));
    before < burst && burst <= before.saturating_add(n) && !IS_WORKER.get()
}

#[cfg(test)]
thread_local! {
    /// The number of pauses of this thread.
    pub(crate) static PAUSES: Cell<u32> = const { Cell::new(0) };
}

/// Blocks the calling thread for `duration`. Parking would take a token that belongs to the
/// caller's own code.
pub(crate) fn pause(duration: Duration) {
    #[cfg(test)]
    PAUSES.set(PAUSES.get() + 1);
    std::thread::sleep(duration);
}

/// Blocks signals on the calling thread, except for those that its own faults raise. A handler must
/// not run on the worker.
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

#[cfg(test)]
thread_local! {
    /// The value that [`cpu_use`] returns to this thread in a test.
    pub(crate) static CPU_USE: Cell<Option<(u64, usize)>> = const { Cell::new(None) };
}

/// Returns the nanoseconds of CPU time that the calling thread has used, to the microsecond, and
/// how often it has blocked. Returns `None` if the system does not report them.
pub(crate) fn cpu_use() -> Option<(u64, usize)> {
    #[cfg(test)]
    if let Some(set) = CPU_USE.get() {
        return Some(set);
    }
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeValLike;
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
        let used = u64::try_from((usage.user_time() + usage.system_time()).num_microseconds()).ok()?;
        Some((used * 1_000, usize::try_from(usage.voluntary_context_switches()).ok()?))
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    None
}

/// Calls `wait` with a timer slack of 1 ns. By default, Linux prolongs waits by up to 50 us to
/// combine wake-ups. The former slack is restored afterwards, so that threads which a task starts
/// do not inherit this one.
pub(crate) fn wait_on_time(wait: impl FnOnce()) {
    // Miri has no `prctl`.
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use nix::sys::prctl::{get_timerslack, set_timerslack};
        let before = get_timerslack().ok().and_then(|nanos| nanos.try_into().ok());
        let _ = set_timerslack(1);
        wait();
        // 0 is the thread's default.
        let _ = set_timerslack(before.unwrap_or(0));
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    wait();
}

/// A running task, as the addresses of its timeout and of its timer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    pub(crate) timeout: usize,
    pub(crate) timer: usize,
}

const NOT_RUNNING: Running = Running { timeout: 0, timer: 0 };

thread_local! {
    static INNERMOST: Cell<Running> = const { Cell::new(NOT_RUNNING) };
    /// The tasks on this stack that wait for the innermost one to return. The list is never
    /// dropped, because a thread may run tasks until its end. Without tasks it has no memory.
    static OUTER: ManuallyDrop<RefCell<Vec<Running>>> = const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Calls `run`, which runs `task`, and registers the task for [`is_running`]. `run` must
/// not unwind.
#[inline]
pub(crate) fn while_running<R>(task: Running, run: impl FnOnce() -> R) -> R {
    let outer = INNERMOST.replace(task);
    if outer != NOT_RUNNING {
        OUTER.with(|all| all.borrow_mut().push(outer));
    }
    let result = run();
    if outer != NOT_RUNNING {
        OUTER.with(|all| {
            let mut all = all.borrow_mut();
            all.pop();
            if all.is_empty() {
                *all = Vec::new();
            }
        });
    }
    INNERMOST.set(outer);
    result
}

/// Returns `true` if the calling thread is inside a run for which `matches` returns `true`, at any
/// depth.
pub(crate) fn is_running(matches: impl Fn(Running) -> bool) -> bool {
    matches(INNERMOST.get()) || OUTER.with(|all| all.borrow().iter().copied().any(matches))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    fn task(timeout: usize) -> Running {
        Running { timeout, timer: 1 }
    }

    /// Runs a task inside another one at the end of its thread, and sends whether it finds both.
    struct AtEnd(Sender<bool>);

    impl Drop for AtEnd {
        fn drop(&mut self) {
            let finds_both = || is_running(|running| running == task(1)) && is_running(|running| running == task(2));
            let found = while_running(task(1), || while_running(task(2), finds_both));
            self.0.send(found && OUTER.with(|all| all.borrow().capacity() == 0)).unwrap();
        }
    }

    #[test]
    fn nested_tasks_are_found_until_the_end_of_a_thread() {
        thread_local! {
            static AT_END: RefCell<Option<AtEnd>> = const { RefCell::new(None) };
        }
        let (sender, found) = channel();
        let thread = std::thread::spawn(move || {
            // On Linux the values of a thread are dropped in the reverse order of their first use,
            // so a list with a destructor would be gone before this value.
            AT_END.set(Some(AtEnd(sender)));
            while_running(task(1), || while_running(task(2), || ()));
        });
        thread.join().unwrap();
        assert!(found.recv().unwrap());
    }
}
