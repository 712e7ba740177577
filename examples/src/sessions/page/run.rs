//! The contents of a page, which its charts and tables read.

use std::time::SystemTime;

use crate::sessions::args::Options;
use crate::sessions::log::Log;
use crate::sessions::replay::Outcome;

/// The contents of a page.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The name of the log.
    pub name: &'a str,
    /// The address of the origin of the log.
    pub source: Option<&'a str>,
    /// The log.
    pub log: &'a Log,
    /// The settings of the replay.
    pub options: &'a Options,
    /// The result of the replay.
    pub outcome: &'a Outcome,
    /// Samples of pending timeouts as (second of the log, number), in the order of time.
    pub pending: &'a [(u64, u64)],
    /// The time when the page was made.
    pub made: SystemTime,
}
