//! The state word of a timeout: its state and its deadline in one atomic word.
//!
//! ```text
//!  63                                    4   3      2     0
//! +---------------------------------------+--------+-------+
//! |   deadline                            | WAITED | state |
//! +---------------------------------------+--------+-------+
//!
//!   once      Waiting --expire--> Fired --end_run--> Expired
//!   again     Waiting --expire--> Running --rearm--> Waiting            (reset meanwhile: Moved --rearm--> Waiting)
//!   both, by way of an executor's queue:
//!             Waiting --hand_over--> Queued --start--> Fired or Running (not due, for it was reset: --start--> Waiting)
//!   ends      Waiting, Queued --cancel--> Cancelled     Waiting --cancel_by_stop--> Cancelled
//!             Running, Moved --cancel--> Dying --end_run--> Cancelled   (the run that goes on drops the task)
//!             Running, Moved --fail--> Fired --end_run--> Expired       (a run that panicked is the last)
//!   a future's, which ends like one that runs once, and besides:
//!             Waiting, Expired --claim-> Running --release--> Waiting   (its future changes the waker)
//! ```
//!
//! Every transition is one read-modify-write of this word, so all threads agree on one history and exactly one of two
//! rivals wins. Because the deadline sits in the same word, `reset` against expiry is decided like `cancel` against
//! expiry: by the first swap. Each method decides once, and returns what was won; the winner owns the task.
//!
//! `Cancelled` is for good: the hand-over of the wheel's reference ([`super::Header`]) rests on it. `Expired` is not.
//!
//! `WAITED` is set by a thread that waits for the end of a run, only in `Fired` and `Dying`; [`AtomicState::end_run`] tells.

use crate::sync::{AtomicU64, Ordering};
use crate::time::{Deadline, Nanos};

const STATE_MASK: u64 = 0b111;
const WAITED: u64 = 1 << 3;
const DEADLINE_SHIFT: u32 = 64 - Deadline::BITS;

/// What has become of a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// Waits for its deadline: it belongs into a wheel.
    Waiting = 0,
    /// Handed over to an executor, and not started.
    Queued = 1,
    /// One run of many goes on.
    Running = 2,
    /// As `Running`, and the next run is at the deadline that `reset` has set meanwhile.
    Moved = 3,
    /// Its last run goes on.
    Fired = 4,
    /// It has run.
    Expired = 5,
    /// Cancelled during a run that goes on.
    Dying = 6,
    /// It will not run (again).
    Cancelled = 7,
}

/// How a run of the task ends the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    Once,
    Again,
    /// It wakes a future's task: always on the thread that takes the turn, and its future may let it wait again.
    Wake,
}

impl Runs {
    fn started(self) -> State {
        match self {
            Runs::Once | Runs::Wake => State::Fired,
            Runs::Again => State::Running,
        }
    }
}

/// What became of an entry that was to expire or to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Due<T> {
    /// Won. It was due at this deadline, or: the right to its task.
    Won(T),
    /// `reset` has moved it; it waits, and has to be linked again.
    Later(Deadline),
    /// It has ended: forget it.
    Gone,
}

impl<T> Due<T> {
    #[inline]
    pub(super) fn won<U>(self, right: impl FnOnce(T) -> U) -> Due<U> {
        match self {
            Due::Won(deadline) => Due::Won(right(deadline)),
            Due::Later(deadline) => Due::Later(deadline),
            Due::Gone => Due::Gone,
        }
    }
}

/// What `cancel` has won.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Cancel {
    /// The timeout, and its task.
    Waiting,
    /// The timeout, and its task; an empty shell stays in the executor's queue.
    Queued,
    /// The timeout; a run goes on and drops the task when it returns.
    Running,
    /// Nothing.
    Lost,
}

/// What `reset` has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Reset {
    /// It waits under a new deadline; this was the old one.
    Waiting(Deadline),
    /// A run or a start that is under way finds the new deadline.
    Later,
    /// Nothing: it has ended.
    Lost,
}

/// What comes after a run of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Rearm {
    /// It waits for this deadline.
    Waiting(Deadline),
    /// It was cancelled during the run: the run drops the task.
    Cancelled,
}

/// One value of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    #[inline]
    fn new(state: State, deadline: Deadline) -> Self {
        Self((deadline.to_bits() << DEADLINE_SHIFT) | state as u64)
    }

    #[inline]
    fn state(self) -> State {
        match self.0 & STATE_MASK {
            0 => State::Waiting,
            1 => State::Queued,
            2 => State::Running,
            3 => State::Moved,
            4 => State::Fired,
            5 => State::Expired,
            6 => State::Dying,
            _ => State::Cancelled,
        }
    }

    #[inline]
    fn deadline(self) -> Deadline {
        Deadline::from_bits(self.0 >> DEADLINE_SHIFT)
    }

    #[inline]
    fn with(self, state: State) -> Self {
        Self((self.0 & !STATE_MASK) | state as u64)
    }
}

/// The word. Every thread may read it. The transitions that win the task or give it back are this folder's, since the right to the
/// task ([`super::Owned`]) is made of them.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct AtomicState(AtomicU64);

impl AtomicState {
    /// Waits for `deadline`.
    #[inline]
    pub(super) fn new(deadline: Deadline) -> Self {
        Self(AtomicU64::new(Word::new(State::Waiting, deadline).0))
    }

    #[inline]
    fn load(&self) -> Word {
        // ORDERING: Acquire pairs with the Release of every change, so that what was written before the change that is
        // seen here is seen as well.
        Word(self.0.load(Ordering::Acquire))
    }

    /// Replaces the word by what `change` makes of it. `Ok` has the word before; `Err` the one for which it said `None`.
    #[inline]
    fn update(&self, change: impl Fn(Word) -> Option<Word>) -> Result<Word, Word> {
        let mut word = self.load();
        loop {
            let Some(next) = change(word) else { return Err(word) };
            // ORDERING: AcqRel on success: winning the task sees all that its last owner wrote, giving it up publishes all that
            // this one wrote. Every change is a read-modify-write, so the word has one history that all agree on.
            // Acquire on failure: the next try decides by that word.
            match self.0.compare_exchange_weak(word.0, next.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(word),
                Err(seen) => word = Word(seen),
            }
        }
    }

    #[inline]
    pub(crate) fn state(&self) -> State {
        self.load().state()
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Deadline {
        self.load().deadline()
    }

    /// Whether it waits for its deadline: then it belongs into a wheel.
    #[inline]
    pub(crate) fn is_waiting(&self) -> bool {
        self.state() == State::Waiting
    }

    #[inline]
    fn win_due(&self, from: State, to: State, now: Nanos) -> Due<Deadline> {
        let due = |word: Word| word.state() == from && word.deadline().is_due(now);
        match self.update(|word| due(word).then(|| word.with(to))) {
            Ok(word) => Due::Won(word.deadline()),
            Err(word) if word.state() == from => Due::Later(word.deadline()),
            Err(_) => Due::Gone,
        }
    }

    /// By the owner of the turn, for an entry that has left the wheel and that it runs itself.
    #[inline]
    pub(super) fn expire(&self, now: Nanos, runs: Runs) -> Due<Deadline> {
        self.win_due(State::Waiting, runs.started(), now)
    }

    /// By the owner of the turn, for an entry that has left the wheel and goes to an executor.
    #[inline]
    pub(crate) fn hand_over(&self, now: Nanos) -> Due<Deadline> {
        self.win_due(State::Waiting, State::Queued, now)
    }

    /// By the thread that an executor has chosen, once for each `hand_over` that won.
    pub(super) fn start(&self, now: Nanos, runs: Runs) -> Due<Deadline> {
        let started = |word: Word| {
            let to = if word.deadline().is_due(now) { runs.started() } else { State::Waiting };
            (word.state() == State::Queued).then(|| word.with(to))
        };
        match self.update(started) {
            Ok(word) if word.deadline().is_due(now) => Due::Won(word.deadline()),
            Ok(word) => Due::Later(word.deadline()),
            Err(_) => Due::Gone,
        }
    }

    /// By any thread.
    #[inline]
    pub(super) fn cancel(&self) -> Cancel {
        let cancelled = |word: Word| match word.state() {
            State::Waiting | State::Queued => Some(word.with(State::Cancelled)),
            State::Running | State::Moved => Some(word.with(State::Dying)),
            State::Fired | State::Expired | State::Dying | State::Cancelled => None,
        };
        match self.update(cancelled).map(Word::state) {
            Ok(State::Waiting) => Cancel::Waiting,
            Ok(State::Queued) => Cancel::Queued,
            Ok(_) => Cancel::Running,
            Err(_) => Cancel::Lost,
        }
    }

    /// By `stop`, for an entry that it has taken out of a wheel; `true` if this has ended it.
    pub(super) fn cancel_by_stop(&self) -> bool {
        self.update(|word| (word.state() == State::Waiting).then(|| word.with(State::Cancelled))).is_ok()
    }

    /// By any thread: a new deadline.
    #[inline]
    pub(crate) fn reset(&self, deadline: Deadline) -> Reset {
        self.reset_if(deadline, |_| true)
    }

    /// As [`reset`](Self::reset), for one that waits, or that runs again, and is not due at `now`.
    pub(crate) fn bring_forward(&self, now: Nanos) -> Reset {
        self.reset_if(Deadline::down(now), |word| match word.state() {
            State::Waiting => !word.deadline().is_due(now),
            State::Running | State::Moved => true,
            _ => false,
        })
    }

    #[inline]
    fn reset_if(&self, deadline: Deadline, may: impl Fn(Word) -> bool) -> Reset {
        let moved = |word: Word| {
            let to = match word.state() {
                State::Waiting => State::Waiting,
                State::Queued => State::Queued,
                State::Running | State::Moved => State::Moved,
                State::Fired | State::Expired | State::Dying | State::Cancelled => return None,
            };
            may(word).then(|| Word::new(to, deadline))
        };
        match self.update(moved) {
            Ok(word) if word.state() == State::Waiting => Reset::Waiting(word.deadline()),
            Ok(_) => Reset::Later,
            Err(_) => Reset::Lost,
        }
    }

    /// By the thread whose run of many has returned: waits for `next`, unless `reset` has set another deadline.
    pub(super) fn rearm(&self, next: Deadline) -> Rearm {
        let waiting = |word: Word| match word.state() {
            State::Running => Some(Word::new(State::Waiting, next)),
            State::Moved => Some(word.with(State::Waiting)),
            _ => None,
        };
        match self.update(waiting) {
            Ok(word) if word.state() == State::Moved => Rearm::Waiting(word.deadline()),
            Ok(_) => Rearm::Waiting(next),
            Err(_) => Rearm::Cancelled,
        }
    }

    /// By the thread whose run of many has panicked; `false` if it was cancelled during the run.
    pub(crate) fn fail(&self) -> bool {
        let failed =
            |word: Word| matches!(word.state(), State::Running | State::Moved).then(|| word.with(State::Fired));
        self.update(failed).is_ok()
    }

    /// By the thread whose last run has returned, when what the task owned is gone; `true` if a thread waits for that.
    pub(crate) fn end_run(&self) -> bool {
        let ended = |word: Word| match word.state() {
            State::Fired => Some(Word::new(State::Expired, word.deadline())),
            State::Dying => Some(Word::new(State::Cancelled, word.deadline())),
            _ => None,
        };
        self.update(ended).is_ok_and(|word| word.0 & WAITED != 0)
    }

    /// By any thread that holds a handle: whether a last run goes on. If so, its end will be told.
    pub(crate) fn wait_for_run(&self) -> bool {
        let runs = |word: Word| matches!(word.state(), State::Fired | State::Dying);
        self.update(|word| runs(word).then_some(Word(word.0 | WAITED))).is_ok()
    }

    /// By the future of a `Runs::Wake` entry: until `release` it alone has the right to the job, and the entry does not expire. `Ok`:
    /// it waited before, and its job is there; or not, for it has run. `Err`: it runs just now, or was cancelled.
    pub(super) fn claim(&self, deadline: Deadline) -> Result<bool, State> {
        let claimed = |word: Word| {
            matches!(word.state(), State::Waiting | State::Expired).then(|| Word::new(State::Running, deadline))
        };
        self.update(claimed).map(|word| word.state() == State::Waiting).map_err(Word::state)
    }

    /// Ends a `claim`, if there is one: it waits, again or still. The job is there.
    #[inline]
    pub(crate) fn release(&self) {
        if self.state() == State::Running {
            let _ = self.update(|word| (word.state() == State::Running).then(|| word.with(State::Waiting)));
        }
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
