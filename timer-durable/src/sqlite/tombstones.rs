//! Tombstones, which keep the timeout of an id from being inserted again after its end.
//!
//! A call whose answer was lost may be repeated, and the timeout that it made may have ended
//! meanwhile. The end of a timeout therefore leaves a tombstone for as long as the insert of its id
//! may be repeated ([`TimeoutId::repeatable_until`]). The instance that made an id knows the
//! outcome of its insert, so timeouts that end on the instance that made their ids leave nothing.
//!
//! The table is created when the first tombstone is left. Programs of earlier releases do not
//! notice it, so it needs no version of its own. Ids begin with the time at which they were made,
//! and the table is in their order, so its first tombstones are the oldest ones.

use super::rows;
use crate::TimeoutId;
use crate::store::Micros;
use crate::transaction::Inserted;
use rusqlite::{Connection, Result};

/// Creates the table of the tombstones, unless the file has it.
const CREATE: &str = "create table if not exists timer_tombstone(id blob primary key) without rowid";

/// The most old tombstones that a new one removes.
const MAX_REMOVED: u32 = 16;

/// The tombstones of a file, as they are seen by an instance in a transaction.
#[derive(Clone, Copy)]
pub(super) struct Tombstones<'c> {
    pub(super) db: &'c Connection,
    pub(super) instance: u32,
    pub(super) now: Micros,
}

impl Tombstones<'_> {
    /// Leaves a tombstone for a timeout that has ended, if somebody may insert its id again.
    pub(super) fn leave(&self, id: TimeoutId) -> Result<()> {
        if id.repeatable_until(self.instance).is_none_or(|until| until <= self.now) {
            return Ok(());
        }
        self.db.execute_batch(CREATE)?;
        self.db.prepare_cached("insert or ignore into timer_tombstone(id) values (?1)")?.execute([rows::blob(id)])?;
        let mut remove = self.db.prepare_cached(
            "delete from timer_tombstone
             where id in (select id from timer_tombstone where id < ?1 order by id limit ?2)",
        )?;
        let oldest = TimeoutId::oldest_repeatable(self.now);
        remove.execute(rusqlite::params![rows::blob(oldest), MAX_REMOVED]).map(drop)
    }

    /// Returns the refusal of an insert if its id was used before, or if the id is too old to tell.
    pub(super) fn refusal(&self, id: TimeoutId) -> Result<Option<Inserted>> {
        let Some(until) = id.repeatable_until(self.instance) else { return Ok(None) };
        if rows::is_taken(self.db, id)? || self.has(id)? {
            return Ok(Some(Inserted::Exists));
        }
        Ok((until <= self.now).then_some(Inserted::TooOld))
    }

    fn has(&self, id: TimeoutId) -> Result<bool> {
        let table = "select 1 from sqlite_schema where type = 'table' and name = 'timer_tombstone'";
        Ok(self.db.prepare_cached(table)?.exists([])?
            && self.db.prepare_cached("select 1 from timer_tombstone where id = ?1")?.exists([rows::blob(id)])?)
    }
}

/// Takes over the tombstones of an earlier program. The name of its table is one that a table of
/// the user may have too.
pub(super) fn take_over(db: &Connection) -> Result<()> {
    let former = "select 1 from sqlite_schema where sql = 'CREATE TABLE tombstone(id blob primary key) without rowid'";
    if db.prepare(former)?.exists([])? {
        db.execute_batch(&format!(
            "begin immediate; {CREATE}; insert or ignore into timer_tombstone select id from tombstone;
             drop table tombstone; commit"
        ))?;
    }
    Ok(())
}
