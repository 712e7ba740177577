//! The topics, which may be paused, or limited in their attempts or their rate.
//!
//! A timeout of such a topic stays in the list of the topic until there is room for it, and delays
//! no others. A topic that was paused is *catching up* until none of its timeouts is late.
//! Meanwhile they use at most half of the places, as overdue ones do.
//!
//! A topic has a number. Topics of which no timeout is left are forgotten whenever the number of
//! topics has doubled, so programs may make up topics.

use super::heads::Need;
use super::pace::Pace;
use crate::engine::attempt::TopicSettings;
use crate::engine::executors::Executors;
use crate::engine::settings::Settings;
use crate::lateness::DurableLateCause;
use crate::store::Micros;
use std::collections::HashMap;
use std::sync::Arc;

/// The last pauses of a topic, each from its first time to its end.
#[derive(Default)]
struct Pauses(Vec<(Micros, Micros)>);

/// The largest number of pauses of a topic that are kept.
const MAX_PAUSES: usize = 16;

impl Pauses {
    fn note(&mut self, is_paused: bool, now: Micros) {
        let Self(pauses) = self;
        match pauses.last_mut().filter(|(_, end)| *end == Micros::MAX) {
            Some(last) if !is_paused => last.1 = now,
            None if is_paused => {
                pauses.push((now, Micros::MAX));
                pauses.drain(..pauses.len().saturating_sub(MAX_PAUSES));
            }
            _ => {}
        }
    }

    /// Returns the end of the last pause.
    fn end(&self) -> Micros {
        self.0.last().map_or(Micros::MIN, |(_, end)| *end)
    }
}

/// A topic.
struct Topic {
    name: Arc<str>,
    is_paused: bool,
    is_catching_up: bool,
    pauses: Pauses,
    running: usize,
    max_running: usize,
    pace: Pace,
    /// Whether its settings limit it.
    is_limited: bool,
}

impl Topic {
    fn new(name: Arc<str>, settings: Option<&TopicSettings>, now: Micros) -> Self {
        let has_executor = settings.is_some_and(|topic| topic.executor.is_some());
        let max_running = settings.and_then(|topic| topic.max_running);
        let rate = settings.and_then(|topic| topic.rate);
        let pace = match rate {
            Some(rate) if settings.is_some_and(|topic| topic.shares_rate) => Pace::shared(rate, now),
            rate => Pace::every(rate, now),
        };
        Self {
            name,
            is_paused: false,
            is_catching_up: false,
            pauses: Pauses::default(),
            running: 0,
            max_running: max_running.unwrap_or(usize::MAX),
            pace,
            is_limited: has_executor || max_running.is_some() || rate.is_some(),
        }
    }

    fn set_paused(&mut self, is_paused: bool, now: Micros) {
        self.is_catching_up |= is_paused && !self.is_limited;
        self.is_paused = is_paused;
        self.pauses.note(is_paused, now);
    }

    /// Returns the number of attempts that may begin now.
    fn room(&self, now: Micros) -> usize {
        let places = if self.is_paused { 0 } else { self.max_running };
        places.saturating_sub(self.running).min(self.pace.room(now))
    }

    /// Returns `true` if the topic is not as it would be if it were new.
    fn is_needed(&self) -> bool {
        self.is_limited || self.is_catching_up || self.running > 0
    }
}

/// The smallest number of topics at which some are forgotten.
const MIN_TOPICS: usize = 64;

/// The topics by their numbers.
#[derive(Default)]
pub(super) struct Topics {
    numbers: HashMap<Arc<str>, usize>,
    topics: Vec<Option<Topic>>,
    /// The number of topics at the end of the last look for those that can be forgotten.
    kept: usize,
}

impl Topics {
    pub(super) fn new(settings: &Settings, now: Micros) -> Self {
        let mut topics = Self::default();
        for (name, topic) in &settings.topics {
            topics.add(Topic::new(name.clone(), Some(topic), now));
        }
        topics
    }

    /// Adds a topic and returns its number.
    fn add(&mut self, topic: Topic) -> usize {
        let free = self.topics.iter().position(Option::is_none);
        let number = free.unwrap_or(self.topics.len());
        self.numbers.insert(topic.name.clone(), number);
        match free {
            Some(free) => self.topics[free] = Some(topic),
            None => self.topics.push(Some(topic)),
        }
        number
    }

    /// Adds a topic without settings.
    pub(super) fn add_new(&mut self, name: &str, now: Micros) -> usize {
        self.add(Topic::new(name.into(), None, now))
    }

    /// Returns the number behind the last one.
    pub(super) fn len(&self) -> usize {
        self.topics.len()
    }

    /// Returns the numbers of no topic.
    pub(super) fn free(&self) -> impl Iterator<Item = usize> {
        self.topics.iter().enumerate().filter(|(_, topic)| topic.is_none()).map(|(number, _)| number)
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.numbers.get(name).copied()
    }

    /// Returns `true` if there are so many topics that some may be forgotten.
    pub(super) fn have_doubled(&self) -> bool {
        self.numbers.len() >= MIN_TOPICS.max(2 * self.kept)
    }

    /// Forgets the topics that are not needed and of which no timeout is left, as `has_none` tells.
    /// Returns their numbers.
    pub(super) fn forget(&mut self, has_none: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut gone = Vec::new();
        for (number, place) in self.topics.iter_mut().enumerate() {
            if let Some(topic) = place.take_if(|topic| !topic.is_needed() && has_none(number)) {
                self.numbers.remove(&topic.name);
                gone.push(number);
            }
        }
        self.kept = self.numbers.len();
        gone
    }

    fn get(&self, number: usize) -> Option<&Topic> {
        self.topics.get(number)?.as_ref()
    }

    fn get_mut(&mut self, number: usize) -> Option<&mut Topic> {
        self.topics.get_mut(number)?.as_mut()
    }

    pub(super) fn name(&self, number: usize) -> Option<&Arc<str>> {
        self.get(number).map(|topic| &topic.name)
    }

    pub(super) fn is_catching_up(&self, number: usize) -> bool {
        self.get(number).is_some_and(|topic| topic.is_catching_up)
    }

    /// Returns how far ahead a topic is loaded.
    pub(super) fn need(&self, number: usize) -> Need {
        match self.get(number) {
            Some(topic) if topic.is_paused => Need::Paused,
            Some(topic) if topic.is_limited => Need::Limited,
            _ => Need::Open,
        }
    }

    /// Returns the number of timeouts of a topic that may begin now.
    pub(super) fn room(&self, number: usize, executors: &Executors, now: Micros) -> usize {
        self.get(number).filter(|topic| !executors.is_rejecting(&topic.name)).map_or(0, |topic| topic.room(now))
    }

    /// Returns the time from which a timeout of a topic may begin, or `None` if it has to wait for
    /// an event.
    pub(super) fn next_begin(&self, number: usize, executors: &Executors, now: Micros) -> Option<Micros> {
        let topic = self.get(number)?;
        let is_open = !topic.is_paused && topic.running < topic.max_running && !executors.is_rejecting(&topic.name);
        is_open.then(|| topic.pace.next().unwrap_or(now).max(now))
    }

    /// Notes that an attempt has begun. Returns whether its topic is limited or was paused, and
    /// whether the attempt counts as overdue, because its topic is catching up.
    pub(super) fn enter(&mut self, number: usize, now: Micros) -> (bool, bool) {
        let Some(topic) = self.get_mut(number) else { return (false, false) };
        topic.running += 1;
        topic.pace.allows(now);
        (topic.is_limited || topic.is_catching_up, topic.is_catching_up && !topic.is_limited)
    }

    /// Notes that an attempt takes no place any more.
    pub(super) fn leave(&mut self, name: &str) {
        if let Some(topic) = self.find(name).and_then(|number| self.get_mut(number)) {
            topic.running = topic.running.saturating_sub(1);
        }
    }

    /// Returns the number of attempts of a topic that take places.
    pub(super) fn running(&self, name: &str) -> usize {
        self.find(name).and_then(|number| self.get(number)).map_or(0, |topic| topic.running)
    }

    /// Returns the pauses of a topic, and the cause for which its timeouts wait otherwise. An
    /// attempt has just begun, so a full topic has one free place less.
    pub(super) fn waits(&self, name: &str) -> (&[(Micros, Micros)], DurableLateCause) {
        let topic = self.find(name).and_then(|number| self.get(number));
        let Some(topic) = topic else { return (&[], DurableLateCause::Places) };
        let has_rate = topic.pace.next().is_some() && topic.running < topic.max_running;
        let limit = if has_rate { DurableLateCause::Rate } else { DurableLateCause::Places };
        (&topic.pauses.0, limit)
    }

    /// Returns the time up to which the rate of a topic alone has delayed an attempt that has just
    /// begun.
    pub(super) fn delay_by_rate(&mut self, name: &str, due: Micros, now: Micros) -> Micros {
        let topic = self.find(name).and_then(|number| self.get_mut(number));
        topic.map_or(due, |topic| topic.pace.delay(due.max(topic.pauses.end().min(now))))
    }

    /// Takes the share of the rates that belongs to a number of shards.
    pub(super) fn set_share(&mut self, shards: u32, now: Micros) {
        self.topics.iter_mut().flatten().for_each(|topic| topic.pace.set_share(shards, now));
    }

    /// Returns the topics that are paused.
    pub(super) fn paused(&self) -> impl Iterator<Item = &Arc<str>> {
        self.topics.iter().flatten().filter(|topic| topic.is_paused).map(|topic| &topic.name)
    }

    /// Pauses or resumes a topic.
    pub(super) fn set_paused(&mut self, number: usize, is_paused: bool, now: Micros) {
        if let Some(topic) = self.get_mut(number) {
            topic.set_paused(is_paused, now);
        }
    }

    /// Notes which topics are paused. All of them are here.
    pub(super) fn note_paused(&mut self, paused: &[String], now: Micros) {
        for topic in self.topics.iter_mut().flatten() {
            topic.set_paused(paused.iter().any(|name| **name == *topic.name), now);
        }
    }

    /// Notes which topics have caught up. `is_behind` tells whether timeouts of a topic are due.
    pub(super) fn note_caught_up(&mut self, is_behind: impl Fn(usize) -> bool) {
        for (number, topic) in self.topics.iter_mut().enumerate() {
            if let Some(topic) = topic.as_mut().filter(|topic| topic.is_catching_up && !topic.is_paused) {
                topic.is_catching_up = is_behind(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_that_have_ended_are_forgotten() {
        let mut topics = Topics::default();
        let paused = topics.add_new("paused", 0);
        let running = topics.add_new("running", 0);
        topics.set_paused(paused, true, 0);
        topics.enter(running, 0);
        let has_timeouts = topics.add_new("has timeouts", 0);
        for n in 0..10_000 {
            if topics.have_doubled() {
                let gone = topics.forget(|number| number != has_timeouts);
                assert_eq!(gone.len(), MIN_TOPICS - 3);
            }
            topics.add_new(&n.to_string(), 0);
            assert!(topics.len() <= MIN_TOPICS);
        }
        assert_eq!(["paused", "has timeouts"].map(|name| topics.find(name)), [Some(paused), Some(has_timeouts)]);
        assert_eq!((topics.running("running"), topics.find("0")), (1, None));
    }
}
