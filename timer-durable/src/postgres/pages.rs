//! Pages of the list.

use super::parts::uuid;
use super::{PostgresStore, SHARDS, write};
use crate::store::{Position, StoreError};
use std::ops::Range;
use uuid::Uuid;

impl PostgresStore {
    /// Returns the shards of this instance and their epochs.
    pub(super) fn owned(&self) -> (Vec<i16>, Vec<i64>) {
        let epoch = |shard: &i16| Some((*shard, self.epochs[shard.unsigned_abs() as usize]?));
        self.shards.iter().filter_map(epoch).unzip()
    }

    /// Reads a page in rounds. A round reads the first rows of each shard. If a shard has more, the
    /// rows of the others behind its last one are discarded, and the next round starts there.
    pub(super) fn load_page(
        &mut self,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        let (shards, epochs) = self.owned();
        let (mut from, until, end) = (range.start, range.end, out.len() + max);
        if shards.is_empty() {
            return Ok(until);
        }
        while out.len() < end {
            let part = (2 * (end - out.len()) / shards.len()).max(64);
            let limit = i64::try_from(part).unwrap_or(i64::MAX);
            let (first, last): (Uuid, Uuid) = (uuid(from.id), uuid(until.id));
            let rows = self.link()?.load(&[&shards, &epochs, &from.due, &first, &until.due, &last, &limit])?;
            let mut counts = [0_usize; SHARDS];
            let mut is_whole = true;
            for row in &rows {
                let position = Position { due: row.get(1), id: write::id(row, 2) };
                let count = &mut counts[row.get::<_, i16>(0).unsigned_abs() as usize];
                *count += 1;
                if out.len() < end {
                    out.push(position);
                    from = position.next();
                }
                if *count == part {
                    is_whole = false;
                    break;
                }
            }
            if is_whole && out.len() < end {
                return Ok(until);
            }
        }
        Ok(from)
    }
}
