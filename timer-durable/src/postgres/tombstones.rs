//! Removing tombstones whose time is over.
//!
//! A timeout that ends within ten minutes after its id was made leaves a tombstone until then,
//! unless the instance that made the id ends it. Each node removes old ones by a separate
//! statement. As a part of the renewal, a tombstone that a foreign key of the user protects would
//! cost every node its lease. The statement needs no fence, because an insert of such an id is
//! refused as too old.

use super::PostgresStore;
use crate::store::Store;
use std::time::{Duration, Instant};

/// The time between two removals. The keeper does not wake for one.
const INTERVAL: Duration = Duration::from_secs(60);

/// The time after which a removal is repeated if it has met its limit.
const PAUSE: Duration = Duration::from_millis(100);

/// The limit of a removal. Other statements wait for it.
const MAX_REMOVED: i64 = 1_000;

/// The next removal.
#[derive(Debug)]
pub(super) struct Removal {
    next: Instant,
    /// Whether the last removal has met its limit, so that the keeper has to wake for the next one.
    has_more: bool,
}

impl Removal {
    pub(super) fn new(now: Instant) -> Self {
        Self { next: now, has_more: false }
    }

    /// Returns the time at which the keeper has to wake.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        self.has_more.then_some(self.next)
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
        self.removal = Removal { next: now + INTERVAL, has_more: false };
        let removed = self.link().and_then(|link| {
            let sql = format!(
                "with removed as (
                    delete from timer.timeout where id = any (array(
                        select t.id from timer.timeout t where t.ended < (select timer.now()) and t.reason is null
                        order by t.ended limit {MAX_REMOVED} for update skip locked
                    )) returning 1
                ) select count(*) from removed"
            );
            Ok(link.connection.ask(&sql)?.get::<_, i64>(0))
        });
        match self.check(removed) {
            Ok(removed) if removed >= MAX_REMOVED => {
                // Half of the time at most is for removals, however long they take.
                let next = Instant::now() + PAUSE.max(now.elapsed());
                self.removal = Removal { next, has_more: true };
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(server = self.describe(), %error, "old tombstones could not be removed");
            }
        }
    }
}
