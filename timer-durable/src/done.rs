//! The success of an attempt, with the timeouts that follow it.

use crate::payload::{AsPayload, Payload};
use crate::schedule::{CheckedTimeout, Schedule};
use crate::topic::Topic;
use crate::transaction::IfPending;

/// An attempt that has succeeded, with the timeouts that follow it.
///
/// A handler that returns `Ok(())` ends its timeout. One that returns `Ok(Done::then(..))` also
/// schedules the next one, in the same commit. Neither a crash nor a lost answer separates the end
/// from the follow-up, and an attempt that is not the last one schedules nothing. Nobody has to
/// repeat the call, as after
/// [`Error::OutcomeUnknown`](crate::Error::OutcomeUnknown). `()` converts to a `Done`.
///
/// If a follow-up is not allowed, because the timer does not know its topic or its payload is too
/// long, the attempt fails with that reason. After [`complete_with`](crate::Due::complete_with),
/// which has ended the attempt, the answer of the handler has no effect. After `complete_in` or
/// `timer.complete`, schedule the next timeout in the same transaction. The follow-ups of a `Done`
/// would need another commit and be lost if the process ended before it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Done, Due, DurableTimer, MemoryStore, Schedule, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
/// const ARCHIVE: Topic<String> = Topic::new("order.archive");
///
/// let day = Duration::from_secs(86_400);
/// let builder = DurableTimer::builder()
///     .topic(CLOSE, move |due: &Due<String>| Ok(Done::then(ARCHIVE, Schedule::after(30 * day), due.payload())))
///     .topic(ARCHIVE, |due: &Due<String>| Ok(println!("archiving {}", due.payload())));
/// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
/// timer.new_timeout(CLOSE, day, "17").wait()?;
/// assert_eq!(driver.advance(day), 1);
/// assert_eq!(driver.advance(30 * day), 1);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the keeper learns of it when the handler returns it"]
pub struct Done {
    /// The reason why a follow-up is not allowed, in place of all.
    pub(crate) then: Result<Vec<CheckedTimeout>, String>,
    pub(crate) ends_series: bool,
}

impl Done {
    /// Returns a success that nothing follows.
    pub fn new() -> Self {
        Self { then: Ok(Vec::new()), ends_series: false }
    }

    /// Returns a success that a timeout follows. A delay counts from the commit that ends the
    /// attempt.
    ///
    /// The key may be that of the timeout that ends. If another timeout with the key is pending, it
    /// stays, and the follow-up is not created, whatever the schedule says about
    /// [`if_pending`](Schedule::if_pending).
    pub fn then<P: Payload>(topic: Topic<P>, schedule: Schedule, payload: &(impl AsPayload<P> + ?Sized)) -> Self {
        Self::new().and_then(topic, schedule, payload)
    }

    /// Adds another follow-up.
    pub fn and_then<P: Payload>(
        mut self,
        topic: Topic<P>,
        schedule: Schedule,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Self {
        if let Ok(then) = &mut self.then {
            // The keeper knows the longest payload.
            match topic.with(schedule.traced(topic.name), payload).check(usize::MAX) {
                Ok(new) => then.push(CheckedTimeout { if_pending: IfPending::Keep, ..new }),
                Err(error) => self.then = Err(format!("the follow-up in `{}`: {error}", topic.name)),
            }
        }
        self
    }

    /// Ends a periodic timeout with this run.
    pub fn end_series(mut self) -> Self {
        self.ends_series = true;
        self
    }
}

impl Default for Done {
    fn default() -> Self {
        Self::new()
    }
}

impl From<()> for Done {
    fn from((): ()) -> Self {
        Self::new()
    }
}
