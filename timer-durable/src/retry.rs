//! The failures of an attempt.

use crate::payload::Payload;
use std::fmt;
use std::time::Duration;
use timer_executor::panics;

/// A failed attempt, or one that is neither done nor failed ([`Later`]).
///
/// Every error converts to one, so that handlers can use the question mark. The attempt is then
/// repeated after the backoff of its topic, until the limit of attempts is reached. The first 64
/// KiB of a reason are kept.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, Retry};
///
/// fn close(due: &Due<String>) -> Result<(), Retry> {
///     let number: u32 = due.payload().parse()?; // repeated after the backoff
///     if number == 0 {
///         return Err(Retry::dead("there is no order 0"));
///     }
///     if number > 1_000 {
///         return Err(Retry::after(Duration::from_secs(60)).because("the shop is closed"));
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    pub(crate) reason: String,
    pub(crate) how: How,
    /// Whether a periodic timeout has no further run if this failure makes it a dead letter.
    pub(crate) ends_series: bool,
    /// The format and the bytes of the new payload.
    pub(crate) payload: Option<(i16, Vec<u8>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Backoff,
    After(Duration),
    Later(Duration),
    Dead,
}

/// The longest reason in bytes. It is written with the other parts of a batch, which it must not
/// delay.
const MAX_REASON: usize = 64 << 10;

impl Retry {
    fn cut(how: How, reason: impl fmt::Display) -> Self {
        let mut reason = reason.to_string();
        let end = (0..=reason.len().min(MAX_REASON)).rev().find(|end| reason.is_char_boundary(*end));
        reason.truncate(end.unwrap_or(0));
        Self { reason, how, ends_series: false, payload: None }
    }

    /// Repeats the attempt after the backoff of its topic.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self::cut(How::Backoff, reason)
    }

    /// Repeats the attempt after `delay`. [`because`](Self::because) adds the reason.
    pub fn after(delay: Duration) -> Self {
        Self::cut(How::After(delay), format_args!("the handler asked to be called again after {delay:?}"))
    }

    /// Sets the reason. A dead letter has the reason of its last attempt.
    #[must_use]
    pub fn because(self, reason: impl fmt::Display) -> Self {
        Self { ends_series: self.ends_series, payload: self.payload, ..Self::cut(self.how, reason) }
    }

    /// Gives the timeout a new payload in place of the one that it has. Only a [`Later`] takes it.
    /// A failed attempt keeps its payload, so that a dead letter has the one that was scheduled. If
    /// the payload cannot be written, the attempt fails.
    #[must_use]
    pub fn payload<P: Payload>(mut self, payload: &P) -> Self {
        match panics::catch(|| payload.encode()) {
            Ok(Ok(bytes)) => self.payload = Some((P::FORMAT, bytes)),
            Ok(Err(error)) => self = Self::new(format_args!("the new payload cannot be written: {error}")),
            Err(message) => self = Self::new(format_args!("writing the new payload panicked: {message}")),
        }
        self
    }

    /// Makes the timeout a dead letter at once. If the timeout is periodic, only this run becomes
    /// one, and the next run is scheduled in the same commit.
    #[doc(alias = "bury")]
    pub fn dead(reason: impl fmt::Display) -> Self {
        Self::cut(How::Dead, reason)
    }

    /// Ends a periodic timeout if this failure makes the run a dead letter, at once or because it
    /// is the last attempt.
    #[must_use]
    pub fn end_series(mut self) -> Self {
        self.ends_series = true;
        self
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl<E: std::error::Error> From<E> for Retry {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

/// The answer of a handler that has neither finished nor failed.
///
/// [`Later::after`] returns a [`Retry`], so that one handler can return both. The timeout runs
/// again after the delay, with a new payload if it was given one. The attempt does not count as
/// failed, and those that failed before it are forgiven, so the next run has a full number of
/// attempts. The numbers of attempts go on.
///
/// The limit of lateness counts from the new due time. A periodic timeout keeps its phase. Its
/// limit of lateness counts from the time for which the run was planned, and its next run follows
/// when this one has ended.
///
/// # Examples
///
/// Reminders seven days, one day and no day before a deadline, by one timeout:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, Later, MemoryStore, Retry, Topic};
///
/// const REMIND: Topic<String> = Topic::new("invoice.remind");
/// const DAY: Duration = Duration::from_secs(86_400);
///
/// fn remind(due: &Due<String>) -> Result<(), Retry> {
///     println!("the invoice is due in {} days", due.payload());
///     match due.payload().as_str() {
///         "7" => Err(Later::after(6 * DAY).payload(&"1".to_owned())),
///         "1" => Err(Later::after(DAY).payload(&"0".to_owned())),
///         _ => Ok(()),
///     }
/// }
///
/// let (timer, mut driver) = DurableTimer::builder().topic(REMIND, remind).build_manual(MemoryStore::new())?;
/// timer.new_timeout(REMIND, 23 * DAY, "7").wait()?;
/// assert_eq!([23, 5, 1, 1].map(|days| driver.advance(days * DAY)), [1, 0, 1, 1]);
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "snooze")]
pub enum Later {}

impl Later {
    /// Runs the timeout again after `delay`.
    #[doc(alias = "postpone")]
    pub fn after(delay: Duration) -> Retry {
        Retry::cut(How::Later(delay), format_args!("the handler wants to run again after {delay:?}"))
    }
}
