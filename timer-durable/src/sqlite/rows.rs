//! The statements of a batch.

use crate::TimeoutId;
use crate::store::{DeadLetter, Micros};
use crate::transaction::{
    Answers, Attempt, Batch, Begun, Bury, Changed, Done, IfPending, Insert, Inserted, Requeue, Reset, Retry, Target,
};
use rusqlite::{Connection, OptionalExtension, Result, params};

pub(super) fn blob(id: TimeoutId) -> [u8; 16] {
    id.as_u128().to_be_bytes()
}

pub(super) fn id(bytes: [u8; 16]) -> TimeoutId {
    TimeoutId::from_u128(u128::from_be_bytes(bytes))
}

/// Executes the parts of a batch inside a transaction.
pub(super) fn execute(db: &Connection, batch: &Batch, epoch: i64, now: Micros) -> Result<Answers> {
    Ok(Answers {
        inserts: batch.inserts.iter().map(|part| insert(db, part)).collect::<Result<_>>()?,
        resets: batch.resets.iter().map(|part| reset(db, part)).collect::<Result<_>>()?,
        cancels: batch.cancels.iter().map(|part| cancel(db, part)).collect::<Result<_>>()?,
        dones: batch.dones.iter().map(|part| done(db, part)).collect::<Result<_>>()?,
        retries: batch.retries.iter().map(|part| retry(db, *part)).collect::<Result<_>>()?,
        buries: batch.buries.iter().map(|part| bury(db, part, now)).collect::<Result<_>>()?,
        requeues: batch.requeues.iter().map(|part| requeue(db, *part)).collect::<Result<_>>()?,
        purges: batch.purges.iter().map(|part| purge(db, *part)).collect::<Result<_>>()?,
        begins: batch.begins.iter().map(|part| begin(db, *part, epoch, now)).collect::<Result<_>>()?,
    })
}

fn insert(db: &Connection, new: &Insert) -> Result<Inserted> {
    if let Some(inserted) = create(db, new)? {
        return Ok(inserted);
    }
    let Some(key) = &new.key else { return Ok(Inserted::Exists) };
    let mut holder = db.prepare_cached("select id, due, begun from timeout where topic = ?1 and key = ?2")?;
    let holder = holder.query_row(params![new.topic, key], |row| {
        Ok((id(row.get(0)?), row.get::<_, Micros>(1)?, row.get::<_, Option<i64>>(2)?.is_some()))
    });
    let Some((holder, due, runs)) = holder.optional()? else { return Ok(Inserted::Exists) };
    if holder == new.id {
        return Ok(Inserted::Exists);
    }
    let new_due = match new.if_pending {
        _ if runs => due,
        IfPending::Keep | IfPending::Refuse => due,
        IfPending::Earlier => due.min(new.due),
        IfPending::Later => due.max(new.due),
        IfPending::Replace => {
            db.prepare_cached("delete from timeout where id = ?1")?.execute([blob(holder)])?;
            let created = create(db, new)?.map(|_| Inserted::Created { replaced: Some(holder) });
            return Ok(created.unwrap_or(Inserted::Exists));
        }
    };
    if new_due == due {
        return Ok(Inserted::Kept(holder));
    }
    db.prepare_cached("update timeout set due = ?2 where id = ?1")?.execute(params![blob(holder), new_due])?;
    Ok(Inserted::Moved(holder, new_due))
}

/// Inserts a row. Returns `None` if the id or the key is taken.
fn create(db: &Connection, new: &Insert) -> Result<Option<Inserted>> {
    let mut insert = db.prepare_cached(
        "insert into timeout(id, due, topic, key, format, payload, period, max_lateness)
         select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 where not exists (select 1 from dead where id = ?1)
         on conflict do nothing",
    )?;
    let created = insert.execute(params![
        blob(new.id),
        new.due,
        new.topic,
        new.key,
        new.format,
        new.payload,
        new.period,
        new.max_lateness
    ])?;
    Ok((created == 1).then_some(Inserted::Created { replaced: None }))
}

fn reset(db: &Connection, reset: &Reset) -> Result<Changed> {
    let found = find(db, &reset.target)?;
    if let Changed::Changed(id) = found {
        db.prepare_cached("update timeout set due = ?2 where id = ?1")?.execute(params![blob(id), reset.due])?;
    }
    Ok(found)
}

fn cancel(db: &Connection, target: &Target) -> Result<Changed> {
    let found = find(db, target)?;
    if let Changed::Changed(id) = found {
        db.prepare_cached("delete from timeout where id = ?1")?.execute([blob(id)])?;
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
pub(super) fn done(db: &Connection, done: &Done) -> Result<bool> {
    let changed = match done.next {
        None => db
            .prepare_cached("delete from timeout where id = ?1 and attempt = ?2 and begun is not null")?
            .execute(params![blob(done.id), done.attempt])?,
        Some(next) => db
            .prepare_cached(
                "update timeout set due = ?3, begun = null, forgiven = attempt
                 where id = ?1 and attempt = ?2 and begun is not null",
            )?
            .execute(params![blob(done.id), done.attempt, next])?,
    };
    Ok(changed == 1)
}

fn retry(db: &Connection, retry: Retry) -> Result<bool> {
    let mut update = db.prepare_cached(
        "update timeout set due = ?3, begun = null, forgiven = iif(?4, attempt, forgiven)
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
    purge(db, requeue.id)
}

fn purge(db: &Connection, id: TimeoutId) -> Result<bool> {
    Ok(db.prepare_cached("delete from dead where id = ?1")?.execute([blob(id)])? == 1)
}

fn begin(db: &Connection, id: TimeoutId, epoch: i64, now: Micros) -> Result<Begun> {
    let mut begin = db.prepare_cached(
        "update timeout set attempt = attempt + 1, begun = ?2
         where id = ?1 and due <= ?3 and (begun is null or begun < ?2)
         returning attempt, forgiven, due, topic, key, format, payload, period, max_lateness",
    )?;
    let begun = begin.query_row(params![blob(id), epoch, now], |row| {
        Ok(Attempt {
            forgiven: row.get(1)?,
            key: row.get(4)?,
            format: row.get(5)?,
            payload: row.get(6)?,
            period: row.get(7)?,
            max_lateness: row.get(8)?,
            ..Attempt::new(row.get(0)?, row.get(2)?, row.get::<_, String>(3)?)
        })
    });
    if let Some(attempt) = begun.optional()? {
        return Ok(Begun::Attempt(Box::new(attempt)));
    }
    let mut later = db.prepare_cached("select due from timeout where id = ?1 and (begun is null or begun < ?2)")?;
    let due = later.query_row(params![blob(id), epoch], |row| row.get(0)).optional()?;
    Ok(due.map_or(Begun::Gone, Begun::NotYet))
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
