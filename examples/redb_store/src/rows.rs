//! The rows of an open transaction.
//!
//! Each row has one place in the list of its topic, and a row that holds a key has an entry in
//! [`KEYS`]. Nothing else writes these tables.

use crate::forms;
use crate::tables::{DEAD, KEYS, LISTS, Place, StoredLetter, StoredRow, TIMEOUTS, TOMBSTONES};
use redb::{Error, ReadableTable, ReadableTableMetadata, Table, WriteTransaction};
use timer_durable::store::{Micros, Row, Rows};
use timer_durable::{DeadLetter, TimeoutId};

/// The largest number of old tombstones that are removed when a new one is left.
const MAX_REMOVED: usize = 16;

pub(crate) struct RedbRows<'t> {
    timeouts: Table<'t, u128, StoredRow>,
    lists: Table<'t, Place, i64>,
    keys: Table<'t, (&'static str, &'static str), u128>,
    dead: Table<'t, u128, StoredLetter>,
    tombstones: Table<'t, u128, ()>,
}

impl<'t> RedbRows<'t> {
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, Error> {
        Ok(Self {
            timeouts: transaction.open_table(TIMEOUTS)?,
            lists: transaction.open_table(LISTS)?,
            keys: transaction.open_table(KEYS)?,
            dead: transaction.open_table(DEAD)?,
            tombstones: transaction.open_table(TOMBSTONES)?,
        })
    }

    /// Returns the number of rows, which redb knows without counting.
    pub(crate) fn count(&self) -> Result<u64, Error> {
        Ok(self.timeouts.len()?)
    }
}

impl Rows for RedbRows<'_> {
    type Error = Error;

    fn get(&mut self, id: TimeoutId) -> Result<Option<Row>, Error> {
        let form = self.timeouts.get(id.as_u128())?;
        Ok(form.map(|form| forms::decode(id.as_u128(), form.value())))
    }

    fn holder(&mut self, topic: &str, key: &str) -> Result<Option<Row>, Error> {
        let id = self.keys.get((topic, key))?.map(|id| TimeoutId::from_u128(id.value()));
        id.map_or(Ok(None), |id| self.get(id))
    }

    fn put(&mut self, row: &Row) -> Result<(), Error> {
        let topic = &*row.insert.topic;
        let id = row.insert.id.as_u128();
        let old = self.timeouts.insert(id, forms::encode(row))?.map(|old| old.value().1.0);
        if let Some(old) = old.filter(|old| *old != row.insert.due) {
            self.lists.remove((topic, old, id))?;
        }
        self.lists.insert((topic, row.insert.due, id), row.begun)?;
        if let Some(key) = row.held_key() {
            self.keys.insert((topic, key), id)?;
        }
        Ok(())
    }

    fn remove(&mut self, id: TimeoutId) -> Result<(), Error> {
        let Some(row) = self.get(id)? else { return Ok(()) };
        let topic = &*row.insert.topic;
        self.timeouts.remove(id.as_u128())?;
        self.lists.remove((topic, row.insert.due, id.as_u128()))?;
        if let Some(key) = row.held_key() {
            self.keys.remove((topic, key))?;
        }
        Ok(())
    }

    fn letter(&mut self, id: TimeoutId) -> Result<Option<DeadLetter>, Error> {
        let form = self.dead.get(id.as_u128())?;
        Ok(form.map(|form| forms::decode_letter(id.as_u128(), form.value())))
    }

    fn put_letter(&mut self, letter: &DeadLetter) -> Result<(), Error> {
        self.dead.insert(letter.id.as_u128(), forms::encode_letter(letter))?;
        Ok(())
    }

    fn remove_letter(&mut self, id: TimeoutId) -> Result<(), Error> {
        self.dead.remove(id.as_u128())?;
        Ok(())
    }

    fn has_tombstone(&mut self, id: TimeoutId) -> Result<bool, Error> {
        Ok(self.tombstones.get(id.as_u128())?.is_some())
    }

    /// Leaves a tombstone and removes some old ones. Ids begin with the times at which they were
    /// made, so the oldest ones come first.
    fn put_tombstone(&mut self, id: TimeoutId, now: Micros) -> Result<(), Error> {
        self.tombstones.insert(id.as_u128(), ())?;
        let oldest = TimeoutId::oldest_repeatable(now).as_u128();
        let old = self.tombstones.extract_from_if(..oldest, |_, ()| true)?;
        old.take(MAX_REMOVED).try_for_each(|removed| removed.map(drop))?;
        Ok(())
    }
}
