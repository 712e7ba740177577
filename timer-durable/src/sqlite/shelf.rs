//! The shelves of topics that are blocked, and the topics that are paused.

use super::rows::{blob, id};
use super::slots::SHELF;
use crate::TimeoutId;
use crate::store::{Micros, Position};
use rusqlite::{Connection, OptionalExtension, Result, params};
use std::sync::Arc;

/// Puts a timeout on the shelf of its topic.
pub(super) fn put(db: &Connection, id: TimeoutId) -> Result<()> {
    db.prepare_cached("update timeout set slot = ?2 where id = ?1")?.execute(params![blob(id), SHELF]).map(drop)
}

/// Takes a timeout off its shelf.
pub(super) fn take(db: &Connection, id: TimeoutId) -> Result<()> {
    db.prepare_cached("update timeout set slot = null where id = ?1")?.execute([blob(id)]).map(drop)
}

/// Appends the first timeouts on a shelf to `out`.
pub(super) fn load(db: &Connection, topic: &str, max: usize, epoch: i64, out: &mut Vec<Position>) -> Result<()> {
    let mut query = db.prepare_cached(
        "select due, id from timeout where slot = -1 and topic = ?1 and (begun is null or begun < ?2)
         order by due, id limit ?3",
    )?;
    let mut rows = query.query(params![topic, epoch, max as i64])?;
    while let Some(row) = rows.next()? {
        out.push(Position { due: row.get::<_, Micros>(0)?, id: id(row.get(1)?) });
    }
    Ok(())
}

/// Appends the timeouts that belong to one of the topics, each with the index of its topic.
pub(super) fn find_topics(
    db: &Connection,
    ids: &[TimeoutId],
    topics: &[Arc<str>],
    out: &mut Vec<(TimeoutId, usize)>,
) -> Result<()> {
    let mut query = db.prepare_cached("select topic from timeout where id = ?1")?;
    for id in ids {
        let index = query.query_row([blob(*id)], |row| {
            // Others may have written any type.
            let found = row.get_ref(0)?.as_str().ok();
            Ok(topics.iter().position(|topic| found == Some(&**topic)))
        });
        out.extend(index.optional()?.flatten().map(|index| (*id, index)));
    }
    Ok(())
}

/// Returns the topics with timeouts on their shelves, by one look into the index for each.
pub(super) fn topics(db: &Connection) -> Result<Vec<String>> {
    let mut query = db.prepare_cached(
        "with recursive shelf(topic) as (
             select min(topic) from timeout where slot = -1
             union all
             select (select min(topic) from timeout where slot = -1 and topic > shelf.topic) from shelf
             where shelf.topic is not null)
         select topic from shelf where topic is not null",
    )?;
    query.query_map([], |row| row.get(0))?.collect()
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
