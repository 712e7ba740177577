//! The errors of calls.

use crate::TimeoutId;
use crate::payload::PayloadError;
use crate::store::StoreError;
use std::fmt;
use std::time::Duration;

/// A call that was not executed, or whose outcome is unknown.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{DurableTimer, Error, MemoryStore, Topic};
///
/// const CLOSE: Topic<()> = Topic::new("order.close");
///
/// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
/// let error = timer.new_timeout(CLOSE, Duration::ZERO, &()).wait().unwrap_err();
/// assert_eq!(error.to_string(), "the topic `order.close` has no handler here; the builder names none");
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The timer is stopped, and the call was not executed.
    Stopped,
    /// The store has failed, and nothing was written.
    Store(StoreError),
    /// As many calls as [`max_queued_calls`](crate::DurableTimerBuilder::max_queued_calls) allows
    /// wait for the store already, or as many reads. This one was not sent.
    QueueFull {
        /// The number of calls that may wait.
        allowed: usize,
    },
    /// The store cannot be opened. This is the error of the store's crate, which converts to this
    /// one, such as an `OpenError` of a file or a `ConnectError` of a server.
    Open(Box<dyn std::error::Error + Send + Sync>),
    /// The call was executed or not, because the connection or a sync failed during the commit, or
    /// because the keeper panicked before it answered. Repeat the call with this id and all of its
    /// other arguments, by [`Schedule::id`](crate::Schedule::id). If the first
    /// call was executed, the second one has no effect. A cancel or a reset has no id and can be
    /// repeated as it is. Find out whether the work of a transaction was committed before you
    /// repeat it. If the first one was executed, a repeated `requeue` answers `Unknown`, and a
    /// repeated `purge` returns `false`.
    OutcomeUnknown {
        /// The id of the timeout, if the call was to create one.
        id: Option<TimeoutId>,
        /// The reason.
        why: String,
    },
    /// [`IfPending::Refuse`](crate::IfPending::Refuse) was given, and the key has a pending
    /// timeout.
    KeyTaken {
        /// The pending timeout.
        id: TimeoutId,
    },
    /// The id is older than the store accepts, so an earlier call with it may have been executed.
    IdTooOld,
    /// The builder does not name the topic.
    UnknownTopic {
        /// The topic that was given.
        given: String,
        /// The topics that the builder names, but not more than nine of them.
        known: Vec<String>,
    },
    /// A topic, a key or a payload is too long.
    TooLong {
        /// The part, such as "payload".
        part: &'static str,
        /// The length that was given, in bytes.
        given: usize,
        /// The length that is allowed, in bytes.
        allowed: usize,
    },
    /// A topic or a key has a NUL character, which PostgreSQL cannot store.
    NulCharacter {
        /// The part, such as "key".
        part: &'static str,
    },
    /// The delay is beyond the range of due times.
    DelayTooLong {
        /// The delay that was given.
        given: Duration,
    },
    /// The period of a periodic timeout is zero.
    ZeroPeriod,
    /// The work of a [transaction](crate::DurableTimer::transaction) has returned this error, or has
    /// panicked. Nothing was written.
    Work(Box<dyn std::error::Error + Send + Sync>),
    /// The payload cannot be written or read.
    Payload(PayloadError),
    /// A setting of the builder or an argument is out of range.
    Setting {
        /// The setting.
        name: &'static str,
        /// The value that was given.
        given: String,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// [`Call::wait`](crate::Call::wait) was called on the keeper's own thread, for example by a
    /// handler on an executor that runs tasks inline, and would wait for itself. The call was sent
    /// and takes effect, but its outcome is not known here. A stop is not sent there.
    OnKeeper,
    /// A handler of the timer has called [`stop`](crate::DurableTimer::stop), which would wait for
    /// this handler.
    InHandler,
    /// The operating system refuses the keeper's thread or a thread of the default executor.
    ThreadRefused(std::io::Error),
}

/// The longest delay, 290,000 years.
pub(crate) const MAX_DELAY: Duration = Duration::from_micros(i64::MAX as u64);

/// The largest number of topics in [`Error::UnknownTopic`].
pub(crate) const MAX_KNOWN: usize = 9;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the timer is stopped"),
            Self::Store(error) => error.fmt(f),
            Self::QueueFull { allowed } => {
                write!(f, "{allowed} calls wait for the store; no further one is allowed (`max_queued_calls`)")
            }
            Self::Open(error) => error.fmt(f),
            Self::OutcomeUnknown { id: Some(id), why } => {
                write!(f, "it is unknown whether timeout {id} was created: {why}")
            }
            Self::OutcomeUnknown { id: None, why } => write!(f, "it is unknown whether the call was executed: {why}"),
            Self::KeyTaken { id } => write!(f, "the key has a pending timeout, {id}"),
            Self::IdTooOld => f.write_str("the id is too old to be used for a new timeout"),
            Self::UnknownTopic { given, known } if known.is_empty() => {
                write!(f, "the topic `{given}` has no handler here; the builder names none")
            }
            Self::UnknownTopic { given, known } => {
                write!(f, "the topic `{given}` has no handler here; there are ")?;
                match known.split_at_checked(MAX_KNOWN - 1) {
                    Some((first, [_, ..])) => write!(f, "{} and others", first.join(", ")),
                    _ => f.write_str(&known.join(", ")),
                }
            }
            Self::TooLong { part, given, allowed } => {
                write!(f, "a {part} of {given} bytes was given; at most {allowed} are allowed")
            }
            Self::NulCharacter { part } => write!(f, "a {part} with a NUL character was given; none is allowed"),
            Self::DelayTooLong { given } => {
                write!(f, "a delay of {given:?} was given; at most {MAX_DELAY:?} is allowed")
            }
            Self::ZeroPeriod => f.write_str("a period of 0 was given; at least 1 us is allowed"),
            Self::Work(error) => write!(f, "the work of the transaction failed: {error}"),
            Self::Payload(error) => write!(f, "the payload cannot be written or read: {error}"),
            Self::Setting { name, given, allowed } => write!(f, "{name}: {given} was given; allowed is {allowed}"),
            Self::OnKeeper => f.write_str("a wait on the keeper's own thread would wait for itself"),
            Self::InHandler => f.write_str("`stop` in a handler of the timer would wait for this handler"),
            Self::ThreadRefused(error) => write!(f, "a thread of the timer could not be started: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Open(error) | Self::Work(error) => Some(&**error),
            Self::Payload(error) => Some(error),
            Self::ThreadRefused(error) => Some(error),
            _ => None,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::InDoubt(why) => Self::OutcomeUnknown { id: None, why },
            error => Self::Store(error),
        }
    }
}

impl From<PayloadError> for Error {
    fn from(error: PayloadError) -> Self {
        Self::Payload(error)
    }
}
