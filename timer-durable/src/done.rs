//! The success of an attempt, with the timeouts that follow it.

use crate::new_timeout::{NewTimeout, after, check_name};
use crate::payload::{AsPayload, Payload};
use crate::topic::Topic;
use crate::traces;
use std::time::Duration;

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
/// use timer_durable::{Done, Due, DurableTimer, MemoryStore, Retry, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
/// const ARCHIVE: Topic<String> = Topic::new("order.archive");
///
/// let day = Duration::from_secs(86_400);
/// let builder = DurableTimer::builder()
///     .topic(CLOSE, move |due: &Due<String>| Ok(Done::then(ARCHIVE, 30 * day, due.payload())))
///     .topic(ARCHIVE, |due: &Due<String>| Ok(println!("archiving {}", due.payload())));
/// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
/// timer.new_timeout(CLOSE, day, "17")?;
/// assert_eq!(driver.advance(day), 1);
/// assert_eq!(driver.advance(30 * day), 1);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the keeper learns of it when the handler returns it"]
pub struct Done {
    /// The reason why a follow-up is not allowed, in place of all.
    pub(crate) then: Result<Vec<NewTimeout>, String>,
    pub(crate) ends_series: bool,
}

impl Done {
    /// Returns a success that nothing follows.
    pub fn new() -> Self {
        Self { then: Ok(Vec::new()), ends_series: false }
    }

    /// Returns a success that a timeout follows, `delay` after the end of the attempt is written.
    pub fn then<P: Payload>(topic: Topic<P>, delay: Duration, payload: &(impl AsPayload<P> + ?Sized)) -> Self {
        Self::new().and_then(topic, delay, payload)
    }

    /// Adds another follow-up. Each of them is created.
    pub fn and_then<P: Payload>(
        mut self,
        topic: Topic<P>,
        delay: Duration,
        payload: &(impl AsPayload<P> + ?Sized),
    ) -> Self {
        let text = |error: &dyn std::fmt::Display| format!("the follow-up in `{}`: {error}", topic.name);
        let new = after(delay).map_err(|error| text(&error)).and_then(|when| {
            let payload = payload.encode_as().map_err(|error| text(&error))?;
            let traceparent = traces::created(topic.name);
            Ok(NewTimeout { when, traceparent, ..NewTimeout::new(topic.name.into(), P::FORMAT, payload) })
        });
        self.set(new, Vec::push);
        self
    }

    /// Sets the key of the last follow-up. It may be the key of the timeout that ends. If another
    /// timeout with this key is pending, it stays, and the follow-up is not created.
    pub fn key(mut self, key: &str) -> Self {
        let checked = check_name("key", key).map_err(|error| error.to_string());
        self.set(checked, |then, ()| {
            if let Some(last) = then.last_mut() {
                last.key = Some(key.to_owned());
            }
        });
        self
    }

    /// Ends a periodic timeout with this run.
    pub fn end_series(mut self) -> Self {
        self.ends_series = true;
        self
    }

    fn set<V>(&mut self, value: Result<V, String>, set: impl FnOnce(&mut Vec<NewTimeout>, V)) {
        match (&mut self.then, value) {
            (Ok(then), Ok(value)) => set(then, value),
            (Ok(_), Err(error)) => self.then = Err(error),
            (Err(_), _) => {}
        }
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
