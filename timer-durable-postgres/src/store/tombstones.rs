//! Removing tombstones whose time is over.
//!
//! A timeout that ends within ten minutes after its id was made leaves a tombstone until then,
//! unless the instance that made the id ends it. Each node removes old ones by a separate
//! statement. As a part of the renewal, a tombstone that a foreign key of the user protects would
//! cost every node its lease. The statement needs no fence, because an insert of such an id is
//! refused as too old.

use super::PostgresStore;
use super::agenda::{Interval, Task};
use std::time::{Duration, Instant};
use timer_durable::store::Store;

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
}

impl PostgresStore {
    /// Removes old tombstones if it is time. A failure is only logged, because it must not fail the
    /// upkeep that renews the lease.
    pub(super) fn remove_tombstones(&mut self) {
        let now = Instant::now();
        if self.removal.next > now {
            return;
        }
        self.removal.next = now + INTERVAL;
        self.agenda.clear(Task::Removal);
        if self.removal.full_looks.begins(now) {
            self.removal.from = 0;
        }
        let from = self.removal.from;
        let removed = self.link().and_then(|link| {
            let sql = format!(
                "with old as (
                    select t.id, t.ended from timer.timeout t
                    where t.ended >= {from} and t.ended < (select timer.now()) and t.reason is null
                    order by t.ended limit {MAX_REMOVED} for update skip locked
                ), removed as (
                    delete from timer.timeout where id = any (array(select id from old)) returning 1
                ) select count(*), (select max(ended) from old) from removed"
            );
            let row = link.connection.ask(&sql)?;
            Ok((row.get::<_, i64>(0), row.get::<_, Option<i64>>(1)))
        });
        let removed = self.check(removed).map(|(removed, last)| {
            self.removal.from = last.unwrap_or(from);
            removed
        });
        match removed {
            Ok(removed) if removed >= MAX_REMOVED => {
                // Half of the time at most is for removals, however long they take.
                self.removal.next = Instant::now() + PAUSE.max(now.elapsed());
                self.agenda.set(Task::Removal, self.removal.next);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(server = self.describe(), %error, "old tombstones could not be removed");
            }
        }
    }
}
