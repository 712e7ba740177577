//! The statements of a batch.

use super::shelf;
use super::slots::{self, SHELF};
use super::tombstones::Tombstones;
use super::unreadable::{self, Place};
use crate::TimeoutId;
use crate::store::Micros;
use crate::transaction::{Attempt, IfPending, Insert, NextRun, Operation, Outcome, Target};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, params};
use std::cell::OnceCell;
use std::sync::Arc;

pub(super) fn blob(id: TimeoutId) -> [u8; 16] {
    id.as_u128().to_be_bytes()
}

pub(super) fn id(bytes: [u8; 16]) -> TimeoutId {
    TimeoutId::from_u128(u128::from_be_bytes(bytes))
}

/// The facts about the instance that executes a batch.
#[derive(Clone, Copy)]
pub(super) struct Instance<'a> {
    pub(super) epoch: i64,
    pub(super) now: Micros,
    /// The topics whose timeouts go to their shelves.
    pub(super) blocked: &'a [Arc<str>],
}

/// Executes a batch inside a transaction.
///
/// The statements of the frequent operations are looked up once per batch. None of them needs a
/// statement journal or a temporary table, which would double the time of a row. That excludes
/// `returning`, and inserts from a `select`.
pub(super) fn execute(db: &Connection, batch: &[Operation], instance: Instance<'_>) -> Result<Vec<Outcome>> {
    let Instance { epoch, now, .. } = instance;
    let far = slots::far(now);
    let tombstones = Tombstones { db, instance: epoch as u32, now };
    let mut create = Create { insert: db.prepare_cached(CREATE)?, has_dead: OnceCell::new(), far };
    let mut end = db.prepare_cached("delete from timeout where id = ?1 and attempt = ?2 and begun is not null")?;
    let mut begin = Begin { find: db.prepare_cached(FIND)?, update: db.prepare_cached(BEGIN)?, instance };
    let execute = |operation: &Operation| match operation {
        Operation::Insert(new) => insert(tombstones, &mut create, new),
        Operation::Reset { target, due } => reset(db, target, *due, far),
        Operation::Cancel(target) => cancel(tombstones, target),
        Operation::Done { id, attempt, next, then } => {
            let ended = match next {
                Some(next) => repeat(db, *id, *attempt, *next)?,
                None => changed(*id, end.execute(params![blob(*id), attempt])?),
            };
            if ended != Outcome::NotFound {
                if next.is_none() {
                    tombstones.leave(*id)?;
                }
                then.iter().try_for_each(|then| follow(tombstones, &mut create, then))?;
            }
            Ok(ended)
        }
        Operation::Retry { id, attempt, due, forgive } => retry(db, *id, *attempt, *due, *forgive),
        Operation::Postpone { id, attempt, due, payload } => postpone(db, *id, *attempt, *due, payload.as_ref()),
        Operation::Bury { id, attempt, reason, next } => bury(db, *id, *attempt, reason, *next, now),
        Operation::Requeue { id, due } => requeue(db, *id, *due),
        Operation::Purge(id) => purge(tombstones, *id),
        Operation::Begin(id) => begin.execute(db, *id),
    };
    batch.iter().map(execute).collect()
}

/// Executes each operation of a batch in its own savepoint, inside a transaction. Refuses an
/// operation that fails by its row, and makes a row that cannot begin a dead letter. Returns the
/// outcomes and the number of these dead letters.
pub(super) fn execute_apart(
    db: &Connection,
    batch: &[Operation],
    instance: Instance<'_>,
) -> Result<(Vec<Outcome>, usize)> {
    let mut buried = 0;
    let mut outcomes = Vec::with_capacity(batch.len());
    for operation in batch {
        db.prepare_cached("savepoint operation")?.execute([])?;
        let outcome = match execute(db, std::slice::from_ref(operation), instance) {
            Ok(outcome) => outcome,
            // A trigger of the user may have rolled back the whole transaction.
            Err(error) if !unreadable::is_of_row(&error) || db.is_autocommit() => return Err(error),
            Err(error) => {
                db.prepare_cached("rollback to operation")?.execute([])?;
                vec![match operation {
                    Operation::Begin(id) if unreadable::is_unreadable(&error) => {
                        buried += unreadable::bury(db, Place::Id(*id), &error, instance.now)?;
                        Outcome::NotFound
                    }
                    _ => Outcome::Refused(error.to_string()),
                }]
            }
        };
        outcomes.extend(outcome);
        db.prepare_cached("release operation")?.execute([])?;
    }
    Ok((outcomes, buried))
}

/// Returns the outcome of a statement that has changed `rows` rows with this id.
fn changed(id: TimeoutId, rows: usize) -> Outcome {
    if rows == 0 { Outcome::NotFound } else { Outcome::Changed(id) }
}

fn insert(tombstones: Tombstones<'_>, create: &mut Create<'_>, new: &Insert) -> Result<Outcome> {
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
    let mut holder = db.prepare_cached("select id, due, begun from timeout where topic = ?1 and key = ?2")?;
    let holder = holder.query_row(params![new.topic, key], |row| {
        Ok((id(row.get(0)?), row.get::<_, Micros>(1)?, row.get::<_, Option<i64>>(2)?.is_some()))
    });
    let Some((holder, due, runs)) = holder.optional()? else { return Ok(Outcome::Exists) };
    let new_due = match new.if_pending {
        _ if runs => due,
        IfPending::Keep | IfPending::Refuse => due,
        IfPending::Earlier => due.min(new.due),
        IfPending::Later => due.max(new.due),
        IfPending::Update => {
            let mut update = db.prepare_cached(
                "update timeout set format = ?2, payload = ?3, period = ?4, max_lateness = ?5 where id = ?1",
            )?;
            update.execute(params![blob(holder), new.format, new.payload, new.period, new.max_lateness])?;
            let new_due = new.updated_due(due, tombstones.now);
            if new_due < due {
                change_due(db, holder, new_due, create.far)?;
            }
            return Ok(Outcome::Moved(holder, new_due));
        }
        IfPending::Replace => {
            db.prepare_cached("delete from timeout where id = ?1")?.execute([blob(holder)])?;
            tombstones.leave(holder)?;
            let created = create.execute(db, new)?;
            return Ok(if created { Outcome::Created { replaced: Some(holder) } } else { Outcome::Exists });
        }
    };
    if new_due == due {
        return Ok(Outcome::Kept(holder));
    }
    change_due(db, holder, new_due, create.far)?;
    Ok(Outcome::Moved(holder, new_due))
}

/// Inserts the timeout that follows an attempt, unless its id was used before. The attempt may have
/// taken longer than a caller may use an id.
fn follow(tombstones: Tombstones<'_>, create: &mut Create<'_>, then: &Insert) -> Result<()> {
    if tombstones.refusal(then.id)? != Some(Outcome::Exists) {
        create.execute(tombstones.db, then)?;
    }
    Ok(())
}

/// Returns `true` if a timeout or a dead letter has the id.
pub(super) fn is_taken(db: &Connection, id: TimeoutId) -> Result<bool> {
    let mut taken = db.prepare_cached(
        "select exists (select 1 from timeout where id = ?1) or exists (select 1 from dead where id = ?1)",
    )?;
    taken.query_row([blob(id)], |row| row.get(0))
}

const CREATE: &str = "insert into timeout(id, due, topic, key, format, payload, period, max_lateness, slot)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) on conflict do nothing";

/// The statement that creates a row.
struct Create<'c> {
    insert: CachedStatement<'c>,
    /// Whether there are dead letters, whose ids are taken as well.
    has_dead: OnceCell<bool>,
    far: Micros,
}

impl Create<'_> {
    /// Inserts a row. Returns `false` if the id or the key is taken.
    fn execute(&mut self, db: &Connection, new: &Insert) -> Result<bool> {
        let has_dead = match self.has_dead.get() {
            Some(has_dead) => *has_dead,
            None => {
                let mut query = db.prepare_cached("select exists (select 1 from dead)")?;
                let has_dead = query.query_row([], |row| row.get(0))?;
                *self.has_dead.get_or_init(|| has_dead)
            }
        };
        if has_dead && db.prepare_cached("select 1 from dead where id = ?1")?.exists([blob(new.id)])? {
            return Ok(false);
        }
        let created = self.insert.execute(params![
            blob(new.id),
            new.due,
            new.topic,
            new.key,
            new.format,
            new.payload,
            new.period,
            new.max_lateness,
            slots::slot(new.due, self.far)
        ])?;
        Ok(created == 1)
    }
}

fn reset(db: &Connection, target: &Target, due: Micros, far: Micros) -> Result<Outcome> {
    let found = find(db, target)?;
    if let Outcome::Changed(id) = found {
        change_due(db, id, due, far)?;
    }
    Ok(found)
}

/// Changes the due time of a timeout, and plans its run anew.
fn change_due(db: &Connection, id: TimeoutId, due: Micros, far: Micros) -> Result<()> {
    let mut update = db.prepare_cached("update timeout set due = ?2, slot = ?3, planned = null where id = ?1")?;
    update.execute(params![blob(id), due, slots::slot(due, far)]).map(drop)
}

fn cancel(tombstones: Tombstones<'_>, target: &Target) -> Result<Outcome> {
    let db = tombstones.db;
    let mut delete = db.prepare_cached("delete from timeout where id = ?1 and begun is null")?;
    if let Target::Id(id) = target {
        if delete.execute([blob(*id)])? == 1 {
            tombstones.leave(*id)?;
            return Ok(Outcome::Changed(*id));
        }
    }
    let found = find(db, target)?;
    if let Outcome::Changed(id) = found {
        delete.execute([blob(id)])?;
        tombstones.leave(id)?;
    }
    Ok(found)
}

/// Looks for a pending timeout.
fn find(db: &Connection, target: &Target) -> Result<Outcome> {
    let read = |row: &rusqlite::Row<'_>| Ok((id(row.get(0)?), row.get::<_, Option<i64>>(1)?.is_some()));
    let found = match target {
        Target::Id(id) => {
            db.prepare_cached("select id, begun from timeout where id = ?1")?.query_row([blob(*id)], read).optional()?
        }
        Target::Key { topic, key } => db
            .prepare_cached("select id, begun from timeout where topic = ?1 and key = ?2")?
            .query_row(params![topic, key], read)
            .optional()?,
    };
    Ok(match found {
        None => Outcome::NotFound,
        Some((_, true)) => Outcome::Running,
        Some((id, false)) => Outcome::Changed(id),
    })
}

/// Plans the next run of a periodic timeout.
fn repeat(db: &Connection, id: TimeoutId, attempt: u32, next: Micros) -> Result<Outcome> {
    let mut update = db.prepare_cached(
        "update timeout set due = ?3, slot = null, begun = null, forgiven = attempt, planned = null
         where id = ?1 and attempt = ?2 and begun is not null",
    )?;
    Ok(changed(id, update.execute(params![blob(id), attempt, next])?))
}

fn retry(db: &Connection, id: TimeoutId, attempt: u32, due: Micros, forgive: bool) -> Result<Outcome> {
    let mut update = db.prepare_cached(
        "update timeout set due = ?3, slot = null, begun = null, forgiven = forgiven + ?4,
                planned = coalesce(planned, due)
         where id = ?1 and attempt = ?2 and begun is not null",
    )?;
    Ok(changed(id, update.execute(params![blob(id), attempt, due, forgive])?))
}

fn postpone(
    db: &Connection,
    id: TimeoutId,
    attempt: u32,
    due: Micros,
    payload: Option<&(i16, Vec<u8>)>,
) -> Result<Outcome> {
    let mut update = db.prepare_cached(
        "update timeout set due = ?3, slot = null, begun = null, forgiven = attempt,
                planned = iif(period is null, null, coalesce(planned, due)),
                format = coalesce(?4, format), payload = coalesce(?5, payload)
         where id = ?1 and attempt = ?2 and begun is not null",
    )?;
    let (format, payload) = payload.map(|(format, payload)| (format, payload)).unzip();
    Ok(changed(id, update.execute(params![blob(id), attempt, due, format, payload])?))
}

fn bury(
    db: &Connection,
    id: TimeoutId,
    attempt: u32,
    reason: &str,
    next: Option<NextRun>,
    now: Micros,
) -> Result<Outcome> {
    let mut copy = db.prepare_cached(
        "insert into dead(id, due, topic, key, attempt, format, payload, reason, died)
         select ?5, due, topic, key, attempt, format, payload, ?3, ?4 from timeout
         where id = ?1 and attempt = ?2 and begun is not null",
    )?;
    let letter = next.map_or(id, |next| next.letter);
    let copied = copy.execute(params![blob(id), attempt, reason, now, blob(letter)])?;
    if let Some(next) = next {
        return repeat(db, id, attempt, next.due);
    }
    if copied == 1 {
        db.prepare_cached("delete from timeout where id = ?1")?.execute([blob(id)])?;
    }
    Ok(changed(id, copied))
}

fn requeue(db: &Connection, id: TimeoutId, due: Micros) -> Result<Outcome> {
    // A timeout with the same key may be pending by now.
    let mut copy = db.prepare_cached(
        "insert into timeout(id, due, topic, key, attempt, forgiven, format, payload)
         select id, ?2, topic, iif(exists (select 1 from timeout t where t.topic = dead.topic and t.key = dead.key), null, key),
                attempt, attempt, format, payload from dead where id = ?1",
    )?;
    copy.execute(params![blob(id), due])?;
    Ok(changed(id, delete_dead(db, id)?))
}

fn purge(tombstones: Tombstones<'_>, id: TimeoutId) -> Result<Outcome> {
    let purged = delete_dead(tombstones.db, id)?;
    if purged == 1 {
        tombstones.leave(id)?;
    }
    Ok(changed(id, purged))
}

fn delete_dead(db: &Connection, id: TimeoutId) -> Result<usize> {
    db.prepare_cached("delete from dead where id = ?1")?.execute([blob(id)])
}

const FIND: &str = "select attempt + 1, due, topic, forgiven, key, format, payload, period, max_lateness,
        coalesce(planned, due), slot from timeout
     where id = ?1 and (begun is null or begun < ?2)";
const BEGIN: &str = "update timeout set attempt = ?2, begun = ?3, started = ?4 where id = ?1";

/// The statements that begin an attempt.
struct Begin<'c> {
    find: CachedStatement<'c>,
    update: CachedStatement<'c>,
    instance: Instance<'c>,
}

impl Begin<'_> {
    fn execute(&mut self, db: &Connection, id: TimeoutId) -> Result<Outcome> {
        let Instance { epoch, now, blocked } = self.instance;
        let mut is_on_shelf = false;
        let begun = self.find.query_row(params![blob(id), epoch], |row| {
            let due = row.get(1)?;
            if due > now {
                return Ok(Outcome::NotYet(due));
            }
            is_on_shelf = row.get::<_, Option<Micros>>(10)? == Some(SHELF);
            if !is_on_shelf && !blocked.is_empty() {
                let topic: String = row.get(2)?;
                if blocked.iter().any(|blocked| **blocked == *topic) {
                    return Ok(Outcome::Shelved(topic));
                }
            }
            Ok(Outcome::Begun(Box::new(Attempt {
                forgiven: row.get(3)?,
                key: row.get(4)?,
                format: row.get(5)?,
                payload: row.get(6)?,
                period: row.get(7)?,
                max_lateness: row.get(8)?,
                planned: row.get(9)?,
                ..Attempt::new(row.get(0)?, due, row.get::<_, String>(2)?)
            })))
        });
        let begun = begun.optional()?.unwrap_or(Outcome::NotFound);
        match &begun {
            Outcome::Begun(attempt) => {
                self.update.execute(params![blob(id), attempt.attempt, epoch, now])?;
                if is_on_shelf {
                    shelf::take(db, id)?;
                }
            }
            Outcome::Shelved(_) => shelf::put(db, id)?,
            _ => {}
        }
        Ok(begun)
    }
}
