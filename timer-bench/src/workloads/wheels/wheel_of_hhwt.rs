//! The cancellable wheel of hierarchical_hash_wheel_timer as a [`Structure`]. It takes delays
//! instead of deadlines, and needs an identifier in each entry.

use super::Structure;
use hierarchical_hash_wheel_timer::wheels::Skip;
use hierarchical_hash_wheel_timer::wheels::cancellable::{CancellableTimerEntry, QuadWheelWithOverflow};
use std::rc::Rc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Entry {
    id: u64,
    value: u64,
}

impl CancellableTimerEntry for Entry {
    type Id = u64;

    fn id(&self) -> &u64 {
        &self.id
    }
}

#[derive(Default)]
pub(super) struct Wheel {
    wheel: QuadWheelWithOverflow<Entry>,
    id: u64,
    now: u64,
}

impl Structure for Wheel {
    type Key = (u64, u64);

    fn now(&self) -> u64 {
        self.now
    }

    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        self.id += 1;
        let entry = Rc::new(Entry { id: self.id, value });
        let inserted = self.wheel.insert_ref_with_delay(entry, Duration::from_millis(deadline - self.now));
        assert!(inserted.is_ok(), "{deadline} is not after {}", self.now);
        (self.id, value)
    }

    fn remove(&mut self, (id, value): Self::Key) -> Option<u64> {
        // Cancelling does not return the value.
        self.wheel.cancel(&id).is_ok().then_some(value)
    }

    fn next_expiry(&self) -> Option<u64> {
        match self.wheel.can_skip() {
            Skip::Empty => None,
            Skip::Millis(millis) => Some(self.now + u64::from(millis) + 1),
            Skip::None => Some(self.now + 1),
        }
    }

    fn advance(&mut self, now: u64, mut expired: impl FnMut(u64)) {
        while self.now < now {
            match self.wheel.can_skip() {
                Skip::Empty => self.now = now,
                Skip::Millis(millis) => {
                    let skipped = u64::from(millis).min(now - self.now);
                    self.wheel.skip(skipped as u32);
                    self.now += skipped;
                }
                Skip::None => {
                    self.now += 1;
                    self.wheel.tick().into_iter().for_each(|entry| expired(entry.value));
                }
            }
        }
    }
}
