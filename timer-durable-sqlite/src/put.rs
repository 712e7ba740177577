//! Inserts, and their effect on the timeout that has their key.

use super::ids::{blob, id};
use super::slots::Slots;
use super::tombstones::{Tombstones, is_taken};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, params};
use std::cell::OnceCell;
use timer_durable::TimeoutId;
use timer_durable::store::Micros;
use timer_durable::transaction::{Insert, KeyEffect, KeyHolder, Outcome};

pub(super) fn insert(tombstones: Tombstones<'_>, create: &mut Create<'_>, new: &Insert) -> Result<Outcome> {
    let db = tombstones.db;
    if let Some(refusal) = tombstones.refusal(new.id)? {
        return Ok(refusal);
    }
    if create.execute(db, new)? {
        return Ok(Outcome::Created { replaced: None });
    }
    let Some(key) = &new.key else { return Ok(Outcome::Exists) };
    if is_taken(db, new.id)? {
        return Ok(Outcome::Exists);
    }
    let mut holder = db.prepare_cached(
        "select id, due, begun is not null, planned, attempt from timer_timeout where topic = ?1 and key = ?2",
    )?;
    let holder = holder.query_row(params![new.topic, key], |row| {
        let is_running = row.get(2)?;
        Ok((id(row.get(0)?), KeyHolder { due: row.get(1)?, planned: row.get(3)?, attempts: row.get(4)?, is_running }))
    });
    let Some((holder, state)) = holder.optional()? else { return Ok(Outcome::Exists) };
    match new.effect_on(&state, tombstones.now) {
        KeyEffect::Kept => Ok(Outcome::Kept(holder)),
        KeyEffect::Moved { due } => {
            create.slots.change_due(holder, Some(&new.topic), due)?;
            Ok(Outcome::Moved(holder, due))
        }
        KeyEffect::Updated { due, planned } => {
            create.slots.change_due(holder, Some(&new.topic), due)?;
            update(db, holder, new, planned)?;
            Ok(Outcome::Moved(holder, due))
        }
        KeyEffect::Replaced => {
            db.prepare_cached("delete from timer_timeout where id = ?1")?.execute([blob(holder)])?;
            tombstones.leave(holder)?;
            let created = create.execute(db, new)?;
            Ok(if created { Outcome::Created { replaced: Some(holder) } } else { Outcome::Exists })
        }
    }
}

/// Gives a pending timeout the contents of an insert and a planned time.
fn update(db: &Connection, id: TimeoutId, new: &Insert, planned: Option<Micros>) -> Result<()> {
    let mut update = db.prepare_cached(
        "update timer_timeout
         set format = ?2, payload = ?3, period = ?4, max_lateness = ?5, traceparent = ?6, planned = ?7 where id = ?1",
    )?;
    let values = params![blob(id), new.format, new.payload, new.period, new.max_lateness, new.traceparent, planned];
    update.execute(values).map(drop)
}

/// Inserts the timeout that follows an attempt, unless its id was used before. The attempt may have
/// taken longer than a caller may use an id.
pub(super) fn follow(tombstones: Tombstones<'_>, create: &mut Create<'_>, then: &Insert) -> Result<()> {
    let may_create = tombstones.refusal(then.id)? != Some(Outcome::Exists);
    if may_create && !create.execute(tombstones.db, then)? {
        then.report_taken_key();
    }
    Ok(())
}

const CREATE: &str =
    "insert into timer_timeout(id, due, topic, key, format, payload, period, max_lateness, slot, planned, traceparent)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict do nothing";

/// The statement that creates a row.
pub(super) struct Create<'c> {
    insert: CachedStatement<'c>,
    /// Whether there are dead letters, whose ids are taken as well.
    has_dead: OnceCell<bool>,
    /// The slots of the timeouts of the batch.
    pub(super) slots: Slots<'c>,
}

impl<'c> Create<'c> {
    pub(super) fn new(db: &'c Connection, now: Micros) -> Result<Self> {
        Ok(Self { insert: db.prepare_cached(CREATE)?, has_dead: OnceCell::new(), slots: Slots::new(db, now) })
    }

    /// Inserts a row. Returns `false` if the id or the key is taken.
    fn execute(&mut self, db: &Connection, new: &Insert) -> Result<bool> {
        let has_dead = match self.has_dead.get() {
            Some(has_dead) => *has_dead,
            None => {
                let mut query = db.prepare_cached("select exists (select 1 from timer_dead)")?;
                let has_dead = query.query_row([], |row| row.get(0))?;
                *self.has_dead.get_or_init(|| has_dead)
            }
        };
        if has_dead && db.prepare_cached("select 1 from timer_dead where id = ?1")?.exists([blob(new.id)])? {
            return Ok(false);
        }
        let values = params![
            blob(new.id),
            new.due,
            new.topic,
            new.key,
            new.format,
            new.payload,
            new.period,
            new.max_lateness,
            self.slots.assign(&new.topic, new.due)?,
            new.cap,
            new.traceparent
        ];
        Ok(self.insert.execute(values)? == 1)
    }
}
