//! The settings of a keeper.

use super::attempt::{Settle, TopicSettings};
use std::collections::HashMap;
use std::sync::Arc;
use timer_executor::{TaskExecutor, ThreadPoolExecutor};

/// The threads of the default executor.
pub(crate) const THREADS: usize = 4;

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
