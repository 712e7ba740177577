//! Removing tombstones whose time is over.
//!
//! A timeout that ends within ten minutes after its id was made leaves a tombstone until then,
//! unless the instance that made the id ends it. Each node removes old ones by a separate
//! statement. As a part of the renewal, a tombstone that a foreign key of the user protects would
//! cost every node its lease. The statement needs no fence, because an insert of such an id is
//! refused as too old.

use super::agenda::Interval;
use std::time::{Duration, Instant};

/// The time between two removals. The keeper does not wake for one.
const INTERVAL: Duration = Duration::from_secs(60);

/// The time after which a removal is repeated if it has met its limit.
const PAUSE: Duration = Duration::from_millis(100);

/// The limit of a removal. Other statements wait for it.
const MAX_REMOVED: i64 = 1_000;

/// The time after which a removal looks at all tombstones again, also at those that were locked.
const FULL_LOOK: Duration = Duration::from_secs(3600);

/// The next removal.
#[derive(Debug)]
pub(super) struct Removal {
    next: Instant,
    /// Removals have passed the tombstones that end earlier. While a snapshot is held, their dead
    /// versions stay in the index, and a look from the beginning would visit all of them.
    from: i64,
    full_looks: Interval,
}

impl Removal {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now, from: 0, full_looks: Interval::new(now + FULL_LOOK, FULL_LOOK) }
    }

    /// Begins a removal if it is time, and returns its statement. The answer has the number of
    /// tombstones that were removed and the end of the last one.
    pub(super) fn begin(&mut self, now: Instant) -> Option<String> {
        if self.next > now {
            return None;
        }
        self.next = now + INTERVAL;
        if self.full_looks.begins(now) {
            self.from = 0;
        }
        Some(format!(
            "with old as (
                select t.id, t.ended from timer.timeout t
                where t.ended >= {from} and t.ended < (select timer.now()) and t.reason is null
                order by t.ended limit {MAX_REMOVED} for update skip locked
            ), removed as (
                delete from timer.timeout where id = any (array(select id from old)) returning 1
            ) select count(*), (select max(ended) from old) from removed",
            from = self.from
        ))
    }

    /// Ends a removal that began at `began`. Returns the time of the next one if this one has met
    /// its limit.
    pub(super) fn end(&mut self, began: Instant, removed: i64, last: Option<i64>) -> Option<Instant> {
        self.from = last.unwrap_or(self.from);
        if removed < MAX_REMOVED {
            return None;
        }
        // Half of the time at most is for removals, however long they take.
        self.next = Instant::now() + PAUSE.max(began.elapsed());
        Some(self.next)
    }
}
