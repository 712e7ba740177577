//! The same server with its `use` line changed.

use timer_core::global as time;

#[path = "server.rs"]
// It is there twice so that both timers can be compared; a program has one of them.
#[allow(clippy::duplicate_mod)]
pub(crate) mod server;
