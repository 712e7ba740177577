//! A look at the write-ahead log of a file, which stays small while SQLite can write it back.

use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The size from which a log is looked at. SQLite writes it back with a commit once it has 16 MB.
const MAX_BYTES: u64 = 64 << 20;

/// The pauses after a look at the log and after a report. A look after each commit would slow down
/// the syncs, because it reads the times of the file.
const PAUSE: Duration = Duration::from_secs(1);
const REPORT_PAUSE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// The time of the next look.
    next: Instant,
}

impl Log {
    pub(super) fn new(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), next: Instant::now() }
    }

    /// Reports a log that grows because SQLite cannot write it back.
    pub(super) fn look(&mut self, db: &Connection) {
        if let Some((bytes, error)) = self.find(db, MAX_BYTES) {
            let path = self.path.display();
            tracing::warn!(%path, bytes, %error, "the log grows, because it cannot be written back");
        }
    }

    /// Returns the size of the log and the reason if it is larger than `max` and cannot be written
    /// back. Returns `None` during a pause.
    fn find(&mut self, db: &Connection, max: u64) -> Option<(u64, String)> {
        let now = Instant::now();
        if now < self.next {
            return None;
        }
        let bytes = std::fs::metadata(&self.path).map_or(0, |log| log.len());
        let found = if bytes > max { Self::write_back(db).map(|error| (bytes, error)) } else { None };
        self.next = now + if found.is_some() { REPORT_PAUSE } else { PAUSE };
        found
    }

    /// Writes the log back. Returns the reason if that is not possible.
    fn write_back(db: &Connection) -> Option<String> {
        let pages = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        match db.query_row("pragma wal_checkpoint(passive)", [], pages) {
            Ok((all, written)) if written >= all => None,
            Ok((all, written)) => Some(format!("{written} of {all} pages were written back")),
            Err(error) => Some(error.to_string()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{Instant, Log};
    use rusqlite::Connection;

    #[test]
    fn a_log_that_cannot_be_written_back_is_found() {
        let path = std::env::temp_dir().join(format!("timer-durable-log-{}", std::process::id()));
        let db = Connection::open(&path).unwrap();
        db.execute_batch("pragma locking_mode = exclusive; pragma journal_mode = wal; create table t(x)").unwrap();
        let fill = |db: &Connection| db.execute("insert into t values (zeroblob(100000))", []).unwrap();
        fill(&db);
        let mut log = Log::new(&path);
        assert_eq!(log.find(&db, 10_000), None, "it can be written back");
        fill(&db);
        let mut reader = db.prepare("select 1 from t").unwrap();
        let mut rows = reader.query([]).unwrap();
        rows.next().unwrap();
        assert_eq!(log.find(&db, 10_000), None, "it was looked at");
        log.next = Instant::now();
        let (bytes, error) = log.find(&db, 10_000).unwrap();
        assert!(bytes > 100_000 && error.contains("locked"), "{bytes}: {error}");
        assert_eq!(log.find(&db, 10_000), None, "it was reported");
        drop(rows);
        drop(reader);
        drop(db);
        std::fs::remove_file(path).unwrap();
    }
}
