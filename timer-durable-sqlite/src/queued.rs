//! Calls that are queued beside running attempts.
//!
//! A queued call is a row of `timer_timeout` that has the rule of the call in `if_pending`. Its
//! number in `begun` is greater than every epoch, so nothing begins or ends it. The row of the
//! attempt names it in `queued`. Only the rows of such attempts cost more than one statement.

use super::create::Create;
use super::holder::{Holder, queued_beside};
use super::ids::{blob, id};
use super::slots::Slots;
use super::tombstones::Tombstones;
use super::unreadable::{self, UnreadableRows, is_unreadable};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use timer_durable::store::Position;
use timer_durable::transaction::{Insert, Operation, Outcome};
use timer_durable::{IfPending, TimeoutId};

/// The epoch of a queued call, which is greater than all others.
const NEVER: i64 = i64::MAX;

/// The queued calls that a transaction changes.
#[derive(Clone, Debug, Default)]
pub(super) struct QueuedCalls {
    /// Those whose attempts have ended, and which have not had their effect.
    unsettled: Vec<TimeoutId>,
    /// The timeouts that they have created or changed.
    pub(super) settled: Vec<(Position, String)>,
    /// The changes of the number of rows, by id.
    pub(super) rows: Vec<(TimeoutId, i64)>,
}

impl QueuedCalls {
    /// Queues an insert beside the attempt of a timeout, or changes the call that is queued there.
    pub(super) fn queue(
        &mut self,
        tombstones: Tombstones<'_>,
        create: &mut Create<'_>,
        running: &Holder,
        new: &Insert,
    ) -> Result<Outcome> {
        let db = tombstones.db;
        if let Some(call) = Holder::find_queued(db, &new.topic, new.key.as_deref())? {
            if call.affect(tombstones, &mut create.slots, new)?.is_some() {
                name(db, running.id, call.id)?;
                return Ok(Outcome::Queued(call.id));
            }
            self.rows.push((call.id, -1));
        }
        let mut without_key = new.clone();
        let key = without_key.key.take();
        if !create.execute(db, &without_key)? {
            return Ok(Outcome::Exists);
        }
        let mut queue =
            db.prepare_cached("update timer_timeout set key = ?2, begun = ?3, if_pending = ?4 where id = ?1")?;
        queue.execute(params![blob(new.id), key, NEVER, new.if_pending.name()])?;
        name(db, running.id, new.id)?;
        self.rows.push((new.id, 1));
        Ok(Outcome::Queued(new.id))
    }

    /// Takes the queued call from an attempt that the operation could not end because of the call.
    /// Returns `true` if there was one, so that the operation is repeated.
    pub(super) fn take_before_end(&mut self, db: &Connection, operation: &Operation) -> Result<bool> {
        let (Operation::Done { id, attempt, .. }
        | Operation::Retry { id, attempt, .. }
        | Operation::Postpone { id, attempt, .. }
        | Operation::Bury { id, attempt, .. }) = operation
        else {
            return Ok(false);
        };
        let mut find = db.prepare_cached(
            "select queued from timer_timeout
             where id = ?1 and attempt = ?2 and begun is not null and queued is not null",
        )?;
        let queued = find.query_row(params![blob(*id), attempt], |row| row.get(0)).optional()?;
        let Some(queued) = queued else { return Ok(false) };
        self.unsettled.push(super::ids::id(queued));
        db.prepare_cached("update timer_timeout set queued = null where id = ?1")?.execute([blob(*id)])?;
        Ok(true)
    }

    /// Ends the attempt of an earlier instance, beside which a call is queued. Returns `false` if
    /// there is no such call.
    pub(super) fn end_old_attempt(&mut self, db: &Connection, id: TimeoutId) -> Result<bool> {
        let Some(queued) = queued_beside(db, id)? else { return Ok(false) };
        self.unsettled.push(queued);
        let mut end = db.prepare_cached("update timer_timeout set queued = null, begun = null where id = ?1")?;
        end.execute([blob(id)])?;
        Ok(true)
    }

    /// Ends a queued call.
    pub(super) fn cancel(&mut self, tombstones: Tombstones<'_>, id: TimeoutId) -> Result<()> {
        tombstones.db.prepare_cached("delete from timer_timeout where id = ?1")?.execute([blob(id)])?;
        self.rows.push((id, -1));
        tombstones.leave(id)
    }

    /// Lets queued calls take effect if their attempts have ended.
    pub(super) fn settle(&mut self, tombstones: Tombstones<'_>) -> Result<()> {
        while let Some(id) = self.unsettled.pop() {
            self.settle_one(tombstones, id)?;
        }
        Ok(())
    }

    fn settle_one(&mut self, tombstones: Tombstones<'_>, queued: TimeoutId) -> Result<()> {
        let db = tombstones.db;
        let call = match read(db, queued) {
            Err(error) if is_unreadable(&error) => return self.bury_call(tombstones, queued, &error),
            call => call?,
        };
        let Some(call) = call else { return Ok(()) };
        let holder = Holder::find(db, &call.topic, call.key.as_deref().unwrap_or_default())?;
        let mut pending = queued;
        if let Some(holder) = holder {
            if holder.state.is_running {
                // The work has taken the end of the attempt back, by a savepoint.
                return name(db, holder.id, queued);
            }
            if holder.affect(tombstones, &mut Slots::new(db, tombstones.now), &call)?.is_some() {
                self.cancel(tombstones, queued)?;
                pending = holder.id;
            } else {
                self.rows.push((holder.id, -1));
            }
        }
        if pending == queued {
            let mut wake =
                db.prepare_cached("update timer_timeout set begun = null, if_pending = null where id = ?1")?;
            wake.execute([blob(queued)])?;
        }
        let mut due = db.prepare_cached("select due from timer_timeout where id = ?1")?;
        let due = due.query_row([blob(pending)], |row| row.get(0))?;
        self.settled.push((Position { due, id: pending }, call.topic.to_string()));
        Ok(())
    }

    /// Lets queued calls take effect if another program has deleted their attempts.
    pub(super) fn settle_orphans(tombstones: Tombstones<'_>, orphans: Vec<TimeoutId>) -> Result<Self> {
        let mut calls = Self { unsettled: orphans, ..Self::default() };
        calls.settle(tombstones)?;
        Ok(calls)
    }

    /// Makes rows that cannot be read dead letters. The calls that are queued beside them have
    /// their effect.
    pub(super) fn bury(tombstones: Tombstones<'_>, rows: &UnreadableRows) -> Result<Self> {
        let Tombstones { db, now, .. } = tombstones;
        let mut calls = Self::default();
        let mut find = db.prepare_cached("select queued from timer_timeout where rowid = ?1")?;
        for (row, error) in rows {
            let queued = find.query_row([row], |row| Ok(row.get::<_, Option<[u8; 16]>>(0).unwrap_or_default()));
            calls.unsettled.extend(queued.optional()?.flatten().map(id));
            unreadable::bury(db, *row, error, now)?;
        }
        calls.settle(tombstones)?;
        Ok(calls)
    }

    /// Makes a call that cannot be read a dead letter.
    fn bury_call(&mut self, tombstones: Tombstones<'_>, queued: TimeoutId, error: &rusqlite::Error) -> Result<()> {
        let mut row = tombstones.db.prepare_cached("select rowid from timer_timeout where id = ?1")?;
        let row = row.query_row([blob(queued)], |row| row.get(0))?;
        self.rows.push((queued, -1));
        unreadable::bury(tombstones.db, row, error, tombstones.now)
    }
}

/// Writes the id of a queued call into the row of the attempt, unless the row contains it.
fn name(db: &Connection, running: TimeoutId, call: TimeoutId) -> Result<()> {
    let mut name = db.prepare_cached("update timer_timeout set queued = ?2 where id = ?1 and queued is not ?2")?;
    name.execute([blob(running), blob(call)]).map(drop)
}

/// Returns the queued calls that no timeout names, because another program has deleted it.
pub(super) fn find_orphans(db: &Connection) -> Result<Vec<TimeoutId>> {
    let mut find = db.prepare_cached(
        "select id from timer_timeout q indexed by timer_timeout_queued
         where if_pending is not null and typeof(id) = 'blob' and length(id) = 16 and not exists (
             select 1 from timer_timeout t
             where t.topic = q.topic and t.key = q.key and t.if_pending is null and t.queued = q.id
         )",
    )?;
    find.query_map([], |row| row.get(0).map(id))?.collect()
}

/// Reads a queued call.
fn read(db: &Connection, queued: TimeoutId) -> Result<Option<Insert>> {
    let mut find = db.prepare_cached(
        "select due, topic, key, if_pending, planned, format, payload, period, max_lateness, traceparent
         from timer_timeout where id = ?1 and if_pending is not null",
    )?;
    let read = |row: &Row<'_>| {
        let mut call = Insert::new(queued, row.get(0)?, row.get::<_, String>(1)?);
        call.key = row.get(2)?;
        call.if_pending = IfPending::from_name(row.get_ref(3)?.as_str()?).unwrap_or_default();
        call.cap = row.get(4)?;
        call.format = row.get(5)?;
        call.payload = row.get(6)?;
        call.period = row.get(7)?;
        call.max_lateness = row.get(8)?;
        call.traceparent = row.get(9)?;
        Ok(call)
    };
    find.query_row([blob(queued)], read).optional()
}
