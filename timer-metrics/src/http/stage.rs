//! Where a client's thread is: at its socket, where it can be cut off, or at the collectors, which are the user's code.
//!
//! *Promise*: once [`Stage::cut_off`] has succeeded, and the socket is shut down, the thread ends without a call of the user's
//! code, so that joining it takes no time to speak of. Both sides decide on one atomic word.

use std::sync::atomic::{AtomicU8, Ordering};

const AT_SOCKET: u8 = 0;
const AT_COLLECTORS: u8 = 1;
const CUT_OFF: u8 = 2;

#[derive(Debug, Default)]
pub(super) struct Stage(AtomicU8);

impl Stage {
    /// The thread goes on to the collectors; `false` if it has been cut off.
    pub(super) fn enter_collectors(&self) -> bool {
        self.change(AT_SOCKET, AT_COLLECTORS)
    }

    /// The thread is back.
    pub(super) fn leave_collectors(&self) {
        self.change(AT_COLLECTORS, AT_SOCKET);
    }

    /// Ends the client's turn; `false` if its thread is at the collectors.
    pub(super) fn cut_off(&self) -> bool {
        self.change(AT_SOCKET, CUT_OFF)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        // ORDERING: Relaxed, nothing is handed over but the right to go on, and one word has one order of changes.
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
