//! The topics of a file, and those that are paused.
//!
//! The rows in exact order are in the order of their topics, so their index names them. The rows
//! with slots are not, so `timer_topic` keeps the last slot that a row of each topic has had.

use super::ids::blob;
use super::unreadable::{self, UnreadableRows, is_unreadable};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Result};
use timer_durable::TimeoutId;
use timer_durable::store::Micros;

/// Selects the topics of the rows in exact order, by one look into the index for each.
const NEAR: &str = "with recursive near(topic) as (
        select min(topic) from timer_timeout where slot is null
        union all
        select (select min(topic) from timer_timeout where slot is null and topic > near.topic) from near
        where near.topic is not null)
    select topic from near where topic is not null";

/// Returns the topics of the file. Leaves out those that cannot be read.
pub(super) fn all(db: &Connection) -> Result<Vec<String>> {
    let mut query = db.prepare_cached(&format!(
        "{NEAR} union select topic from timer_topic
         where last_slot >= (select min(slot) from timer_timeout where slot is not null)"
    ))?;
    let topics = query.query_map([], |row| row.get(0))?;
    topics.filter(|topic| !matches!(topic, Err(error) if is_unreadable(error))).collect()
}

/// Returns the topic of a timeout, unless it cannot be read.
pub(super) fn of(db: &Connection, timeout: TimeoutId) -> Result<Option<String>> {
    let mut query = db.prepare_cached("select topic from timer_timeout where id = ?1")?;
    let topic = query.query_row([blob(timeout)], |row| Ok(row.get_ref(0)?.as_str().ok().map(str::to_owned)));
    topic.optional().map(Option::flatten)
}

/// Notes that a timeout of a topic has a slot.
pub(super) fn note(db: &Connection, topic: &str, slot: Micros) -> Result<()> {
    let mut note = db.prepare_cached(
        "insert into timer_topic values (?1, ?2) on conflict do update
         set last_slot = excluded.last_slot where last_slot < excluded.last_slot",
    )?;
    note.execute((topic, slot)).map(drop)
}

/// Returns the last slot that a timeout of a topic may have.
pub(super) fn last_slot(db: &Connection, topic: &str) -> Result<Option<Micros>> {
    db.prepare_cached("select last_slot from timer_topic where topic = ?1")?
        .query_row([topic], |row| row.get(0))
        .optional()
}

/// Forgets the topics that have no timeout with a slot any more.
pub(super) fn forget(db: &Connection) -> Result<()> {
    let mut forget = db.prepare_cached(
        "delete from timer_topic
         where (last_slot >= (select min(slot) from timer_timeout where slot is not null)) is not true",
    )?;
    forget.execute([]).map(drop)
}

/// Returns the rows that no page finds, because their topic, their due time or their slot has
/// another type. SQLite orders a text or a blob behind all numbers.
pub(super) fn find_lost(db: &Connection) -> Result<UnreadableRows> {
    let mut near = db.prepare_cached("select rowid, topic from timer_timeout where slot is null and topic = ?1")?;
    let mut late = db.prepare_cached(
        "select rowid, due from timer_timeout where slot is null and topic = ?1 and due > 9223372036854775807",
    )?;
    let mut lost = Vec::new();
    let mut query = db.prepare_cached(NEAR)?;
    let mut topics = query.query([])?;
    while let Some(topic) = topics.next()? {
        let value = [ToSqlOutput::Borrowed(topic.get_ref(0)?)];
        if topic.get::<_, String>(0).is_err_and(|error| is_unreadable(&error)) {
            lost.append(&mut unreadable::rows::<String>(&mut near, value)?);
        } else {
            lost.append(&mut unreadable::rows::<Micros>(&mut late, value)?);
        }
    }
    let mut far = db.prepare_cached(
        "select rowid, slot from timer_timeout where slot is not null and slot > 9223372036854775807",
    )?;
    lost.append(&mut unreadable::rows::<Micros>(&mut far, [])?);
    Ok(lost)
}

pub(super) fn set_paused(db: &Connection, topic: &str, is_paused: bool) -> Result<()> {
    let sql = if is_paused {
        "insert into timer_paused values (?1) on conflict do nothing"
    } else {
        "delete from timer_paused where topic = ?1"
    };
    db.prepare_cached(sql)?.execute([topic]).map(drop)
}

pub(super) fn paused(db: &Connection) -> Result<Vec<String>> {
    db.prepare_cached("select topic from timer_paused order by topic")?.query_map([], |row| row.get(0))?.collect()
}
