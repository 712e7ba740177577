//! The parameters of a batch, as columns of arrays.

use super::connection::PostgresConnection;
use super::part::{PARTS, Part};
use super::statements::Parts;
use std::sync::Arc;
use timer_durable::TimeoutId;
use timer_durable::store::Micros;
use timer_durable::transaction::{Insert, Operation};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// The ways in which a timeout is repeated. A retry counts the attempt towards the limit. The next
/// run of a periodic timeout counts its attempts anew, and so does a run that is postponed. If this
/// node has no handler for the topic, or the handler has not started, this attempt does not count,
/// and the timeout moves to a shard of any node.
const RETRIED: i16 = 0;
const NEXT_RUN: i16 = 1;
const ELSEWHERE: i16 = 2;
const POSTPONED: i16 = 3;

/// The number of columns of new inserts behind their ids, which have no key.
const NEW_COLUMNS: usize = 7;

pub(super) fn uuid(id: TimeoutId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

/// A parameter of a statement.
pub(super) type Parameter<'a> = Box<dyn ToSql + Sync + 'a>;

/// The operations of a batch by the part of the statement that executes them.
pub(super) struct Tables<'a> {
    batch: &'a [Operation],
    instance: u32,
    blocked: &'a [Arc<str>],
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
        blocked: &'a [Arc<str>],
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
        Self { batch, instance, blocked, rows }
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
    pub(super) fn parts(&self, new: bool) -> Parts {
        let mut parts = Parts::default();
        for part in Parts::ALL.iter().filter(|part| *part != Part::Inserted) {
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
        parts: Parts,
        connection: &PostgresConnection,
    ) -> Vec<Parameter<'a>> {
        let mut columns: Vec<Parameter<'a>> = Vec::with_capacity(16);
        for part in parts.iter() {
            if matches!(part, Part::Created | Part::Inserted) {
                columns.push(Box::new(shard));
            }
            if part == Part::BuriedLetter {
                continue;
            }
            columns.push(Box::new(self.rows(part).iter().map(|(id, _)| uuid(*id)).collect::<Vec<_>>()));
            match part {
                Part::Created | Part::Inserted => {
                    let own = insert_columns(&self.inserts().collect::<Vec<_>>(), self.instance);
                    if part == Part::Created {
                        columns.extend(own.into_iter().take(NEW_COLUMNS));
                    } else {
                        columns.extend(own);
                        columns.push(Box::new(self.predecessors()));
                    }
                }
                Part::Moved | Part::Requeued => columns.push(self.column(part, due)),
                Part::Cancelled | Part::Purged | Part::BuriedLetter => {}
                Part::Begun => columns.push(Box::new(self.blocked.iter().map(|topic| &**topic).collect::<Vec<_>>())),
                Part::CancelledYoung | Part::PurgedYoung => columns.push(self.untils(part)),
                Part::Done => columns.push(self.column(part, attempt)),
                Part::DoneYoung => {
                    columns.push(self.column(part, attempt));
                    columns.push(self.untils(part));
                }
                Part::Repeated => {
                    columns.push(self.column(part, attempt));
                    columns.push(self.column(part, due));
                    columns.push(self.column(part, kind));
                }
                Part::Postponed => {
                    columns.push(self.column(part, attempt));
                    columns.push(self.column(part, due));
                    columns.push(self.column(part, |operation| new_payload(operation).map(|(format, _)| *format)));
                    columns.push(self.column(part, |operation| new_payload(operation).map(|(_, bytes)| &**bytes)));
                }
                Part::Buried => {
                    columns.push(self.column(part, attempt));
                    columns.push(self.reasons(part, connection));
                }
                Part::BuriedRun => {
                    columns.push(self.column(part, attempt));
                    columns.push(self.column(part, due));
                    columns.push(self.column(part, letter));
                    columns.push(self.reasons(part, connection));
                }
            }
        }
        columns
    }

    fn column<V: ToSql + Sync + 'a>(&self, part: Part, value: fn(&'a Operation) -> V) -> Parameter<'a> {
        Box::new(self.rows(part).iter().map(|(_, n)| value(&self.batch[*n])).collect::<Vec<V>>())
    }

    fn reasons(&self, part: Part, connection: &PostgresConnection) -> Parameter<'a> {
        let reasons = self.rows(part).iter().map(|(_, n)| connection.storable(reason(&self.batch[*n])));
        Box::new(reasons.collect::<Vec<_>>())
    }

    /// Returns the times until which tombstones last.
    fn untils(&self, part: Part) -> Parameter<'a> {
        let until = |(id, _): &(TimeoutId, usize)| id.repeatable_until(self.instance).unwrap_or(0);
        Box::new(self.rows(part).iter().map(until).collect::<Vec<_>>())
    }
}

/// Returns the columns of inserts behind their ids, in the order of [`INSERT_TYPES`].
///
/// [`INSERT_TYPES`]: super::part::INSERT_TYPES
pub(super) fn insert_columns<'a>(inserts: &[&'a Insert], instance: u32) -> [Parameter<'a>; 9] {
    [
        insert_column(inserts, |insert| insert.due),
        insert_column(inserts, |insert| &*insert.topic),
        insert_column(inserts, |insert| insert.format),
        insert_column(inserts, |insert| &*insert.payload),
        insert_column(inserts, |insert| insert.period),
        insert_column(inserts, |insert| insert.max_lateness),
        traces(inserts),
        insert_column(inserts, |insert| insert.key.as_deref()),
        insert_column(inserts, |insert| insert.id.repeatable_until(instance)),
    ]
}

/// Returns the traces of inserts. Most batches have none, and `unnest` completes an empty array.
fn traces<'a>(inserts: &[&'a Insert]) -> Parameter<'a> {
    let traced = if inserts.iter().any(|insert| insert.traceparent.is_some()) { inserts } else { &[] };
    insert_column(traced, |insert| insert.traceparent.as_deref())
}

fn insert_column<'a, V: ToSql + Sync + 'a>(inserts: &[&'a Insert], value: impl Fn(&'a Insert) -> V) -> Parameter<'a> {
    Box::new(inserts.iter().map(|insert| value(insert)).collect::<Vec<V>>())
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

fn attempt(operation: &Operation) -> i32 {
    match operation {
        Operation::Done { attempt, .. }
        | Operation::Retry { attempt, .. }
        | Operation::Postpone { attempt, .. }
        | Operation::Bury { attempt, .. } => i32::try_from(*attempt).unwrap_or(i32::MAX),
        _ => 0,
    }
}

fn due(operation: &Operation) -> Micros {
    match operation {
        Operation::Reset { due, .. }
        | Operation::Retry { due, .. }
        | Operation::Postpone { due, .. }
        | Operation::Requeue { due, .. } => *due,
        Operation::Done { next: Some(next), .. } => *next,
        Operation::Bury { next: Some(next), .. } => next.due,
        _ => 0,
    }
}

fn kind(operation: &Operation) -> i16 {
    match operation {
        Operation::Retry { forgive: false, .. } => RETRIED,
        Operation::Retry { .. } => ELSEWHERE,
        Operation::Postpone { .. } => POSTPONED,
        _ => NEXT_RUN,
    }
}

fn new_payload(operation: &Operation) -> Option<&(i16, Vec<u8>)> {
    if let Operation::Postpone { payload, .. } = operation { payload.as_ref() } else { None }
}

fn letter(operation: &Operation) -> Option<Uuid> {
    if let Operation::Bury { next, .. } = operation { next.map(|next| uuid(next.letter)) } else { None }
}

fn reason(operation: &Operation) -> &str {
    if let Operation::Bury { reason, .. } = operation { reason } else { "" }
}
