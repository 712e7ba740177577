//! The state word of a timeout: its state, its deadline and the right to its task, in one atomic word.
//!
//! ```text
//!  63                                    4 3     1   0
//! +---------------------------------------+-------+------+
//! |   deadline (Stamp)                    | state | HELD |
//! +---------------------------------------+-------+------+
//!
//!  one-shot    Pending --expire--> Fired --run--> Fired+HELD (task moved out)
//!  periodic    Repeating --expire--> Running --run--> Running+HELD --rearm--> Repeating
//!                                               (reset meanwhile: Moved+HELD --rearm--> Repeating)
//!  both        Pending, Repeating, Running --cancel--> Cancelled+HELD (the winner owns the task)
//!              Running+HELD, Moved+HELD --cancel--> Cancelled+HELD (the run that goes on owns it)
//!              Pending, Repeating --withdraw by stop--> Cancelled --> Cancelled+HELD (run or dropped by who got it)
//! ```
//!
//! Every transition is one read-modify-write of this word, so all threads agree on one history and exactly one of two
//! rivals wins. Because the deadline sits in the same word, `reset` against expiry is decided like `cancel` against
//! expiry: whoever swaps first. The functions here are pure; `crate::entry` applies them.

use crate::sync::HELD;
use crate::time::{Nanos, Stamp};

const STATE_SHIFT: u32 = 1;
const STATE_MASK: u64 = 0b111 << STATE_SHIFT;
const STAMP_SHIFT: u32 = 64 - Stamp::BITS;

/// What has become of a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum State {
    /// One-shot, waits for its deadline.
    Pending = 0,
    /// Periodic, waits for its next run.
    Repeating = 1,
    /// Handed over for good: its run has begun, will begin, or has ended.
    Fired = 2,
    /// Periodic: handed over for one run.
    Running = 3,
    /// Periodic: as `Running`, and the next run is at the deadline that `reset` set meanwhile.
    Moved = 4,
    /// Will not run (again).
    Cancelled = 5,
}

/// One value of the state word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

/// What a timeout that has left the wheel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Expiry {
    /// Won: hand it over.
    Won,
    /// `reset` has moved it: link it again.
    Later(Stamp),
    /// Cancelled or handed over already: forget it.
    Gone,
}

/// What `cancel` has won.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Cancel {
    /// The timeout and its task.
    Task,
    /// The timeout; a run goes on and drops the task when it returns.
    Rest,
}

impl Word {
    pub(crate) fn new(state: State, deadline: Stamp) -> Self {
        Self((deadline.to_bits() << STAMP_SHIFT) | ((state as u64) << STATE_SHIFT))
    }

    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn state(self) -> State {
        match (self.0 & STATE_MASK) >> STATE_SHIFT {
            0 => State::Pending,
            1 => State::Repeating,
            2 => State::Fired,
            3 => State::Running,
            4 => State::Moved,
            _ => State::Cancelled,
        }
    }

    #[inline]
    pub(crate) fn deadline(self) -> Stamp {
        Stamp::from_bits(self.0 >> STAMP_SHIFT)
    }

    /// Whether somebody holds the task, or has used it up.
    #[inline]
    pub(crate) fn is_held(self) -> bool {
        self.0 & HELD != 0
    }

    /// Whether it waits for its deadline: then it belongs into a wheel.
    #[inline]
    pub(crate) fn is_waiting(self) -> bool {
        matches!(self.state(), State::Pending | State::Repeating)
    }

    #[inline]
    fn with_state(self, state: State) -> Self {
        Self((self.0 & !STATE_MASK) | ((state as u64) << STATE_SHIFT))
    }

    /// By the turn, for an entry that the wheel has given out.
    #[inline]
    pub(crate) fn expire(self, now: Nanos) -> (Expiry, Option<Self>) {
        let fired = match self.state() {
            State::Pending => State::Fired,
            State::Repeating => State::Running,
            State::Fired | State::Running | State::Moved | State::Cancelled => return (Expiry::Gone, None),
        };
        if !self.deadline().is_due(now) {
            return (Expiry::Later(self.deadline()), None);
        }
        (Expiry::Won, Some(self.with_state(fired)))
    }

    /// By the thread that runs the task; takes the task as well.
    #[inline]
    pub(crate) fn run(self) -> Option<Self> {
        matches!(self.state(), State::Fired | State::Running | State::Moved).then_some(self)
    }

    /// By any caller.
    #[inline]
    pub(crate) fn cancel(self) -> Option<(Cancel, Self)> {
        let won = match (self.state(), self.is_held()) {
            (State::Pending | State::Repeating | State::Running | State::Moved, false) => Cancel::Task,
            (State::Running | State::Moved, true) => Cancel::Rest,
            _ => return None,
        };
        Some((won, self.with_state(State::Cancelled)))
    }

    /// By `stop`: ends it, and leaves the task in it.
    pub(crate) fn withdraw(self) -> Option<Self> {
        self.is_waiting().then(|| self.with_state(State::Cancelled))
    }

    /// By whoever got it from `stop`; takes the task as well.
    pub(crate) fn dispose(self) -> Option<Self> {
        (self.state() == State::Cancelled).then_some(self)
    }

    /// By any caller: a new deadline.
    #[inline]
    pub(crate) fn reset(self, deadline: Stamp) -> Option<Self> {
        let state = match self.state() {
            State::Pending => State::Pending,
            State::Repeating => State::Repeating,
            State::Running | State::Moved => State::Moved,
            State::Fired | State::Cancelled => return None,
        };
        Some(Self::new(state, deadline))
    }

    /// By the thread whose run of a periodic task has ended: waits again, at `next` unless `reset` has set another
    /// deadline; gives the task back.
    pub(crate) fn rearm(self, next: Stamp) -> Option<Self> {
        match self.state() {
            State::Running => Some(Self::new(State::Repeating, next)),
            State::Moved => Some(Self::new(State::Repeating, self.deadline())),
            _ => None,
        }
    }

    /// By the thread whose run of a periodic task has panicked: it will not run again.
    pub(crate) fn give_up(self) -> Option<Self> {
        matches!(self.state(), State::Running | State::Moved).then(|| self.with_state(State::Fired))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [State; 6] =
        [State::Pending, State::Repeating, State::Fired, State::Running, State::Moved, State::Cancelled];

    fn stamp(nanos: Nanos) -> Stamp {
        Stamp::up(nanos)
    }

    // B55: all states x all operations.
    #[test]
    fn every_state_answers_every_operation() {
        for state in ALL {
            for held in [0, HELD] {
                let word = Word::from_bits(Word::new(state, stamp(1_000)).to_bits() | held);
                let ended = matches!(state, State::Fired | State::Cancelled);
                let waits = matches!(state, State::Pending | State::Repeating);
                assert_eq!(word.state(), state);
                assert_eq!(word.deadline(), stamp(1_000));
                assert_eq!(word.is_waiting(), waits);
                assert_eq!(word.reset(stamp(7)).is_none(), ended, "{state:?}: reset moves whatever has not ended");
                assert_eq!(word.withdraw().is_some(), waits);
                assert_eq!(word.dispose().is_some(), state == State::Cancelled);
                assert_eq!(word.expire(1_000).0 == Expiry::Won, waits);
                assert_ne!(word.expire(999).0, Expiry::Won, "{state:?}: never early");
                match word.cancel() {
                    Some((_, next)) => assert!(!ended && next.state() == State::Cancelled && next.cancel().is_none()),
                    None => assert!(ended || (waits && held == HELD)),
                }
            }
        }
    }

    #[test]
    fn an_expiry_that_was_moved_is_told_where_to() {
        let word = Word::new(State::Pending, stamp(5)).reset(stamp(9)).unwrap();
        assert_eq!(word.expire(8), (Expiry::Later(stamp(9)), None));
        assert_eq!(word.expire(9).1.unwrap().state(), State::Fired);
    }

    #[test]
    fn a_reset_during_a_run_decides_the_next_one() {
        let running = Word::new(State::Repeating, stamp(5)).expire(5).1.unwrap();
        assert_eq!(running.rearm(stamp(10)).unwrap().deadline(), stamp(10));
        let moved = running.reset(stamp(70)).unwrap();
        assert_eq!(moved.rearm(stamp(10)).unwrap().deadline(), stamp(70));
        assert_eq!(moved.rearm(stamp(10)).unwrap().state(), State::Repeating);
    }

    // B59: cancel during the run is lost.
    #[test]
    fn a_cancel_during_a_run_keeps_it_from_being_armed_again() {
        let running = Word::from_bits(Word::new(State::Running, stamp(5)).to_bits() | HELD);
        let (won, cancelled) = running.cancel().unwrap();
        assert_eq!(won, Cancel::Rest);
        assert!(cancelled.rearm(stamp(10)).is_none());
    }
}
