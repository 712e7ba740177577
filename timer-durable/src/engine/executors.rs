//! The executors of a timer, and the term in which they may start handlers.
//!
//! The executor of the timer has the first *lane*, and a topic with another executor has another
//! one. An executor is code of the user. If it panics, a task that it has dropped reports that its
//! attempt has failed, and the tasks that it has not touched are offered again.

use super::attempt::KeeperHandle;
use super::failures::{MAX_PAUSE, MIN_PAUSE};
use super::settings::{Settings, THREADS};
use super::term::Term;
use crate::message::Message;
use crossbeam_channel::Sender;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use timer_executor::{ExecuteError, PanicMessage, Task, TaskExecutor, panics};

/// The largest number of threads that the default executor adds. It keeps them.
const MAX_EXTRA_THREADS: usize = 64;

/// An executor with the tasks that it has rejected.
struct Lane {
    executor: Arc<dyn TaskExecutor>,
    /// The topic whose executor it is.
    topic: Option<Arc<str>>,
    rejected: VecDeque<Task>,
    /// The pause before the rejected tasks are offered again.
    pause: Duration,
}

/// The executors of a timer.
pub(super) struct Executors {
    settings: Arc<Settings>,
    lanes: Vec<Lane>,
    by_topic: HashMap<Arc<str>, usize>,
    /// The time in which handlers of this instance may start.
    term: Term,
    /// The sender that each handler's `KeeperHandle` gets a clone of.
    sender: Sender<Message>,
    /// The number of threads by which the default executor has grown.
    extra_threads: usize,
}

impl Executors {
    pub(super) fn new(settings: Arc<Settings>, term: Term, sender: Sender<Message>) -> Self {
        let lane = |executor, topic| Lane { executor, topic, rejected: VecDeque::new(), pause: MIN_PAUSE };
        let mut lanes = vec![lane(settings.executor.clone(), None)];
        let mut by_topic = HashMap::new();
        for (name, topic) in &settings.topics {
            // On virtual time, one lane keeps the order of all topics.
            if let Some(executor) = topic.executor.as_ref().filter(|_| settings.settle.is_none()) {
                by_topic.insert(name.clone(), lanes.len());
                lanes.push(lane(executor.clone(), Some(name.clone())));
            }
        }
        Self { settings, lanes, by_topic, term, sender, extra_threads: 0 }
    }

    /// Returns the number of the lane of a topic.
    pub(super) fn lane(&self, topic: &str) -> usize {
        self.by_topic.get(topic).copied().unwrap_or(0)
    }

    /// Returns `true` if the executor of the timer has rejected tasks.
    pub(super) fn is_full(&self) -> bool {
        !self.lanes[0].rejected.is_empty()
    }

    /// Returns `true` if the executor of a topic has rejected tasks.
    pub(super) fn is_rejecting(&self, topic: &str) -> bool {
        self.by_topic.get(topic).is_some_and(|lane| !self.lanes[*lane].rejected.is_empty())
    }

    /// Returns the pause before rejected tasks are offered again, if there are any.
    pub(super) fn pause(&self) -> Option<Duration> {
        self.lanes.iter().filter(|lane| !lane.rejected.is_empty()).map(|lane| lane.pause).min()
    }

    /// Returns the connection of a new attempt to the keeper.
    pub(super) fn handle(&self) -> KeeperHandle {
        KeeperHandle::new(self.sender.clone(), self.settings.settle.clone())
    }

    pub(super) fn term(&self) -> &Term {
        &self.term
    }

    /// Begins the term of a new instance, which ends at the instant that `end` returns.
    pub(super) fn begin_term(&mut self, end: impl FnOnce() -> Option<Instant>) {
        self.term = self.term.next(end);
    }

    /// Hands the tasks of a batch to the executors of their lanes.
    pub(super) fn hand_over(&mut self, tasks: Vec<(usize, Task)>) {
        let mut by_lane: Vec<Vec<Task>> = self.lanes.iter().map(|_| Vec::new()).collect();
        for (lane, task) in tasks {
            by_lane[lane].push(task);
        }
        for (lane, mut tasks) in self.lanes.iter_mut().zip(by_lane) {
            // One call for all of them wakes the threads of a pool once.
            let handed_over = panics::catch(|| lane.executor.execute_batch(&mut tasks));
            if lane.rejected.is_empty() {
                lane.pause = MIN_PAUSE;
            }
            lane.rejected.extend(tasks);
            if let Err(panic) = handed_over {
                report(&self.settings.name, &panic);
            }
        }
    }

    /// Offers rejected tasks to their executors again. The keeper calls it in each turn, and so
    /// when a handler has ended. `occupied` has the number of places that all attempts take, and
    /// `of_topic` returns that of a topic.
    pub(super) fn start_rejected(&mut self, occupied: usize, of_topic: impl Fn(&str) -> usize) {
        let of_topics: Vec<usize> = self.lanes.iter().map(|lane| lane.topic.as_deref().map_or(0, &of_topic)).collect();
        let of_timer = occupied.saturating_sub(of_topics.iter().sum());
        for (lane, of_topic) in self.lanes.iter_mut().zip(of_topics) {
            let occupied = if lane.topic.is_some() { of_topic } else { of_timer };
            lane.start_rejected(&self.settings.name, occupied);
        }
    }

    /// Adds a thread to the default executor for each handler that keeps one beyond its limit.
    pub(super) fn replace_threads(&mut self, stuck: usize) {
        let Some(pool) = &self.settings.pool else { return };
        let wanted = stuck.min(MAX_EXTRA_THREADS);
        if wanted <= self.extra_threads {
            return;
        }
        match pool.set_threads(THREADS + wanted) {
            Ok(()) => self.extra_threads = wanted,
            Err(error) => {
                tracing::warn!(timer = %self.settings.name, %error, "no thread in place of a handler that hangs");
            }
        }
    }
}

impl Lane {
    /// Offers the rejected tasks again. The attempts of the lane take `occupied` places.
    fn start_rejected(&mut self, timer: &str, occupied: usize) {
        while let Some(task) = self.rejected.pop_front() {
            let executed = panics::catch(|| self.executor.execute(task));
            let Err(ExecuteError(task)) = executed.unwrap_or_else(|panic| {
                report(timer, &panic);
                Ok(())
            }) else {
                continue;
            };
            if self.rejected.len() + 1 < occupied {
                self.rejected.push_front(task);
                self.pause = (self.pause * 2).min(MAX_PAUSE);
                return;
            }
            // The executor has no task of this timer, so it may have no thread at all. A task that
            // is dropped, because the system has no thread either, reports that its attempt has
            // failed.
            let thread = std::thread::Builder::new().name(timer.to_owned());
            if let Err(error) = thread.spawn(move || task.run()) {
                tracing::warn!(%timer, %error, "no thread for a handler that the executor rejects");
            }
        }
    }
}

fn report(timer: &str, panic: &PanicMessage) {
    tracing::error!(%timer, %panic, "the executor panicked");
}
