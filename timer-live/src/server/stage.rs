//! The stage of a client's thread. It is either at its socket, where it can be cut off, or in the
//! collectors, the user's code.
//!
//! After [`Stage::cut_off`] has succeeded and the socket is shut down, the thread ends without
//! calling user code, so joining it takes no noticeable time. Both sides decide on one atomic word.

use std::sync::atomic::{AtomicU8, Ordering};

const AT_SOCKET: u8 = 0;
const AT_COLLECTORS: u8 = 1;
const CUT_OFF: u8 = 2;

#[derive(Debug, Default)]
pub(super) struct Stage(AtomicU8);

impl Stage {
    /// Enters the collectors. Returns `false` if the client has been cut off.
    pub(super) fn enter_collectors(&self) -> bool {
        self.change(AT_SOCKET, AT_COLLECTORS)
    }

    /// Returns to the socket.
    pub(super) fn leave_collectors(&self) {
        self.change(AT_COLLECTORS, AT_SOCKET);
    }

    /// Cuts the client off. Returns `false` if its thread is in the collectors.
    pub(super) fn cut_off(&self) -> bool {
        self.change(AT_SOCKET, CUT_OFF)
    }

    fn change(&self, from: u8, to: u8) -> bool {
        // ORDERING: Relaxed, because the word publishes no other data and has a single modification
        // order.
        self.0.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
