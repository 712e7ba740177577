//! The parameters of a batch, as columns of arrays.

use super::statements::{Part, Parts};
use crate::TimeoutId;
use crate::store::Micros;
use crate::transaction::{Batch, Done, Insert};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// The ways in which a timeout is repeated. A retry counts the attempt towards the limit. The next
/// run of a periodic timeout counts its attempts anew. If this node has no handler for the topic,
/// or the handler has not started, this attempt does not count, and the timeout moves to a shard of
/// any node.
const RETRIED: i16 = 0;
const NEXT_RUN: i16 = 1;
const ELSEWHERE: i16 = 2;

pub(super) fn uuid(id: TimeoutId) -> Uuid {
    Uuid::from_u128(id.as_u128())
}

/// A part of a batch as a table. The rows are sorted by id, and know their index in the batch.
pub(super) struct Table<R> {
    rows: Vec<(TimeoutId, usize, R)>,
}

impl<R> Table<R> {
    pub(super) fn new(rows: impl Iterator<Item = (TimeoutId, usize, R)>) -> Self {
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable_by_key(|(id, ..)| *id);
        Self { rows }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn ids(&self) -> Vec<Uuid> {
        self.rows.iter().map(|(id, ..)| uuid(*id)).collect()
    }

    pub(super) fn column<'a, V>(&'a self, value: impl Fn(&'a R) -> V) -> Vec<V> {
        self.rows.iter().map(|(.., row)| value(row)).collect()
    }

    /// Calls `found` with the id and the index in the batch of each row whose id is in `ids`, or of
    /// all rows.
    fn each(&self, ids: Option<&[Uuid]>, mut found: impl FnMut(TimeoutId, usize)) {
        let Some(ids) = ids else { return self.rows.iter().for_each(|(id, n, _)| found(*id, *n)) };
        for id in ids.iter().map(|id| TimeoutId::from_u128(id.as_u128())) {
            if let Some(n) = self.find(id) {
                found(id, n);
            }
        }
    }

    /// Returns the index in the batch of the row with this id.
    pub(super) fn find(&self, id: TimeoutId) -> Option<usize> {
        let found = self.rows.binary_search_by_key(&id, |(id, ..)| *id).ok()?;
        Some(self.rows[found].1)
    }
}

/// A parameter of a statement.
pub(super) type Parameter<'a> = Box<dyn ToSql + Sync + 'a>;

/// The tables of a batch. The rows of a kind that leave a tombstone are in a table of their own.
pub(super) struct Tables<'a> {
    pub(super) inserts: Table<&'a Insert>,
    pub(super) moves: Table<Micros>,
    cancels: [Table<Micros>; 2],
    dones: [Table<(i32, Micros)>; 2],
    repeats: Table<(i32, Micros, i16)>,
    buries: Table<(i32, String)>,
    requeues: Table<Micros>,
    purges: [Table<Micros>; 2],
    pub(super) begins: Table<()>,
    /// The number of dones in the batch. Retries follow them in `repeats`.
    pub(super) dones_len: usize,
}

/// Returns a text that PostgreSQL can store. It refuses the whole statement for one NUL character.
fn text(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn attempt(attempt: u32) -> i32 {
    i32::try_from(attempt).unwrap_or(i32::MAX)
}

impl<'a> Tables<'a> {
    /// Returns the tables of `batch`. `moves` and `cancels` are the ids of the targets, where they
    /// are known.
    pub(super) fn new(
        batch: &'a Batch,
        moves: &[Option<TimeoutId>],
        cancels: &[Option<TimeoutId>],
        instance: u32,
        now: Micros,
    ) -> Self {
        let tombstone = |id: TimeoutId| id.repeatable_until(instance).filter(|until| *until > now);
        let dones_len = batch.dones.len();
        let last = |done: &&Done| done.next.is_none();
        let indexed = |id: &Option<TimeoutId>, n: usize| id.map(|id| (id, n));
        let both = |keeps: &dyn Fn(bool) -> Table<Micros>| [keeps(false), keeps(true)];
        let cancels = |keeps: bool| {
            let ids = cancels.iter().enumerate().filter_map(|(n, id)| indexed(id, n));
            let rows = ids.filter(|(id, _)| tombstone(*id).is_some() == keeps);
            Table::new(rows.map(|(id, n)| (id, n, tombstone(id).unwrap_or(0))))
        };
        let dones = |keeps: bool| {
            let ends = batch.dones.iter().enumerate().filter(|(_, done)| last(done));
            let rows = ends.filter(|(_, done)| tombstone(done.id).is_some() == keeps);
            Table::new(rows.map(|(n, done)| (done.id, n, (attempt(done.attempt), tombstone(done.id).unwrap_or(0)))))
        };
        let purges = |keeps: bool| {
            let rows = batch.purges.iter().enumerate().filter(|(_, id)| tombstone(**id).is_some() == keeps);
            Table::new(rows.map(|(n, id)| (*id, n, tombstone(*id).unwrap_or(0))))
        };
        let periodic = batch.dones.iter().enumerate().filter_map(|(n, done)| {
            let next = done.next?;
            Some((done.id, n, (attempt(done.attempt), next, NEXT_RUN)))
        });
        let retries = batch.retries.iter().enumerate().map(|(n, retry)| {
            (
                retry.id,
                dones_len + n,
                (attempt(retry.attempt), retry.due, if retry.forgive { ELSEWHERE } else { RETRIED }),
            )
        });
        Self {
            inserts: Table::new(batch.inserts.iter().enumerate().map(|(n, insert)| (insert.id, n, insert))),
            moves: Table::new(
                moves
                    .iter()
                    .enumerate()
                    .filter_map(|(n, id)| indexed(id, n))
                    .map(|(id, n)| (id, n, batch.resets[n].due)),
            ),
            cancels: both(&cancels),
            dones: [dones(false), dones(true)],
            repeats: Table::new(periodic.chain(retries)),
            buries: Table::new(
                batch
                    .buries
                    .iter()
                    .enumerate()
                    .map(|(n, bury)| (bury.id, n, (attempt(bury.attempt), text(&bury.reason)))),
            ),
            requeues: Table::new(batch.requeues.iter().enumerate().map(|(n, part)| (part.id, n, part.due))),
            purges: both(&purges),
            begins: Table::new(batch.begins.iter().enumerate().map(|(n, id)| (*id, n, ()))),
            dones_len,
        }
    }

    /// Returns `true` if no insert can meet another row, because `instance` has made the ids and
    /// there is no key.
    pub(super) fn has_new_inserts_only(&self, instance: u32) -> bool {
        self.inserts.rows.iter().all(|(id, _, insert)| id.maker() == instance && insert.key.is_none())
    }

    /// Returns the parts of the statement that executes the batch. Inserts expect no conflict if
    /// they are `new`.
    pub(super) fn parts(&self, new: bool) -> Parts {
        let mut parts = Parts::default();
        for (part, is_empty) in [
            (Part::Moved, self.moves.is_empty()),
            (Part::Cancelled, self.cancels[0].is_empty()),
            (Part::Done, self.dones[0].is_empty()),
            (Part::Repeated, self.repeats.is_empty()),
            (Part::Begun, self.begins.is_empty()),
            (Part::CancelledYoung, self.cancels[1].is_empty()),
            (Part::DoneYoung, self.dones[1].is_empty()),
            (Part::Buried, self.buries.is_empty()),
            (Part::Requeued, self.requeues.is_empty()),
            (Part::Purged, self.purges[0].is_empty()),
            (Part::PurgedYoung, self.purges[1].is_empty()),
        ] {
            parts.add(part, !is_empty);
        }
        let mut parts = parts.widen();
        let is_widened = parts.has(Part::Inserted);
        parts.add(if new && !is_widened { Part::Created } else { Part::Inserted }, !self.inserts.is_empty());
        parts
    }

    /// Calls `found` with the id and the index in the batch of each row of a part that was changed.
    /// `ids` are their ids, or `None` if all rows were changed.
    pub(super) fn each(&self, part: Part, ids: Option<&[Uuid]>, found: impl FnMut(TimeoutId, usize)) {
        match part {
            Part::Created | Part::Inserted => self.inserts.each(ids, found),
            Part::Moved => self.moves.each(ids, found),
            Part::Cancelled => self.cancels[0].each(ids, found),
            Part::Done => self.dones[0].each(ids, found),
            Part::Repeated => self.repeats.each(ids, found),
            Part::Begun => self.begins.each(ids, found),
            Part::CancelledYoung => self.cancels[1].each(ids, found),
            Part::DoneYoung => self.dones[1].each(ids, found),
            Part::Buried => self.buries.each(ids, found),
            Part::Requeued => self.requeues.each(ids, found),
            Part::Purged => self.purges[0].each(ids, found),
            Part::PurgedYoung => self.purges[1].each(ids, found),
        }
    }

    /// Returns the parameters of [`write`](super::statements::write) after the first three.
    pub(super) fn parameters(&'a self, shard: i16, instance: u32, parts: Parts) -> Vec<Parameter<'a>> {
        let mut columns: Vec<Parameter<'a>> = Vec::with_capacity(16);
        let inserts = &self.inserts;
        if parts.has(Part::Created) || parts.has(Part::Inserted) {
            columns.push(Box::new(shard));
            columns.push(Box::new(inserts.ids()));
            columns.push(Box::new(inserts.column(|insert| insert.due)));
            columns.push(Box::new(inserts.column(|insert| &*insert.topic)));
            columns.push(Box::new(inserts.column(|insert| insert.format)));
            columns.push(Box::new(inserts.column(|insert| &*insert.payload)));
            columns.push(Box::new(inserts.column(|insert| insert.period)));
            columns.push(Box::new(inserts.column(|insert| insert.max_lateness)));
        }
        if parts.has(Part::Inserted) {
            columns.push(Box::new(inserts.column(|insert| insert.key.as_deref())));
            columns.push(Box::new(inserts.column(|insert| insert.id.repeatable_until(instance))));
        }
        if parts.has(Part::Moved) {
            columns.push(Box::new(self.moves.ids()));
            columns.push(Box::new(self.moves.column(|due| *due)));
        }
        if parts.has(Part::Cancelled) {
            columns.push(Box::new(self.cancels[0].ids()));
        }
        if parts.has(Part::Done) {
            columns.push(Box::new(self.dones[0].ids()));
            columns.push(Box::new(self.dones[0].column(|(attempt, _)| *attempt)));
        }
        if parts.has(Part::Repeated) {
            columns.push(Box::new(self.repeats.ids()));
            columns.push(Box::new(self.repeats.column(|(attempt, ..)| *attempt)));
            columns.push(Box::new(self.repeats.column(|(_, due, _)| *due)));
            columns.push(Box::new(self.repeats.column(|(.., kind)| *kind)));
        }
        if parts.has(Part::Begun) {
            columns.push(Box::new(self.begins.ids()));
        }
        // The rare parts occur together.
        if parts.has(Part::CancelledYoung) {
            columns.push(Box::new(self.cancels[1].ids()));
            columns.push(Box::new(self.cancels[1].column(|until| *until)));
            columns.push(Box::new(self.dones[1].ids()));
            columns.push(Box::new(self.dones[1].column(|(attempt, _)| *attempt)));
            columns.push(Box::new(self.dones[1].column(|(_, until)| *until)));
            columns.push(Box::new(self.buries.ids()));
            columns.push(Box::new(self.buries.column(|(attempt, _)| *attempt)));
            columns.push(Box::new(self.buries.column(|(_, reason)| reason.as_str())));
            columns.push(Box::new(self.requeues.ids()));
            columns.push(Box::new(self.requeues.column(|due| *due)));
            columns.push(Box::new(self.purges[0].ids()));
            columns.push(Box::new(self.purges[1].ids()));
            columns.push(Box::new(self.purges[1].column(|until| *until)));
        }
        columns
    }
}
