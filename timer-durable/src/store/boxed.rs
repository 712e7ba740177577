//! Boxed stores.

use super::{Counts, DeadLetter, Membership, Micros, Position, Store, StoreError, Upkeep, Work};
use crate::TimeoutId;
use crate::transaction::{Operation, Outcome};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A store that is chosen while the program runs.
impl<S: Store + ?Sized> Store for Box<S> {
    fn describe(&self) -> String {
        (**self).describe()
    }

    fn instance(&self) -> u32 {
        (**self).instance()
    }

    fn now(&self) -> Micros {
        (**self).now()
    }

    fn time_until(&self, time: Micros) -> Duration {
        (**self).time_until(time)
    }

    fn max_sleep(&self) -> Option<Duration> {
        (**self).max_sleep()
    }

    fn write(&mut self, batch: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        (**self).write(batch)
    }

    fn load(&mut self, range: Range<Position>, max: usize, out: &mut Vec<Position>) -> Result<Position, StoreError> {
        (**self).load(range, max, out)
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        (**self).rejoin()
    }

    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        (**self).dead_letters(topic, after, max)
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        (**self).counts()
    }

    fn pending(&self) -> Option<u64> {
        (**self).pending()
    }

    fn next_upkeep(&self) -> Option<Instant> {
        (**self).next_upkeep()
    }

    fn must_rejoin(&self) -> bool {
        (**self).must_rejoin()
    }

    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        (**self).set_waker(wake);
    }

    fn membership(&self) -> Option<Membership> {
        (**self).membership()
    }

    fn upkeep(&mut self, running: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        (**self).upkeep(running)
    }

    fn may_begin(&self) -> bool {
        (**self).may_begin()
    }

    fn lease_end(&self) -> Option<Instant> {
        (**self).lease_end()
    }

    fn complete_in(&mut self, end: Operation, work: Work) -> Result<bool, StoreError> {
        (**self).complete_in(end, work)
    }

    fn transact_with(&mut self, work: Work) -> Result<(), StoreError> {
        (**self).transact_with(work)
    }

    fn backup(&mut self, path: &std::path::Path) -> Result<(), StoreError> {
        (**self).backup(path)
    }

    fn leave(&mut self) -> Result<(), StoreError> {
        (**self).leave()
    }
}
