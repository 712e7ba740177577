//! The topics whose dead letters are deleted by their age.

use crate::engine::attempt::TopicSettings;
use crate::engine::settings::Settings;
use crate::store::{Micros, micros};
use std::sync::Arc;

/// The time between two looks for old dead letters.
const INTERVAL: Micros = 3_600_000_000;

/// The times for which topics keep their dead letters, and the time of the next look.
pub(crate) struct Retention {
    topics: Vec<(Arc<str>, Micros)>,
    next: Micros,
}

impl Retention {
    /// Returns the retention of a timer that starts, whose first look is due.
    pub(crate) fn new(settings: &Settings) -> Self {
        let limit =
            |(topic, settings): (&Arc<str>, &TopicSettings)| Some((topic.clone(), micros(settings.rules.keep_dead?)));
        Self { topics: settings.topics.iter().filter_map(limit).collect(), next: Micros::MIN }
    }

    /// Returns the time of the next look, or `None` if all dead letters stay.
    pub(crate) fn next_look(&self) -> Option<Micros> {
        if self.topics.is_empty() { None } else { Some(self.next) }
    }

    /// Begins a look if it is due. Returns the topics, each with a time. Dead letters that were
    /// buried before it are deleted.
    pub(crate) fn begin_look(&mut self, now: Micros) -> Vec<(Arc<str>, Micros)> {
        if self.next_look().is_none_or(|next| now < next) {
            return Vec::new();
        }
        self.next = now.saturating_add(INTERVAL);
        let before = |(topic, limit): &(Arc<str>, Micros)| (topic.clone(), now.saturating_sub(*limit));
        self.topics.iter().map(before).collect()
    }

    /// Lets the next turn look again, because there are more dead letters than one commit deletes.
    pub(crate) fn go_on(&mut self) {
        self.next = Micros::MIN;
    }
}
