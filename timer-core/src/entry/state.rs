//! The state word of a timeout: its state and its deadline in one atomic word.
//!
//! ```text
//!  63                                    4   3                   2     0
//! +---------------------------------------+---------------------+-------+
//! |   deadline                            | UNLINKED or WAITED  | state |
//! +---------------------------------------+---------------------+-------+
//!
//!   runs once        Waiting --expire--> Fired --end_run--> Expired
//!   runs repeatedly  Waiting --expire--> Running --rearm--> Waiting   (after a reset: Moved --rearm--> Waiting)
//!   with an executor Waiting --enqueue--> Queued --start--> Fired or Running   (after a reset: Waiting)
//!   ends             Waiting, Queued --cancel--> Cancelled
//!                    Waiting --cancel_by_stop--> Cancelled
//!                    Queued --cancel_abandoned--> Cancelled
//!                    Running, Moved --cancel--> Dying --end_run--> Cancelled  (the run drops the task)
//!                    Running, Moved --fail--> Fired --end_run--> Expired      (the run panicked)
//! ```
//!
//! Every transition is one read-modify-write of this word. All threads therefore agree on one
//! history, and exactly one of two rivals wins. The deadline is in the same word, so a `reset` and
//! a `cancel` race with an expiry in the same way. The first swap wins, and the winner owns the
//! task.
//!
//! No transition leaves `Cancelled`. The canceller relies on this when it takes over the wheel's
//! reference (see the head of [`super`]).
//!
//! # The flag
//!
//! Bit 3 has one meaning for each group of states:
//!
//! - `WAITED`, in `Fired` and `Dying`: a thread waits for the end of the run.
//!   [`AtomicState::end_run`] then returns `true`.
//! - `UNLINKED`, in `Waiting`: the entry may be in no wheel, or linked under a tick after its
//!   deadline. The thread whose transition causes this sets the flag in the same transition. It
//!   then links the entry and wakes the worker. If it finds the entry linked in time afterwards,
//!   under the lock of the shard, it clears the flag ([`AtomicState::set_linked`]). Otherwise the
//!   next thread that moves the timeout does. A thread that links the entry under the same lock
//!   under which it changes the word needs no flag ([`AtomicState::move_linked`]).
//!
//! The flag matters if that thread is preempted before it links the entry, and a second thread then
//! resets the timeout to a deadline after that of the first thread. Without the flag, the second
//! thread would rely on a link that does not exist yet, and the timeout would wait for the
//! preempted thread. With the flag, the second thread links the entry itself.
//!
//! The flag also tells a canceller whether it may rely on the entry's location. An entry that waits
//! without the flag is linked there, or a step of the wheel has taken it out and the owner of the
//! turn has not decided it yet.

use crate::deadline::{Deadline, Nanos};
use crate::sync::{AtomicU64, Ordering};
pub(crate) use outcome::{Cancel, Due, Reset};

mod outcome;

const STATE_MASK: u64 = 0b111;
const FLAG: u64 = 1 << 3;
const WAITED: u64 = FLAG;
const UNLINKED: u64 = FLAG;
const DEADLINE_SHIFT: u32 = 64 - Deadline::BITS;

/// The state of a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// Waits for its deadline. The entry is in a wheel, or a thread is about to link it or to start
    /// it.
    Waiting = 0,
    /// Won for an executor and not started. The executor has the task or is about to get it.
    Queued = 1,
    /// A run is in progress, and others may follow.
    Running = 2,
    /// As `Running`, but a `reset` during the run has set the deadline of the next one.
    Moved = 3,
    /// The last run is in progress.
    Fired = 4,
    /// The last run has ended.
    Expired = 5,
    /// Cancelled during a run that is still in progress.
    Dying = 6,
    /// Cancelled. No run follows.
    Cancelled = 7,
}

/// The kind of a job, which decides how a run changes the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    Once,
    Again,
    /// As `Once`, but the run wakes the task of a future, always on the thread that takes the turn.
    /// `stop` wakes that task too, and does not return the timeout.
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
    fn is_flagged(self) -> bool {
        self.0 & FLAG != 0
    }

    #[inline]
    fn is_linked(self) -> bool {
        self.0 & (STATE_MASK | FLAG) == State::Waiting as u64
    }

    /// Returns the word with this state and without the flag.
    #[inline]
    fn with(self, state: State) -> Self {
        Self((self.0 & !(STATE_MASK | FLAG)) | state as u64)
    }

    /// Returns the word of an entry that waits and has to be linked by the caller.
    #[inline]
    fn unlinked(deadline: Deadline) -> Self {
        Self(Self::new(State::Waiting, deadline).0 | UNLINKED)
    }
}

/// The word as an atomic. Any thread may read it. Only this folder may call the transitions that
/// win the task or give it back, because it makes a [`super::TaskRight`] for each win.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct AtomicState(AtomicU64);

impl AtomicState {
    /// Returns the word of a new entry, which waits for `deadline`.
    #[inline]
    pub(super) fn new(deadline: Deadline) -> Self {
        Self(AtomicU64::new(Word::new(State::Waiting, deadline).0))
    }

    #[inline]
    fn load(&self) -> Word {
        // ORDERING: Acquire pairs with the Release of every change, so that this thread sees all
        // writes that came before the change whose result it reads.
        Word(self.0.load(Ordering::Acquire))
    }

    /// Replaces the word by the result of `change` and returns the former word. Returns the word as
    /// an error if `change` returns `None` for it.
    #[inline]
    fn update(&self, change: impl Fn(Word) -> Option<Word>) -> Result<Word, Word> {
        let mut word = self.load();
        loop {
            let Some(next) = change(word) else { return Err(word) };
            // ORDERING: AcqRel on success: the winner of the task sees all that its last owner
            // wrote, and a thread that gives it up publishes all that it wrote. Every change is a
            // read-modify-write, so all threads agree on one history of the word. Acquire on
            // failure, because the next attempt decides by that word.
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

    /// Returns `true` if the entry waits for its deadline, so that it belongs into a wheel.
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

    /// Starts an entry that has left the wheel, if it is due. Called by the turn's thread, which
    /// runs it.
    #[inline]
    pub(super) fn expire(&self, now: Nanos, runs: Runs) -> Due<Deadline> {
        self.win_due(State::Waiting, runs.started(), now)
    }

    /// Marks an entry that has left the wheel as queued, if it is due. Called by the turn's thread.
    #[inline]
    pub(crate) fn enqueue(&self, now: Nanos) -> Due<Deadline> {
        self.win_due(State::Waiting, State::Queued, now)
    }

    /// Starts a queued entry and returns its deadline. Returns `None` if the entry is not queued.
    /// Called by the thread that an executor has chosen or that runs an abandoned task.
    pub(super) fn start(&self, runs: Runs) -> Option<Deadline> {
        let started = |word: Word| (word.state() == State::Queued).then(|| word.with(runs.started()));
        self.update(started).ok().map(Word::deadline)
    }

    /// Returns `true` if the entry is queued and was not moved since `at`.
    pub(crate) fn is_queued_since(&self, at: Nanos) -> bool {
        let word = self.load();
        word.state() == State::Queued && word.deadline().is_due(at)
    }

    /// Cancels the timeout. Any thread may call it.
    #[inline]
    pub(super) fn cancel(&self) -> Cancel {
        let cancelled = |word: Word| match word.state() {
            // `Cancelled` has all three bits, so no bit has to be cleared. The flag has no meaning
            // in it.
            State::Waiting | State::Queued => Some(Word(word.0 | State::Cancelled as u64)),
            State::Running | State::Moved => Some(word.with(State::Dying)),
            State::Fired | State::Expired | State::Dying | State::Cancelled => None,
        };
        match self.update(cancelled) {
            Ok(word) if word.state() == State::Waiting && word.is_flagged() => Cancel::WasUnlinked,
            Ok(word) if word.state() == State::Waiting => Cancel::WasWaiting,
            Ok(word) if word.state() == State::Queued => Cancel::WasQueued,
            Ok(_) => Cancel::WasRunning,
            Err(_) => Cancel::Lost,
        }
    }

    /// Cancels an entry of a stopped timer if it waits. Returns `true` if this call has ended it.
    pub(super) fn cancel_by_stop(&self) -> bool {
        self.cancel_from(State::Waiting)
    }

    /// Cancels an entry that an executor has lost if it is queued. Returns `true` if this call has
    /// ended it.
    pub(super) fn cancel_abandoned(&self) -> bool {
        self.cancel_from(State::Queued)
    }

    fn cancel_from(&self, from: State) -> bool {
        self.update(|word| (word.state() == from).then(|| word.with(State::Cancelled))).is_ok()
    }

    /// Returns `true` if the entry waits and is [linked](self#the-flag).
    #[inline]
    pub(crate) fn is_linked(&self) -> bool {
        self.load().is_linked()
    }

    /// Moves an entry that waits and is linked to `deadline`, if that is not earlier and not due.
    /// This is the common case of a [`reset`](Self::reset). Any thread may call it. Returns `false`
    /// and changes nothing in all other cases.
    #[inline]
    pub(crate) fn postpone(&self, deadline: Deadline, is_due: bool) -> bool {
        let next = Word::new(State::Waiting, deadline);
        self.update(|word| (word.is_linked() && word.0 <= next.0 && !is_due).then_some(next)).is_ok()
    }

    /// Moves an entry that waits and is linked to `deadline`. Called by the holder of the shard's
    /// lock, who links it there before it unlocks. Returns `false` and changes nothing in all other
    /// cases.
    #[inline]
    pub(crate) fn move_linked(&self, deadline: Deadline) -> bool {
        self.update(|word| word.is_linked().then(|| Word::new(State::Waiting, deadline))).is_ok()
    }

    /// Moves the timeout to `deadline`. Any thread may call it. If `is_due` is set, an entry that
    /// waits must be linked even if its deadline does not become earlier.
    pub(crate) fn reset(&self, deadline: Deadline, is_due: bool) -> Reset {
        self.reset_if(deadline, is_due, |_| true)
    }

    /// Moves the timeout to the current time. Returns [`Reset::Lost`] if it is due, queued or has
    /// ended.
    pub(crate) fn bring_forward(&self, now: Deadline) -> Reset {
        self.reset_if(now, true, |word| match word.state() {
            State::Waiting => now < word.deadline(),
            State::Running | State::Moved => true,
            _ => false,
        })
    }

    #[inline(never)]
    fn reset_if(&self, deadline: Deadline, is_due: bool, may: impl Fn(Word) -> bool) -> Reset {
        let must_link =
            |word: Word| word.state() == State::Waiting && (deadline < word.deadline() || is_due || word.is_flagged());
        let moved = |word: Word| {
            let to = match word.state() {
                State::Waiting if must_link(word) => Word::unlinked(deadline),
                State::Waiting => Word::new(State::Waiting, deadline),
                State::Queued => Word::unlinked(deadline),
                State::Running | State::Moved => Word::new(State::Moved, deadline),
                State::Fired | State::Expired | State::Dying | State::Cancelled => return None,
            };
            may(word).then_some(to)
        };
        match self.update(moved) {
            Ok(word) if word.state() == State::Queued => Reset::WasQueued,
            Ok(word) if must_link(word) => Reset::MustLink,
            Ok(_) => Reset::Done,
            Err(_) => Reset::Lost,
        }
    }

    /// Clears `UNLINKED`, if the tick under which the entry is linked is in time for its deadline.
    /// Called by the holder of the shard's lock.
    pub(crate) fn set_linked(&self, is_in_time: impl Fn(Deadline) -> bool) {
        let _ = self.update(|word| {
            let is_linked = word.state() == State::Waiting && word.is_flagged() && is_in_time(word.deadline());
            is_linked.then(|| word.with(State::Waiting))
        });
    }

    /// Lets the entry wait for `next`, or for the deadline that a `reset` has set during the run.
    /// Called by the thread whose run has returned. Returns the deadline, for which the caller must
    /// link the entry, or `None` if it was cancelled during the run and the caller drops the task.
    #[must_use]
    pub(super) fn rearm(&self, next: Deadline) -> Option<Deadline> {
        let waiting = |word: Word| match word.state() {
            State::Running => Some(Word::unlinked(next)),
            State::Moved => Some(Word::unlinked(word.deadline())),
            _ => None,
        };
        let before = self.update(waiting).ok()?;
        Some(if before.state() == State::Moved { before.deadline() } else { next })
    }

    /// Turns a run that panicked into the last one. Returns `false` if the entry was cancelled
    /// during the run.
    pub(crate) fn fail(&self) -> bool {
        let failed =
            |word: Word| matches!(word.state(), State::Running | State::Moved).then(|| word.with(State::Fired));
        self.update(failed).is_ok()
    }

    /// Ends the last run. Returns `true` if a thread waits for that. Called after the task was
    /// dropped, except for [`Runs::Wake`], whose run ends before the waker is called.
    pub(crate) fn end_run(&self) -> bool {
        let ended = |word: Word| match word.state() {
            State::Fired => Some(Word::new(State::Expired, word.deadline())),
            State::Dying => Some(Word::new(State::Cancelled, word.deadline())),
            _ => None,
        };
        self.update(ended).is_ok_and(Word::is_flagged)
    }

    /// Asks for a notification at the end of the last run. Returns `true` if that run is in
    /// progress. Its thread then notifies the threads that wait.
    pub(crate) fn wait_for_run(&self) -> bool {
        let runs = |word: Word| matches!(word.state(), State::Fired | State::Dying);
        self.update(|word| runs(word).then_some(Word(word.0 | WAITED))).is_ok()
    }
}

#[cfg(all(test, not(timer_loom)))]
mod tests;
