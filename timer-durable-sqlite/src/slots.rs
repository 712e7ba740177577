//! The list of timeouts, in exact order only for the next hours.
//!
//! The list is read in the order of due times. An index in this order costs a page of the file for
//! nearly each insert, because due times are spread over days. As in a hierarchical timing wheel
//! (Varghese and Lauck, 1987), a timeout that is far away is therefore only assigned to a slot of
//! 71.6 minutes. Within a slot timeouts are ordered by id, so the next one goes to the slot's last
//! page, which is in memory. Most timeouts are cancelled before their exact order matters.
//!
//! A row with a slot is in the index `timeout_by_slot`, and any other in `timeout_by_due`, which
//! has the list of each topic. When the keeper asks for a page at a slot, about an hour before the
//! slot begins, [`move_rows`] moves a bounded number of its rows to `timeout_by_due`. The topic is
//! not in front of the id in the index of slots, because each topic would then have a last page of
//! its own in each slot. After a longer downtime a slot may have begun. Its rows are then read in
//! place ([`BegunSlot`]).

use super::begun::BegunSlot;
use super::ids::{blob, id};
use super::topics;
use super::unreadable::{UnreadableRows, is_unreadable};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};
use std::collections::HashMap;
use std::ops::Range;
use timer_durable::TimeoutId;
use timer_durable::store::{Micros, Position};

/// The width of a slot in microseconds, a power of two.
pub(super) const WIDTH: Micros = 1 << 32;

/// The number of rows that move to the index of due times at once, which takes one to four
/// milliseconds.
const MAX_MOVED: i64 = 128;

/// The slots of the timeouts of a batch.
pub(super) struct Slots<'c> {
    db: &'c Connection,
    /// The time from which timeouts are far away.
    far: Micros,
    /// The last slot of each topic that the batch has noted.
    last: HashMap<String, Micros>,
}

impl<'c> Slots<'c> {
    pub(super) fn new(db: &'c Connection, now: Micros) -> Self {
        Self { db, far: now.saturating_add(2 * WIDTH), last: HashMap::new() }
    }

    /// Returns the slot that a timeout gets, or `None` if it is due soon. Notes that its topic has
    /// a timeout in the slot.
    pub(super) fn assign(&mut self, topic: &str, due: Micros) -> Result<Option<Micros>> {
        if due < self.far {
            return Ok(None);
        }
        let slot = due & -WIDTH;
        if self.last.get(topic).is_none_or(|last| *last < slot) {
            topics::note(self.db, topic, slot)?;
            self.last.insert(topic.to_owned(), slot);
        }
        Ok(Some(slot))
    }

    /// Changes the due time of a timeout, and plans its run anew. Looks for its topic if nobody has
    /// told it. A timeout whose topic cannot be read gets no slot.
    pub(super) fn change_due(&mut self, id: TimeoutId, topic: Option<&str>, due: Micros) -> Result<()> {
        let slot = match topic {
            Some(topic) => self.assign(topic, due)?,
            None if due < self.far => None,
            None => match topics::of(self.db, id)? {
                Some(topic) => self.assign(&topic, due)?,
                None => None,
            },
        };
        let sql = "update timer_timeout set due = ?2, slot = ?3, planned = null where id = ?1";
        self.db.prepare_cached(sql)?.execute(params![blob(id), due, slot]).map(drop)
    }
}

/// A page to be read.
pub(super) struct Page<'t> {
    pub(super) topic: &'t str,
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

impl Page<'_> {
    /// Appends the page to `out`. `begun_slot` keeps rows for further pages.
    pub(super) fn load(
        self,
        db: &Connection,
        now: Micros,
        begun_slot: &mut BegunSlot,
        out: &mut Vec<Position>,
    ) -> Result<Loaded> {
        let slot = match self.first_slot(db)? {
            Some((row, Err(error))) if is_unreadable(&error) => return Ok(Loaded::Unreadable(vec![(row, error)])),
            Some((_, slot)) => Some(slot?),
            None => None,
        };
        // The slots behind its last one have other topics only.
        let last = topics::last_slot(db, self.topic)?;
        let slot = slot.filter(|slot| last.is_some_and(|last| *slot <= last));
        let begun = slot.filter(|slot| *slot <= now);
        let mut end = match slot {
            None => self.range.end,
            Some(slot) if begun.is_some() => self.range.end.min(Position::at(slot.saturating_add(WIDTH))),
            Some(slot) if Position::at(slot) <= self.range.start => return Ok(Loaded::Unsorted(slot)),
            Some(slot) => self.range.end.min(Position::at(slot)),
        };
        let mut rows = Vec::new();
        if let Some(slot) = begun {
            let kept = match begun_slot.rows(db, slot, self.topic, self.range.start)? {
                Ok(kept) => kept,
                Err(unreadable) => return Ok(Loaded::Unreadable(unreadable)),
            };
            end = end.min(kept.until);
            self.read_kept(db, slot, kept.rows.range(self.range.start..end), &mut rows)?;
        }
        let mut query = db.prepare_cached(
            "select rowid, due, id, begun from timer_timeout
             where slot is null and topic = ?6 and (due, id) >= (?1, ?2) and (due, id) < (?3, ?4)
             order by due, id limit ?5",
        )?;
        self.read(&mut query, end, &mut rows)?;
        if rows.iter().any(|(_, row)| row.is_err()) {
            let unreadable = rows.into_iter().filter_map(|(row, read)| Some((row, read.err()?)));
            return Ok(Loaded::Unreadable(unreadable.collect()));
        }
        let mut rows: Vec<(Position, bool)> = rows.into_iter().map(|(_, row)| row).collect::<Result<_>>()?;
        rows.sort_unstable_by_key(|(position, _)| *position);
        rows.truncate(self.max);
        out.extend(rows.iter().filter(|(_, runs)| !runs).map(|(position, _)| position));
        let last = rows.last().filter(|_| rows.len() == self.max);
        let bound = last.map_or(end, |(last, _)| last.next());
        begun_slot.drop_before(self.topic, bound);
        Ok(Loaded::Before(bound))
    }

    /// Returns the first row with a slot that overlaps the range, and its slot.
    fn first_slot(&self, db: &Connection) -> Result<Option<(i64, Result<Micros>)>> {
        db.prepare_cached("select rowid, slot from timer_timeout where slot > ?1 and slot < ?2 order by slot limit 1")?
            .query_row([self.range.start.due.saturating_sub(WIDTH), self.range.end.due], |row| {
                Ok((row.get(0)?, row.get(1)))
            })
            .optional()
    }

    /// Reads the rows that were kept of a slot and are still in it.
    fn read_kept<'k>(
        &self,
        db: &Connection,
        slot: Micros,
        kept: impl Iterator<Item = (&'k Position, &'k i64)>,
        rows: &mut Rows,
    ) -> Result<()> {
        let sql = "select begun from timer_timeout where rowid = ?1 and slot = ?2 and due = ?3 and id = ?4";
        let mut query = db.prepare_cached(sql)?;
        for (position, row) in kept {
            let values = params![row, slot, position.due, blob(position.id)];
            let begun = query.query_row(values, |found| Ok(found.get::<_, Option<i64>>(0))).optional()?;
            if let Some(begun) = begun {
                rows.push((*row, begun.map(|begun| (*position, self.runs(begun)))));
            }
            if rows.len() == self.max {
                break;
            }
        }
        Ok(())
    }

    /// Returns `true` if an attempt that an epoch has begun runs here.
    fn runs(&self, begun: Option<i64>) -> bool {
        begun.is_some_and(|epoch| epoch >= self.epoch)
    }

    /// Reads rows in exact order until `end`, with `true` for those that run here.
    fn read(&self, query: &mut Statement<'_>, end: Position, rows: &mut Rows) -> Result<()> {
        query.raw_bind_parameter(1, self.range.start.due)?;
        query.raw_bind_parameter(2, blob(self.range.start.id))?;
        query.raw_bind_parameter(3, end.due)?;
        query.raw_bind_parameter(4, blob(end.id))?;
        query.raw_bind_parameter(5, self.max as i64)?;
        query.raw_bind_parameter(6, self.topic)?;
        let mut found = query.raw_query();
        while let Some(row) = found.next()? {
            let read = || {
                let runs = self.runs(row.get(3)?);
                Ok((Position { due: row.get(1)?, id: id(row.get(2)?) }, runs))
            };
            rows.push((row.get(0)?, read()));
        }
        Ok(())
    }
}

/// Moves rows of a slot to the exact order.
pub(super) fn move_rows(db: &Connection, slot: Micros) -> Result<()> {
    let mut find = db.prepare_cached("select rowid from timer_timeout where slot = ?1 order by id limit ?2")?;
    let rows = find.query_map(params![slot, MAX_MOVED], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>>>()?;
    let mut update = db.prepare_cached("update timer_timeout set slot = null where rowid = ?1")?;
    rows.iter().try_for_each(|row| update.execute([row]).map(drop))?;
    if rows.len() < MAX_MOVED as usize { topics::forget(db) } else { Ok(()) }
}
