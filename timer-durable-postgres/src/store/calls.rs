//! The store's side of the trait.

use super::agenda::Task;
use super::column::uuid;
use super::reader::PostgresReader;
use super::statements::{DEAD_BEFORE, TOPICS};
use super::write::{self, Writer};
use super::{PostgresStore, connect, lost};
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timer_durable::store::{Connect, Divided, Micros, Position, Reader, Store, Upkeep};
use timer_durable::transaction::{Operation, Outcome, are_accepted};
use timer_durable::{Membership, StoreError, TimeoutId};
use tokio_postgres::types::Type;
use uuid::Uuid;

/// The largest lead of the estimate over the server's clock at which attempts begin.
const AHEAD: Micros = 2_000;

impl Store for PostgresStore {
    fn describe(&self) -> String {
        connect::describe(&self.access.config, &self.access.schema)
    }

    fn instance(&self) -> u32 {
        self.instance as u32
    }

    fn now(&self) -> Micros {
        self.clock.now()
    }

    fn time_until(&self, time: Micros) -> Duration {
        self.clock.until(time)
    }

    fn write(&mut self, batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError> {
        let mut divider = std::mem::take(&mut self.divider);
        let divided = divider.execute(batch, until, |part| {
            let result = self.execute(part, until);
            self.check(result)
        });
        self.divider = divider;
        Ok(divided?.into_iter().map(Divided::outcome).collect())
    }

    fn write_all(&mut self, inserts: &[Operation]) -> Result<Vec<Outcome>, StoreError> {
        let mut refused = None;
        let result = self.in_transaction(|store| {
            let outcomes = store.writer()?.put_all(inserts)?;
            if are_accepted(inserts, &outcomes) {
                return Ok(outcomes);
            }
            refused = Some(outcomes);
            // The error rolls the transaction back.
            Err(StoreError::Locked)
        });
        match (result, refused) {
            (Err(StoreError::Locked), Some(outcomes)) => Ok(outcomes),
            (result, _) => self.check(result),
        }
    }

    fn load(
        &mut self,
        topic: &str,
        range: Range<Position>,
        max: usize,
        out: &mut Vec<Position>,
    ) -> Result<Position, StoreError> {
        let result = self.load_page(topic, range, max, out);
        self.check(result)
    }

    fn topics(&mut self) -> Result<Vec<String>, StoreError> {
        self.names(TOPICS)
    }

    fn find_topics(&mut self, ids: &[TimeoutId], out: &mut Vec<(TimeoutId, String)>) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = ids.iter().map(|id| uuid(*id)).collect();
        let sql = "select t.id, t.topic from timer.timeout t where t.id = any ($1) and t.ended is null";
        let rows = self.link()?.connection.run(sql, &[Type::UUID_ARRAY], &[&ids]);
        let rows = self.check(rows.map_err(StoreError::from))?;
        out.extend(rows.iter().map(|row| (write::id(row, 0), row.get(1))));
        Ok(())
    }

    fn set_paused(&mut self, topic: &str, is_paused: bool) -> Result<(), StoreError> {
        let sql = if is_paused { "select timer.pause($1)" } else { "select timer.resume($1)" };
        let result = self.link()?.connection.run(sql, &[Type::TEXT], &[&topic]).map(drop);
        self.check(result.map_err(StoreError::from))
    }

    fn paused_topics(&mut self) -> Result<Vec<String>, StoreError> {
        self.names("select topic from timer.paused order by topic")
    }

    fn open(&mut self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.connect()?)
    }

    fn dead_before(&mut self, topic: &str, time: Micros, max: usize) -> Result<Vec<TimeoutId>, StoreError> {
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let (sql, types) = DEAD_BEFORE;
        let rows = self.link()?.connection.run(sql, types, &[&topic, &time, &max]);
        let rows = self.check(rows.map_err(StoreError::from))?;
        Ok(rows.iter().map(|row| write::id(row, 0)).collect())
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        let result = self.join();
        self.check(result)
    }

    fn connect_reader(&self) -> Option<Connect> {
        let access = self.access.clone();
        let limit = self.lease.limit();
        Some(Box::new(move || PostgresReader::beside(&access, limit).map(|reader| Box::new(reader) as Box<dyn Reader>)))
    }

    fn next_upkeep(&self) -> Option<Instant> {
        let signal = self.signals.has_any().then(|| self.earliest_upkeep());
        Some(self.agenda.next([Some(self.lease.end()), signal]))
    }

    fn upkeep(&mut self, running: &[TimeoutId]) -> Result<Upkeep, StoreError> {
        let result = self.keep_up(running);
        if matches!(result, Err(StoreError::Failed(_) | StoreError::Refused(_))) {
            self.agenda.rest(Instant::now() + self.lease.pause());
        }
        self.check(result)
    }

    fn may_begin(&self) -> bool {
        !self.lease.is_over() && !self.agenda.is_ahead(Task::EndOfHold, Instant::now())
    }

    fn lease_end(&self) -> Option<Instant> {
        Some(self.lease.end())
    }

    fn must_rejoin(&self) -> bool {
        self.has_joined && self.link.is_none()
    }

    fn set_waker(&mut self, wake: Arc<dyn Fn() + Send + Sync>) {
        self.signals.set_wake(wake);
    }

    fn membership(&self) -> Option<Membership> {
        Some(self.figures.clone())
    }

    fn pending(&self) -> Option<u64> {
        self.pending
    }

    fn leave(&mut self) -> Result<(), StoreError> {
        self.listener = None;
        let Some(mut link) = self.link.take() else {
            return if self.instance == 0 { Ok(()) } else { Err(lost()) };
        };
        link.limit_locks(false)
            .and_then(|()| link.connection.run("select timer.leave($1)", &[Type::INT8], &[&self.instance]))
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(())
    }
}

impl PostgresStore {
    fn names(&mut self, sql: &str) -> Result<Vec<String>, StoreError> {
        let rows = self.link()?.connection.run(sql, &[], &[]);
        Ok(self.check(rows.map_err(StoreError::from))?.iter().map(|row| row.get(0)).collect())
    }

    fn writer(&mut self) -> Result<Writer<'_>, StoreError> {
        Ok(Writer {
            now: self.clock.now(),
            link: self.link.as_mut().ok_or_else(lost)?,
            instance: self.instance,
            epochs: &self.epochs,
            shards: &self.shards,
            turn: &mut self.turn,
            locked: &mut self.locked,
            divider: &mut self.put_divider,
        })
    }

    fn execute(&mut self, batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError> {
        let sent = Instant::now();
        let (outcomes, server) = self.writer()?.write(batch, until)?;
        self.clock.take(sent, server);
        if self.clock.ahead(server) > AHEAD + Micros::try_from(sent.elapsed().as_micros()).unwrap_or(0) {
            self.hold(&outcomes, server);
        }
        Ok(outcomes)
    }

    /// Begins no further attempt until the first timeout is due that was not due yet, at most for a
    /// second, if the server's clock was set back. Otherwise the keeper would try again and again.
    fn hold(&mut self, outcomes: &[Outcome], server: Micros) {
        let early = outcomes.iter().filter_map(|outcome| match outcome {
            Outcome::NotYet(due) => Some(due - server),
            _ => None,
        });
        if let Some(wait) = early.min() {
            let wait = Duration::from_micros(u64::try_from(wait).unwrap_or(0)).min(Duration::from_secs(1));
            self.agenda.set(Task::EndOfHold, Instant::now() + wait);
        }
    }

    /// Runs `body` in a transaction, and commits it if `body` returns a value.
    fn in_transaction<R>(&mut self, body: impl FnOnce(&mut Self) -> Result<R, StoreError>) -> Result<R, StoreError> {
        let begun = self.link.as_mut().ok_or_else(lost)?.begin().map_err(StoreError::from);
        let result = begun.and_then(|()| body(self)).and_then(|value| {
            self.link()?.commit()?;
            Ok(value)
        });
        if matches!(&result, Err(error) if !matches!(error, StoreError::InDoubt(_))) {
            self.link()?.rollback()?;
        }
        result
    }
}
