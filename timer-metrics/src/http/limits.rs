//! What a client may ask for. All of it bounded, so that no client can take the process's memory, threads or time.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How long a request may take to come in, from the first moment to the last byte.
    pub(super) request: Duration,
    /// How long a reply may take to go out.
    pub(super) reply: Duration,
    /// How long the client may take to hang up after the reply.
    pub(super) goodbye: Duration,
    /// How many clients are served at once.
    pub(super) clients: usize,
}

impl Limits {
    /// The most bytes that a request's head may have; scrapers send a few hundred.
    pub(super) const HEAD: usize = 8 * 1024;
    /// The most headers.
    pub(super) const HEADERS: usize = 64;
    /// So many bytes after the head are read and thrown away, so that the reply reaches a client that is still sending.
    pub(super) const REST: usize = 64 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(5),
            reply: Duration::from_secs(10),
            goodbye: Duration::from_secs(1),
            clients: 32,
        }
    }
}
