//! The SQLite store: a file that one process owns.
//!
//! Promises: a commit is synced before it is answered, which `open` checks; an error says whether something was written;
//! no other connection can read or write the file while it is open. Absent: shards and leases, because the process
//! owns the whole list; migration of other versions.

mod error;
mod schema;
mod write;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row as SqlRow, params};

pub use error::OpenError;

use crate::row::{Content, DeadLetter, Id, Micros, Place, Row, micros_of};
use crate::store::{Answers, Batch, Count, Store, StoreError, Target};

/// How much the stored floor of the clock may be behind the clock.
const FLOOR_STEP: Micros = 1_000_000;

/// A store in an SQLite file.
///
/// # Examples
///
/// ```
/// use timer_durable::{SqliteStore, Store};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("timeouts.db");
/// let mut store = SqliteStore::open(&path)?;
/// assert_eq!(store.count()?.pending, 0);
///
/// let error = SqliteStore::open(&path).unwrap_err();
/// assert!(error.to_string().contains("is locked by"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    /// Absent after a rejoin that failed.
    db: Option<Connection>,
    epoch: i64,
    /// The first epoch of this process. Rows of earlier ones have no handler any more.
    opened: i64,
    clock: Clock,
}

/// The wall clock, held back from going back.
#[derive(Debug, Default)]
struct Clock {
    latest: std::cell::Cell<Micros>,
    stored: Micros,
}

impl Clock {
    fn now(&self) -> Micros {
        let now = micros_of(SystemTime::now()).max(self.latest.get());
        self.latest.set(now);
        now
    }
}

impl SqliteStore {
    /// Opens the file, or creates it if it does not exist. An empty file gets the tables.
    ///
    /// # Errors
    ///
    /// See [`OpenError`]. No error changes the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let (db, epoch, floor) = connect(&path).map_err(|error| explain(error, &path))?;
        let clock = Clock { latest: floor.into(), stored: floor };
        Ok(Self { path, db: Some(db), epoch, opened: epoch, clock })
    }

    fn db(&mut self) -> Result<&mut Connection, StoreError> {
        let path = &self.path;
        self.db.as_mut().ok_or_else(|| StoreError::Failed(format!("{} is not open", path.display())))
    }

    fn read<R>(&mut self, read: impl FnOnce(&Connection) -> rusqlite::Result<R>) -> Result<R, StoreError> {
        read(self.db()?).map_err(|error| StoreError::Failed(error.to_string()))
    }
}

/// Opens the file and raises the epoch.
fn connect(path: &Path) -> Result<(Connection, i64, Micros), OpenError> {
    let mut db = Connection::open(path)?;
    db.set_prepared_statement_cache_capacity(64);
    db.busy_timeout(std::time::Duration::ZERO)?;
    // The first read tells whether this is a database at all, before an option writes into it.
    db.query_row("select count(*) from sqlite_schema", [], |_| Ok(()))?;
    let readonly = db.is_readonly("main")?;
    if readonly {
        return Err(OpenError::ReadOnly { path: path.to_owned() });
    }
    let application: i32 = db.query_row("pragma application_id", [], |row| row.get(0))?;
    let objects: i64 = db.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    if application != schema::APPLICATION_ID && (objects > 0 || application != 0) {
        return Err(OpenError::OtherOwner { path: path.to_owned(), found: application });
    }
    db.execute_batch(schema::PRAGMAS)?;
    schema::prepare(&db, path)?;
    let text = |pragma: &str| db.query_row(&format!("pragma {pragma}"), [], |row| row.get::<_, String>(0));
    let number = |pragma: &str| db.query_row(&format!("pragma {pragma}"), [], |row| row.get::<_, i64>(0));
    let (journal, synchronous) = (text("journal_mode")?, number("synchronous")?);
    if journal != "wal" || synchronous < 2 {
        let found = format!("journal_mode={journal}, synchronous={synchronous}");
        return Err(OpenError::NotDurable { path: path.to_owned(), found });
    }
    let tx = db.transaction()?;
    let epoch =
        tx.query_row("update meta set value = value + 1 where name = 'epoch' returning value", [], |r| r.get(0))?;
    let floor = tx.query_row("select value from meta where name = 'clock'", [], |row| row.get(0))?;
    tx.commit()?;
    Ok((db, epoch, floor))
}

/// Names the cause of SQLite's error, where it is one that a user can mend.
fn explain(error: OpenError, path: &Path) -> OpenError {
    let OpenError::Sqlite(error) = error else { return error };
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            OpenError::Locked { process: lock_holder(&path), path }
        }
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => OpenError::ReadOnly { path },
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, why: error.to_string() },
        _ => OpenError::Sqlite(error),
    }
}

/// Returns the process that has locked the file, as Linux tells it.
fn lock_holder(path: &Path) -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let inode = format!(":{}", std::fs::metadata(path).ok()?.ino());
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        // "1: POSIX  ADVISORY  WRITE 1234 08:01:567 0 EOF": the process is the fifth word, the file the sixth.
        locks.lines().find_map(|line| {
            let mut words = line.split_whitespace().skip(4);
            let process = words.next()?.parse().ok()?;
            words.next()?.ends_with(&inode).then_some(process)
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        None
    }
}

pub(super) fn blob(id: Id) -> [u8; 16] {
    id.0.to_be_bytes()
}

pub(super) fn id_of(bytes: [u8; 16]) -> Id {
    Id(u128::from_be_bytes(bytes))
}

/// The columns that [`row_of`] reads.
const COLUMNS: &str = "id, due, attempt, base, topic, key, period, format, payload";

fn row_of(row: &SqlRow<'_>, running: bool) -> rusqlite::Result<Row> {
    let content = Content {
        topic: row.get(4)?,
        key: row.get(5)?,
        period: row.get(6)?,
        format: row.get(7)?,
        payload: row.get(8)?,
    };
    Ok(Row { id: id_of(row.get(0)?), due: row.get(1)?, attempt: row.get(2)?, base: row.get(3)?, running, content })
}

impl Store for SqliteStore {
    fn now(&self) -> Micros {
        self.clock.now()
    }

    fn write(&mut self, batch: &Batch) -> Result<Answers, StoreError> {
        let now = self.clock.now();
        let floor = (now - self.clock.stored >= FLOOR_STEP).then_some(now);
        let instance = write::Instance { now, floor, epoch: self.epoch, opened: self.opened };
        let answers = write::commit(self.db()?, batch, &instance)?;
        self.clock.stored = floor.unwrap_or(self.clock.stored);
        Ok(answers)
    }

    fn load(&mut self, from: Place, max: usize, page: &mut Vec<Place>) -> Result<(), StoreError> {
        self.read(|db| {
            let sql = "select due, id from timeout where (due, id) >= (?1, ?2) order by due, id limit ?3";
            let mut query = db.prepare_cached(sql)?;
            let mut rows = query.query(params![from.due, blob(from.id), max as i64])?;
            while let Some(row) = rows.next()? {
                page.push(Place { due: row.get(0)?, id: id_of(row.get(1)?) });
            }
            Ok(())
        })
    }

    fn find(&mut self, target: &Target) -> Result<Option<Row>, StoreError> {
        let opened = self.opened;
        self.read(|db| {
            let read =
                |row: &SqlRow<'_>| row_of(row, row.get::<_, Option<i64>>(9)?.is_some_and(|epoch| epoch >= opened));
            let select = |by: &str| format!("select {COLUMNS}, epoch from timeout where {by}");
            match target {
                Target::Id(id) => db.prepare_cached(&select("id = ?1"))?.query_row([blob(*id)], read),
                Target::Key { topic, key } => {
                    db.prepare_cached(&select("topic = ?1 and key = ?2"))?.query_row([topic, key], read)
                }
            }
            .optional()
        })
    }

    fn dead_letters(&mut self, after: Option<Id>, max: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.read(|db| {
            let sql =
                format!("select {COLUMNS}, buried_at, reason from dead_letter where id > ?1 order by id limit ?2");
            let mut query = db.prepare_cached(&sql)?;
            let read = |row: &SqlRow<'_>| {
                Ok(DeadLetter { row: row_of(row, false)?, buried_at: row.get(9)?, reason: row.get(10)? })
            };
            let rows = query.query_map(params![after.map_or(vec![], |id| blob(id).to_vec()), max as i64], read)?;
            rows.collect()
        })
    }

    fn count(&mut self) -> Result<Count, StoreError> {
        self.read(|db| {
            let count =
                |table: &str| db.query_row(&format!("select count(*) from {table}"), [], |row| row.get::<_, i64>(0));
            Ok(Count { pending: count("timeout")? as u64, dead: count("dead_letter")? as u64 })
        })
    }

    fn backup(&mut self, path: &Path) -> Result<(), StoreError> {
        if path.exists() {
            return Err(StoreError::Failed(format!("{} exists; give the name of a new file", path.display())));
        }
        let Some(text) = path.to_str() else {
            return Err(StoreError::Failed(format!("{} is not UTF-8, which SQLite needs", path.display())));
        };
        self.read(|db| db.execute("vacuum into ?1", [text]).map(drop))
    }

    fn rejoin(&mut self) -> Result<(), StoreError> {
        self.db = None;
        let (db, epoch, _) = connect(&self.path).map_err(|e| StoreError::Failed(explain(e, &self.path).to_string()))?;
        self.db = Some(db);
        self.epoch = epoch;
        Ok(())
    }
}
