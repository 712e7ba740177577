//! The settings of a keeper, and its record of an attempt.

use super::super::attempt::{Settle, TopicSettings};
use super::super::term::Progress;
use crate::done::Done;
use crate::new_timeout::NewTimeout;
use crate::store::Micros;
use std::collections::HashMap;
use std::sync::Arc;
use timer_executor::{TaskExecutor, ThreadPoolExecutor};

/// The settings of an engine.
pub(crate) struct Settings {
    pub(crate) name: String,
    pub(crate) capacity: usize,
    pub(crate) page: usize,
    pub(crate) max_batch: usize,
    pub(crate) max_running: usize,
    pub(crate) overdue_rate: Option<u32>,
    /// The seed of the random delays of retries.
    pub(crate) seed: u64,
    pub(crate) topics: HashMap<Arc<str>, TopicSettings>,
    /// Topics that other programs handle.
    pub(crate) elsewhere: Vec<Arc<str>>,
    pub(crate) max_payload: usize,
    pub(crate) executor: Arc<dyn TaskExecutor>,
    /// The executor, if it is the default one.
    pub(crate) pool: Option<Arc<ThreadPoolExecutor>>,
    /// Takes the keeper's turns on virtual time, where it has no thread.
    pub(crate) settle: Option<Settle>,
}

/// An attempt whose handler runs.
pub(super) struct Running {
    pub(super) attempt: u32,
    /// The instance that has begun the attempt.
    pub(super) instance: u32,
    pub(super) forgiven: u32,
    /// The due time of the run before its retries.
    pub(super) planned: Micros,
    pub(super) topic: Arc<str>,
    pub(super) period: Option<Micros>,
    pub(super) is_overdue: bool,
    /// Whether its end waits aside, so that it takes no place of a handler.
    pub(super) is_parked: bool,
    /// The next timeout of its key, which the handler has scheduled.
    pub(super) then: Option<Box<NewTimeout>>,
    /// The result that the handler has returned after its attempt was cut off.
    pub(super) late: Option<Done>,
    /// Whether the timeout was too late to begin, so its handler does not run.
    pub(super) has_expired: bool,
    /// Whether a transaction that was to end the attempt was rolled back.
    pub(super) work_has_failed: bool,
    /// The time of the next look at its time limit.
    pub(super) look: Option<Micros>,
    pub(super) progress: Arc<Progress>,
}
