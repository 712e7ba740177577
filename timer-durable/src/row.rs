//! Ids, times and rows: the data that the engine and the stores exchange.
//!
//! Promises: an id is unique among all programs that write to a store, and two ids whose timeouts have the same topic and
//! key have the same [`Id::tag`]. Absent: payloads as values, because a store knows bytes only.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970 UTC on the clock of the store.
pub type Micros = i64;

/// Converts a duration to microseconds. A duration of more than 292,000 years saturates.
pub(crate) fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

/// Converts an instant of the wall clock. An instant before 1970 is negative.
pub(crate) fn micros_of(time: SystemTime) -> Micros {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(before) => -micros(before.duration()),
    }
}

/// The identity of a timeout, from its acceptance to its end.
///
/// It prints as 32 hexadecimal digits, and parses from them. Ids sort by the time at which they were made, so that a store
/// appends at the end of its primary key.
///
/// # Examples
///
/// ```
/// use timer_durable::Id;
///
/// let id = Id::new("order.close", Some("order-17"));
/// assert_eq!(id.to_string().parse::<Id>(), Ok(id));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u128);

/// The lowest bit of an id, set if the timeout has a key.
const KEYED: u32 = 1;

impl Id {
    /// Makes an id that no other call makes, in this process or another.
    ///
    /// The upper 48 bits are the milliseconds since 1970, the next 48 a counter with a random start, and the lower 32 the
    /// [`tag`](Self::tag).
    pub fn new(topic: &str, key: Option<&str>) -> Self {
        static NEXT: OnceLock<AtomicU64> = OnceLock::new();
        let next = NEXT.get_or_init(|| AtomicU64::new(fastrand::u64(..)));
        // ORDERING: Relaxed, only the atomicity of the count matters.
        let count = next.fetch_add(1, Ordering::Relaxed) & ((1 << 48) - 1);
        let millis = (micros_of(SystemTime::now()).max(0) / 1000) as u128 & ((1 << 48) - 1);
        let tag = key.map_or_else(|| fastrand::u32(..) & !KEYED, |key| key_tag(topic, key));
        Self(millis << 80 | u128::from(count) << 32 | u128::from(tag))
    }

    /// Returns a hash of topic and key for a timeout with a key, and a random number for one without.
    ///
    /// A batch holds each tag at most once. Therefore each part of a batch decides about a row of its own, although a
    /// part may name its row by the key and another by the id.
    pub fn tag(self) -> u32 {
        self.0 as u32
    }
}

/// Returns the tag of the ids whose timeouts have this key.
pub(crate) fn key_tag(topic: &str, key: &str) -> u32 {
    // FNV-1a, because the hash is stored: it must stay the same in all versions.
    let bytes = topic.bytes().chain([0]).chain(key.bytes());
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    (hash ^ hash >> 32) as u32 | KEYED
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

impl FromStr for Id {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Id)
    }
}

/// The place of a timeout in the list of the store: by due time, then by id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The due time on the store's clock.
    pub due: Micros,
    /// The id, which orders timeouts that are due at the same time.
    pub id: Id,
}

impl Place {
    /// The place before all others.
    pub const START: Self = Self { due: Micros::MIN, id: Id(0) };
    /// The place behind all others.
    pub const END: Self = Self { due: Micros::MAX, id: Id(u128::MAX) };

    /// Returns the first place behind this one.
    pub(crate) fn next(self) -> Self {
        Self { due: self.due, id: Id(self.id.0.saturating_add(1)) }
    }
}

/// The number of an attempt, from 1. It grows by one with each begin, and serves as a fencing token.
pub type Attempt = u32;

/// The content of a timeout, which the store keeps and does not interpret.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Content {
    /// The name of the handler.
    pub topic: String,
    /// The name of the timeout within its topic. At most one timeout per topic and key is in the list.
    pub key: Option<String>,
    /// The period of a timeout that repeats.
    pub period: Option<Micros>,
    /// The format of the payload: 0 for bytes, 1 for JSON. Other numbers belong to later versions.
    pub format: u8,
    /// The bytes of the payload.
    pub payload: Vec<u8>,
}

/// A timeout as it is in the list of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The identity.
    pub id: Id,
    /// The due time of the next attempt, or of the one that runs.
    pub due: Micros,
    /// The number of the last attempt, 0 if none has begun.
    pub attempt: Attempt,
    /// The number of the last attempt of the run before. A periodic timeout has many runs; others have this at 0, and a
    /// requeued one at its attempts until then.
    pub base: Attempt,
    /// Whether an attempt has begun and has not ended.
    pub running: bool,
    /// Topic, key and payload.
    pub content: Content,
}

/// A timeout that was taken out of the list because it cannot succeed. Its payload is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadLetter {
    /// The timeout as it was.
    pub row: Row,
    /// When it was buried, on the store's clock.
    pub buried_at: Micros,
    /// The reason, for people.
    pub reason: String,
}
