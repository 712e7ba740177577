//! The figures of a timer, as its keeper and its handlers write them.

use crate::TimeoutId;
use crate::lateness::{DurableLateRun, DurableLateness};
use crate::stats::Stats;
use crate::topic_stats::TopicStats;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use timer_core::lateness::WorstRuns;

/// Adds one to a figure that both a timer and a topic have.
macro_rules! count {
    ($figures:expr, $topic:expr, $figure:ident) => {
        $figures.count($topic, |timer| &mut timer.$figure, |topic| &mut topic.$figure)
    };
}
pub(crate) use count;

/// The figures that the keeper, handlers and `stop` write. The lock is not held while other code is
/// called, such as a store or the subscriber of an event.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    stats: Mutex<Stats>,
    /// By their ids and the numbers of the attempts.
    worst: Mutex<WorstRuns<(TimeoutId, u32), DurableLateRun>>,
    pub(crate) hides_keys: bool,
}

impl Figures {
    pub(crate) fn new(hides_keys: bool) -> Self {
        Self { hides_keys, ..Self::default() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_worst(&self) -> MutexGuard<'_, WorstRuns<(TimeoutId, u32), DurableLateRun>> {
        self.worst.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the worst attempts of the last minute, the worst first.
    pub(crate) fn worst(&self) -> Vec<DurableLateRun> {
        self.lock_worst().get(Instant::now())
    }

    /// Gives topics that the builder names figures of their own.
    pub(crate) fn add_topics<'t>(&self, names: impl Iterator<Item = &'t str>) {
        self.lock().topics.extend(names.map(|name| (name.to_owned(), TopicStats::default())));
    }

    /// Counts an event in the figures of the timer, and in those of the topic if it is known. See
    /// the macro.
    pub(crate) fn count(
        &self,
        topic: Option<&str>,
        of_timer: impl FnOnce(&mut Stats) -> &mut u64,
        of_topic: impl FnOnce(&mut TopicStats) -> &mut u64,
    ) {
        let mut stats = self.lock();
        *of_timer(&mut stats) += 1;
        if let Some(topic) = topic {
            stats.change_topic(topic, |topic| *of_topic(topic) += 1);
        }
    }

    /// Counts an attempt that has begun.
    pub(crate) fn begin(&self, topic: &str, lag: Duration) {
        let mut stats = self.lock();
        stats.begun += 1;
        stats.lag.record(lag);
        let looked = stats.looked;
        stats.change_topic(topic, |topic| {
            topic.begun += 1;
            topic.running += 1;
            topic.lag.record(lag);
            if !topic.oldest_due.is_zero() {
                // Nearly all timeouts begin in order.
                let passed = looked.map_or(Duration::ZERO, |looked| looked.elapsed());
                topic.oldest_due = topic.oldest_due.min(lag.saturating_sub(passed));
            }
        });
    }

    /// Counts the end of an attempt, whatever its result.
    pub(crate) fn end(&self, topic: &str) {
        if let Some(topic) = self.lock().topics.get_mut(topic) {
            topic.running = topic.running.saturating_sub(1);
        }
    }

    /// Counts the lateness of an attempt.
    pub(crate) fn record_late(
        &self,
        id: TimeoutId,
        (topic, key): (&str, Option<&str>),
        attempt: u32,
        lateness: &DurableLateness,
    ) {
        let mut stats = self.lock();
        stats.lateness.add_all(lateness);
        stats.change_topic(topic, |topic| topic.lateness.add_all(lateness));
        drop(stats);
        let at = Instant::now();
        let lateness = *lateness;
        self.lock_worst().offer((id, attempt), lateness.total(), at, || {
            let key = key.filter(|_| !self.hides_keys);
            DurableLateRun { id, topic: topic.to_owned(), key: key.map(str::to_owned), attempt, lateness, at }
        });
    }

    /// Sets the ages of the oldest due timeouts, as of now. Topics that are not named have none.
    pub(crate) fn set_oldest_due(&self, ages: HashMap<String, Duration>) {
        let mut stats = self.lock();
        stats.looked = Some(Instant::now());
        stats.topics.values_mut().for_each(|topic| topic.oldest_due = Duration::ZERO);
        ages.into_iter().for_each(|(name, age)| stats.change_topic(&name, |topic| topic.oldest_due = age));
    }

    /// Returns a copy of the figures.
    pub(crate) fn read(&self) -> Stats {
        let mut stats = self.lock().clone();
        let passed = stats.looked.take().map_or(Duration::ZERO, |looked| looked.elapsed());
        let waiting = stats.topics.values_mut().filter(|topic| !topic.oldest_due.is_zero());
        waiting.for_each(|topic| topic.oldest_due += passed);
        stats
    }
}
