//! A look at the write-ahead log of a file, which stays small while SQLite can write it back.

use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The size from which a log is looked at. SQLite writes it back with a commit once it has 16 MB.
const MAX_BYTES: u64 = 64 << 20;

/// The shortest time between two looks at a log of this size.
const INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    looked: Option<Instant>,
}

impl Log {
    pub(super) fn new(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), looked: None }
    }

    /// Reports a log that grows because SQLite cannot write it back.
    pub(super) fn look(&mut self, db: &Connection) {
        if let Some((bytes, error)) = self.find(db, MAX_BYTES) {
            let path = self.path.display();
            tracing::warn!(%path, bytes, %error, "the log grows, because it cannot be written back");
        }
    }

    /// Returns the size of the log and the reason if it is larger than `max` and cannot be written
    /// back.
    fn find(&mut self, db: &Connection, max: u64) -> Option<(u64, String)> {
        let bytes = std::fs::metadata(&self.path).map_or(0, |log| log.len());
        if bytes <= max || self.looked.is_some_and(|looked| looked.elapsed() < INTERVAL) {
            return None;
        }
        self.looked = Some(Instant::now());
        let pages = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        match db.query_row("pragma wal_checkpoint(passive)", [], pages) {
            Ok((all, written)) if written >= all => None,
            Ok((all, written)) => Some((bytes, format!("{written} of {all} pages were written back"))),
            Err(error) => Some((bytes, error.to_string())),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::Log;
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
        log.looked = None;
        let (bytes, error) = log.find(&db, 10_000).unwrap();
        assert!(bytes > 100_000 && error.contains("locked"), "{bytes}: {error}");
        assert_eq!(log.find(&db, 10_000), None, "it was reported");
        drop(rows);
        drop(reader);
        drop(db);
        std::fs::remove_file(path).unwrap();
    }
}
