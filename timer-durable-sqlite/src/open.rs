//! Opening a file with its checks, schema and lock.

use super::names;
use super::open_error::{OpenError, explain};
use super::owner::Owner;
use super::schema::{SCHEMA, Schema, number};
use super::version;
use rusqlite::{Connection, OpenFlags};
use std::io;
use std::path::Path;
use std::time::Duration;
use timer_durable::store::Micros;

/// The flags with which a file is opened. It exists by then.
const FLAGS: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// The time for which an open, and a timer on virtual time, wait while another program has locked
/// the file. A reader waits while another connection recovers the log after a crash.
const LOCK_WAIT: Duration = Duration::from_secs(5);

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

/// Opens and checks a file. Creates the tables if it has none.
pub(super) fn open(path: &Path, schema: Schema) -> Result<Opened, OpenError> {
    let error = |error: rusqlite::Error| explain(path, &error);
    version::check()?;
    let (connection, mut owner) = connect(path)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.busy_timeout(LOCK_WAIT).map_err(error)?;
    let found = schema.version_of(&connection, path)?;
    connection
        .execute_batch(
            "pragma journal_mode = wal; pragma synchronous = full; pragma fullfsync = on;
             pragma wal_autocheckpoint = 4000; pragma journal_size_limit = 67108864;
             pragma cache_size = -16000; pragma temp_store = memory;",
        )
        .map_err(error)?;
    check_settings(&connection, path)?;
    match found {
        Some(_) => check(&connection).map_err(error)?,
        None => schema.create(&connection, path)?,
    }
    // Writing takes the lock, and shows whether the file can be written at all.
    connection.execute_batch("begin immediate; update timer_meta set floor = floor; commit").map_err(error)?;
    owner.watch_log().map_err(|error| OpenError::Io { path: path.to_owned(), why: error.to_string() })?;
    let floor = number(&connection, "select floor from timer_meta").map_err(error)?;
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
    match SCHEMA.version_of(&connection, path)? {
        Some(_) => Ok(connection),
        None => Err(OpenError::NotTimeouts { path: path.to_owned(), why: "it has no tables of the store".to_owned() }),
    }
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

/// Checks that the table and its indexes can be read at their ends. A check of the whole file would
/// take minutes with many timeouts.
fn check(connection: &Connection) -> rusqlite::Result<()> {
    let ends = "select (select min(topic) from timer_timeout where slot is null),
        (select min(slot) from timer_timeout where slot is not null), (select max(id) from timer_timeout)";
    connection.query_row(ends, [], |_| Ok(()))
}
