//! The shelves of topics that are blocked, and the topics that are paused.

use super::ids::{blob, id};
use super::slots::{PageTopics, SHELF};
use super::unreadable::{self, UnreadableRows, is_unreadable};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Result, Row, params};
use std::sync::Arc;
use timer_durable::TimeoutId;
use timer_durable::store::Position;

/// Puts a timeout on the shelf of its topic.
pub(super) fn put(db: &Connection, id: TimeoutId) -> Result<()> {
    db.prepare_cached("update timer_timeout set slot = ?2 where id = ?1")?.execute(params![blob(id), SHELF]).map(drop)
}

/// Takes a timeout off its shelf.
pub(super) fn take(db: &Connection, id: TimeoutId) -> Result<()> {
    db.prepare_cached("update timer_timeout set slot = null where id = ?1")?.execute([blob(id)]).map(drop)
}

/// Reads the first timeouts on a shelf, or the errors of rows that cannot be read. A text or a blob
/// is greater than each number.
pub(super) fn load(
    db: &Connection,
    topic: &str,
    max: usize,
    epoch: i64,
) -> Result<std::result::Result<Vec<Position>, UnreadableRows>> {
    let mut query = db.prepare_cached(
        "select rowid, due, id, begun from timer_timeout where slot = -1 and topic = ?1
             and (begun is null or begun < ?2 or begun > 9223372036854775807)
         order by due, id limit ?3",
    )?;
    let position = |row: &Row<'_>| {
        row.get::<_, Option<i64>>(3)?;
        Ok(Position { due: row.get(1)?, id: id(row.get(2)?) })
    };
    let rows = query.query_map(params![topic, epoch, max as i64], |row| Ok((row.get(0)?, position(row))))?;
    let mut page = Vec::new();
    let mut unreadable = Vec::new();
    for row in rows {
        match row? {
            (_, Ok(position)) => page.push(position),
            (row, Err(error)) => unreadable.push((row, error)),
        }
    }
    Ok(if unreadable.is_empty() { Ok(page) } else { Err(unreadable) })
}

/// Appends the timeouts that belong to one of the topics, each with the index of its topic.
pub(super) fn find_topics(
    db: &Connection,
    page: &PageTopics,
    ids: &[TimeoutId],
    topics: &[Arc<str>],
    out: &mut Vec<(TimeoutId, usize)>,
) -> Result<()> {
    let mut query = db.prepare_cached("select topic from timer_timeout where id = ?1")?;
    for id in ids {
        let index_of = |found: &str| topics.iter().position(|topic| found == &**topic);
        let index = match page.get(id) {
            Some(found) => index_of(found),
            // Others may have written any type.
            None => {
                let read = |row: &Row<'_>| Ok(row.get_ref(0)?.as_str().ok().and_then(index_of));
                query.query_row([blob(*id)], read).optional()?.flatten()
            }
        };
        out.extend(index.map(|index| (*id, index)));
    }
    Ok(())
}

/// Selects the topics with timeouts on their shelves, by one look into the index for each.
const TOPICS: &str = "with recursive shelf(topic) as (
        select min(topic) from timer_timeout where slot = -1
        union all
        select (select min(topic) from timer_timeout where slot = -1 and topic > shelf.topic) from shelf
        where shelf.topic is not null)
    select topic from shelf where topic is not null";

/// Returns the topics with timeouts on their shelves. Leaves out those that cannot be read.
pub(super) fn topics(db: &Connection) -> Result<Vec<String>> {
    let mut query = db.prepare_cached(TOPICS)?;
    let topics = query.query_map([], |row| row.get(0))?;
    topics.filter(|topic| !matches!(topic, Err(error) if is_unreadable(error))).collect()
}

/// Returns the rows on shelves whose topics cannot be read.
pub(super) fn find_lost(db: &Connection) -> Result<UnreadableRows> {
    let mut find = db.prepare_cached("select rowid, topic from timer_timeout where slot = -1 and topic = ?1")?;
    let mut query = db.prepare_cached(TOPICS)?;
    let mut lost = Vec::new();
    let mut topics = query.query([])?;
    while let Some(topic) = topics.next()? {
        if topic.get::<_, String>(0).is_err_and(|error| is_unreadable(&error)) {
            lost.append(&mut unreadable::rows::<String>(&mut find, [ToSqlOutput::Borrowed(topic.get_ref(0)?)])?);
        }
    }
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
