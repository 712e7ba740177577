//! Opening a file with its checks, schema and lock.

use super::names;
use super::owner::Owner;
use super::version;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use timer_durable::store::Micros;

/// The application id of a file of timeouts, "tmrd".
const APPLICATION: i64 = 0x746d_7264;

/// The version of the schema.
const VERSION: i64 = 1;

/// Adds the parts that the first files of this version lack, besides [`INDEXES`]. Programs that do
/// not know these parts go on.
const ADDITIONS: &str = "
    alter table timeout add column traceparent text;
    drop index timeout_by_due;
    drop index timeout_by_slot;";

/// The indexes that were without the topic in the first files of this version. With it, timeouts
/// are counted by topic without a look at their rows.
const INDEXES: &str = "
    create index timeout_by_due on timeout(due, id, topic) where slot is null;
    create index timeout_by_slot on timeout(slot, id, due, topic) where slot is not null;";

/// The tables. A payload is behind all columns but one that is read together with it, so other
/// statements do not read it.
const SCHEMA: &str = "
    create table meta(epoch integer not null, floor integer not null);
    insert into meta values (0, 0);
    create table timeout(
        id blob not null,
        due integer not null,
        planned integer,
        slot integer,
        attempt integer not null default 0,
        forgiven integer not null default 0,
        begun integer,
        started integer,
        period integer,
        max_lateness integer,
        format integer not null,
        topic text not null,
        key text,
        payload blob not null,
        traceparent text
    );
    create unique index timeout_by_id on timeout(id);
    create index timeout_by_shelf on timeout(topic, due, id) where slot = -1;
    create unique index timeout_by_key on timeout(topic, key) where key is not null;
    create table dead(
        id blob not null,
        due integer not null,
        attempt integer not null,
        died integer not null,
        format integer not null,
        topic text not null,
        key text,
        reason text not null,
        payload blob not null
    );
    create unique index dead_by_id on dead(id);
    create table timer_tombstone(id blob primary key) without rowid;
    create table timer_paused(topic text primary key) without rowid;
    create view timer_pending as select
        lower(hex(id)) as id, topic, key, due,
        case
            when begun >= (select epoch from meta) then 'running'
            when planned is not null and attempt > forgiven then 'retrying'
            else 'pending'
        end as state,
        attempt, period, payload
    from timeout;";

/// The names of the tables and indexes.
const NAMES: &str =
    "'meta', 'timeout', 'timeout_by_id', 'timeout_by_due', 'timeout_by_slot', 'timeout_by_shelf', 'timeout_by_key',
    'dead', 'dead_by_id', 'timer_tombstone', 'timer_paused'";

/// The flags with which a file is opened. It exists by then.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The time for which an open, and a timer on virtual time, wait while another program has locked
/// the file. A reader waits while another connection recovers the log after a crash.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// A file that cannot be opened as a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is not an SQLite database.
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a database of another program.
    NotTimeouts {
        /// The file.
        path: PathBuf,
    },
    /// This program does not know the version of the schema.
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: i64,
        /// The version that this program uses.
        expected: i64,
    },
    /// The program was linked with an old version of SQLite.
    OldSqlite {
        /// The version of SQLite.
        found: String,
        /// The oldest version that the store accepts.
        needed: &'static str,
    },
    /// Another process has the file open.
    InUse {
        /// The file.
        path: PathBuf,
        /// The id of the process, where it can be found.
        owner: Option<u32>,
    },
    /// The file has other names, or may have them, because it alone is mounted. Its log and its
    /// lock are beside one name only.
    OtherNames {
        /// The file.
        path: PathBuf,
        /// The names and the remedy.
        names: String,
    },
    /// The file is damaged.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first findings of the check.
        findings: String,
    },
    /// The file or its folder cannot be written or read.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system or of SQLite.
        why: String,
    },
    /// The file cannot be synced with each commit, for example because the file system does not
    /// support that.
    NotDurable {
        /// The file.
        path: PathBuf,
        /// The setting that did not take effect.
        setting: String,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotADatabase { path } => write!(f, "{} is not an SQLite database", path.display()),
            Self::NotTimeouts { path } => {
                write!(f, "{} is a database of another program; name a file of its own for timeouts", path.display())
            }
            Self::Version { path, found, expected } => {
                write!(f, "{} has version {found} of the schema; this program uses {expected}", path.display())
            }
            Self::OldSqlite { found, needed } => {
                write!(f, "the program has SQLite {found}; the store needs {needed} or a later one")
            }
            Self::InUse { path, owner: Some(owner) } => {
                write!(f, "{} is in use by process {owner}; one process at a time may open it", path.display())
            }
            Self::InUse { path, owner: None } => {
                write!(f, "{} is in use by another process; one process at a time may open it", path.display())
            }
            Self::OtherNames { path, names } => {
                write!(f, "{} may be open by another name: {names}", path.display())
            }
            Self::Damaged { path, findings } => {
                write!(f, "{} is damaged: {findings}; restore a backup", path.display())
            }
            Self::Io { path, why } => {
                write!(
                    f,
                    "{} cannot be opened: {why}; the file and its folder must be readable and writable",
                    path.display()
                )
            }
            Self::NotDurable { path, setting } => {
                write!(f, "{} cannot be used durably: {setting} did not take effect", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        let kind = match &error {
            OpenError::InUse { .. } => io::ErrorKind::ResourceBusy,
            OpenError::NotADatabase { .. } | OpenError::NotTimeouts { .. } | OpenError::Damaged { .. } => {
                io::ErrorKind::InvalidData
            }
            OpenError::Version { .. }
            | OpenError::NotDurable { .. }
            | OpenError::OldSqlite { .. }
            | OpenError::OtherNames { .. } => io::ErrorKind::Unsupported,
            OpenError::Io { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// An open file.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) owner: Owner,
    /// The latest time in the file.
    pub(super) floor: Micros,
}

/// Becomes the owner of a file and connects to it. Creates the file if there is none.
pub(super) fn connect(path: &Path) -> Result<(Connection, Owner), OpenError> {
    if path.as_os_str().is_empty() || path == Path::new(":memory:") {
        let setting = "journal_mode=wal (this is not the path of a file)".to_owned();
        return Err(OpenError::NotDurable { path: path.to_owned(), setting });
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // SQLite takes a path that begins with `file:` for a URI, unless it is absolute.
    let absolute = match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ if cfg!(unix) => path.canonicalize(),
        _ => std::path::absolute(path),
    };
    let absolute = absolute.map_err(|error| OpenError::Io { path: path.to_owned(), why: error.to_string() })?;
    names::check(&absolute)?;
    let owner = Owner::take(&absolute)?;
    let connection = Connection::open_with_flags(&absolute, FLAGS).map_err(|error| explain(path, &error))?;
    Ok((connection, owner))
}

/// Opens and checks a file.
pub(super) fn open(path: &Path) -> Result<Opened, OpenError> {
    let error = |error: rusqlite::Error| explain(path, &error);
    version::check()?;
    let (connection, mut owner) = connect(path)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.busy_timeout(LOCK_WAIT).map_err(error)?;
    let is_new = check_version(&connection, path)?;
    connection
        .execute_batch(
            "pragma journal_mode = wal; pragma synchronous = full; pragma fullfsync = on;
             pragma wal_autocheckpoint = 4000; pragma journal_size_limit = 67108864;
             pragma cache_size = -16000; pragma temp_store = memory;",
        )
        .map_err(error)?;
    check_settings(&connection, path)?;
    if is_new {
        create(&connection).map_err(error)?;
    } else {
        check(&connection, path)?;
    }
    // Writing takes the lock, and shows whether the file can be written at all.
    connection.execute_batch("begin immediate; update meta set floor = floor; commit").map_err(error)?;
    owner.watch_log().map_err(|error| OpenError::Io { path: path.to_owned(), why: error.to_string() })?;
    let floor = number(&connection, "select floor from meta").map_err(error)?;
    Ok(Opened { connection, owner, floor })
}

/// Opens a file to read it, which another connection may write.
pub(super) fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    let error = |error: rusqlite::Error| explain(path, &error);
    version::check()?;
    let absolute = path.canonicalize();
    let absolute = absolute.map_err(|error| OpenError::Io { path: path.to_owned(), why: error.to_string() })?;
    let mut shared = absolute.clone().into_os_string();
    shared.push("-shm");
    let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // Without this, a reader that finds none of SQLite's locks would truncate the index of the log.
    // The kernel drops the locks of an owner that has read the `-shm` file itself.
    let name = if Path::new(&shared).exists() {
        flags |= OpenFlags::SQLITE_OPEN_URI;
        let escape = |byte: &u8| {
            if byte.is_ascii_alphanumeric() || b"/.-_".contains(byte) {
                char::from(*byte).to_string()
            } else {
                format!("%{byte:02x}")
            }
        };
        let path: String = absolute.as_os_str().as_encoded_bytes().iter().map(escape).collect();
        format!("file:{path}?readonly_shm=1").into()
    } else {
        absolute
    };
    let connection = Connection::open_with_flags(name, flags).map_err(error)?;
    connection.busy_timeout(LOCK_WAIT).map_err(error)?;
    if check_version(&connection, path)? {
        return Err(OpenError::NotTimeouts { path: path.to_owned() });
    }
    Ok(connection)
}

/// Checks that a file has timeouts of a version that this program knows. Returns `true` if it is
/// new.
fn check_version(connection: &Connection, path: &Path) -> Result<bool, OpenError> {
    let number = |sql| number::<i64>(connection, sql).map_err(|error| explain(path, &error));
    let (application, version) = (number("pragma application_id")?, number("pragma user_version")?);
    if number("select count(*) from sqlite_schema")? == 0 && version == 0 && application == 0 {
        return Ok(true);
    }
    if application != APPLICATION {
        return Err(OpenError::NotTimeouts { path: path.to_owned() });
    }
    if !(1..=VERSION).contains(&version) {
        return Err(OpenError::Version { path: path.to_owned(), found: version, expected: VERSION });
    }
    Ok(false)
}

fn create(connection: &Connection) -> rusqlite::Result<()> {
    let create = format!(
        "begin exclusive; {SCHEMA} {INDEXES} pragma application_id = {APPLICATION}; pragma user_version = {VERSION}; commit;"
    );
    connection.execute_batch(&create)
}

/// Adds the missing parts to a file.
pub(super) fn upgrade(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    if has_traces(connection) {
        return Ok(());
    }
    let upgraded = connection.execute_batch(&format!("begin exclusive; {ADDITIONS} {INDEXES} commit;"));
    upgraded.map_err(|error| {
        if !connection.is_autocommit() {
            _ = connection.execute_batch("rollback");
        }
        explain(path, &error)
    })
}

/// Returns `true` if the file keeps the traces of timeouts.
pub(super) fn has_traces(connection: &Connection) -> bool {
    connection.prepare("select traceparent from timeout").is_ok()
}

/// Checks that the settings that make a commit durable have taken effect.
fn check_settings(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let not_durable = |setting: &str| OpenError::NotDurable { path: path.to_owned(), setting: setting.to_owned() };
    let mode: String =
        connection.query_row("pragma journal_mode", [], |row| row.get(0)).map_err(|error| explain(path, &error))?;
    if mode != "wal" {
        return Err(not_durable(&format!("journal_mode=wal (it is {mode})")));
    }
    let synchronous: i64 = number(connection, "pragma synchronous").map_err(|error| explain(path, &error))?;
    if synchronous < 2 { Err(not_durable("synchronous=full")) } else { Ok(()) }
}

/// Checks that the tables and indexes exist and can be read at their ends. A check of the whole
/// file would take minutes with many timeouts.
fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let damaged = |findings: String| OpenError::Damaged { path: path.to_owned(), findings };
    let expected = NAMES.split(',').count() as i64;
    let found = format!("select count(*) from sqlite_schema where type in ('table', 'index') and name in ({NAMES})");
    match number::<i64>(connection, &found) {
        Ok(found) if found == expected => {}
        Ok(found) => return Err(damaged(format!("{found} of {expected} tables and indexes were found"))),
        Err(error) => return Err(explain(path, &error)),
    }
    let head = "select (select count(*) from meta) - 1, (select min(due) from timeout where slot is null),
        (select min(slot) from timeout where slot is not null), (select max(id) from timeout)";
    match connection.query_row(head, [], |row| row.get::<_, i64>(0)) {
        Ok(0) => Ok(()),
        Ok(_) => Err(damaged("the table meta does not have one row".to_owned())),
        Err(error) => Err(explain(path, &error)),
    }
}

fn number<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> rusqlite::Result<T> {
    connection.query_row(sql, [], |row| row.get(0))
}

fn explain(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse { path, owner: None },
        Some(ErrorCode::DatabaseCorrupt) => OpenError::Damaged { path, findings: error.to_string() },
        _ => OpenError::Io { path, why: error.to_string() },
    }
}
