//! The permits of calls and of reads, which bound the queues of the keeper and of the thread that
//! reads.
//!
//! A call takes a permit before it becomes a message, and gives it back when it is answered or
//! dropped. If all permits are taken, calls wait in line.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use timer_executor::panics;

/// The length of the line from which callers that have gone are removed.
const MIN_SWEEP: usize = 64;

/// The permits of a timer's calls.
pub(crate) struct CallPermits(Mutex<State>);

struct State {
    free: usize,
    line: VecDeque<oneshot::Sender<CallPermit>>,
    /// The length of the line at which it is swept.
    next_sweep: usize,
}

/// The permit of a call. The next call in line gets one when this one is dropped.
pub(crate) struct CallPermit(Option<Arc<CallPermits>>);

impl CallPermits {
    pub(crate) fn new(permits: usize) -> Self {
        Self(Mutex::new(State { free: permits, line: VecDeque::new(), next_sweep: MIN_SWEEP }))
    }

    /// Takes a permit. Returns the receiver of a later one if all are taken.
    pub(crate) fn take(self: &Arc<Self>) -> Result<CallPermit, oneshot::Receiver<CallPermit>> {
        let mut state = self.lock();
        if state.free > 0 {
            state.free -= 1;
            return Ok(CallPermit(Some(self.clone())));
        }
        if state.line.len() >= state.next_sweep {
            state.line.retain(|caller| !caller.is_closed());
            state.next_sweep = MIN_SWEEP.max(2 * state.line.len());
        }
        let (caller, permit) = oneshot::channel();
        state.line.push_back(caller);
        Err(permit)
    }

    /// Removes the first caller from the line. Without one, the permit becomes free.
    fn next(&self) -> Option<oneshot::Sender<CallPermit>> {
        let mut state = self.lock();
        let next = state.line.pop_front();
        state.free += usize::from(next.is_none());
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let Some(permits) = self.0.take() else { return };
        while let Some(caller) = permits.next() {
            let permit = Self(Some(permits.clone()));
            let mut refused = None;
            panics::contain("the waker of a caller panicked", || refused = caller.send(permit).err());
            // A caller that has gone leaves the permit to the one behind it.
            let Some(refused) = refused else { return };
            refused.into_inner().0 = None;
        }
    }
}
