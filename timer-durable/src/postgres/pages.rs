//! Pages of the list.

use super::parts::uuid;
use super::{PostgresStore, SHARDS, write};
use crate::store::{Position, StoreError};
use std::collections::BTreeSet;
use std::ops::Range;
use uuid::Uuid;

/// The least number of rows that are read of each shard at first.
const MIN_PART: usize = 16;

impl PostgresStore {
    /// Returns the shards of this instance and their epochs.
    pub(super) fn owned(&self) -> (Vec<i16>, Vec<i64>) {
        let epoch = |shard: &i16| Some((*shard, self.epochs[shard.unsigned_abs() as usize]?));
        self.shards.iter().filter_map(epoch).unzip()
    }

    /// Reads a page by merging the first rows of each shard. If those of a shard are used up, reads
    /// more of them, because one shard may have all rows of the page.
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
        let (end, part) = (out.len() + max, (2 * max / shards.len()).max(MIN_PART));
        let mut rows = Rows::default();
        rows.read(self, (&shards, &epochs), range.clone(), part)?;
        while out.len() < end {
            let Some((position, shard)) = rows.found.pop_first() else { return Ok(range.end) };
            out.push(position);
            let left = &mut rows.left[shard.unsigned_abs() as usize];
            *left = left.map(|left| left - 1);
            let owned = self.epochs[shard.unsigned_abs() as usize].filter(|_| *left == Some(0));
            if let Some(epoch) = owned {
                rows.read(self, (&[shard], &[epoch]), position.next()..range.end, (end - out.len()).max(1))?;
            }
        }
        Ok(out.last().map_or(range.start, |last| last.next()))
    }
}

/// Rows of a page that were read.
struct Rows {
    found: BTreeSet<(Position, i16)>,
    /// The number of these by shard, or `None` if the shard has no more.
    left: [Option<usize>; SHARDS],
}

impl Default for Rows {
    fn default() -> Self {
        Self { found: BTreeSet::new(), left: [None; SHARDS] }
    }
}

impl Rows {
    /// Reads the first rows of each of the shards, at most `part` of each.
    fn read(
        &mut self,
        store: &mut PostgresStore,
        (shards, epochs): (&[i16], &[i64]),
        range: Range<Position>,
        part: usize,
    ) -> Result<(), StoreError> {
        let limit = i64::try_from(part).unwrap_or(i64::MAX);
        let (first, last): (Uuid, Uuid) = (uuid(range.start.id), uuid(range.end.id));
        let rows = store.link()?.load(&[&shards, &epochs, &range.start.due, &first, &range.end.due, &last, &limit])?;
        let mut counts = [0_usize; SHARDS];
        for row in &rows {
            let shard: i16 = row.get(0);
            counts[shard.unsigned_abs() as usize] += 1;
            self.found.insert((Position { due: row.get(1), id: write::id(row, 2) }, shard));
        }
        for shard in shards {
            let shard = shard.unsigned_abs() as usize;
            self.left[shard] = Some(counts[shard]).filter(|count| *count == part);
        }
        Ok(())
    }
}
