//! The operations of a batch, by the part of the statement that executes them.

use super::column::{Column, Parameter, uuid};
use super::connection::PostgresConnection;
use super::part::{PARTS, Part};
use super::statements::PartSet;
use timer_durable::TimeoutId;
use timer_durable::store::Micros;
use timer_durable::transaction::{Insert, Operation};
use uuid::Uuid;

/// The operations of a batch by the part of the statement that executes them.
pub(super) struct Tables<'a> {
    batch: &'a [Operation],
    instance: u32,
    /// The id and the index in the batch of each operation, sorted by id. A part that leaves
    /// tombstones has the operations on young ids.
    rows: [Vec<(TimeoutId, usize)>; PARTS.len()],
}

impl<'a> Tables<'a> {
    /// Returns the tables of those operations of `batch` whose indices are in `open`. `ids` are the
    /// timeouts of all operations.
    pub(super) fn new(
        batch: &'a [Operation],
        ids: &[Option<TimeoutId>],
        open: &[usize],
        instance: u32,
        now: Micros,
    ) -> Self {
        let mut rows: [Vec<(TimeoutId, usize)>; PARTS.len()] = Default::default();
        for n in open {
            if matches!(&batch[*n], Operation::Insert(insert) if insert.cap.is_some()) {
                // The statement knows no caps, so `put` executes it.
                continue;
            }
            if let Some(id) = ids[*n] {
                let is_young = id.repeatable_until(instance).is_some_and(|until| until > now);
                rows[part(&batch[*n], is_young) as usize].push((id, *n));
            }
            if let Operation::Done { then, .. } = &batch[*n] {
                rows[Part::Inserted as usize].extend(then.iter().map(|then| (then.id, *n)));
            }
        }
        rows.iter_mut().for_each(|rows| rows.sort_unstable());
        Self { batch, instance, rows }
    }

    fn rows(&self, part: Part) -> &[(TimeoutId, usize)] {
        let part = if part == Part::Created { Part::Inserted } else { part };
        &self.rows[part as usize]
    }

    fn inserts(&self) -> impl Iterator<Item = &'a Insert> {
        self.rows(Part::Inserted).iter().filter_map(|(id, n)| match &self.batch[*n] {
            Operation::Insert(insert) => Some(insert),
            Operation::Done { then, .. } => then.iter().find(|then| then.id == *id),
            _ => None,
        })
    }

    /// Returns the timeouts whose ends create the timeouts that are inserted.
    fn predecessors(&self) -> Vec<Option<Uuid>> {
        let predecessor = |(_, n): &(TimeoutId, usize)| match &self.batch[*n] {
            Operation::Done { id, .. } => Some(uuid(*id)),
            _ => None,
        };
        self.rows(Part::Inserted).iter().map(predecessor).collect()
    }

    /// Returns `true` if no insert depends on another row, because this instance has made the ids,
    /// there is no key, and no end has to come first.
    pub(super) fn has_new_inserts_only(&self) -> bool {
        let is_call = |(_, n): &(TimeoutId, usize)| matches!(self.batch[*n], Operation::Insert(_));
        self.inserts().all(|insert| insert.id.maker() == self.instance && insert.key.is_none())
            && self.rows(Part::Inserted).iter().all(is_call)
    }

    /// Returns the parts of the statement that executes the operations. Inserts expect no conflict
    /// if they are `new`.
    pub(super) fn parts(&self, new: bool) -> PartSet {
        let mut parts = PartSet::default();
        for part in PartSet::ALL.iter().filter(|part| *part != Part::Inserted) {
            parts.add(part, !self.rows(part).is_empty());
        }
        let mut parts = parts.widen();
        let is_widened = parts.has(Part::Inserted);
        parts.add(
            if new && !is_widened { Part::Created } else { Part::Inserted },
            !self.rows(Part::Inserted).is_empty(),
        );
        parts
    }

    /// Returns the index in the batch of an operation of a part.
    pub(super) fn find(&self, part: Part, id: TimeoutId) -> Option<(TimeoutId, usize)> {
        let rows = self.rows(part);
        rows.binary_search_by_key(&id, |(id, _)| *id).ok().map(|found| rows[found])
    }

    /// Returns the ids of the operations of a part that were executed, with their indices in the
    /// batch. `ids` are those of the answer, or `None` if all of them were executed.
    pub(super) fn executed(&self, part: Part, ids: Option<Vec<Uuid>>) -> Vec<(TimeoutId, usize)> {
        match ids {
            None => self.rows(part).to_vec(),
            Some(ids) => ids.iter().filter_map(|id| self.find(part, TimeoutId::from_u128(id.as_u128()))).collect(),
        }
    }

    /// Returns the parameters of [`write`](super::statements::write) after the first three.
    pub(super) fn parameters(
        &'a self,
        shard: i16,
        parts: PartSet,
        connection: &PostgresConnection,
    ) -> Vec<Parameter<'a>> {
        let mut parameters: Vec<Parameter<'a>> = Vec::with_capacity(16);
        for part in parts.iter() {
            let rows = self.rows(part);
            let operations: Vec<&Operation> = rows.iter().map(|(_, n)| &self.batch[*n]).collect();
            let inserts: Vec<&Insert> = if part.is_insert() { self.inserts().collect() } else { Vec::new() };
            parameters.extend(part.definition().columns.iter().map(|column| -> Parameter<'a> {
                match column {
                    Column::Id => Box::new(rows.iter().map(|(id, _)| uuid(*id)).collect::<Vec<_>>()),
                    Column::Shard => Box::new(shard),
                    Column::Until => {
                        let until = rows.iter().map(|(id, _)| id.repeatable_until(self.instance).unwrap_or(0));
                        Box::new(until.collect::<Vec<_>>())
                    }
                    Column::Predecessor => Box::new(self.predecessors()),
                    Column::Insert(column) => column.values(&inserts, self.instance),
                    Column::Operation(column) => column.values(&operations, connection),
                }
            }));
        }
        parameters
    }
}

fn part(operation: &Operation, is_young: bool) -> Part {
    match operation {
        Operation::Insert(_) => Part::Inserted,
        Operation::Reset { .. } => Part::Moved,
        Operation::Cancel(_) if is_young => Part::CancelledYoung,
        Operation::Cancel(_) => Part::Cancelled,
        Operation::Done { next: None, .. } if is_young => Part::DoneYoung,
        Operation::Done { next: None, .. } => Part::Done,
        Operation::Postpone { payload: Some(_), .. } => Part::Postponed,
        Operation::Done { .. } | Operation::Retry { .. } | Operation::Postpone { .. } => Part::Repeated,
        Operation::Bury { next: None, .. } => Part::Buried,
        Operation::Bury { .. } => Part::BuriedRun,
        Operation::Requeue { .. } => Part::Requeued,
        Operation::Purge(_) if is_young => Part::PurgedYoung,
        Operation::Purge(_) => Part::Purged,
        Operation::Begin(_) => Part::Begun,
    }
}
