//! The allowed settings of a builder.

use super::DurableTimerBuilder;
use crate::engine::TopicSettings;
use crate::error::Error;
use std::time::Duration;

impl DurableTimerBuilder {
    /// Returns an error for the first setting that is not allowed.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.name.contains('\0') {
            return refuse("name", format!("{:?}", self.name), "a name without NUL characters");
        }
        let handled_elsewhere = self.elsewhere.iter().find(|topic| self.topics.contains_key(*topic));
        if let Some(topic) = self.repeated.as_ref().or(handled_elsewhere) {
            return refuse("topic", topic.to_string(), "each topic once");
        }
        least("capacity", self.capacity, 4, "at least 4")?;
        least("max_running", self.max_running, 1, "at least 1")?;
        if self.lacks_spawn {
            return refuse("spawn", "none".to_owned(), "a function, because async topics need `spawn` before them");
        }
        if let Some(name) = self.without_topic {
            return refuse(name, "no topic".to_owned(), "a topic before it");
        }
        self.topics.values().try_for_each(check_topic)?;
        least("max_batch", self.max_batch, 1, "at least 1")?;
        least("max_queued_calls", self.max_queued_calls, 1, "at least 1")?;
        least("overdue_rate", self.overdue_rate.map_or(1, |rate| rate as usize), 1, "at least 1")
    }
}

fn refuse(name: &'static str, given: String, allowed: &'static str) -> Result<(), Error> {
    Err(Error::Setting { name, given, allowed })
}

fn least(name: &'static str, given: usize, least: usize, allowed: &'static str) -> Result<(), Error> {
    if given < least { refuse(name, given.to_string(), allowed) } else { Ok(()) }
}

fn check_topic(topic: &TopicSettings) -> Result<(), Error> {
    let refuse = |name, allowed| refuse(name, "0".to_owned(), allowed);
    match topic {
        TopicSettings { time_limit: Some(Duration::ZERO), .. } => refuse("time_limit", "more than zero"),
        TopicSettings { max_running: Some(0), .. } => refuse("max_running", "at least 1"),
        TopicSettings { rate: Some((0, _) | (_, Duration::ZERO)), .. } => {
            refuse("rate", "at least 1 in a period of more than zero")
        }
        _ => Ok(()),
    }
}
