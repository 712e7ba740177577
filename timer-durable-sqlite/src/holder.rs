//! The timeout that has the key of an insert, and the effect of the insert on it.

use super::ids::{blob, id};
use super::slots::Slots;
use super::tombstones::Tombstones;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use timer_durable::TimeoutId;
use timer_durable::store::Micros;
use timer_durable::transaction::{Insert, KeyEffect, KeyHolder, Outcome};

/// A timeout that has the key of an insert, or a queued call.
pub(super) struct Holder {
    pub(super) id: TimeoutId,
    pub(super) state: KeyHolder,
}

impl Holder {
    const COLUMNS: &'static str = "select id, due, begun is not null, planned, attempt from timer_timeout";

    fn read(row: &Row<'_>) -> Result<Self> {
        let state =
            KeyHolder { due: row.get(1)?, planned: row.get(3)?, attempts: row.get(4)?, is_running: row.get(2)? };
        Ok(Self { id: id(row.get(0)?), state })
    }

    pub(super) fn find(db: &Connection, topic: &str, key: &str) -> Result<Option<Self>> {
        let mut find =
            db.prepare_cached(&format!("{} where topic = ?1 and key = ?2 and if_pending is null", Self::COLUMNS))?;
        find.query_row([topic, key], Self::read).optional()
    }

    /// Returns the queued call of a key. If another program has deleted the attempt that named the
    /// call, no row names it.
    pub(super) fn find_queued(db: &Connection, topic: &str, key: Option<&str>) -> Result<Option<Self>> {
        let mut find =
            db.prepare_cached(&format!("{} where topic = ?1 and key = ?2 and if_pending is not null", Self::COLUMNS))?;
        let call = find.query_row(params![topic, key], Self::read).optional()?;
        Ok(call.map(|call| Self { state: KeyHolder { is_running: false, ..call.state }, ..call }))
    }

    /// Lets an insert have its effect. If the attempt of the holder runs, the answer is `Queued`
    /// and nothing is changed. Returns `None` if the insert has ended the holder and takes its
    /// place.
    pub(super) fn affect(
        &self,
        tombstones: Tombstones<'_>,
        slots: &mut Slots<'_>,
        new: &Insert,
    ) -> Result<Option<Outcome>> {
        let Tombstones { db, now, .. } = tombstones;
        let id = self.id;
        match new.effect_on(&self.state, now) {
            KeyEffect::Kept => Ok(Some(Outcome::Kept(id))),
            KeyEffect::Queued => Ok(Some(Outcome::Queued(id))),
            KeyEffect::Moved { due } => {
                slots.change_due(id, Some(&new.topic), due)?;
                Ok(Some(Outcome::Moved(id, due)))
            }
            KeyEffect::Updated { due, planned } => {
                slots.change_due(id, Some(&new.topic), due)?;
                update(db, id, new, planned)?;
                Ok(Some(Outcome::Moved(id, due)))
            }
            KeyEffect::Replaced => {
                db.prepare_cached("delete from timer_timeout where id = ?1")?.execute([blob(id)])?;
                tombstones.leave(id)?;
                Ok(None)
            }
        }
    }
}

/// Returns the call that is queued beside the attempt of a timeout.
pub(super) fn queued_beside(db: &Connection, id: TimeoutId) -> Result<Option<TimeoutId>> {
    let mut find = db.prepare_cached(
        "select q.id from timer_timeout t join timer_timeout q on q.id = t.queued
         where t.id = ?1 and q.if_pending is not null",
    )?;
    find.query_row([blob(id)], |row| row.get(0).map(super::ids::id)).optional()
}

/// Gives a pending timeout or a queued call the contents of an insert and a planned time. The call
/// gets the rule as well, as `IfPending::after` tells.
fn update(db: &Connection, id: TimeoutId, new: &Insert, planned: Option<Micros>) -> Result<()> {
    let mut update = db.prepare_cached(
        "update timer_timeout
         set format = ?2, payload = ?3, period = ?4, max_lateness = ?5, traceparent = ?6, planned = ?7,
             if_pending = iif(if_pending is null or if_pending = 'replace', if_pending, ?8)
         where id = ?1",
    )?;
    let rule = new.if_pending.name();
    let values =
        params![blob(id), new.format, new.payload, new.period, new.max_lateness, new.traceparent, planned, rule];
    update.execute(values).map(drop)
}
