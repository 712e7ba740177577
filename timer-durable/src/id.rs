//! The identity of a timeout.

use crate::time::{Micros, micros};
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time after its creation during which an id may be inserted again. Tombstones last as long.
const REPEATABLE: Micros = 600_000_000;

/// The maker of ids whose insert cannot be repeated, because a function of the database made them.
const UNREPEATABLE_MAKER: u32 = u32::MAX;

/// The identity of a timeout, unique among all stores.
///
/// An id has 128 bits. They are the milliseconds since 1970 at which it was made (48), the instance
/// that made it or 0 for a caller (32), and a number (48). Ids therefore sort by the time at which
/// they were made.
///
/// # Examples
///
/// An id is written as text and read again, for example to repeat a call in another process:
///
/// ```
/// use timer_durable::TimeoutId;
///
/// let id = TimeoutId::new();
/// let text = id.to_string();
/// assert_eq!(text.parse(), Ok(id));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeoutId(u128);

impl TimeoutId {
    /// Makes an id for a call that may have to be repeated.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each id is another one")]
    pub fn new() -> Self {
        Self::made_by(0)
    }

    /// Makes an id on behalf of an instance of a store.
    #[must_use]
    pub fn made_by(instance: u32) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self::made_at(micros(now), instance)
    }

    /// Makes an id on behalf of an instance of a store whose clock is at `now`.
    pub(crate) fn made_at(now: Micros, instance: u32) -> Self {
        static START: OnceLock<u64> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Processes that start in the same millisecond begin at different numbers.
        let start = *START.get_or_init(|| fastrand::u64(1..1 << 47));
        // ORDERING: Relaxed, the number only has to differ from the others.
        let number = start + NEXT.fetch_add(1, Ordering::Relaxed);
        let millis = u128::try_from(now / 1_000).unwrap_or(0);
        let number = u128::from(number & ((1 << 48) - 1));
        Self((millis & ((1 << 48) - 1)) << 80 | u128::from(instance) << 48 | number)
    }

    /// Returns the id with these bits.
    #[must_use]
    pub const fn from_u128(bits: u128) -> Self {
        Self(bits)
    }

    /// Returns the bits of the id.
    #[must_use]
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    /// Returns the milliseconds since 1970 at which the id was made, by the clock of its maker.
    #[must_use]
    pub const fn millis(self) -> u64 {
        (self.0 >> 80) as u64
    }

    /// Returns the instance that made the id, or 0 if a caller made it.
    #[must_use]
    pub const fn maker(self) -> u32 {
        (self.0 >> 48) as u32
    }

    /// Returns the time until which an insert of this id may be repeated, ten minutes after the id
    /// was made. Returns `None` if only `instance` could repeat it, because an instance knows the
    /// outcome of its own inserts.
    ///
    /// A store refuses an insert after this time as [too old](crate::transaction::Outcome::TooOld).
    /// If the timeout ends before, the store keeps a tombstone of the id until then, so that a
    /// repeated insert [finds it](crate::transaction::Outcome::Exists).
    #[must_use]
    pub fn repeatable_until(self, instance: u32) -> Option<Micros> {
        let is_known = self.maker() == instance || self.maker() == UNREPEATABLE_MAKER;
        let birth = i64::try_from(self.millis()).unwrap_or(i64::MAX).saturating_mul(1_000);
        (!is_known).then(|| birth.saturating_add(REPEATABLE))
    }

    /// Returns the first of the ids whose insert may be repeated at `now`. A store removes the
    /// tombstones of all ids before it.
    #[must_use]
    pub fn oldest_repeatable(now: Micros) -> Self {
        Self((now.saturating_sub(REPEATABLE).max(0) as u128 / 1_000) << 80)
    }
}

impl fmt::Display for TimeoutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for TimeoutId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimeoutId({self})")
    }
}

#[cfg(feature = "uuid")]
impl From<TimeoutId> for uuid::Uuid {
    fn from(id: TimeoutId) -> Self {
        Self::from_u128(id.0)
    }
}

#[cfg(feature = "uuid")]
impl From<uuid::Uuid> for TimeoutId {
    fn from(id: uuid::Uuid) -> Self {
        Self(id.as_u128())
    }
}

/// As the text of [`Display`](fmt::Display).
#[cfg(feature = "serde")]
impl serde::Serialize for TimeoutId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for TimeoutId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The places of the dashes in a UUID.
const DASHES: [usize; 4] = [8, 13, 18, 23];

/// A text that is not an id. An id is 32 hexadecimal digits, or a UUID with its four dashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseIdError {
    given: String,
}

impl ParseIdError {
    /// Returns the text.
    #[must_use]
    pub fn into_inner(self) -> String {
        self.given
    }
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not the id of a timeout, which is 32 hexadecimal digits", self.given)
    }
}

impl std::error::Error for ParseIdError {}

impl FromStr for TimeoutId {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let error = || ParseIdError { given: text.to_owned() };
        let mut digits = String::with_capacity(32);
        for (index, character) in text.char_indices() {
            match character {
                '-' if text.len() == 36 && DASHES.contains(&index) => {}
                // A number may begin with a sign, and an id may not.
                digit if digit.is_ascii_hexdigit() => digits.push(digit),
                _ => return Err(error()),
            }
        }
        if digits.len() != 32 {
            return Err(error());
        }
        u128::from_str_radix(&digits, 16).map(Self).map_err(|_| error())
    }
}

#[cfg(test)]
mod tests {
    use super::TimeoutId;

    #[test]
    fn an_id_knows_its_maker_and_its_time() {
        let id = TimeoutId::made_by(7);
        assert_eq!((id.maker(), TimeoutId::new().maker()), (7, 0));
        assert!(id.millis() > 1_700_000_000_000);
        assert_ne!(id, TimeoutId::made_by(7));
    }

    #[test]
    fn ids_differ() {
        let mut ids: Vec<TimeoutId> = (0..1_000).map(|_| TimeoutId::new()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 1_000);
    }

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = TimeoutId::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!("01234567-89ab-cdef-0123-456789abcdef".parse(), Ok(id), "as PostgreSQL prints it");
        assert!("x".parse::<TimeoutId>().unwrap_err().to_string().contains("`x`"));
    }

    #[cfg(all(feature = "serde", feature = "uuid"))]
    #[test]
    fn an_id_is_a_text_and_a_uuid() {
        let id = TimeoutId::from_u128(7);
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(text, format!("\"{id}\""));
        assert_eq!(serde_json::from_str::<TimeoutId>(&text).unwrap(), id);
        assert!(serde_json::from_str::<TimeoutId>("\"x\"").is_err());
        assert_eq!(TimeoutId::from(uuid::Uuid::from(id)), id);
    }

    #[test]
    fn other_texts_are_no_ids() {
        let others = [
            "+123456789abcdef0123456789abcdef",
            "+0123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcde",
            "0123456789abcdef0123456789abcdef0",
            "0123-4567-89ab-cdef-0123456789abcdef",
            "01234567-89ab-cdef-0123-456789abcdef-",
            "-01234567-89ab-cdef-0123456789abcdef",
            "01234567-89ab-cdef-01234-56789abcdef",
            "01234567-89ab-cdef-0123-456789abcde\u{e9}",
            "0123456789abcdef-0123456789abcdef",
            "",
        ];
        for text in others {
            assert!(text.parse::<TimeoutId>().is_err(), "{text}");
        }
    }
}
