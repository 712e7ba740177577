//! One batch as one transaction of SQLite.

use rusqlite::{Connection, ErrorCode, OptionalExtension, Transaction, params};

use super::{COLUMNS, blob, id_of, row_of};
use crate::row::{Id, Micros};
use crate::store::{
    Answers, Batch, Begun, Bury, Changed, Ended, Insert, Inserted, Requeued, Retry, StoreError, Target, UserWrite,
};

/// The instance that writes.
pub(super) struct Instance {
    pub(super) now: Micros,
    /// The new floor of the clock, if it is time to store it.
    pub(super) floor: Option<Micros>,
    pub(super) epoch: i64,
    pub(super) opened: i64,
}

/// Executes the batch and commits it.
///
/// An error before the commit undoes everything, and so does a full disk during the commit, because the frame that would
/// end the transaction was not written. After another error of the commit the outcome is unknown.
pub(super) fn commit(db: &mut Connection, batch: &Batch, instance: &Instance) -> Result<Answers, StoreError> {
    let failed = |error: rusqlite::Error| StoreError::Failed(error.to_string());
    let tx = db.transaction().map_err(failed)?;
    // Dropping the transaction rolls it back.
    let answers = execute(&tx, batch, instance).map_err(failed)?;
    tx.commit().map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::DatabaseBusy) => StoreError::Failed(error.to_string()),
        _ => StoreError::InDoubt(error.to_string()),
    })?;
    Ok(answers)
}

fn execute(tx: &Transaction<'_>, batch: &Batch, instance: &Instance) -> rusqlite::Result<Answers> {
    let mut answers = Answers::default();
    if let Some(floor) = instance.floor {
        tx.prepare_cached("update meta set value = ?1 where name = 'clock'")?.execute([floor])?;
    }
    for part in &batch.inserts {
        answers.inserts.push(insert(tx, part, instance)?);
    }
    for part in &batch.resets {
        let sql = "update timeout set due = ?3, epoch = null where id = ?1 and (epoch is null or epoch < ?2)";
        let change = |id: Id| tx.prepare_cached(sql)?.execute(params![blob(id), instance.opened, part.due]);
        answers.resets.push(changed(tx, &part.target, change)?);
    }
    for target in &batch.cancels {
        let sql = "delete from timeout where id = ?1 and (epoch is null or epoch < ?2)";
        let change = |id: Id| tx.prepare_cached(sql)?.execute(params![blob(id), instance.opened]);
        answers.cancels.push(changed(tx, target, change)?);
    }
    for part in &batch.done {
        let sql = "delete from timeout where id = ?1 and attempt = ?2 and epoch is not null";
        answers.done.push(end(tx, part.write.as_ref(), || {
            tx.prepare_cached(sql)?.execute(params![blob(part.id), part.attempt])
        })?);
    }
    for part in &batch.retries {
        answers.retries.push(end(tx, part.write.as_ref(), || retry(tx, part))?);
    }
    for part in &batch.buries {
        answers.buries.push(end(tx, None, || bury(tx, part, instance.now))?);
    }
    for (id, due) in &batch.requeues {
        answers.requeues.push(requeue(tx, *id, *due)?);
    }
    for id in &batch.purges {
        let purged = tx.prepare_cached("delete from dead_letter where id = ?1")?.execute([blob(*id)])?;
        answers.purges.push(purged == 1);
    }
    if !batch.begins.is_empty() {
        begin(tx, &batch.begins, instance, &mut answers.begins)?;
    }
    Ok(answers)
}

fn insert(tx: &Transaction<'_>, part: &Insert, instance: &Instance) -> rusqlite::Result<Inserted> {
    let content = &part.content;
    let mut replaced = None;
    if let Some(key) = &content.key {
        let mut query = tx.prepare_cached("select id, due, epoch from timeout where topic = ?1 and key = ?2")?;
        let read =
            |row: &rusqlite::Row<'_>| Ok((id_of(row.get(0)?), row.get::<_, Micros>(1)?, row.get::<_, Option<i64>>(2)?));
        if let Some((id, due, epoch)) = query.query_row([&content.topic, key], read).optional()? {
            if id == part.id {
                return Ok(Inserted::Exists);
            }
            if epoch.is_some_and(|epoch| epoch >= instance.opened) {
                return Ok(Inserted::Running(id));
            }
            if !part.if_pending.replaces(due, part.due) {
                return Ok(Inserted::Kept { id, due });
            }
            tx.prepare_cached("delete from timeout where id = ?1")?.execute([blob(id)])?;
            replaced = Some(id);
        }
    }
    let sql = "insert into timeout(id, due, topic, key, period, format, payload) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
               on conflict(id) do nothing";
    let values =
        params![blob(part.id), part.due, content.topic, content.key, content.period, content.format, content.payload];
    if tx.prepare_cached(sql)?.execute(values)? == 0 {
        return Ok(Inserted::Exists);
    }
    Ok(replaced.map_or(Inserted::New, Inserted::Replaced))
}

/// Finds the row by its target, applies the change, and tells why it did not apply.
fn changed(
    tx: &Transaction<'_>,
    target: &Target,
    change: impl FnOnce(Id) -> rusqlite::Result<usize>,
) -> rusqlite::Result<Changed> {
    let read = |row: &rusqlite::Row<'_>| row.get(0).map(id_of);
    let id = match target {
        Target::Id(id) => Some(*id),
        Target::Key { topic, key } => tx
            .prepare_cached("select id from timeout where topic = ?1 and key = ?2")?
            .query_row([topic, key], read)
            .optional()?,
    };
    let Some(id) = id else { return Ok(Changed::Unknown) };
    if change(id)? == 1 {
        return Ok(Changed::Done(id));
    }
    let exists = tx.prepare_cached("select 1 from timeout where id = ?1")?.exists([blob(id)])?;
    Ok(if exists { Changed::Running(id) } else { Changed::Unknown })
}

/// Ends an attempt together with the user's change. If that fails, both are undone.
fn end(
    tx: &Transaction<'_>,
    write: Option<&UserWrite>,
    end: impl FnOnce() -> rusqlite::Result<usize>,
) -> rusqlite::Result<Ended> {
    let Some(write) = write else {
        return Ok(if end()? == 1 { Ended::Written } else { Ended::Stale });
    };
    tx.execute_batch("savepoint user_write")?;
    let ended = match end()? {
        0 => Ended::Stale,
        _ => {
            let db: &Connection = tx;
            match timer_executor::panics::catch(|| (write.0)(db)) {
                Ok(Ok(())) => Ended::Written,
                Ok(Err(why)) => Ended::Failed(why),
                Err(panic) => Ended::Failed(format!("the handler's write panicked: {panic}")),
            }
        }
    };
    let undo = if ended == Ended::Written { "" } else { "rollback to user_write; " };
    tx.execute_batch(&format!("{undo}release user_write"))?;
    Ok(ended)
}

fn retry(tx: &Transaction<'_>, part: &Retry) -> rusqlite::Result<usize> {
    let sql = "update timeout set due = ?3, epoch = null, base = case when ?4 then attempt else base end
               where id = ?1 and attempt = ?2 and epoch is not null";
    tx.prepare_cached(sql)?.execute(params![blob(part.id), part.attempt, part.due, part.next_run])
}

fn bury(tx: &Transaction<'_>, part: &Bury, now: Micros) -> rusqlite::Result<usize> {
    let copy = format!(
        "insert into dead_letter({COLUMNS}, buried_at, reason) select {COLUMNS}, ?3, ?4 from timeout
         where id = ?1 and attempt = ?2 and epoch is not null"
    );
    let buried = tx.prepare_cached(&copy)?.execute(params![blob(part.id), part.attempt, now, part.reason])?;
    if buried == 1 {
        tx.prepare_cached("delete from timeout where id = ?1")?.execute([blob(part.id)])?;
    }
    Ok(buried)
}

fn requeue(tx: &Transaction<'_>, id: Id, due: Micros) -> rusqlite::Result<Requeued> {
    let other = "select t.id from dead_letter d join timeout t on t.topic = d.topic and t.key = d.key where d.id = ?1";
    if let Some(other) = tx.prepare_cached(other)?.query_row([blob(id)], |row| row.get(0)).optional()? {
        return Ok(Requeued::KeyTaken(id_of(other)));
    }
    let copy = "insert into timeout(id, due, attempt, base, topic, key, period, format, payload)
                select id, ?2, attempt, attempt, topic, key, period, format, payload from dead_letter where id = ?1";
    if tx.prepare_cached(copy)?.execute(params![blob(id), due])? == 0 {
        return Ok(Requeued::Unknown);
    }
    tx.prepare_cached("delete from dead_letter where id = ?1")?.execute([blob(id)])?;
    Ok(Requeued::Pending)
}

fn begin(tx: &Transaction<'_>, ids: &[Id], instance: &Instance, answers: &mut Vec<Begun>) -> rusqlite::Result<()> {
    let update = format!(
        "update timeout set attempt = attempt + 1, epoch = ?2
         where id = ?1 and due <= ?3 and (epoch is null or epoch < ?2) returning {COLUMNS}"
    );
    let mut update = tx.prepare_cached(&update)?;
    let mut later = tx.prepare_cached("select due from timeout where id = ?1 and (epoch is null or epoch < ?2)")?;
    for id in ids {
        let values = params![blob(*id), instance.epoch, instance.now];
        answers.push(match update.query_row(values, |row| row_of(row, true)).optional()? {
            Some(row) => Begun::Attempt(row),
            None => {
                let due = later.query_row(params![blob(*id), instance.epoch], |row| row.get(0)).optional()?;
                due.map_or(Begun::Gone, Begun::NotYet)
            }
        });
    }
    Ok(())
}
