//! The server as written, for tokio's timer.

use tokio::time;

#[path = "server.rs"]
pub(crate) mod server;
