//! Messages about timeouts that an earlier batch or message is about.
//!
//! Those about one timeout keep their order. A batch takes one of each, so the work of a turn does
//! not grow with the number of messages about a busy timeout.

use super::Unwritten;
use super::subject::Subject;
use crate::message::Message;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

impl Unwritten {
    /// Returns the subject for which earlier messages are held.
    pub(crate) fn held_before(&self, message: &Message) -> Option<Subject> {
        if self.order.is_empty() {
            return None;
        }
        Subject::of(message).find(|subject| self.held.contains_key(subject))
    }

    /// Holds a message behind those about the same subject.
    pub(crate) fn hold(&mut self, subject: Subject, message: Message, now: Instant) {
        let _since = message.waits_since(now);
        self.queue(subject).push_back(message);
    }

    /// Puts back a message that was popped.
    pub(crate) fn put_back(&mut self, subject: Subject, message: Message) {
        self.queue(subject).push_front(message);
    }

    fn queue(&mut self, subject: Subject) -> &mut VecDeque<Message> {
        self.held.entry(subject).or_insert_with(|| {
            self.order.push_back(subject);
            VecDeque::new()
        })
    }

    /// Returns the number of subjects for which messages are held.
    pub(crate) fn held_subjects(&self) -> usize {
        self.order.len()
    }

    /// Removes the first held message of the subject whose turn it is.
    pub(crate) fn pop_held(&mut self) -> Option<(Subject, Message)> {
        let subject = self.order.pop_front()?;
        let queue = self.held.get_mut(&subject)?;
        let message = queue.pop_front()?;
        if queue.is_empty() {
            self.held.remove(&subject);
        } else {
            self.order.push_back(subject);
        }
        Some((subject, message))
    }

    /// Removes the held calls that have waited for `limit`.
    pub(super) fn take_late(&mut self, now: Instant, limit: Duration) -> Vec<Message> {
        let is_late = |message: &Message| message.waits_since(now).is_some_and(|since| now >= since + limit);
        let mut late = Vec::new();
        for queue in self.held.values_mut().filter(|queue| queue.iter().any(is_late)) {
            let (gone, rest): (VecDeque<Message>, _) = std::mem::take(queue).into_iter().partition(is_late);
            late.extend(gone);
            *queue = rest;
        }
        self.held.retain(|_, queue| !queue.is_empty());
        self.order.retain(|subject| self.held.contains_key(subject));
        late
    }
}
