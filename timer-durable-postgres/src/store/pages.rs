//! Pages of the list, which merge the rows of the shards.

use super::column::uuid;
use super::{PostgresStore, SHARDS, write};
use std::collections::BTreeMap;
use std::ops::Range;
use timer_durable::StoreError;
use timer_durable::store::Position;
use uuid::Uuid;

/// Returns the number of rows that are read of each shard at first, for a page of `max` rows.
pub(super) fn first_part(max: usize, shards: usize) -> usize {
    (2 * max / shards).max(16)
}

impl PostgresStore {
    /// Returns the shards of this instance and their epochs.
    pub(super) fn owned(&self) -> (Vec<i16>, Vec<i64>) {
        let epoch = |shard: &i16| Some((*shard, self.epochs[shard.unsigned_abs() as usize]?));
        self.shards.iter().filter_map(epoch).unzip()
    }

    /// Reads a page by merging the first rows of each shard.
    pub(super) fn load_page(
        &mut self,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        let (shards, epochs) = self.owned();
        if shards.is_empty() {
            return Ok(range.end);
        }
        let end = out.len() + max;
        let part = first_part(max, shards.len());
        let mut rows = MergedRows::default();
        self.load_part(&mut rows, (&shards, &epochs), range.clone(), part)?;
        while out.len() < end {
            let Some((position, (), used_up)) = rows.pop_first() else { return Ok(range.end) };
            out.push(position);
            let left = end - out.len();
            let owned = used_up.and_then(|shard| Some((shard, self.epochs[shard.unsigned_abs() as usize]?)));
            if let Some((shard, epoch)) = owned.filter(|_| left > 0) {
                let range = position.next()..range.end.min(rows.end_of(left));
                self.load_part(&mut rows, (&[shard], &[epoch]), range, left)?;
            }
        }
        Ok(out.last().map_or(range.start, |last| last.next()))
    }

    /// Reads the first rows of each of the shards, at most `part` of each.
    fn load_part(
        &mut self,
        rows: &mut MergedRows<()>,
        (shards, epochs): (&[i16], &[i64]),
        range: Range<Position>,
        part: usize,
    ) -> Result<(), StoreError> {
        let limit = i64::try_from(part).unwrap_or(i64::MAX);
        let first: Uuid = uuid(range.start.id);
        let last: Uuid = uuid(range.end.id);
        let found = self.link()?.load(&[&shards, &epochs, &range.start.due, &first, &range.end.due, &last, &limit])?;
        let found = found.iter().map(|row| (Position { due: row.get(1), id: write::id(row, 2) }, (), row.get(0)));
        rows.add(shards, found, part);
        Ok(())
    }
}

/// The rows of several shards, merged into one order. Once the rows that were read of a shard are
/// used up, more have to be read, because one shard may have all rows of the page.
pub(super) struct MergedRows<R> {
    found: BTreeMap<Position, (R, i16)>,
    /// The number of rows after which a shard is used up, or `None` if it has no more.
    left: [Option<usize>; SHARDS],
}

impl<R> Default for MergedRows<R> {
    fn default() -> Self {
        Self { found: BTreeMap::new(), left: [None; SHARDS] }
    }
}

impl<R> MergedRows<R> {
    /// Adds rows with their shards. At most `part` rows of each of these `shards` were read, and as
    /// many of each of its shelves.
    pub(super) fn add(&mut self, shards: &[i16], rows: impl Iterator<Item = (Position, R, i16)>, part: usize) {
        let mut counts = [0_usize; SHARDS];
        for (position, row, shard) in rows {
            counts[shard.unsigned_abs() as usize] += 1;
            self.found.insert(position, (row, shard));
        }
        for shard in shards {
            let shard = shard.unsigned_abs() as usize;
            self.left[shard] = (counts[shard] >= part).then_some(part);
        }
    }

    /// Returns a position before which the next `max` rows are, with those that were not read yet.
    pub(super) fn end_of(&self, max: usize) -> Position {
        let last = max.checked_sub(1).and_then(|last| self.found.keys().nth(last));
        last.map_or(Position::END, |last| last.next())
    }

    /// Removes the first row. Returns it with its shard if that is used up.
    pub(super) fn pop_first(&mut self) -> Option<(Position, R, Option<i16>)> {
        let (position, (row, shard)) = self.found.pop_first()?;
        let left = &mut self.left[shard.unsigned_abs() as usize];
        *left = left.map(|left| left - 1);
        Some((position, row, Some(shard).filter(|_| *left == Some(0))))
    }
}
