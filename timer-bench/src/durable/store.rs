//! New stores for a run, and the runs that need a store.

use super::cases;
use super::ours::Ours;
use super::subject::{Subject, now};
use crate::out::{Run, Stop};
use rustix::fs::fdatasync;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use timer_durable_tests::postgres_server::Server;

/// An empty store. It is removed at the end.
pub(super) enum Fresh {
    /// A file beside this program, because temporary files may be in memory.
    File(PathBuf),
    /// A new server with the default durability.
    Server(Server),
}

impl Fresh {
    pub(super) fn of(run: &Run) -> Result<Self, Stop> {
        if !run.workload.ends_with("postgres") {
            let this = std::env::current_exe().map_err(Stop::because)?;
            return Ok(Self::File(this.with_file_name(format!("timer-bench-{}.db", std::process::id()))));
        }
        Server::start().map(Self::Server).ok_or(Stop::Unavailable("PostgreSQL is not installed".to_owned()))
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::File(file) => file.display().to_string(),
            Self::Server(server) => server.url(&server.create_database()),
        }
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if let Self::File(file) = self {
            for end in ["", "-wal", "-shm"] {
                // Not every store has all of them.
                let _absent = fs::remove_file(format!("{}{end}", file.display()));
            }
        }
    }
}

/// Measures the cases of a subject.
pub(crate) fn run<S: Subject>(run: &Run) -> Result<(), Stop> {
    let store = Fresh::of(run)?;
    cases::run::<S>(run, &store.name())
}

/// Lets another program, which takes the words `PEER WORKLOAD STORE`, measure the cases.
pub(crate) fn run_external(mut program: Command, run: &Run, settings: &[String]) -> Result<(), Stop> {
    let store = Fresh::of(run)?;
    let status = program.args([&run.peer, &run.workload, &store.name()]).args(settings).status();
    if status.map_err(Stop::because)?.success() { Ok(()) } else { Err(Stop::because("it failed")) }
}

/// Writes and syncs 4 KB at a time, the least that a durable call can do.
pub(crate) fn floor(run: &Run) -> Result<(), Stop> {
    let store = Fresh::of(run)?;
    let sync = || {
        let mut file = File::create(store.name())?;
        let begin = Instant::now();
        let mut syncs = 0;
        while begin.elapsed() < run.settings.millis("ms", 1_000) {
            file.write_all(&[1; 4096])?;
            fdatasync(&file)?;
            syncs += 1;
        }
        Ok(f64::from(syncs) / begin.elapsed().as_secs_f64())
    };
    let rate = sync().map_err(|error: std::io::Error| Stop::because(error))?;
    run.figure("callers=1", rate, "schedules/s");
    Ok(())
}

/// Runs 10,000 timeouts a second for ten minutes on PostgreSQL with its default autovacuum. Fails
/// if the lag at 99 % is above 5 ms, if a timeout did not run, or if dead rows or the size of the
/// database grow all the time.
pub(crate) fn soak(run: &Run) -> Result<(), Stop> {
    const MAX_LAG: i64 = 5_000;
    // Without a vacuum, the last third of a run has 1.67 times as much as the middle third.
    const MAX_GROWTH: f64 = 1.25;
    let server = Server::start().ok_or(Stop::Unavailable("PostgreSQL is not installed".to_owned()))?;
    let database = server.create_database();
    let begin = Instant::now();
    let (ran, lags) = mpsc::channel();
    let subject = Ours::open(&server.url(&database), Arc::new(move |due| _ = ran.send(now() - due)));
    let subject = subject.map_err(Stop::because)?;
    let span = run.settings.millis("ms", 600_000);
    let rate = run.settings.number("rate", 10_000);
    let mut sizes = Vec::new();
    let mut scheduled = 0;
    while begin.elapsed() < span {
        let wanted = (begin.elapsed().as_secs_f64() * rate as f64) as usize;
        (scheduled..wanted).try_for_each(|_| subject.submit(Duration::from_millis(500))).map_err(Stop::because)?;
        scheduled = wanted;
        if begin.elapsed() > span / 10 * (sizes.len() as u32 + 1) {
            let dead =
                "select coalesce(max(n_dead_tup), 0), pg_database_size(current_database()) from pg_stat_user_tables";
            let row = server.sql(&database, dead);
            let row: Vec<f64> = row.trim().split('|').filter_map(|number| number.parse().ok()).collect();
            run.figure(&format!("part={}", sizes.len() + 1), row[0], "dead-rows");
            run.figure(&format!("part={}", sizes.len() + 1), row[1] / 1e6, "MB");
            sizes.push(row);
        }
        thread::sleep(Duration::from_millis(1));
    }
    let next = |_| lags.recv_timeout(Duration::from_secs(10)).ok();
    let mut all: Vec<i64> = (0..scheduled).map_while(next).collect();
    all.sort_unstable();
    let p99 = crate::out::quantile(&all, 0.99);
    run.figure(&format!("rate={rate}"), p99 as f64, "us-p99");
    let part = |range: std::ops::Range<usize>, column: usize| sizes[range].iter().map(|row| row[column]).sum::<f64>();
    let grows = sizes.len() < 9 || (0..2).any(|column| part(6..9, column) > MAX_GROWTH * part(3..6, column));
    if all.len() < scheduled || p99 > MAX_LAG || all.first().is_some_and(|lag| *lag < 0) || grows {
        return Err(Stop::Failed(format!("{} of {scheduled} ran, p99 {p99} us, sizes {sizes:?}", all.len())));
    }
    Ok(())
}
