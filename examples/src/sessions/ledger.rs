//! The open sessions, and the rule by which a timeout may close one.
//!
//! The ledger uses the log's time, in whole seconds since its first request. The timer runs on
//! another clock. The timer, the thread that replays the log and the threads of the executor do not
//! keep step with each other. The end of a session must not depend on their speed, so the ledger
//! decides by the log's clock alone:
//!
//! 1. The log's clock reads the second of the requests that come next ([`Ledger::enter`]). All
//!    earlier requests were replayed, and none lies between.
//! 2. The deadline of a session is its last request plus the idle time. A request at or after the
//!    deadline finds the session *overdue* and changes nothing. The replay waits until the session
//!    is closed and asks again.
//! 3. A timeout that runs closes its session if the log's clock has reached the deadline. Otherwise
//!    the timeout has *overtaken* the late replay. It then closes nothing and is armed again when
//!    the log's clock reaches the deadline, unless a request moves the deadline first.
//! 4. Each arming of a session has a number. A timeout that runs after its session has been armed
//!    again does nothing.
//!
//! Therefore a session ends only by a timeout that ran, and always at the request and the second
//! given by the log. One small lock guards the state, and no method of the timer is called while it
//! is held. The module does not know the timer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A session, from its first request to its last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session {
    /// The second of the first request.
    pub first: u64,
    /// Its host.
    pub host: usize,
    /// The second of the last request. The session stays open until `last` plus the idle time.
    pub last: u64,
    /// The number of requests.
    pub requests: u64,
}

/// The identity of one arming of a host's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arming {
    /// The host.
    pub host: usize,
    number: u64,
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The request opened a session. The caller arms a timeout for it.
    Opened(Arming),
    /// The request belongs to the open session. The caller moves its timeout.
    Extended,
    /// The open session is over, but its timeout has not run yet. The caller waits for that and
    /// asks again.
    Overdue,
}

/// The sessions of all hosts. The head of the module has the rule.
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
    /// Creates a ledger for hosts `0..hosts` without sessions. The log's clock reads 0.
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

    /// Sets the log's clock to `second`, after all earlier requests were replayed. Returns the
    /// sessions that are over and whose timeouts had overtaken the replay. The caller arms each of
    /// them again, due at once.
    pub fn enter(&self, second: u64) -> Vec<Arming> {
        let mut state = self.lock();
        state.clock = second;
        let mut due = Vec::new();
        while let Some(Reverse((deadline, arming))) = state.overtaken.peek().copied() {
            if deadline > second {
                break;
            }
            state.overtaken.pop();
            // Otherwise a request has armed the session again in the meantime.
            if state.current(arming).is_some() {
                due.push(state.arm(arming.host));
            }
        }
        due
    }

    /// Records a request of `host` at the current second of the log's clock. `host` is one of those
    /// given to [`new`](Self::new).
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

    /// Arms the host's open session again, because its timeout has run or is about to run. The
    /// earlier timeout does nothing from now on.
    pub fn rearm(&self, host: usize) -> Arming {
        self.lock().arm(host)
    }

    /// Records that the timeout of `arming` runs. The timeout's task calls this on any thread.
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

    /// Waits until `host` has no open session. Returns `false` if that takes until `limit`.
    pub fn wait_closed(&self, host: usize, limit: Instant) -> bool {
        self.wait(limit, |state| state.hosts[host].open.is_none())
    }

    /// Waits until no session is open, and calls `watch` at every look. Returns `false` if that
    /// takes until `limit`.
    pub fn wait_all_closed(&self, limit: Instant, mut watch: impl FnMut()) -> bool {
        self.wait(limit, |state| {
            watch();
            state.open == 0
        })
    }

    /// Removes the closed sessions and returns them in the order of their first request.
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

    /// Returns the open session if `arming` is its last arming.
    fn current(&self, arming: Arming) -> Option<Session> {
        let host = &self.hosts[arming.host];
        host.open.filter(|_| host.armings == arming.number)
    }
}

#[cfg(test)]
mod tests;
