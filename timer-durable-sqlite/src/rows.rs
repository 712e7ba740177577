//! The statements of a batch.

use super::create::Create;
use super::holder::queued_beside;
use super::ids::{blob, id};
use super::lazy_statement::LazyStatement;
use super::put::{follow, insert};
use super::queued::QueuedCalls;
use super::slots::Slots;
use super::tombstones::Tombstones;
use super::unreadable::is_of_row;
use rusqlite::{Connection, OptionalExtension, Result, params};
use timer_durable::TimeoutId;
use timer_durable::store::Micros;
use timer_durable::transaction::{Attempt, NextRun, Operation, Outcome, Target};

/// The facts about the instance that executes a batch.
#[derive(Clone, Copy)]
pub(super) struct Instance {
    pub(super) epoch: i64,
    pub(super) now: Micros,
    /// Whether work of the user runs. Queued calls take effect after it.
    pub(super) is_in_work: bool,
}

/// Executes a batch inside a transaction.
///
/// The statements of the frequent operations are looked up at most once per batch. None of them
/// needs a statement journal or a temporary table, which would double the time of a row. That
/// excludes `returning`, and inserts from a `select`.
pub(super) fn execute(
    db: &Connection,
    batch: &[Operation],
    instance: Instance,
    calls: &mut QueuedCalls,
) -> Result<Vec<Outcome>> {
    let now = instance.now;
    let tombstones = Tombstones::new(db, instance.epoch, now);
    let mut create = Create::new(db, now);
    let mut end = LazyStatement::new(db, END);
    let mut begin = Begin { find: LazyStatement::new(db, FIND), update: LazyStatement::new(db, BEGIN), instance };
    let mut execute = |operation: &Operation, calls: &mut QueuedCalls| match operation {
        Operation::Insert(new) => insert(tombstones, &mut create, new, calls),
        Operation::Reset { target, due } => reset(db, target, *due, &mut create.slots),
        Operation::Cancel(target) => cancel(tombstones, target, calls),
        Operation::Done { id, attempt, next, then } => {
            let ended = match next {
                Some(next) => repeat(db, *id, *attempt, *next)?,
                None => changed(*id, end.get()?.execute(params![blob(*id), attempt])?),
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
        Operation::Requeue { id, due, without_key } => requeue(db, *id, *due, *without_key),
        Operation::Purge(id) => purge(tombstones, *id),
        Operation::Begin(id) => begin.execute(db, *id, calls),
    };
    let execute = |operation: &Operation| {
        let mut outcome = execute(operation, calls)?;
        if outcome == Outcome::NotFound && calls.take_before_end(db, operation)? {
            outcome = execute(operation, calls)?;
        }
        if !instance.is_in_work {
            calls.settle(tombstones)?;
        }
        Ok(outcome)
    };
    batch.iter().map(execute).collect()
}

/// Executes an operation in its own savepoint, inside a transaction. Refuses the operation if its
/// row cannot be written, and undoes its writes.
pub(super) fn execute_in_savepoint(
    db: &Connection,
    operation: &Operation,
    instance: Instance,
    calls: &mut QueuedCalls,
) -> Result<Outcome> {
    db.prepare_cached("savepoint operation")?.execute([])?;
    let before = calls.clone();
    let outcome = match execute(db, std::slice::from_ref(operation), instance, calls) {
        Ok(mut outcomes) => outcomes.remove(0),
        // A trigger of the user may have rolled back the whole transaction.
        Err(error) if !is_of_row(&error) || db.is_autocommit() => return Err(error),
        Err(error) => {
            db.prepare_cached("rollback to operation")?.execute([])?;
            *calls = before;
            Outcome::Refused(error.to_string())
        }
    };
    db.prepare_cached("release operation")?.execute([])?;
    Ok(outcome)
}

/// Returns the outcome of a statement that has changed `rows` rows with this id.
fn changed(id: TimeoutId, rows: usize) -> Outcome {
    if rows == 0 { Outcome::NotFound } else { Outcome::Changed(id) }
}

fn reset(db: &Connection, target: &Target, due: Micros, slots: &mut Slots<'_>) -> Result<Outcome> {
    let found = find(db, target)?;
    if let Outcome::Changed(id) | Outcome::Queued(id) = found {
        let topic = if let Target::Key { topic, .. } = target { Some(&**topic) } else { None };
        slots.change_due(id, topic, due)?;
    }
    Ok(found)
}

fn cancel(tombstones: Tombstones<'_>, target: &Target, calls: &mut QueuedCalls) -> Result<Outcome> {
    let db = tombstones.db;
    let mut delete = db.prepare_cached("delete from timer_timeout where id = ?1 and begun is null")?;
    if let Target::Id(id) = target {
        if delete.execute([blob(*id)])? == 1 {
            tombstones.leave(*id)?;
            return Ok(Outcome::Changed(*id));
        }
    }
    let found = find(db, target)?;
    match found {
        Outcome::Changed(id) => {
            delete.execute([blob(id)])?;
            tombstones.leave(id)?;
        }
        Outcome::Queued(id) => {
            calls.cancel(tombstones, id)?;
            if *target == Target::Id(id) {
                // The outcome counts for the row.
                calls.rows.pop();
                return Ok(Outcome::Changed(id));
            }
        }
        _ => {}
    }
    Ok(found)
}

/// Looks for a pending timeout, or for the call that is queued beside its attempt.
fn find(db: &Connection, target: &Target) -> Result<Outcome> {
    let read = |row: &rusqlite::Row<'_>| {
        let is_queued: bool = row.get(2)?;
        Ok((id(row.get(0)?), row.get::<_, Option<i64>>(1)?.is_some(), is_queued))
    };
    let found = match target {
        Target::Id(id) => db
            .prepare_cached("select id, begun, if_pending is not null from timer_timeout where id = ?1")?
            .query_row([blob(*id)], read)
            .optional()?,
        Target::Key { topic, key } => db
            .prepare_cached(
                "select id, begun, 0 from timer_timeout where topic = ?1 and key = ?2 and if_pending is null",
            )?
            .query_row(params![topic, key], read)
            .optional()?,
    };
    Ok(match found {
        None => Outcome::NotFound,
        Some((id, _, true)) => Outcome::Queued(id),
        Some((id, true, _)) => queued_beside(db, id)?.map_or(Outcome::Running, Outcome::Queued),
        Some((id, false, _)) => Outcome::Changed(id),
    })
}

/// Plans the next run of a periodic timeout.
fn repeat(db: &Connection, id: TimeoutId, attempt: u32, next: Micros) -> Result<Outcome> {
    let mut update = db.prepare_cached(
        "update timer_timeout set due = ?3, slot = null, begun = null, forgiven = attempt, planned = null
         where id = ?1 and attempt = ?2 and begun is not null and queued is null",
    )?;
    Ok(changed(id, update.execute(params![blob(id), attempt, next])?))
}

fn retry(db: &Connection, id: TimeoutId, attempt: u32, due: Micros, forgive: bool) -> Result<Outcome> {
    let mut update = db.prepare_cached(
        "update timer_timeout set due = ?3, slot = null, begun = null, forgiven = forgiven + ?4,
                planned = coalesce(planned, due)
         where id = ?1 and attempt = ?2 and begun is not null and queued is null",
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
        "update timer_timeout set due = ?3, slot = null, begun = null, forgiven = attempt,
                planned = iif(period is null, null, coalesce(planned, due)),
                format = coalesce(?4, format), payload = coalesce(?5, payload)
         where id = ?1 and attempt = ?2 and begun is not null and queued is null",
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
        "insert into timer_dead(id, due, topic, key, attempt, format, payload, reason, died)
         select ?5, due, topic, key, attempt, format, payload, ?3, ?4 from timer_timeout
         where id = ?1 and attempt = ?2 and begun is not null and queued is null",
    )?;
    let letter = next.map_or(id, |next| next.letter);
    let copied = copy.execute(params![blob(id), attempt, reason, now, blob(letter)])?;
    if let Some(next) = next {
        return repeat(db, id, attempt, next.due);
    }
    if copied == 1 {
        db.prepare_cached("delete from timer_timeout where id = ?1")?.execute([blob(id)])?;
    }
    Ok(changed(id, copied))
}

fn requeue(db: &Connection, dead: TimeoutId, due: Micros, without_key: bool) -> Result<Outcome> {
    let mut holder = db.prepare_cached(
        "select t.id from timer_dead d join timer_timeout t on t.topic = d.topic and t.key = d.key
         where d.id = ?1 and not ?2 and t.if_pending is null",
    )?;
    let holder = holder.query_row(params![blob(dead), without_key], |row| Ok(id(row.get(0)?))).optional()?;
    if let Some(holder) = holder {
        return Ok(Outcome::Kept(holder));
    }
    let mut copy = db.prepare_cached(
        "insert into timer_timeout(id, due, topic, key, attempt, forgiven, format, payload)
         select id, ?2, topic, iif(?3, null, key), attempt, attempt, format, payload from timer_dead where id = ?1",
    )?;
    copy.execute(params![blob(dead), due, without_key])?;
    Ok(changed(dead, delete_dead(db, dead)?))
}

fn purge(tombstones: Tombstones<'_>, id: TimeoutId) -> Result<Outcome> {
    let purged = delete_dead(tombstones.db, id)?;
    if purged == 1 {
        tombstones.leave(id)?;
    }
    Ok(changed(id, purged))
}

fn delete_dead(db: &Connection, id: TimeoutId) -> Result<usize> {
    db.prepare_cached("delete from timer_dead where id = ?1")?.execute([blob(id)])
}

const END: &str = "delete from timer_timeout where id = ?1 and attempt = ?2 and begun is not null and queued is null";
const FIND: &str = "select attempt + 1, due, topic, forgiven, key, format, payload, period, max_lateness,
        planned, traceparent, queued is not null
    from timer_timeout where id = ?1 and (begun is null or begun < ?2)";
/// A planned time behind the due time is a cap, which ends with the attempt.
const BEGIN: &str = "update timer_timeout
    set attempt = ?2, begun = ?3, started = ?4, planned = iif(planned < due, planned, null) where id = ?1";

/// The statements that begin an attempt.
struct Begin<'c> {
    find: LazyStatement<'c>,
    update: LazyStatement<'c>,
    instance: Instance,
}

impl Begin<'_> {
    fn execute(&mut self, db: &Connection, id: TimeoutId, calls: &mut QueuedCalls) -> Result<Outcome> {
        let Instance { epoch, now, .. } = self.instance;
        let mut has_call = false;
        let begun = self.find.get()?.query_row(params![blob(id), epoch], |row| {
            let due = row.get(1)?;
            if due > now {
                return Ok(Outcome::NotYet(due));
            }
            has_call = row.get(11)?;
            let mut attempt = Attempt::new(row.get(0)?, due, row.get::<_, String>(2)?);
            attempt.forgiven = row.get(3)?;
            attempt.key = row.get(4)?;
            attempt.format = row.get(5)?;
            attempt.payload = row.get(6)?;
            attempt.period = row.get(7)?;
            attempt.max_lateness = row.get(8)?;
            attempt.planned = row.get::<_, Option<Micros>>(9)?.map_or(due, |planned| planned.min(due));
            // A timeout is worth more than its trace.
            attempt.traceparent = row.get(10).unwrap_or_default();
            Ok(Outcome::Begun(Box::new(attempt)))
        });
        let begun = begun.optional()?.unwrap_or(Outcome::NotFound);
        if has_call && calls.end_old_attempt(db, id)? {
            return Ok(Outcome::NotFound);
        }
        if let Outcome::Begun(attempt) = &begun {
            self.update.get()?.execute(params![blob(id), attempt.attempt, epoch, now])?;
        }
        Ok(begun)
    }
}
