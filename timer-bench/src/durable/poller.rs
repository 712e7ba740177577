//! A table of jobs in an SQLite file and a thread that looks every 100 ms, as programs have it
//! without a library. Each insert and each end is a transaction with a sync.

use super::subject::{Micros, OnRun, Subject, now, payload};
use rusqlite::{Connection, params};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(100);

/// The greatest number of rows that are fetched at a time.
const MAX_FETCHED: usize = 1_000;

#[derive(Clone)]
pub(crate) struct Poller(Arc<Mutex<Connection>>);

impl Poller {
    fn jobs(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fetch(&self) -> rusqlite::Result<Vec<(i64, Micros)>> {
        let jobs = self.jobs();
        let mut due = jobs.prepare_cached("select id, due, payload from job where due <= ?1 order by due limit ?2")?;
        let rows = due.query_map(params![now(), MAX_FETCHED as i64], |row| {
            row.get::<_, Vec<u8>>(2)?;
            Ok((row.get(0)?, row.get(1)?))
        })?;
        rows.collect()
    }

    fn poll(&self, on_run: &OnRun) {
        loop {
            let due = self.fetch().unwrap_or_default();
            for (id, due) in &due {
                on_run(*due);
                let jobs = self.jobs();
                // A job whose end is not written runs again.
                let _ended = jobs.prepare_cached("delete from job where id = ?1").and_then(|mut end| end.execute([id]));
            }
            if due.len() < MAX_FETCHED {
                thread::sleep(PERIOD);
            }
        }
    }
}

impl Subject for Poller {
    fn open(store: &str, on_run: OnRun) -> Result<Self, String> {
        let open = || {
            let jobs = Connection::open(store)?;
            jobs.execute_batch(
                "pragma journal_mode = wal; pragma synchronous = full;
                 create table job(id integer primary key, due integer not null, payload blob not null);
                 create index job_by_due on job(due);",
            )?;
            Ok(Self(Arc::new(Mutex::new(jobs))))
        };
        let poller = open().map_err(|error: rusqlite::Error| error.to_string())?;
        let polled = poller.clone();
        thread::spawn(move || polled.poll(&on_run));
        Ok(poller)
    }

    fn schedule(&self, delay: Duration) -> Result<(), String> {
        let due = now() + delay.as_micros() as Micros;
        let jobs = self.jobs();
        let insert = jobs.prepare_cached("insert into job(due, payload) values (?1, ?2)");
        let inserted = insert.and_then(|mut insert| insert.execute(params![due, payload()]));
        inserted.map(drop).map_err(|error| error.to_string())
    }
}
