//! The list of timeouts, which is in exact order only for the next hours.
//!
//! The list is read in the order of due times. An index in this order costs a page of the file for
//! nearly each insert, because due times are spread over days. As in a hierarchical timing wheel
//! (Varghese and Lauck, 1987), a timeout that is far away is therefore only assigned to a slot of
//! 71.6 minutes. Within a slot timeouts are ordered by id, so the next one goes to the slot's last
//! page, which is in memory. Most timeouts are cancelled before their exact order matters.
//!
//! A row with a slot is in the index `timeout_by_slot`, and any other in `timeout_by_due`. When the
//! keeper asks for a page at a slot, about an hour before the slot begins, [`move_rows`] moves a
//! bounded number of its rows to `timeout_by_due`. After a longer downtime a slot may have begun.
//! Its rows are then read and sorted in place, because moving a million of them takes half a
//! minute.

use super::rows::{blob, id};
use crate::store::{Micros, Position};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};
use std::ops::Range;

/// The width of a slot in microseconds, a power of two.
const WIDTH: Micros = 1 << 32;

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

/// A page to be read.
pub(super) struct Page {
    pub(super) range: Range<Position>,
    pub(super) max: usize,
    /// The epoch whose timeouts run here, so they are not pending.
    pub(super) epoch: i64,
}

impl Page {
    /// Appends the page to `out`. Returns the position before which `out` lacks nothing, and a slot
    /// if its rows have to be moved first.
    pub(super) fn load(
        self,
        db: &Connection,
        now: Micros,
        out: &mut Vec<Position>,
    ) -> Result<(Position, Option<Micros>)> {
        let slot = self.first_slot(db)?;
        let begun = slot.filter(|slot| *slot <= now);
        let end = match slot {
            None => self.range.end,
            Some(slot) if begun.is_some() => self.range.end.min(Position::at(slot.saturating_add(WIDTH))),
            Some(slot) if Position::at(slot) <= self.range.start => return Ok((self.range.start, Some(slot))),
            Some(slot) => self.range.end.min(Position::at(slot)),
        };
        let mut rows = Vec::new();
        if let Some(slot) = begun {
            // The index has no `begun`, so it is looked up for the rows of the page only.
            let mut query = db.prepare_cached(
                "select page.due, page.id, begun from (
                     select due, id from timeout where slot = ?6 and (due, id) >= (?1, ?2) and (due, id) < (?3, ?4)
                     order by due, id limit ?5) page join timeout using (id)",
            )?;
            query.raw_bind_parameter(6, slot)?;
            self.read(&mut query, end, &mut rows)?;
        }
        let mut query = db.prepare_cached(
            "select due, id, begun from timeout where slot is null and (due, id) >= (?1, ?2) and (due, id) < (?3, ?4)
             order by due, id limit ?5",
        )?;
        self.read(&mut query, end, &mut rows)?;
        rows.sort_unstable_by_key(|(position, _)| *position);
        rows.truncate(self.max);
        out.extend(rows.iter().filter(|(_, runs)| !runs).map(|(position, _)| position));
        let last = rows.last().filter(|_| rows.len() == self.max);
        Ok((last.map_or(end, |(last, _)| last.next()), None))
    }

    /// Returns the first slot that has a row and overlaps the range.
    fn first_slot(&self, db: &Connection) -> Result<Option<Micros>> {
        db.prepare_cached("select slot from timeout where slot > ?1 and slot < ?2 order by slot limit 1")?
            .query_row([self.range.start.due.saturating_sub(WIDTH), self.range.end.due], |row| row.get(0))
            .optional()
    }

    /// Reads rows until `end`, with `true` for those that run here.
    fn read(&self, query: &mut Statement<'_>, end: Position, rows: &mut Vec<(Position, bool)>) -> Result<()> {
        query.raw_bind_parameter(1, self.range.start.due)?;
        query.raw_bind_parameter(2, blob(self.range.start.id))?;
        query.raw_bind_parameter(3, end.due)?;
        query.raw_bind_parameter(4, blob(end.id))?;
        query.raw_bind_parameter(5, self.max as i64)?;
        let mut found = query.raw_query();
        while let Some(row) = found.next()? {
            let runs = row.get::<_, Option<i64>>(2)?.is_some_and(|epoch| epoch >= self.epoch);
            rows.push((Position { due: row.get(0)?, id: id(row.get(1)?) }, runs));
        }
        Ok(())
    }
}

/// Moves rows of a slot to the exact order.
pub(super) fn move_rows(db: &Connection, slot: Micros) -> Result<()> {
    let mut find = db.prepare_cached("select id from timeout where slot = ?1 order by id limit ?2")?;
    let ids = find.query_map(params![slot, MAX_MOVED], |row| row.get::<_, [u8; 16]>(0))?.collect::<Result<Vec<_>>>()?;
    let mut update = db.prepare_cached("update timeout set slot = null where id = ?1")?;
    ids.iter().try_for_each(|id| update.execute([id]).map(drop))
}
