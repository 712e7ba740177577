//! Tombstones, which keep the timeout of an id from being inserted again after its end.
//!
//! A call whose answer was lost may be repeated, and the timeout that it made may have ended
//! by then. The end of a timeout therefore leaves a tombstone for as long as the insert of its id
//! may be repeated ([`TimeoutId::repeatable_until`]). The instance that made an id knows the
//! outcome of its insert, so timeouts that end on the instance that made their ids leave nothing.
//!
//! Ids begin with the time at which they were made, and the table is in their order, so its first
//! tombstones are the oldest ones.

use super::ids::blob;
use rusqlite::{Connection, Result};
use timer_durable::TimeoutId;
use timer_durable::store::Micros;
use timer_durable::transaction::Outcome;

/// The largest number of old tombstones that a new one removes.
const MAX_REMOVED: u32 = 16;

/// The tombstones of a file, as they are seen by an instance in a transaction.
#[derive(Clone, Copy)]
pub(super) struct Tombstones<'c> {
    pub(super) db: &'c Connection,
    instance: u32,
    pub(super) now: Micros,
}

impl<'c> Tombstones<'c> {
    pub(super) fn new(db: &'c Connection, epoch: i64, now: Micros) -> Self {
        Self { db, instance: epoch as u32, now }
    }

    /// Leaves a tombstone for a timeout that has ended, if somebody may insert its id again.
    pub(super) fn leave(&self, id: TimeoutId) -> Result<()> {
        if id.repeatable_until(self.instance).is_none_or(|until| until <= self.now) {
            return Ok(());
        }
        self.db.prepare_cached("insert or ignore into timer_tombstone(id) values (?1)")?.execute([blob(id)])?;
        let mut remove = self.db.prepare_cached(
            "delete from timer_tombstone
             where id in (select id from timer_tombstone where id < ?1 order by id limit ?2)",
        )?;
        let oldest = TimeoutId::oldest_repeatable(self.now);
        remove.execute(rusqlite::params![blob(oldest), MAX_REMOVED]).map(drop)
    }

    /// Returns the refusal of an insert if its id was used before, or if the id is too old to tell.
    pub(super) fn refusal(&self, id: TimeoutId) -> Result<Option<Outcome>> {
        let Some(until) = id.repeatable_until(self.instance) else { return Ok(None) };
        if is_taken(self.db, id)? || self.has(id)? {
            return Ok(Some(Outcome::Exists));
        }
        Ok((until <= self.now).then_some(Outcome::TooOld))
    }

    fn has(&self, id: TimeoutId) -> Result<bool> {
        self.db.prepare_cached("select 1 from timer_tombstone where id = ?1")?.exists([blob(id)])
    }
}

/// Returns `true` if a timeout or a dead letter has the id.
pub(super) fn is_taken(db: &Connection, id: TimeoutId) -> Result<bool> {
    let mut taken = db.prepare_cached(
        "select exists (select 1 from timer_timeout where id = ?1) or exists (select 1 from timer_dead where id = ?1)",
    )?;
    taken.query_row([blob(id)], |row| row.get(0))
}
