//! Pages of the lists.

use super::column::uuid;
use super::link::Fixed;
use super::{PostgresStore, write};
use std::ops::Range;
use timer_durable::StoreError;
use timer_durable::store::Position;

impl PostgresStore {
    /// Reads a page of a topic.
    pub(super) fn load_page(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        let Some(first_shard) = self.shards.iter().min().copied() else { return Ok(range.end) };
        let last_shard = self.shards.iter().max().copied();
        let epochs = self.epochs.clone();
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        let first = uuid(range.start.id);
        let last = uuid(range.end.id);
        let rows = self.link()?.query(
            Fixed::Load,
            &[&topic, &range.start.due, &first, &range.end.due, &last, &first_shard, &last_shard, &epochs, &limit],
        )?;
        out.extend(rows.iter().map(|row| Position { due: row.get(0), id: write::id(row, 1) }));
        let is_full = rows.len() >= max;
        Ok(out.last().filter(|_| is_full).map_or(range.end, |last| last.next()))
    }
}
