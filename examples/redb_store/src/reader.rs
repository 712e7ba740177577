//! The reads of a file by the keeper and by other threads.

use crate::file::{File, failed};
use crate::forms;
use crate::tables::{DEAD, EPOCH, KEYS, LISTS, META, PAUSED, Place, StoredRow, TIMEOUTS};
use redb::{Error, ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use timer_durable::store::{DueCounts, Micros, Position, Reader, Row, StoreClock, StoredPending};
use timer_durable::transaction::Target;
use timer_durable::{Counts, DeadLetter, Filter, PendingRow, StoreError, TimeoutId, TimeoutState, TopicDue};

/// A reader of a file. Each of its calls reads in a transaction of its own.
#[derive(Clone, Debug)]
pub(crate) struct RedbReader {
    file: Arc<File>,
    clock: StoreClock,
}

impl RedbReader {
    pub(crate) fn new(file: Arc<File>, clock: StoreClock) -> Self {
        Self { file, clock }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&View) -> Result<T, Error>) -> Result<T, StoreError> {
        let transaction = self.file.begin_read()?;
        View::open(transaction).and_then(|view| read(&view)).map_err(failed)
    }
}

/// The rows of a file at one moment.
pub(crate) struct View {
    transaction: ReadTransaction,
    epoch: i64,
    timeouts: ReadOnlyTable<u128, StoredRow>,
    pub(crate) lists: ReadOnlyTable<Place, i64>,
}

impl View {
    fn open(transaction: ReadTransaction) -> Result<Self, Error> {
        let epoch = transaction.open_table(META)?.get(EPOCH)?.map_or(0, |epoch| epoch.value());
        let timeouts = transaction.open_table(TIMEOUTS)?;
        let lists = transaction.open_table(LISTS)?;
        Ok(Self { transaction, epoch, timeouts, lists })
    }

    fn get(&self, id: u128) -> Result<Option<Row>, Error> {
        Ok(self.timeouts.get(id)?.map(|form| forms::decode(id, form.value())))
    }

    /// Returns the topics that have rows.
    pub(crate) fn topics(&self) -> Result<Vec<String>, Error> {
        let mut topics = Vec::new();
        let mut next = self.lists.first()?;
        while let Some((place, _)) = next {
            let topic = place.value().0.to_owned();
            let behind = (Excluded((&*topic, Micros::MAX, u128::MAX)), Unbounded);
            next = self.lists.range(behind)?.next().transpose()?;
            topics.push(topic);
        }
        Ok(topics)
    }

    /// Returns the topics that are paused.
    pub(crate) fn paused(&self) -> Result<Vec<String>, Error> {
        let paused = self.transaction.open_table(PAUSED)?;
        paused.iter()?.map(|entry| Ok(entry?.0.value().to_owned())).collect()
    }

    /// Returns the first rows of each topic in the order of due times.
    fn list_by_due(&self, filter: &Filter, after: Option<&PendingRow>, limit: usize) -> Result<Vec<PendingRow>, Error> {
        let topics = match &filter.topic {
            Some(topic) => vec![topic.clone()],
            None => self.topics()?,
        };
        let first = Position::at(filter.due.start);
        let from = after.map_or(first, |row| row.position().next().max(first));
        let mut rows = Vec::new();
        for topic in &topics {
            let most = rows.len() + limit;
            for place in self.lists.range((&**topic, from.due, from.id.as_u128())..(&**topic, filter.due.end, 0))? {
                if rows.len() == most {
                    break;
                }
                let row = self.get(place?.0.value().2)?.map(|row| row.read(self.epoch, ()));
                rows.extend(row.filter(|row| filter.shows(row)));
            }
        }
        rows.sort_unstable_by_key(PendingRow::position);
        rows.truncate(limit);
        Ok(rows)
    }

    /// Returns rows in the order of keys, and each queued call behind the timeout of its key.
    fn list_by_key(
        &self,
        filter: &Filter,
        (topic, prefix, end): (&str, &str, Option<String>),
        after: Option<&PendingRow>,
        limit: usize,
    ) -> Result<Vec<PendingRow>, Error> {
        let order = |row: &PendingRow| (row.key.clone(), row.state == TimeoutState::Queued);
        let after = after.map(order);
        let from = after.as_ref().and_then(|(key, _)| key.as_deref()).unwrap_or(prefix);
        // No text sorts between a topic and the same topic with a NUL behind it.
        let behind = format!("{topic}\0");
        let end = end.as_deref().map_or((&*behind, ""), |end| (topic, end));
        let mut rows = Vec::new();
        for entry in self.transaction.open_table(KEYS)?.range((topic, from)..end)? {
            let holder = self.get(entry?.1.value())?;
            let queued = holder.as_ref().and_then(|holder| holder.queued);
            let queued = queued.map_or(Ok(None), |id| self.get(id.as_u128()))?.filter(Row::is_queued);
            for row in [holder, queued].into_iter().flatten().map(|row| row.read(self.epoch, ())) {
                if rows.len() == limit {
                    return Ok(rows);
                }
                let is_behind = after.as_ref().is_none_or(|after| order(&row) > *after);
                rows.extend(Some(row).filter(|row| is_behind && filter.shows(row)));
            }
        }
        Ok(rows)
    }
}

impl Reader for RedbReader {
    fn get(&mut self, target: &Target) -> Result<Option<StoredPending>, StoreError> {
        self.read(|view| {
            let id = match target {
                Target::Id(id) => Some(id.as_u128()),
                Target::Key { topic, key } => {
                    view.transaction.open_table(KEYS)?.get((&**topic, &**key))?.map(|id| id.value())
                }
            };
            let row = id.map_or(Ok(None), |id| view.get(id))?;
            Ok(row.map(|mut row| {
                let payload = std::mem::take(&mut row.insert.payload);
                row.read(view.epoch, (row.insert.format, payload))
            }))
        })
    }

    fn list(
        &mut self,
        filter: &Filter,
        after: Option<&PendingRow>,
        limit: usize,
    ) -> Result<Vec<PendingRow>, StoreError> {
        self.read(|view| match (&filter.topic, filter.keys()) {
            (Some(topic), Some((prefix, end))) => view.list_by_key(filter, (topic, prefix, end), after, limit),
            _ => view.list_by_due(filter, after, limit),
        })
    }

    fn due_within(&mut self, delays: &[Micros]) -> Result<Vec<TopicDue>, StoreError> {
        let Some(last) = delays.last() else { return Ok(Vec::new()) };
        let now = self.clock.now();
        self.read(|view| {
            let mut counts = DueCounts::new(delays);
            for topic in view.topics()? {
                let end = (&*topic, now.saturating_add(*last), u128::MAX);
                for place in view.lists.range((&*topic, Micros::MIN, 0)..=end)? {
                    let (place, begun) = place?;
                    if begun.value() < view.epoch {
                        counts.add(&topic, place.value().1.saturating_sub(now));
                    }
                }
            }
            Ok(counts.finish())
        })
    }

    fn dead_letters(
        &mut self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        self.read(|view| {
            let from = after.map_or(Unbounded, |id| Excluded(id.as_u128()));
            let dead = view.transaction.open_table(DEAD)?;
            let letters = dead.range::<u128>((from, Unbounded))?.map(|entry| {
                let (id, form) = entry?;
                Ok(forms::decode_letter(id.value(), form.value()))
            });
            let is_wanted = |letter: &DeadLetter| topic.is_none_or(|topic| letter.topic == topic);
            letters.filter(|letter| letter.as_ref().map_or(true, is_wanted)).take(max).collect()
        })
    }

    fn counts(&mut self) -> Result<Counts, StoreError> {
        self.read(|view| {
            let mut counts = Counts::default();
            counts.pending = view.timeouts.len()?;
            counts.dead = view.transaction.open_table(DEAD)?.len()?;
            Ok(counts)
        })
    }
}
