//! One timer whole: what it accepts, and how it starts and ends.

mod engine;
mod life;
mod run;
mod unprocessed;

pub(crate) use engine::Engine;
pub(crate) use run::{Shell, run, run_abandoned, wake};
pub use unprocessed::{StopReport, Unprocessed};
