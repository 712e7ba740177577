//! The schema of a file: how a file is recognized, gets its tables, and is upgraded.
//!
//! The tables of the user may be in the same file. So all names begin with `timer_`, and the
//! version is in `timer_meta`, because the tools that migrate the user's tables write
//! `user_version` and `application_id`. `timer_meta` keeps its columns in all versions, so every
//! program can read the version of a file.

use super::open_error::{OpenError, explain};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The tables. A payload is behind all columns but one that is read together with it, so other
/// statements do not read it. A row with `if_pending` is a call that the row of a running attempt
/// names in `queued`. The indexes of due times have the topic, so timeouts are counted by
/// topic without a look at their rows.
const VERSION_1: &str = "
    create table timer_meta(version integer not null, epoch integer not null, floor integer not null);
    insert into timer_meta values (1, 0, 0);
    create table timer_timeout(
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
        queued blob,
        if_pending text,
        format integer not null,
        topic text not null,
        key text,
        payload blob not null,
        traceparent text
    );
    create unique index timer_timeout_by_id on timer_timeout(id);
    create index timer_timeout_by_due on timer_timeout(topic, due, id) where slot is null;
    create index timer_timeout_by_slot on timer_timeout(slot, id, due, topic) where slot is not null;
    create unique index timer_timeout_by_key on timer_timeout(topic, key, if_pending is not null) where key is not null;
    create index timer_timeout_queued on timer_timeout(topic, key) where if_pending is not null;
    create table timer_dead(
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
    create unique index timer_dead_by_id on timer_dead(id);
    create index timer_dead_by_death on timer_dead(topic, died);
    create table timer_tombstone(id blob primary key) without rowid;
    create table timer_topic(topic text primary key, last_slot integer not null) without rowid;
    create table timer_paused(topic text primary key) without rowid;
    create view timer_pending as select
        lower(hex(id)) as id, topic, key, due,
        case
            when if_pending is not null then 'queued'
            when begun >= (select epoch from timer_meta) then 'running'
            when planned is not null and attempt > forgiven then 'retrying'
            else 'pending'
        end as state,
        attempt, period, payload
    from timer_timeout;";

/// The schema of this program.
pub(super) const SCHEMA: Schema = Schema { steps: &[VERSION_1] };

/// A schema, as the steps that lead to it. The first one makes a file of version 1, and each
/// further one turns a file into the next version. A step that was released never changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema {
    steps: &'static [&'static str],
}

/// A table, an index or a view.
#[derive(Default)]
struct Part {
    kind: String,
    columns: BTreeSet<String>,
}

impl Schema {
    fn version(self) -> i64 {
        self.steps.len() as i64
    }

    /// Returns the version of a file, or `None` if it has nothing of the store. Fails if this
    /// program does not know the version, or if a part is missing or is another program's.
    pub(super) fn version_of(self, connection: &Connection, path: &Path) -> Result<Option<i64>, OpenError> {
        let error = |error: rusqlite::Error| explain(path, &error);
        let damaged = |findings: String| OpenError::Damaged { path: path.to_owned(), findings };
        let own = self.parts().map_err(error)?;
        let found = parts(connection).map_err(error)?;
        let Some(taken) = own.keys().find(|name| found.contains_key(*name)) else { return Ok(None) };
        if missing("timer_meta", &own["timer_meta"], &found).is_some() {
            let why =
                format!("its {} {taken} is not the store's, to which names with timer_ belong", found[taken].kind);
            return Err(OpenError::NotTimeouts { path: path.to_owned(), why });
        }
        let version =
            "select iif(count(*) = 1 and typeof(max(version)) = 'integer', max(version), null) from timer_meta";
        let version: Option<i64> = number(connection, version).map_err(error)?;
        let version = version.ok_or_else(|| damaged("timer_meta does not have one row with a version".to_owned()))?;
        if !(1..=self.version()).contains(&version) {
            return Err(OpenError::Version { path: path.to_owned(), found: version, expected: self.version() });
        }
        let missing = own.iter().find_map(|(name, part)| missing(name, part, &found));
        match missing.filter(|_| version == self.version()) {
            Some(missing) => Err(damaged(format!("{missing} is missing"))),
            None => Ok(Some(version)),
        }
    }

    /// Creates the tables in a file without them.
    pub(super) fn create(self, connection: &Connection, path: &Path) -> Result<(), OpenError> {
        self.execute(connection, path, 0)
    }

    /// Turns a file of an earlier version into one of this version.
    pub(super) fn upgrade(self, connection: &Connection, path: &Path) -> Result<(), OpenError> {
        match self.version_of(connection, path)? {
            Some(version) if version < self.version() => self.execute(connection, path, version as usize),
            _ => Ok(()),
        }
    }

    /// Executes the steps that a file lacks.
    fn execute(self, connection: &Connection, path: &Path, done: usize) -> Result<(), OpenError> {
        let steps = self.steps[done..].concat();
        let set_version = format!("update timer_meta set version = {}", self.version());
        let executed = connection.execute_batch(&format!("begin exclusive; {steps} {set_version}; commit;"));
        executed.map_err(|error| {
            if !connection.is_autocommit() {
                _ = connection.execute_batch("rollback");
            }
            explain(path, &error)
        })
    }

    /// Returns the parts of a file of this schema.
    fn parts(self) -> rusqlite::Result<BTreeMap<String, Part>> {
        let connection = Connection::open_in_memory()?;
        connection.execute_batch(&self.steps.concat())?;
        parts(&connection)
    }
}

/// Returns the parts of a file whose names belong to the store, by their names.
fn parts(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Part>> {
    let mut query = connection.prepare(
        "select lower(s.name), s.type, lower(c.name)
         from sqlite_schema s left join pragma_table_info(s.name) c on s.type = 'table'
         where s.type <> 'trigger' and s.name like 'timer\\_%' escape '\\'",
    )?;
    let mut rows = query.query([])?;
    let mut parts = BTreeMap::<String, Part>::new();
    while let Some(row) = rows.next()? {
        let part = parts.entry(row.get(0)?).or_default();
        part.kind = row.get(1)?;
        part.columns.extend(row.get::<_, Option<String>>(2)?);
    }
    Ok(parts)
}

/// Returns the name of a part or of its first column that `found` lacks.
fn missing(name: &str, part: &Part, found: &BTreeMap<String, Part>) -> Option<String> {
    let Some(other) = found.get(name).filter(|other| other.kind == part.kind) else {
        return Some(format!("the {} {name}", part.kind));
    };
    part.columns.difference(&other.columns).next().map(|column| format!("the column {column} of {name}"))
}

/// Returns the number that a query reads.
pub(super) fn number<T: rusqlite::types::FromSql>(connection: &Connection, sql: &str) -> rusqlite::Result<T> {
    connection.query_row(sql, [], |row| row.get(0))
}

#[cfg(test)]
mod tests;
