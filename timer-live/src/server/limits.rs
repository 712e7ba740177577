//! Limits for clients, so that no client can exhaust the memory, the threads or the time of the
//! process.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The longest time from the connection to the last byte of the request's head.
    pub(super) request: Duration,
    /// The longest time for sending the reply.
    pub(super) reply: Duration,
    /// The longest time that the client may take to hang up after the reply.
    pub(super) goodbye: Duration,
    /// The greatest number of clients served at once.
    pub(super) clients: usize,
    /// The time without a client after which the live page's history is looked through.
    pub(super) quiet: Duration,
}

impl Limits {
    /// The greatest size of a request's head in bytes. Scrapers send a few hundred.
    pub(super) const HEAD: usize = 8 * 1024;
    /// The number of bytes after the head that are read and discarded, so that the reply reaches a
    /// client that is still sending.
    pub(super) const REST: usize = 64 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(5),
            reply: Duration::from_secs(10),
            goodbye: Duration::from_secs(1),
            clients: 32,
            quiet: Duration::from_secs(60),
        }
    }
}
