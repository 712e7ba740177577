//! The rows of a slot that has begun.
//!
//! After a long downtime a slot may already have begun. Its rows are ordered by id, and sorting a
//! million of them would take half a minute, so a page needs a scan of the slot. One scan keeps the
//! first rows of each topic and serves the pages of all. No row enters a slot that has begun, so
//! none is missed. The reader looks whether a row that was kept is still there.

use super::ids::id;
use super::unreadable::{UnreadableRows, is_unreadable};
use rusqlite::{Connection, Result, Row, params};
use std::collections::{BTreeMap, HashMap};
use timer_durable::store::{Micros, Position};

/// The number of rows that are kept of all topics, and the least number of each.
const KEPT: usize = 1 << 14;
const MIN_KEPT: usize = 16;

/// The first rows of each topic in a slot that has begun.
#[derive(Debug, Default)]
pub(super) struct BegunSlot {
    slot: Micros,
    lists: HashMap<String, Kept>,
}

/// The first rows of a topic, with their numbers. It has everything from `from` to `until`.
#[derive(Debug)]
pub(super) struct Kept {
    from: Position,
    pub(super) until: Position,
    pub(super) rows: BTreeMap<Position, i64>,
    /// Whether the scan reads rows of the topic.
    is_wanted: bool,
}

impl Kept {
    fn new(from: Position) -> Self {
        Self { from, until: Position::END, rows: BTreeMap::new(), is_wanted: true }
    }

    fn has(&self, position: Position) -> bool {
        (self.from..self.until).contains(&position)
    }

    /// Keeps a row, and at most `most` of the first ones.
    fn keep(&mut self, position: Position, row: i64, most: usize) {
        if self.is_wanted && self.has(position) {
            self.rows.insert(position, row);
            if self.rows.len() > most {
                self.until = self.rows.pop_last().map_or(self.until, |(last, _)| last);
            }
        }
    }
}

impl BegunSlot {
    /// Returns the first rows of a topic from `from` or an earlier position on, or the rows of the
    /// slot that cannot be read.
    pub(super) fn rows(
        &mut self,
        db: &Connection,
        slot: Micros,
        topic: &str,
        from: Position,
    ) -> Result<std::result::Result<&Kept, UnreadableRows>> {
        if self.slot != slot {
            *self = Self { slot, lists: HashMap::new() };
        }
        if !self.lists.get(topic).is_some_and(|list| list.has(from)) {
            let unreadable = self.scan(db, topic, from)?;
            if !unreadable.is_empty() {
                self.lists.clear();
                return Ok(Err(unreadable));
            }
        }
        Ok(Ok(self.lists.entry(topic.to_owned()).or_insert_with(|| Kept::new(from))))
    }

    /// Drops the rows of a topic that a page before `bound` has.
    pub(super) fn drop_before(&mut self, topic: &str, bound: Position) {
        if let Some(list) = self.lists.get_mut(topic) {
            list.rows = list.rows.split_off(&bound);
            list.from = bound;
        }
    }

    /// Reads the slot for a topic, and for the others of which no row is left here. Returns the
    /// rows that cannot be read.
    fn scan(&mut self, db: &Connection, topic: &str, from: Position) -> Result<UnreadableRows> {
        self.lists.insert(topic.to_owned(), Kept::new(from));
        for list in self.lists.values_mut() {
            list.is_wanted = list.rows.is_empty();
            if list.is_wanted && list.until < Position::END {
                *list = Kept::new(list.until);
            }
        }
        let topics = "select count(*) from timer_topic where last_slot >= ?1";
        let topics: i64 = db.prepare_cached(topics)?.query_row([self.slot], |row| row.get(0))?;
        let most = (KEPT / topics.max(1) as usize).max(MIN_KEPT);
        let mut query = db.prepare_cached("select rowid, due, id, topic from timer_timeout where slot = ?1")?;
        let mut rows = query.query(params![self.slot])?;
        let mut unreadable = Vec::new();
        while let Some(row) = rows.next()? {
            match self.keep(row, most) {
                Err(error) if is_unreadable(&error) => unreadable.push((row.get(0)?, error)),
                result => result?,
            }
        }
        Ok(unreadable)
    }

    fn keep(&mut self, row: &Row<'_>, most: usize) -> Result<()> {
        let position = Position { due: row.get(1)?, id: id(row.get(2)?) };
        let topic = row.get_ref(3)?.as_str()?;
        if !self.lists.contains_key(topic) {
            self.lists.insert(topic.to_owned(), Kept::new(Position::START));
        }
        if let Some(list) = self.lists.get_mut(topic) {
            list.keep(position, row.get(0)?, most);
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::ids::blob;
    use crate::schema::SCHEMA;
    use std::path::Path;
    use timer_durable::TimeoutId;

    const TOPICS: usize = 100;
    const ROWS: usize = KEPT * 3 / 2;

    #[test]
    fn a_scan_serves_the_pages_of_all_topics() {
        let db = Connection::open_in_memory().unwrap();
        SCHEMA.create(&db, Path::new("memory")).unwrap();
        let mut random = fastrand::Rng::with_seed(5);
        let mut all = vec![Vec::new(); TOPICS];
        let insert = "insert into timer_timeout(id, due, slot, topic, format, payload) values (?1, ?2, 0, ?3, 0, '')";
        let mut insert = db.prepare(insert).unwrap();
        for n in 0..ROWS {
            let position = Position { due: random.i64(0..1_000), id: TimeoutId::from_u128(n as u128) };
            let topic = n % TOPICS;
            insert.execute((blob(position.id), position.due, topic.to_string())).unwrap();
            all[topic].push(position);
        }
        all.iter_mut().for_each(|list| list.sort_unstable());
        db.execute_batch("insert into timer_topic select distinct topic, 0 from timer_timeout").unwrap();
        let mut begun = BegunSlot::default();
        let mut found = vec![Vec::new(); TOPICS];
        let mut froms = vec![Position::START; TOPICS];
        for _ in 0..2 {
            for topic in 0..TOPICS {
                let kept = begun.rows(&db, 0, &topic.to_string(), froms[topic]).unwrap().unwrap();
                found[topic].extend(kept.rows.keys().copied());
                froms[topic] = kept.until;
                begun.drop_before(&topic.to_string(), froms[topic]);
                if topic == 0 {
                    // Another scan would find nothing.
                    db.execute_batch("begin; delete from timer_timeout").unwrap();
                }
            }
            db.execute_batch("rollback").unwrap();
        }
        assert_eq!(found, all);
    }
}
