//! The number of pending timeouts, without a scan that holds up the keeper.
//!
//! A full count reads every page of an index, which takes seconds if the file is large and not in
//! the system's cache. The tally therefore counts in slices of about a millisecond, and takes at
//! most a tenth of the keeper's time. Afterwards each commit changes the number by the answers to
//! its batch.
//!
//! Commits go on between two slices. Temporary triggers add their changes to the rows that are
//! counted already, namely those up to the last position of the last slice. The triggers belong
//! to the connection and leave no trace in the file. A store that fits into one slice needs none.
//!
//! The rows without a slot come first, in the order of their index, and then the others in the
//! order of theirs (see [`slots`](super::slots)).

use crate::store::Micros;
use crate::transaction::{Answers, Batch, Changed, Inserted};
use rusqlite::{Connection, OptionalExtension, Result, params};
use std::time::{Duration, Instant};

/// The rows of a slice without and with a slot, which take about a millisecond. For each row
/// without a slot SQLite looks up the row behind the index.
const NEAR_SLICE: i64 = 256;
const FAR_SLICE: i64 = 4_096;
/// The pause after a slice, as a multiple of its time.
const REST: u32 = 9;
/// The pause after a slice that failed.
const RETRY: Duration = Duration::from_secs(1);

/// Counts the rows up to the position in the table `timer_tally` while commits change them. A row
/// without a slot has the slot -1 here, and the due time of a row with a slot does not count.
const BEGIN: &str = "
    create temp table timer_tally(slot integer, due integer, id blob, counted integer);
    create temp trigger timer_tally_insert after insert on main.timeout begin
        update timer_tally set counted = counted
            + ((coalesce(new.slot, -1), iif(new.slot is null, new.due, 0), new.id) <= (slot, due, id));
    end;
    create temp trigger timer_tally_delete after delete on main.timeout begin
        update timer_tally set counted = counted
            - ((coalesce(old.slot, -1), iif(old.slot is null, old.due, 0), old.id) <= (slot, due, id));
    end;
    create temp trigger timer_tally_update after update of due, slot on main.timeout begin
        update timer_tally set counted = counted
            + ((coalesce(new.slot, -1), iif(new.slot is null, new.due, 0), new.id) <= (slot, due, id))
            - ((coalesce(old.slot, -1), iif(old.slot is null, old.due, 0), old.id) <= (slot, due, id));
    end;";

const END: &str = "
    drop trigger if exists temp.timer_tally_insert;
    drop trigger if exists temp.timer_tally_delete;
    drop trigger if exists temp.timer_tally_update;
    drop table if exists temp.timer_tally;";

/// The number of rows in the table `timeout`, or a count that is under way.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pending: Option<i64>,
    next: Option<Instant>,
    /// Whether rows can have a slot. Without them a file has no index of slots to read.
    has_slots: bool,
}

/// A position in the order of the count.
#[derive(Debug)]
struct Cursor {
    slot: Micros,
    due: Micros,
    id: Vec<u8>,
}

impl Tally {
    /// Begins a count with its first slice.
    pub(super) fn start(db: &Connection, has_slots: bool) -> Result<Self> {
        db.execute_batch(END)?;
        let began = Instant::now();
        let (counted, cursor) = Cursor { slot: -1, due: Micros::MIN, id: Vec::new() }.slice(db, has_slots)?;
        let Some(Cursor { slot, due, id }) = cursor else {
            return Ok(Self { pending: Some(counted), next: None, has_slots });
        };
        db.execute_batch(BEGIN)?;
        db.execute("insert into temp.timer_tally values (?1, ?2, ?3, ?4)", params![slot, due, id, counted])?;
        Ok(Self { pending: None, next: Some(after(began)), has_slots })
    }

    /// Returns the number of rows once it is known.
    pub(super) fn pending(&self) -> Option<u64> {
        self.pending.map(|pending| u64::try_from(pending).unwrap_or(0))
    }

    /// Returns the instant of the next slice, or `None` if the count is complete.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Counts the next slice.
    pub(super) fn step(&mut self, db: &Connection) -> Result<()> {
        let began = Instant::now();
        self.next = Some(began + RETRY);
        let read = |row: &rusqlite::Row<'_>| {
            Ok((Cursor { slot: row.get(0)?, due: row.get(1)?, id: row.get(2)? }, row.get::<_, i64>(3)?))
        };
        let (cursor, before) =
            db.prepare_cached("select slot, due, id, counted from temp.timer_tally")?.query_row([], read)?;
        let (counted, cursor) = cursor.slice(db, self.has_slots)?;
        if let Some(Cursor { slot, due, id }) = cursor {
            let mut update =
                db.prepare_cached("update temp.timer_tally set slot = ?1, due = ?2, id = ?3, counted = counted + ?4")?;
            update.execute(params![slot, due, id, counted])?;
            self.next = Some(after(began));
        } else {
            self.pending = Some(before + counted);
            self.next = None;
            db.execute_batch(END)?;
        }
        Ok(())
    }

    /// Notes a commit.
    pub(super) fn add(&mut self, batch: &Batch, answers: &Answers) {
        let Some(pending) = &mut self.pending else { return };
        let created = answers.inserts.iter().filter(|answer| **answer == Inserted::Created { replaced: None }).count();
        let requeued = answers.requeues.iter().filter(|was_dead| **was_dead).count();
        let cancelled = answers.cancels.iter().filter(|answer| matches!(answer, Changed::Changed(_))).count();
        let dones = batch.dones.iter().zip(&answers.dones);
        let done = dones.filter(|(done, was_running)| done.next.is_none() && **was_running).count();
        let buried = answers.buries.iter().filter(|was_running| **was_running).count();
        *pending += (created + requeued) as i64 - (cancelled + done + buried) as i64;
    }
}

/// Returns the instant of the slice after the one that has begun at `began`.
fn after(began: Instant) -> Instant {
    Instant::now() + began.elapsed() * REST
}

impl Cursor {
    /// Counts the slice after this position. Returns the number of its rows and its end, or `None`
    /// as its end if there are no more rows.
    fn slice(&self, db: &Connection, has_slots: bool) -> Result<(i64, Option<Self>)> {
        if self.slot < 0 {
            let mut end = db.prepare_cached(
                "select due, id from main.timeout where slot is null and (due, id) > (?1, ?2)
                 order by due, id limit 1 offset ?3",
            )?;
            let read = |row: &rusqlite::Row<'_>| Ok(Self { slot: -1, due: row.get(0)?, id: row.get(1)? });
            if let Some(end) = end.query_row(params![self.due, self.id, NEAR_SLICE - 1], read).optional()? {
                return Ok((NEAR_SLICE, Some(end)));
            }
            let rest = "select count(*) from main.timeout where slot is null and (due, id) > (?1, ?2)";
            let rest: i64 = db.prepare_cached(rest)?.query_row(params![self.due, self.id], |row| row.get(0))?;
            if !has_slots {
                return Ok((rest, None));
            }
            let (counted, end) = Self { slot: 0, due: 0, id: Vec::new() }.slice(db, has_slots)?;
            return Ok((rest + counted, end));
        }
        let mut end = db.prepare_cached(
            "select slot, id from main.timeout where slot is not null and (slot, id) > (?1, ?2)
             order by slot, id limit 1 offset ?3",
        )?;
        let read = |row: &rusqlite::Row<'_>| Ok(Self { slot: row.get(0)?, due: 0, id: row.get(1)? });
        if let Some(end) = end.query_row(params![self.slot, self.id, FAR_SLICE - 1], read).optional()? {
            return Ok((FAR_SLICE, Some(end)));
        }
        let rest = "select count(*) from main.timeout where slot is not null and (slot, id) > (?1, ?2)";
        let rest = db.prepare_cached(rest)?.query_row(params![self.slot, self.id], |row| row.get(0))?;
        Ok((rest, None))
    }
}
