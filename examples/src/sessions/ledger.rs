//! Which sessions are open, and the rule by which a timeout may close one.
//!
//! Time is the log's here: whole seconds since its first request. The timer runs on another clock,
//! and neither that clock nor the thread that replays the log nor the executor's threads keep step
//! with each other. What is closed when must not depend on it, so the ledger decides by the log's
//! clock alone:
//!
//! 1. The log's clock reads the second of the requests that come next ([`Ledger::enter`]): all
//!    earlier ones were replayed, and nothing lies between.
//! 2. A session's deadline is its last request + idle. A request at or after the deadline finds the
//!    session *overdue* and changes nothing: the replay waits until the session was closed,
//!    and asks again.
//! 3. A timeout that runs closes its session if the log's clock has reached the deadline. If not,
//!    it has *overtaken* the replay, which is late: it closes nothing, and is armed again when the
//!    log's clock gets there, unless a request moves the deadline first.
//! 4. Each arming of a session has its number. A timeout that runs when its session has been armed
//!    again does nothing.
//!
//! So a session ends only by a timeout that ran, and always at the request and the second that the
//! log says, whatever runs late. One small lock guards it all; no method of the timer is called
//! under it. Nothing here knows the timer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A session, from its first request to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    /// Second of its first request.
    pub first: u64,
    /// Its host.
    pub host: usize,
    /// Second of its last request; the session stays open until `last` + idle.
    pub last: u64,
    /// How many requests it has.
    pub requests: u64,
}

/// Names one arming of one host's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arming {
    /// The host.
    pub host: usize,
    number: u64,
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It opened a session: arm a timeout for it.
    Opened(Arming),
    /// It belongs to the open session: move its timeout.
    Extended,
    /// The open session is over, but its timeout has not run yet: wait for that, then ask again.
    Overdue,
}

/// The sessions of all hosts; see the module's head for the rule.
#[derive(Debug)]
pub struct Ledger {
    idle: u64,
    state: Mutex<State>,
    closed: Condvar,
}

#[derive(Debug)]
struct State {
    clock: u64,
    hosts: Vec<Host>,
    open: usize,
    overtaken: BinaryHeap<Reverse<(u64, Arming)>>,
    sessions: Vec<Session>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Host {
    open: Option<Session>,
    armings: u64,
}

impl Ledger {
    /// A ledger for hosts `0..hosts`, none of which has a session; the log's clock reads 0.
    #[must_use]
    pub fn new(hosts: usize, idle: u64) -> Self {
        let state = State {
            clock: 0,
            hosts: vec![Host::default(); hosts],
            open: 0,
            overtaken: BinaryHeap::new(),
            sessions: Vec::new(),
        };
        Self { idle, state: Mutex::new(state), closed: Condvar::new() }
    }

    /// All requests before `second` were replayed: the log's clock reads `second` from now on.
    /// Returns the sessions that are over, and whose timeouts had overtaken the replay: each is to
    /// be armed again, due at once.
    pub fn enter(&self, second: u64) -> Vec<Arming> {
        let mut state = self.lock();
        state.clock = second;
        let mut due = Vec::new();
        while let Some(Reverse((deadline, arming))) = state.overtaken.peek().copied() {
            if deadline > second {
                break;
            }
            state.overtaken.pop();
            // Otherwise a request has come in between, and armed it.
            if state.current(arming).is_some() {
                due.push(state.arm(arming.host));
            }
        }
        due
    }

    /// A request of `host`, one of those given to [`new`](Self::new), at the second that the log's
    /// clock reads.
    pub fn request(&self, host: usize) -> Answer {
        let mut state = self.lock();
        let clock = state.clock;
        match &mut state.hosts[host].open {
            Some(session) if clock >= session.last + self.idle => Answer::Overdue,
            Some(session) => {
                session.last = clock;
                session.requests += 1;
                Answer::Extended
            }
            none => {
                *none = Some(Session { first: clock, host, last: clock, requests: 1 });
                state.open += 1;
                Answer::Opened(state.arm(host))
            }
        }
    }

    /// The host's open session gets a timeout anew, because the one it had has run or is about to:
    /// from now on that one does nothing.
    pub fn rearm(&self, host: usize) -> Arming {
        self.lock().arm(host)
    }

    /// The timeout of `arming` runs. To be called by it, on whatever thread that is.
    pub fn ran(&self, arming: Arming) {
        let mut state = self.lock();
        let Some(session) = state.current(arming) else {
            return;
        };
        let deadline = session.last + self.idle;
        if state.clock < deadline {
            state.overtaken.push(Reverse((deadline, arming)));
            return;
        }
        state.hosts[arming.host].open = None;
        state.open -= 1;
        state.sessions.push(session);
        self.closed.notify_all();
    }

    /// Waits until `host` has no open session. Gives up at `limit` and returns `false`.
    pub fn wait_closed(&self, host: usize, limit: Instant) -> bool {
        self.wait(limit, |state| state.hosts[host].open.is_none())
    }

    /// Waits until no session is open, and calls `watch` at every turn. Gives up at `limit` and
    /// returns `false`.
    pub fn wait_all_closed(&self, limit: Instant, mut watch: impl FnMut()) -> bool {
        self.wait(limit, |state| {
            watch();
            state.open == 0
        })
    }

    /// The closed sessions in the order of their first request; they leave the ledger.
    pub fn take_sessions(&self) -> Vec<Session> {
        let mut sessions = std::mem::take(&mut self.lock().sessions);
        sessions.sort_unstable();
        sessions
    }

    fn wait(&self, limit: Instant, mut done: impl FnMut(&State) -> bool) -> bool {
        let mut state = self.lock();
        while !done(&state) {
            let left = limit.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.closed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn arm(&mut self, host: usize) -> Arming {
        self.hosts[host].armings += 1;
        Arming { host, number: self.hosts[host].armings }
    }

    // The open session, if `arming` is its last.
    fn current(&self, arming: Arming) -> Option<Session> {
        let host = &self.hosts[arming.host];
        host.open.filter(|_| host.armings == arming.number)
    }
}

#[cfg(test)]
mod tests;
