//! A table of jobs and a thread that polls it, as most programs have it.

use rusqlite::{Connection, params};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use timer_bench::durable::{Micros, OnRun, Subject, now, payload};

/// The greatest number of rows that are fetched at a time.
const MAX_FETCHED: usize = 1_000;

/// A poller. Each insert and each end is a transaction of its own, with a sync.
pub(crate) struct Poller(Arc<Mutex<Connection>>);

impl Poller {
    pub(crate) fn open(file: &Path, period: Duration, on_run: OnRun) -> rusqlite::Result<Self> {
        let jobs = Connection::open(file)?;
        jobs.execute_batch(
            "pragma journal_mode = wal; pragma synchronous = full;
             create table job(id integer primary key, due integer not null, payload blob not null);
             create index job_by_due on job(due);",
        )?;
        let jobs = Arc::new(Mutex::new(jobs));
        let polled = jobs.clone();
        thread::spawn(move || {
            loop {
                let due = fetch(&polled).unwrap_or_default();
                for (id, due) in &due {
                    on_run(*due);
                    // A job whose end is not written runs again.
                    let _ended = delete(&polled, *id);
                }
                if due.len() < MAX_FETCHED {
                    thread::sleep(period);
                }
            }
        });
        Ok(Self(jobs))
    }
}

fn fetch(jobs: &Mutex<Connection>) -> rusqlite::Result<Vec<(i64, Micros)>> {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    let mut due = jobs.prepare_cached("select id, due, payload from job where due <= ?1 order by due limit ?2")?;
    let rows = due.query_map(params![now(), MAX_FETCHED as i64], |row| {
        row.get::<_, Vec<u8>>(2)?;
        Ok((row.get(0)?, row.get(1)?))
    })?;
    rows.collect()
}

fn delete(jobs: &Mutex<Connection>, id: i64) -> rusqlite::Result<usize> {
    let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
    jobs.prepare_cached("delete from job where id = ?1")?.execute([id])
}

impl Subject for Poller {
    type Id = i64;

    fn schedule(&self, delay: Duration) -> Result<i64, String> {
        let due = now().saturating_add(Micros::try_from(delay.as_micros()).unwrap_or(Micros::MAX));
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let insert = jobs
            .prepare_cached("insert into job(due, payload) values (?1, ?2)")
            .and_then(|mut insert| insert.insert(params![due, payload()]));
        insert.map_err(|error| error.to_string())
    }

    fn cancel(&self, id: i64) -> Result<(), String> {
        delete(&self.0, id).map(drop).map_err(|error| error.to_string())
    }
}
