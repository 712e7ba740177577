//! The timeouts that messages and operations are about.

use crate::TimeoutId;
use crate::message::{Message, Request};
use crate::schedule::CheckedTimeout;
use crate::transaction::{Operation, Target};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A timeout or a key that a message is about. A key is represented by its hash. If two keys have
/// the same hash, a message waits for the next turn without need.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Id(TimeoutId),
    Key(u64),
}

impl Subject {
    fn key((topic, key): (&str, &str)) -> Self {
        let mut hasher = DefaultHasher::new();
        (topic, key).hash(&mut hasher);
        Self::Key(hasher.finish())
    }

    fn target(target: &Target) -> Self {
        match target {
            Target::Id(id) => Self::Id(*id),
            Target::Key { topic, key } => Self::key((topic, key)),
        }
    }

    /// Returns the subjects of a message.
    pub(super) fn of(message: &Message) -> impl Iterator<Item = Self> {
        let one = match message {
            Message::Ended(ended) => [Some(Self::Id(ended.id)), None],
            Message::Call(request, _) => match request {
                Request::Insert(new) => Self::of_new(new),
                Request::Reset(target, _) | Request::Cancel(target) => [Some(Self::target(target)), None],
                Request::Requeue { id, .. } | Request::Purge(id) => [Some(Self::Id(*id)), None],
                Request::Transact(..) => [None, None],
            },
            _ => [None, None],
        };
        let many = if let Message::ScheduleMany(many, _) = message { &many[..] } else { &[] };
        one.into_iter().chain(many.iter().flat_map(Self::of_new)).flatten()
    }

    /// Returns the subjects of an operation.
    pub(super) fn of_operation(operation: &Operation) -> impl Iterator<Item = Self> + use<> {
        [operation.id().map(Self::Id), operation.key().map(Self::key)].into_iter().flatten()
    }

    fn of_new(new: &CheckedTimeout) -> [Option<Self>; 2] {
        // No other message can be about an id that is made here.
        [new.id.map(Self::Id), new.key.as_deref().map(|key| Self::key((&new.topic, key)))]
    }
}
