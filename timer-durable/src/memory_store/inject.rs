//! The injection of faults into a memory store.

use super::faults::{Fault, FaultPoint};
use super::{Inner, MemoryStore};
use crate::store::StoreError;

impl MemoryStore {
    /// Adds a fault, which affects the next commit of a batch that no earlier fault affects.
    pub fn inject(&self, fault: Fault) {
        self.inject_at(FaultPoint::Write, fault);
    }

    /// Adds a fault, which affects the next call of this kind that no earlier fault affects.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, Fault, FaultPoint, MemoryStore, Topic};
    ///
    /// const GREET: Topic<()> = Topic::new("greet");
    ///
    /// let store = MemoryStore::new();
    /// let builder = DurableTimer::builder().topic(GREET, |_: &Due<()>| Ok(()));
    /// let (timer, mut driver) = builder.build_manual(store.clone())?;
    /// store.inject(Fault::LoseAnswer);
    /// store.inject_at(FaultPoint::Rejoin, Fault::FailBefore);
    /// store.inject_at(FaultPoint::Load, Fault::FailBefore);
    /// assert!(timer.new_timeout(GREET, Duration::from_secs(1), &()).wait().is_err());
    /// assert_eq!(driver.advance(Duration::from_secs(2)), 1);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn inject_at(&self, point: FaultPoint, fault: Fault) {
        self.lock().faults.entry(point).or_default().push_back(fault);
    }
}

impl Inner {
    /// Applies the next fault of a call before the call is executed. Returns a fault that takes
    /// effect afterwards.
    pub(super) fn begin_call(&mut self, point: FaultPoint) -> Result<Option<Fault>, StoreError> {
        let fault = self.faults.get_mut(&point).and_then(std::collections::VecDeque::pop_front);
        match fault {
            Some(Fault::FailBefore) => Err(StoreError::Failed("an injected fault".to_owned())),
            Some(Fault::LoseRequest) => Err(in_doubt()),
            Some(Fault::Fence) if point == FaultPoint::Rejoin => Err(StoreError::Fenced),
            Some(Fault::Fence) => {
                self.epoch += 1;
                Err(StoreError::Fenced)
            }
            Some(Fault::StepClock(by)) => {
                self.now = self.now.saturating_add(by);
                Ok(None)
            }
            Some(Fault::LoseAnswer | Fault::TearAnswer | Fault::Delay(_)) | None => Ok(fault),
        }
    }

    /// Applies a fault after the call was executed.
    pub(super) fn end_call<R>(&mut self, fault: Option<Fault>, result: R) -> Result<R, StoreError> {
        match fault {
            Some(Fault::LoseAnswer | Fault::TearAnswer) => Err(in_doubt()),
            Some(Fault::Delay(by)) => {
                self.now = self.now.saturating_add(crate::time::micros(by));
                Ok(result)
            }
            _ => Ok(result),
        }
    }
}

fn in_doubt() -> StoreError {
    StoreError::InDoubt("an injected fault".to_owned())
}
