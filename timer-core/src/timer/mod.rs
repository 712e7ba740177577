//! The engine of a timer, which schedules timeouts, runs tasks, starts and stops.

mod engine;
mod lifecycle;
mod registry;
mod run;
mod unprocessed;

pub(crate) use engine::Engine;
pub(crate) use registry::engine_of;
pub(crate) use run::{QueuedTask, run, run_abandoned};
pub use unprocessed::{StopReport, Unprocessed};
