//! The number of pending timeouts, without a scan that holds up the keeper.
//!
//! A full count reads every page of an index, which takes seconds if the file is large and not in
//! the system's cache. The tally therefore counts in slices of about a millisecond, in the order of
//! ids, and takes at most a tenth of the keeper's time. Each commit changes the number by the
//! outcomes of its batch, as far as their ids have been counted.

use super::ids::{blob, id};
use rusqlite::{Connection, Result};
use std::time::{Duration, Instant};
use timer_durable::TimeoutId;
use timer_durable::transaction::{Operation, Outcome};

/// The length of a slice. A page that is not in memory may lengthen it by one read of the disk.
const SLICE: Duration = Duration::from_millis(1);
/// The number of rows of an index, which are on one page, between two looks at the clock.
const ROWS: i64 = 128;
/// The pause after a slice, as a multiple of its time.
const REST: u32 = 9;
/// The pause after a slice that failed.
const RETRY: Duration = Duration::from_secs(1);

/// The number of rows in the table `timer_timeout`, or a count that is under way.
#[derive(Debug, Default)]
pub(super) struct Tally {
    counted: i64,
    /// The last id that is counted, or `None` if all are.
    cursor: Option<TimeoutId>,
    next: Option<Instant>,
}

impl Tally {
    /// Begins a count with its first slice.
    pub(super) fn start(db: &Connection) -> Result<Self> {
        let mut tally = Self { counted: 0, cursor: Some(TimeoutId::from_u128(0)), next: None };
        tally.step(db)?;
        Ok(tally)
    }

    /// Returns the number of rows once it is known.
    pub(super) fn pending(&self) -> Option<u64> {
        if self.cursor.is_some() { None } else { Some(u64::try_from(self.counted).unwrap_or(0)) }
    }

    /// Returns the instant of the next slice, or `None` if the count is complete.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Counts the next slice.
    pub(super) fn step(&mut self, db: &Connection) -> Result<()> {
        let Some(cursor) = self.cursor else { return Ok(()) };
        let began = Instant::now();
        self.next = Some(began + RETRY);
        let mut query = db.prepare_cached("select id from timer_timeout where id > ?1 order by id")?;
        let mut ids = query.query([blob(cursor)])?;
        let mut counted = 0;
        let (cursor, next) = loop {
            let Some(row) = ids.next()? else { break (None, None) };
            counted += 1;
            if counted % ROWS == 0 && began.elapsed() >= SLICE {
                // The bytes of an id that cannot be read are not 16.
                let Ok(last) = row.get(0) else { continue };
                break (Some(id(last)), Some(Instant::now() + began.elapsed() * REST));
            }
        };
        self.counted += counted;
        self.cursor = cursor;
        self.next = next;
        Ok(())
    }

    /// Notes a commit, with the changes of the number of rows by queued calls.
    pub(super) fn add(&mut self, batch: &[Operation], outcomes: &[Outcome], calls: &[(TimeoutId, i64)]) {
        let cursor = self.cursor;
        let count = |id: TimeoutId| i64::from(cursor.is_none_or(|cursor| id <= cursor));
        self.counted += calls.iter().map(|(id, change)| count(*id) * change).sum::<i64>();
        for (operation, outcome) in batch.iter().zip(outcomes) {
            self.counted += match (operation, outcome) {
                (Operation::Insert(new), Outcome::Created { replaced }) => count(new.id) - replaced.map_or(0, count),
                (Operation::Requeue { .. }, Outcome::Changed(id)) => count(*id),
                (Operation::Cancel(_) | Operation::Bury { next: None, .. }, Outcome::Changed(id)) => -count(*id),
                (Operation::Done { next, then, .. }, Outcome::Changed(id)) => {
                    let ended = if next.is_none() { count(*id) } else { 0 };
                    then.iter().map(|then| count(then.id)).sum::<i64>() - ended
                }
                _ => 0,
            };
        }
    }
}
