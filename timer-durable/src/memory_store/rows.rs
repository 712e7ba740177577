//! The rows of a memory store.

use crate::TimeoutId;
use crate::store::{DeadLetter, Micros, Position, Row, Rows};
use crate::transaction::Target;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(super) struct MemoryRows {
    rows: HashMap<TimeoutId, Row>,
    /// The places of the rows of each topic. No list is empty.
    lists: BTreeMap<Arc<str>, BTreeSet<Position>>,
    keys: HashMap<(Arc<str>, String), TimeoutId>,
    dead: BTreeMap<TimeoutId, DeadLetter>,
    /// The tombstones. They stay for good, because ids do not use the clock of this store.
    tombstones: HashSet<TimeoutId>,
}

impl MemoryRows {
    pub(super) fn find(&self, target: &Target) -> Option<&Row> {
        match target {
            Target::Id(id) => self.rows.get(id),
            Target::Key { topic, key } => self.find_holder(topic, key),
        }
    }

    /// Returns all rows, in any order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Row> {
        self.rows.values()
    }

    /// Returns the dead letters in the order of their ids.
    pub(super) fn dead(&self) -> impl ExactSizeIterator<Item = &DeadLetter> {
        self.dead.values()
    }

    /// Returns the topics that have rows.
    pub(super) fn topics(&self) -> Vec<String> {
        self.lists.keys().map(|topic| topic.to_string()).collect()
    }

    /// Returns the places of the timeouts that an instance with this epoch may begin, in order.
    pub(super) fn pending(&self, topic: &str, range: Range<Position>, epoch: i64) -> impl Iterator<Item = Position> {
        let list = self.lists.get(topic).into_iter().flat_map(move |list| list.range(range.clone()));
        list.copied().filter(move |position| self.rows.get(&position.id).is_some_and(|row| row.is_pending(epoch)))
    }

    fn find_holder(&self, topic: &str, key: &str) -> Option<&Row> {
        self.rows.get(self.keys.get(&(Arc::from(topic), key.to_owned()))?)
    }
}

impl Rows for MemoryRows {
    type Error = Infallible;

    fn get(&mut self, id: TimeoutId) -> Result<Option<Row>, Infallible> {
        Ok(self.rows.get(&id).cloned())
    }

    fn holder(&mut self, topic: &str, key: &str) -> Result<Option<Row>, Infallible> {
        Ok(self.find_holder(topic, key).cloned())
    }

    fn put(&mut self, row: &Row) -> Result<(), Infallible> {
        self.remove(row.insert.id)?;
        let topic = &row.insert.topic;
        self.lists.entry(topic.clone()).or_default().insert(row.position());
        if let Some(key) = row.held_key() {
            self.keys.insert((topic.clone(), key.to_owned()), row.insert.id);
        }
        self.rows.insert(row.insert.id, row.clone());
        Ok(())
    }

    fn remove(&mut self, id: TimeoutId) -> Result<(), Infallible> {
        let Some(row) = self.rows.remove(&id) else { return Ok(()) };
        let topic = &row.insert.topic;
        if let Some(list) = self.lists.get_mut(topic) {
            list.remove(&row.position());
            if list.is_empty() {
                self.lists.remove(topic);
            }
        }
        if let Some(key) = row.held_key() {
            self.keys.remove(&(topic.clone(), key.to_owned()));
        }
        Ok(())
    }

    fn letter(&mut self, id: TimeoutId) -> Result<Option<DeadLetter>, Infallible> {
        Ok(self.dead.get(&id).cloned())
    }

    fn put_letter(&mut self, letter: &DeadLetter) -> Result<(), Infallible> {
        self.dead.insert(letter.id, letter.clone());
        Ok(())
    }

    fn remove_letter(&mut self, id: TimeoutId) -> Result<(), Infallible> {
        self.dead.remove(&id);
        Ok(())
    }

    fn has_tombstone(&mut self, id: TimeoutId) -> Result<bool, Infallible> {
        Ok(self.tombstones.contains(&id))
    }

    fn put_tombstone(&mut self, id: TimeoutId, _: Micros) -> Result<(), Infallible> {
        self.tombstones.insert(id);
        Ok(())
    }
}
