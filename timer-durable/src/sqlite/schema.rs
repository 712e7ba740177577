//! The tables of the SQLite store, and the checks of a file before it is used.

use std::path::Path;

use rusqlite::Connection;

use super::OpenError;

/// "tdur" in ASCII. It marks a file of this crate for `file` and for other programs.
pub(super) const APPLICATION_ID: i32 = 0x7464_7572;

/// The version of the schema that this program writes.
pub(super) const VERSION: i32 = 1;

/// The options of the connection. `synchronous=FULL` syncs each commit.
pub(super) const PRAGMAS: &str = "
pragma locking_mode = exclusive;
pragma journal_mode = wal;
pragma synchronous = full;
pragma fullfsync = on;
pragma wal_autocheckpoint = 4000;
pragma cache_size = -32000;
pragma journal_size_limit = 67108864;
pragma foreign_keys = off;";

const TABLES: &str = "
create table meta(name text primary key, value integer not null) without rowid;
insert into meta values ('epoch', 0), ('clock', 0);
create table timeout(
    id blob primary key check (length(id) = 16),
    due integer not null,
    attempt integer not null default 0,
    base integer not null default 0,
    epoch integer,
    topic text not null,
    key text,
    period integer,
    format integer not null,
    payload blob not null
) without rowid;
create index timeout_due on timeout(due, id);
create unique index timeout_key on timeout(topic, key) where key is not null;
create table dead_letter(
    id blob primary key check (length(id) = 16),
    due integer not null,
    attempt integer not null,
    base integer not null,
    topic text not null,
    key text,
    period integer,
    format integer not null,
    payload blob not null,
    buried_at integer not null,
    reason text not null
) without rowid;";

/// Checks that the file is empty or of this version, and creates the tables in an empty one.
pub(super) fn prepare(db: &Connection, path: &Path) -> Result<(), OpenError> {
    let path = || path.to_owned();
    let number = |pragma: &str| db.query_row(&format!("pragma {pragma}"), [], |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let objects: i64 = db.query_row("select count(*) from sqlite_schema", [], |row| row.get(0))?;
    if objects == 0 && application == 0 {
        let mark = format!("pragma application_id = {APPLICATION_ID}; pragma user_version = {VERSION};");
        db.execute_batch(&format!("begin immediate; {TABLES} {mark} commit;"))?;
        return Ok(());
    }
    if application != APPLICATION_ID {
        return Err(OpenError::OtherOwner { path: path(), found: application });
    }
    if version != VERSION {
        return Err(OpenError::OtherVersion { path: path(), found: version, supported: VERSION });
    }
    // A full check reads the whole file. This one reads the schema and the two ends of the list.
    let first =
        "select (select count(*) from (select 1 from timeout order by due, id limit 1)) + (select count(*) from meta)";
    db.query_row(first, [], |_| Ok(())).map_err(|why| OpenError::Damaged { path: path(), why: why.to_string() })
}
