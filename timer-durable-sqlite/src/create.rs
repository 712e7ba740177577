//! The statement that creates the row of a timeout.

use super::ids::blob;
use super::lazy_statement::LazyStatement;
use super::slots::Slots;
use rusqlite::{Connection, Result, params};
use std::cell::OnceCell;
use timer_durable::store::Micros;
use timer_durable::transaction::Insert;

const CREATE: &str =
    "insert into timer_timeout(id, due, topic, key, format, payload, period, max_lateness, slot, planned, traceparent)
     values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) on conflict do nothing";

/// The statement that creates a row.
pub(super) struct Create<'c> {
    insert: LazyStatement<'c>,
    /// Whether there are dead letters, whose ids are taken as well.
    has_dead: OnceCell<bool>,
    /// The slots of the timeouts of the batch.
    pub(super) slots: Slots<'c>,
}

impl<'c> Create<'c> {
    pub(super) fn new(db: &'c Connection, now: Micros) -> Self {
        Self { insert: LazyStatement::new(db, CREATE), has_dead: OnceCell::new(), slots: Slots::new(db, now) }
    }

    /// Inserts a row, which is a queued call if it has a rule. Returns `false` if the id or the key
    /// is taken.
    pub(super) fn execute(&mut self, db: &Connection, new: &Insert) -> Result<bool> {
        let has_dead = match self.has_dead.get() {
            Some(has_dead) => *has_dead,
            None => {
                let mut query = db.prepare_cached("select exists (select 1 from timer_dead)")?;
                let has_dead = query.query_row([], |row| row.get(0))?;
                *self.has_dead.get_or_init(|| has_dead)
            }
        };
        if has_dead && db.prepare_cached("select 1 from timer_dead where id = ?1")?.exists([blob(new.id)])? {
            return Ok(false);
        }
        let values = params![
            blob(new.id),
            new.due,
            new.topic,
            new.key,
            new.format,
            new.payload,
            new.period,
            new.max_lateness,
            self.slots.assign(&new.topic, new.due)?,
            new.cap,
            new.traceparent
        ];
        Ok(self.insert.get()?.execute(values)? == 1)
    }
}
