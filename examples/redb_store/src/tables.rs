//! The tables of a file.
//!
//! Their names begin with `timer_`, because the user may have tables in the same file. All times
//! are microseconds, and all ids are the bits of a [`TimeoutId`](timer_durable::TimeoutId).

use redb::{TableDefinition, Value};

/// The timeouts that have not ended, and the calls that are queued, by id.
pub(crate) const TIMEOUTS: TableDefinition<u128, StoredRow> = TableDefinition::new("timer_timeouts");

/// The list of each topic. The value of a place is the epoch in `begun` of its row, so the pages of
/// a list are read without the rows.
pub(crate) const LISTS: TableDefinition<Place, i64> = TableDefinition::new("timer_lists");

/// The ids of the timeouts that have keys, by topic and key.
pub(crate) const KEYS: TableDefinition<(&str, &str), u128> = TableDefinition::new("timer_keys");

/// The dead letters, by id.
pub(crate) const DEAD: TableDefinition<u128, StoredLetter> = TableDefinition::new("timer_dead");

/// The ids of ended timeouts that could be inserted again. The oldest ones come first.
pub(crate) const TOMBSTONES: TableDefinition<u128, ()> = TableDefinition::new("timer_tombstones");

/// The topics that are paused.
pub(crate) const PAUSED: TableDefinition<&str, ()> = TableDefinition::new("timer_paused");

/// Numbers by their names.
pub(crate) const META: TableDefinition<&str, i64> = TableDefinition::new("timer_meta");

/// The names in [`META`] of the version of the tables, of the epoch of the last instance, and of
/// the latest time on the store's clock.
pub(crate) const VERSION: &str = "version";
pub(crate) const EPOCH: &str = "epoch";
pub(crate) const FLOOR: &str = "floor";

/// A topic, a due time and an id.
pub(crate) type Place = (&'static str, i64, u128);

/// A [`Row`](timer_durable::store::Row) without its id.
pub(crate) type StoredRow = (
    // The topic, the key.
    (&'static str, Option<&'static str>),
    // The due time, the planned time.
    (i64, Option<i64>),
    // The number of attempts, the number of those that do not count.
    (u32, u32),
    // The epoch that has begun the last attempt, the time at which it began.
    (i64, i64),
    // The period, the limit of lateness.
    (Option<i64>, Option<i64>),
    // The call that is queued, the rule of this call.
    (Option<u128>, &'static str),
    // The format, the payload.
    (i16, &'static [u8]),
    // The trace.
    Option<&'static str>,
);

/// A dead letter without its id.
pub(crate) type StoredLetter = (
    // The topic, the key.
    (&'static str, Option<&'static str>),
    // The due time, the time of its death.
    (i64, i64),
    // The last attempt, the reason.
    (u32, &'static str),
    // The format, the payload.
    (i16, &'static [u8]),
);

/// The form in which redb takes and returns a value.
pub(crate) type Form<'v, V> = <V as Value>::SelfType<'v>;
