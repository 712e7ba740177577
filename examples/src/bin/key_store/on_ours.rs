//! The server with its `use` line changed.

use timer_core::time;

#[path = "server.rs"]
// The server is compiled twice so that both timers can be compared. A real program compiles it
// once.
#[allow(clippy::duplicate_mod)]
pub(crate) mod server;
