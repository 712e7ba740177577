//! Handing tasks to the executors.
//!
//! The executor of the timer has the first *lane*, and a topic with another executor has
//! another one. An executor is code of the user. If it panics, a task that it has dropped reports
//! that its attempt has failed, and the tasks that it has not touched are offered again.

use super::super::pauses::{MAX_PAUSE, MIN_PAUSE};
use super::{Keeper, Settings};
use crate::lateness::DurableLateCause;
use crate::store::Store;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use timer_executor::{ExecuteError, PanicMessage, Task, TaskExecutor, panics};

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
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    by_topic: HashMap<Arc<str>, usize>,
}

impl Lanes {
    pub(super) fn new(settings: &Settings) -> Self {
        let lane = |executor, topic| Lane { executor, topic, rejected: VecDeque::new(), pause: MIN_PAUSE };
        let mut lanes = Self { lanes: vec![lane(settings.executor.clone(), None)], by_topic: HashMap::new() };
        for (name, topic) in &settings.topics {
            // On virtual time, one lane keeps the order of all topics.
            if let Some(executor) = topic.executor.as_ref().filter(|_| settings.settle.is_none()) {
                lanes.by_topic.insert(name.clone(), lanes.lanes.len());
                lanes.lanes.push(lane(executor.clone(), Some(name.clone())));
            }
        }
        lanes
    }

    /// Returns the number of the lane of a topic.
    pub(super) fn of(&self, topic: &str) -> usize {
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
}

impl<S: Store> Keeper<S> {
    /// Hands the tasks of a batch to the executors of their lanes.
    pub(super) fn hand_over(&mut self, tasks: Vec<(usize, Task)>) {
        self.note(DurableLateCause::System);
        let mut by_lane: Vec<Vec<Task>> = self.lanes.lanes.iter().map(|_| Vec::new()).collect();
        tasks.into_iter().for_each(|(lane, task)| by_lane[lane].push(task));
        for (n, mut tasks) in by_lane.into_iter().enumerate() {
            let lane = &mut self.lanes.lanes[n];
            // One call for all of them wakes the threads of a pool once.
            let handed_over = panics::catch(|| lane.executor.execute_batch(&mut tasks));
            if lane.rejected.is_empty() {
                lane.pause = MIN_PAUSE;
            }
            lane.rejected.extend(tasks);
            if let Err(panic) = handed_over {
                self.report_executor(&panic);
            }
        }
        self.note(DurableLateCause::Executor);
    }

    /// Offers rejected tasks to their executors again. The keeper calls it in each turn, and so
    /// when a handler has ended.
    pub(super) fn start_rejected(&mut self) {
        self.note(DurableLateCause::System);
        for n in 0..self.lanes.lanes.len() {
            self.start_rejected_of(n);
        }
        self.note(DurableLateCause::Executor);
    }

    fn start_rejected_of(&mut self, n: usize) {
        while let Some(task) = self.lanes.lanes[n].rejected.pop_front() {
            let executed = panics::catch(|| self.lanes.lanes[n].executor.execute(task));
            let Err(ExecuteError(task)) = executed.unwrap_or_else(|panic| {
                self.report_executor(&panic);
                Ok(())
            }) else {
                continue;
            };
            let occupied = self.occupied_of(n);
            let lane = &mut self.lanes.lanes[n];
            if lane.rejected.len() + 1 < occupied {
                lane.rejected.push_front(task);
                lane.pause = (lane.pause * 2).min(MAX_PAUSE);
                return;
            }
            // The executor has no task of this timer, so it may have no thread at all. A task that
            // is dropped, because the system has no thread either, reports that its attempt has
            // failed.
            let thread = std::thread::Builder::new().name(self.settings.name.clone());
            if let Err(error) = thread.spawn(move || task.run()) {
                tracing::warn!(timer = %self.settings.name, %error, "no thread for a handler that the executor rejects");
            }
        }
    }

    /// Returns the number of places that the attempts of a lane take.
    fn occupied_of(&self, lane: usize) -> usize {
        let of_topics = |lane: &Lane| lane.topic.as_ref().map_or(0, |topic| self.gates.running(topic));
        match lane {
            0 => self.occupied().saturating_sub(self.lanes.lanes.iter().map(of_topics).sum()),
            lane => of_topics(&self.lanes.lanes[lane]),
        }
    }

    fn report_executor(&self, panic: &PanicMessage) {
        tracing::error!(timer = %self.settings.name, %panic, "the executor panicked");
    }
}
