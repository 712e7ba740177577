//! The statements of a batch.

use super::slots;
use super::tombstones::Tombstones;
use crate::TimeoutId;
use crate::store::{DeadLetter, Micros};
use crate::transaction::{
    Answers, Attempt, Batch, Begun, Bury, Changed, Done, IfPending, Insert, Inserted, Requeue, Reset, Retry, Target,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, params};

pub(super) fn blob(id: TimeoutId) -> [u8; 16] {
    id.as_u128().to_be_bytes()
}

pub(super) fn id(bytes: [u8; 16]) -> TimeoutId {
    TimeoutId::from_u128(u128::from_be_bytes(bytes))
}

/// Executes the parts of a batch inside a transaction.
///
/// The statements of the frequent parts are looked up once per batch. None of them needs a
/// statement journal or a temporary table, which would double the time of a row. That excludes
/// `returning`, and inserts from a `select`.
pub(super) fn execute(db: &Connection, batch: &Batch, epoch: i64, now: Micros) -> Result<Answers> {
    let far = slots::far(now);
    let tombstones = Tombstones { db, instance: epoch as u32, now };
    Ok(Answers {
        inserts: insert_all(tombstones, &batch.inserts, far)?,
        resets: batch.resets.iter().map(|part| reset(db, part, far)).collect::<Result<_>>()?,
        cancels: batch.cancels.iter().map(|part| cancel(tombstones, part)).collect::<Result<_>>()?,
        dones: done_all(tombstones, &batch.dones)?,
        retries: batch.retries.iter().map(|part| retry(db, *part)).collect::<Result<_>>()?,
        buries: batch.buries.iter().map(|part| bury(db, part, now)).collect::<Result<_>>()?,
        requeues: batch.requeues.iter().map(|part| requeue(db, *part)).collect::<Result<_>>()?,
        purges: batch.purges.iter().map(|part| purge(tombstones, *part)).collect::<Result<_>>()?,
        begins: begin_all(db, &batch.begins, epoch, now)?,
    })
}

fn insert_all(tombstones: Tombstones<'_>, inserts: &[Insert], far: Micros) -> Result<Vec<Inserted>> {
    let db = tombstones.db;
    if inserts.is_empty() {
        return Ok(Vec::new());
    }
    let mut has_dead = db.prepare_cached("select exists (select 1 from dead)")?;
    let has_dead = has_dead.query_row([], |row| row.get(0))?;
    let mut create = Create { insert: db.prepare_cached(CREATE)?, has_dead, far };
    inserts.iter().map(|new| insert(tombstones, &mut create, new)).collect()
}

fn insert(tombstones: Tombstones<'_>, create: &mut Create<'_>, new: &Insert) -> Result<Inserted> {
    let db = tombstones.db;
    if let Some(refusal) = tombstones.refusal(new.id)? {
        return Ok(refusal);
    }
    if let Some(inserted) = create.execute(db, new)? {
        return Ok(inserted);
    }
    let Some(key) = &new.key else { return Ok(Inserted::Exists) };
    if is_taken(db, new.id)? {
        return Ok(Inserted::Exists);
    }
    let mut holder = db.prepare_cached("select id, due, begun from timeout where topic = ?1 and key = ?2")?;
    let holder = holder.query_row(params![new.topic, key], |row| {
        Ok((id(row.get(0)?), row.get::<_, Micros>(1)?, row.get::<_, Option<i64>>(2)?.is_some()))
    });
    let Some((holder, due, runs)) = holder.optional()? else { return Ok(Inserted::Exists) };
    let new_due = match new.if_pending {
        _ if runs => due,
        IfPending::Keep | IfPending::Refuse => due,
        IfPending::Earlier => due.min(new.due),
        IfPending::Later => due.max(new.due),
        IfPending::Replace => {
            db.prepare_cached("delete from timeout where id = ?1")?.execute([blob(holder)])?;
            tombstones.leave(holder)?;
            let created = create.execute(db, new)?.map(|_| Inserted::Created { replaced: Some(holder) });
            return Ok(created.unwrap_or(Inserted::Exists));
        }
    };
    if new_due == due {
        return Ok(Inserted::Kept(holder));
    }
    change_due(db, holder, new_due, create.far)?;
    Ok(Inserted::Moved(holder, new_due))
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
    has_dead: bool,
    far: Micros,
}

impl Create<'_> {
    /// Inserts a row. Returns `None` if the id or the key is taken.
    fn execute(&mut self, db: &Connection, new: &Insert) -> Result<Option<Inserted>> {
        if self.has_dead && db.prepare_cached("select 1 from dead where id = ?1")?.exists([blob(new.id)])? {
            return Ok(None);
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
        Ok((created == 1).then_some(Inserted::Created { replaced: None }))
    }
}

fn reset(db: &Connection, reset: &Reset, far: Micros) -> Result<Changed> {
    let found = find(db, &reset.target)?;
    if let Changed::Changed(id) = found {
        change_due(db, id, reset.due, far)?;
    }
    Ok(found)
}

/// Changes the due time of a timeout, and plans its run anew.
fn change_due(db: &Connection, id: TimeoutId, due: Micros, far: Micros) -> Result<()> {
    let mut update = db.prepare_cached("update timeout set due = ?2, slot = ?3, planned = null where id = ?1")?;
    update.execute(params![blob(id), due, slots::slot(due, far)]).map(drop)
}

fn cancel(tombstones: Tombstones<'_>, target: &Target) -> Result<Changed> {
    let db = tombstones.db;
    let mut delete = db.prepare_cached("delete from timeout where id = ?1 and begun is null")?;
    if let Target::Id(id) = target {
        if delete.execute([blob(*id)])? == 1 {
            tombstones.leave(*id)?;
            return Ok(Changed::Changed(*id));
        }
    }
    let found = find(db, target)?;
    if let Changed::Changed(id) = found {
        delete.execute([blob(id)])?;
        tombstones.leave(id)?;
    }
    Ok(found)
}

/// Looks for a pending timeout.
fn find(db: &Connection, target: &Target) -> Result<Changed> {
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
        None => Changed::Unknown,
        Some((_, true)) => Changed::Running,
        Some((id, false)) => Changed::Changed(id),
    })
}

/// Ends an attempt. Returns `false` if it is not the one that runs.
pub(super) fn done(db: &Connection, done: &Done, epoch: i64, now: Micros) -> Result<bool> {
    let tombstones = Tombstones { db, instance: epoch as u32, now };
    Ok(done_all(tombstones, std::slice::from_ref(done))? == [true])
}

fn done_all(tombstones: Tombstones<'_>, dones: &[Done]) -> Result<Vec<bool>> {
    let db = tombstones.db;
    if dones.is_empty() {
        return Ok(Vec::new());
    }
    let mut delete = db.prepare_cached("delete from timeout where id = ?1 and attempt = ?2 and begun is not null")?;
    let mut repeat = db.prepare_cached(
        "update timeout set due = ?3, slot = null, begun = null, forgiven = attempt, planned = null
         where id = ?1 and attempt = ?2 and begun is not null",
    )?;
    let mut done = |done: &Done| {
        let changed = match done.next {
            None => delete.execute(params![blob(done.id), done.attempt])?,
            Some(next) => repeat.execute(params![blob(done.id), done.attempt, next])?,
        };
        if changed == 1 && done.next.is_none() {
            tombstones.leave(done.id)?;
        }
        Ok(changed == 1)
    };
    dones.iter().map(&mut done).collect()
}

fn retry(db: &Connection, retry: Retry) -> Result<bool> {
    let mut update = db.prepare_cached(
        "update timeout set due = ?3, slot = null, begun = null, forgiven = forgiven + ?4,
                planned = coalesce(planned, due)
         where id = ?1 and attempt = ?2 and begun is not null",
    )?;
    Ok(update.execute(params![blob(retry.id), retry.attempt, retry.due, retry.forgive])? == 1)
}

fn bury(db: &Connection, bury: &Bury, now: Micros) -> Result<bool> {
    let mut copy = db.prepare_cached(
        "insert into dead(id, due, topic, key, attempt, format, payload, reason, died)
         select id, due, topic, key, attempt, format, payload, ?3, ?4 from timeout
         where id = ?1 and attempt = ?2 and begun is not null",
    )?;
    if copy.execute(params![blob(bury.id), bury.attempt, bury.reason, now])? == 0 {
        return Ok(false);
    }
    db.prepare_cached("delete from timeout where id = ?1")?.execute([blob(bury.id)])?;
    Ok(true)
}

fn requeue(db: &Connection, requeue: Requeue) -> Result<bool> {
    // A timeout with the same key may be pending by now.
    let mut copy = db.prepare_cached(
        "insert into timeout(id, due, topic, key, attempt, forgiven, format, payload)
         select id, ?2, topic, iif(exists (select 1 from timeout t where t.topic = dead.topic and t.key = dead.key), null, key),
                attempt, attempt, format, payload from dead where id = ?1",
    )?;
    if copy.execute(params![blob(requeue.id), requeue.due])? == 0 {
        return Ok(false);
    }
    delete_dead(db, requeue.id)
}

fn purge(tombstones: Tombstones<'_>, id: TimeoutId) -> Result<bool> {
    let purged = delete_dead(tombstones.db, id)?;
    if purged {
        tombstones.leave(id)?;
    }
    Ok(purged)
}

fn delete_dead(db: &Connection, id: TimeoutId) -> Result<bool> {
    Ok(db.prepare_cached("delete from dead where id = ?1")?.execute([blob(id)])? == 1)
}

fn begin_all(db: &Connection, begins: &[TimeoutId], epoch: i64, now: Micros) -> Result<Vec<Begun>> {
    if begins.is_empty() {
        return Ok(Vec::new());
    }
    let mut find = db.prepare_cached(
        "select attempt + 1, due, topic, forgiven, key, format, payload, period, max_lateness,
                coalesce(planned, due) from timeout
         where id = ?1 and (begun is null or begun < ?2)",
    )?;
    let mut update = db.prepare_cached("update timeout set attempt = ?2, begun = ?3 where id = ?1")?;
    let mut begin = |id: &TimeoutId| {
        let begun = find.query_row(params![blob(*id), epoch], |row| {
            let due = row.get(1)?;
            if due > now {
                return Ok(Begun::NotYet(due));
            }
            Ok(Begun::Attempt(Box::new(Attempt {
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
        let begun = begun.optional()?.unwrap_or(Begun::Gone);
        if let Begun::Attempt(attempt) = &begun {
            update.execute(params![blob(*id), attempt.attempt, epoch])?;
        }
        Ok(begun)
    };
    begins.iter().map(&mut begin).collect()
}

pub(super) fn dead_letters(
    db: &Connection,
    topic: Option<&str>,
    after: Option<TimeoutId>,
    max: usize,
) -> Result<Vec<DeadLetter>> {
    let mut query = db.prepare_cached(
        "select id, due, topic, key, attempt, format, payload, reason, died from dead
         where (?1 is null or topic = ?1) and (?2 is null or id > ?2) order by id limit ?3",
    )?;
    let letters = query.query_map(params![topic, after.map(blob), max as i64], |row| {
        Ok(DeadLetter {
            key: row.get(3)?,
            attempt: row.get(4)?,
            format: row.get(5)?,
            payload: row.get(6)?,
            died: row.get(8)?,
            ..DeadLetter::new(id(row.get(0)?), row.get(1)?, row.get::<_, String>(2)?, row.get::<_, String>(7)?)
        })
    })?;
    letters.collect()
}
