//! The list of timeouts, in exact order only for the next hours.
//!
//! The list is read in the order of due times. An index in this order costs a page of the file for
//! nearly each insert, because due times are spread over days. As in a hierarchical timing wheel
//! (Varghese and Lauck, 1987), a timeout that is far away is therefore only assigned to a slot of
//! 71.6 minutes. Within a slot timeouts are ordered by id, so the next one goes to the slot's last
//! page, which is in memory. Most timeouts are cancelled before their exact order matters.
//!
//! A row with a slot is in the index `timeout_by_slot`, and any other in `timeout_by_due`. A row on
//! the shelf of its topic has the slot [`SHELF`], which no page reaches. When the
//! keeper asks for a page at a slot, about an hour before the slot begins, [`move_rows`] moves a
//! bounded number of its rows to `timeout_by_due`. After a longer downtime a slot may have begun.
//! Its rows are then read and sorted in place, because moving a million of them takes half a
//! minute.

use super::ids::{blob, id};
use super::unreadable::{self, UnreadableRows, is_unreadable};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};
use std::collections::HashMap;
use std::ops::Range;
use timer_durable::TimeoutId;
use timer_durable::store::{Micros, Position};

/// The width of a slot in microseconds, a power of two.
pub(super) const WIDTH: Micros = 1 << 32;

/// The slot of a row on the shelf of its topic.
pub(super) const SHELF: Micros = -1;

/// The number of rows that move to the index of due times at once, which takes one to four
/// milliseconds.
const MAX_MOVED: i64 = 128;

/// Returns the time from which timeouts are far away.
pub(super) fn far(now: Micros) -> Micros {
    now.saturating_add(2 * WIDTH)
}

/// Returns the slot of a timeout, or `None` if it is due before `far`.
pub(super) fn slot(due: Micros, far: Micros) -> Option<Micros> {
    (due >= far).then_some(due & -WIDTH)
}

/// Changes the due time of a timeout, and plans its run anew.
pub(super) fn change_due(db: &Connection, id: TimeoutId, due: Micros, far: Micros) -> Result<()> {
    let mut update = db.prepare_cached("update timer_timeout set due = ?2, slot = ?3, planned = null where id = ?1")?;
    update.execute(params![blob(id), due, slot(due, far)]).map(drop)
}

/// A page to be read.
pub(super) struct Page {
    pub(super) range: Range<Position>,
    pub(super) max: usize,
    /// The epoch whose timeouts run here, so they are not pending.
    pub(super) epoch: i64,
}

/// The result of loading a page.
pub(super) enum Loaded {
    /// The position before which the page lacks nothing.
    Before(Position),
    /// The rows of this slot have to be moved first.
    Unsorted(Micros),
    /// These rows cannot be read and have to leave the table first.
    Unreadable(UnreadableRows),
}

/// The rows of a page. A row has its position, or the error with which its values are read.
type Rows = Vec<(i64, Result<(Position, bool)>)>;

/// The topics of the rows of the last page, without those that cannot be read. Searching each by
/// its id takes four times as long as reading the page.
pub(super) type PageTopics = HashMap<TimeoutId, Box<str>>;

impl Page {
    /// Appends the page to `out`, and notes the topics of its rows.
    pub(super) fn load(
        self,
        db: &Connection,
        now: Micros,
        topics: &mut PageTopics,
        out: &mut Vec<Position>,
    ) -> Result<Loaded> {
        topics.clear();
        let slot = match self.first_slot(db)? {
            Some((row, Err(error))) if is_unreadable(&error) => return Ok(Loaded::Unreadable(vec![(row, error)])),
            Some((_, slot)) => Some(slot?),
            None => None,
        };
        let begun = slot.filter(|slot| *slot <= now);
        let end = match slot {
            None => self.range.end,
            Some(slot) if begun.is_some() => self.range.end.min(Position::at(slot.saturating_add(WIDTH))),
            Some(slot) if Position::at(slot) <= self.range.start => return Ok(Loaded::Unsorted(slot)),
            Some(slot) => self.range.end.min(Position::at(slot)),
        };
        let mut rows = Vec::new();
        if let Some(slot) = begun {
            // The index has no `begun`, so it is looked up for the rows of the page only.
            let mut query = db.prepare_cached(
                "select page.rowid, page.due, page.id, begun, topic from (
                     select rowid, due, id from timer_timeout
                     where slot = ?6 and (due, id) >= (?1, ?2) and (due, id) < (?3, ?4)
                     order by due, id limit ?5) page join timer_timeout on timer_timeout.rowid = page.rowid",
            )?;
            query.raw_bind_parameter(6, slot)?;
            self.read(&mut query, end, topics, &mut rows)?;
        }
        let mut query = db.prepare_cached(
            "select rowid, due, id, begun, topic from timer_timeout
             where slot is null and (due, id) >= (?1, ?2) and (due, id) < (?3, ?4) order by due, id limit ?5",
        )?;
        self.read(&mut query, end, topics, &mut rows)?;
        if rows.iter().any(|(_, row)| row.is_err()) {
            let unreadable = rows.into_iter().filter_map(|(row, read)| Some((row, read.err()?)));
            return Ok(Loaded::Unreadable(unreadable.collect()));
        }
        let mut rows: Vec<(Position, bool)> = rows.into_iter().map(|(_, row)| row).collect::<Result<_>>()?;
        rows.sort_unstable_by_key(|(position, _)| *position);
        rows.truncate(self.max);
        out.extend(rows.iter().filter(|(_, runs)| !runs).map(|(position, _)| position));
        let last = rows.last().filter(|_| rows.len() == self.max);
        Ok(Loaded::Before(last.map_or(end, |(last, _)| last.next())))
    }

    /// Returns the first row with a slot that overlaps the range, and its slot.
    fn first_slot(&self, db: &Connection) -> Result<Option<(i64, Result<Micros>)>> {
        db.prepare_cached("select rowid, slot from timer_timeout where slot > ?1 and slot < ?2 order by slot limit 1")?
            .query_row([self.range.start.due.saturating_sub(WIDTH).max(SHELF), self.range.end.due], |row| {
                Ok((row.get(0)?, row.get(1)))
            })
            .optional()
    }

    /// Reads rows until `end`, with `true` for those that run here.
    fn read(&self, query: &mut Statement<'_>, end: Position, topics: &mut PageTopics, rows: &mut Rows) -> Result<()> {
        query.raw_bind_parameter(1, self.range.start.due)?;
        query.raw_bind_parameter(2, blob(self.range.start.id))?;
        query.raw_bind_parameter(3, end.due)?;
        query.raw_bind_parameter(4, blob(end.id))?;
        query.raw_bind_parameter(5, self.max as i64)?;
        let mut found = query.raw_query();
        while let Some(row) = found.next()? {
            let read = || {
                let runs = row.get::<_, Option<i64>>(3)?.is_some_and(|epoch| epoch >= self.epoch);
                Ok((Position { due: row.get(1)?, id: id(row.get(2)?) }, runs))
            };
            let read = read();
            if let (Ok((position, _)), Ok(topic)) = (&read, row.get_ref(4)?.as_str()) {
                topics.insert(position.id, topic.into());
            }
            rows.push((row.get(0)?, read));
        }
        Ok(())
    }
}

/// Moves rows of a slot to the exact order.
pub(super) fn move_rows(db: &Connection, slot: Micros) -> Result<()> {
    let mut find = db.prepare_cached("select rowid from timer_timeout where slot = ?1 order by id limit ?2")?;
    let rows = find.query_map(params![slot, MAX_MOVED], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>>>()?;
    let mut update = db.prepare_cached("update timer_timeout set slot = null where rowid = ?1")?;
    rows.iter().try_for_each(|row| update.execute([row]).map(drop))
}

/// Returns the rows that no page finds, because their due time or their slot is a text or a blob,
/// which SQLite orders behind all numbers.
pub(super) fn find_lost(db: &Connection) -> Result<UnreadableRows> {
    let mut query = db.prepare_cached(
        "select rowid, due from timer_timeout where slot is null and due > 9223372036854775807
         union all select rowid, slot from timer_timeout where slot is not null and slot > 9223372036854775807",
    )?;
    unreadable::rows::<Micros>(&mut query, [])
}
