//! Reading timeouts back.
//!
//! A list by key follows the index of keys. A list by due time merges the rows in exact order with
//! those of the slots that the page reaches. The rows of such a slot are sorted as they are read.
//! The exact order is one of each topic.

use super::ids::{blob, id};
use super::slots::WIDTH;
use super::topics;
use super::unreadable::is_unreadable;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Result, Row, params, params_from_iter};
use timer_durable::store::{DueCounts, Micros, Position, StoredPending};
use timer_durable::transaction::Target;
use timer_durable::{Counts, Filter, Pending, PendingRow, TimeoutId, TimeoutState, TopicDue};

/// The columns of a row. `?1` is the epoch whose timeouts run.
const COLUMNS: &str = "id, due, topic, key, attempt, period, planned is not null and attempt > forgiven,
    case when begun >= ?1 and if_pending is null then coalesce(started, due) end, if_pending is not null";

fn epoch(db: &Connection) -> Result<i64> {
    db.prepare_cached("select epoch from timer_meta")?.query_row([], |row| row.get(0))
}

fn pending<P>(row: &Row<'_>, payload: P) -> Result<Pending<P>> {
    let running_since: Option<Micros> = row.get(7)?;
    let state = match (running_since, row.get(6)?) {
        _ if row.get(8)? => TimeoutState::Queued,
        (Some(_), _) => TimeoutState::Running,
        (None, true) => TimeoutState::Retrying,
        (None, false) => TimeoutState::Pending,
    };
    let mut pending = Pending::new(id(row.get(0)?), row.get(1)?, row.get::<_, String>(2)?, payload);
    pending.key = row.get(3)?;
    pending.attempt = row.get(4)?;
    pending.period = row.get(5)?;
    pending.state = state;
    pending.running_since = running_since;
    Ok(pending)
}

pub(super) fn get(db: &Connection, target: &Target) -> Result<Option<StoredPending>> {
    let read = |row: &Row<'_>| pending(row, (row.get(9)?, row.get(10)?));
    let epoch = epoch(db)?;
    let select = format!("select {COLUMNS}, format, payload from timer_timeout where ");
    match target {
        Target::Id(id) => {
            db.prepare_cached(&(select + "id = ?2"))?.query_row(params![epoch, blob(*id)], read).optional()
        }
        Target::Key { topic, key } => {
            let mut find = db.prepare_cached(&(select + "topic = ?2 and key = ?3 and if_pending is null"))?;
            find.query_row(params![epoch, topic, key], read).optional()
        }
    }
}

/// The end of a query, with its parameters.
struct Tail {
    sql: String,
    values: Vec<Value>,
}

impl Tail {
    fn new(filter: &Filter, epoch: i64) -> Self {
        let mut tail = Self { sql: "due < ?2".to_owned(), values: vec![epoch.into(), filter.due.end.into()] };
        if let Some(topic) = &filter.topic {
            tail.and("topic = ?", [topic.clone().into()]);
        }
        match filter.state {
            Some(TimeoutState::Running) => tail.and("begun >= ?1 and if_pending is null", []),
            Some(TimeoutState::Queued) => tail.and("if_pending is not null", []),
            Some(TimeoutState::Retrying) => {
                tail.and("planned is not null and attempt > forgiven and (begun is null or begun < ?1)", [])
            }
            Some(TimeoutState::Pending) => {
                tail.and("(planned is null or attempt <= forgiven) and (begun is null or begun < ?1)", [])
            }
            None => {}
        }
        tail
    }

    fn and<const N: usize>(&mut self, condition: &str, values: [Value; N]) {
        self.sql = format!("{} and {condition}", self.sql);
        self.values.extend(values);
    }

    /// Reads the rows, in the order of `columns`. Leaves out rows that cannot be read, which become
    /// dead letters when they are due.
    fn rows(mut self, db: &Connection, order: &str, limit: usize) -> Result<Vec<PendingRow>> {
        self.values.push(i64::try_from(limit).unwrap_or(i64::MAX).into());
        // The inner query sorts the entries of an index, if it has all columns.
        let sql = format!(
            "select {COLUMNS} from timer_timeout where rowid in (select rowid from timer_timeout where {} order by {order} limit ?)",
            self.sql
        );
        let mut query = db.prepare_cached(&sql)?;
        let rows = query.query_map(params_from_iter(self.values), |row| pending(row, ()))?;
        rows.filter(|row| !matches!(row, Err(error) if is_unreadable(error))).collect()
    }
}

/// Reads a page in a transaction, because the keeper may move rows to another index.
pub(super) fn list(
    db: &Connection,
    filter: &Filter,
    after: Option<&PendingRow>,
    limit: usize,
) -> Result<Vec<PendingRow>> {
    let _snapshot = db.unchecked_transaction()?;
    let epoch = epoch(db)?;
    let tail = || Tail::new(filter, epoch);
    if let Some((first, end)) = filter.keys() {
        let mut tail = tail();
        tail.and("key >= ? and due >= ?", [first.to_owned().into(), filter.due.start.into()]);
        if let Some(end) = end {
            tail.and("key < ?", [end.into()]);
        }
        // A queued call is behind the timeout that has its key.
        let is_queued = |row: &PendingRow| row.state == TimeoutState::Queued;
        if let Some((last, Some(key))) = after.map(|row| (row, row.key.clone())) {
            let bound = [key.clone().into(), key.into(), is_queued(last).into()];
            tail.and("key >= ? and (key > ? or (if_pending is not null) > ?)", bound);
        }
        let mut rows = tail.rows(db, "key, if_pending is not null", limit)?;
        rows.sort_unstable_by(|a, b| (&a.key, is_queued(a)).cmp(&(&b.key, is_queued(b))));
        return Ok(rows);
    }
    let from = after.map_or(Position::at(filter.due.start), |row| row.position().next());
    let behind = |tail: &mut Tail| tail.and("(due, id) >= (?, ?)", [from.due.into(), blob(from.id).to_vec().into()]);
    let mut rows = Vec::new();
    for topic in filter.topic.clone().map_or_else(|| topics::all(db), |topic| Ok(vec![topic]))? {
        let mut near = tail();
        near.and("slot is null and topic = ?", [topic.into()]);
        behind(&mut near);
        rows.extend(near.rows(db, "due, id", limit)?);
    }
    let mut last = from.due.saturating_sub(WIDTH);
    loop {
        rows.sort_unstable_by_key(PendingRow::position);
        rows.truncate(limit);
        let end = rows.last().filter(|_| rows.len() == limit).map_or(filter.due.end, |row| row.due);
        let mut next =
            db.prepare_cached("select slot from timer_timeout where slot > ?1 and slot <= ?2 order by slot limit 1")?;
        let Some(slot) = next.query_row([last, end], |row| row.get::<_, Micros>(0)).optional()? else { break };
        let mut tail = tail();
        tail.and("slot = ?", [slot.into()]);
        behind(&mut tail);
        rows.extend(tail.rows(db, "due, id", limit)?);
        last = slot;
    }
    Ok(rows)
}

/// Counts the timeouts of each topic that are due within each of `delays` from `now`. The indexes
/// of due times and of slots have the topic. Only a row that is due may run, so others are not
/// looked up for that.
pub(super) fn due_within(db: &Connection, now: Micros, delays: &[Micros]) -> Result<Vec<TopicDue>> {
    let _snapshot = db.unchecked_transaction()?;
    let last = now.saturating_add(delays.last().copied().unwrap_or(Micros::MIN));
    let epoch = epoch(db)?;
    let mut counts = DueCounts::new(delays);
    let mut add = |row: &Row<'_>| {
        // A row that cannot be read becomes a dead letter when it is due.
        if let (Ok(topic), Ok(due)) = (row.get_ref(0)?.as_str(), row.get_ref(1)?.as_i64()) {
            counts.add(topic, due.saturating_sub(now));
        }
        Ok(())
    };
    let select = "select topic, due from timer_timeout where due <= ?1 and (due > ?2 or begun is null or begun < ?3)";
    let mut near = db.prepare_cached(&format!("{select} and slot is null and topic = ?4"))?;
    for topic in topics::all(db)? {
        near.query_map(params![last, now, epoch, topic], &mut add)?.collect::<Result<()>>()?;
    }
    let mut far = db.prepare_cached(&format!("{select} and slot <= ?1"))?;
    far.query_map([last, now, epoch], &mut add)?.collect::<Result<()>>()?;
    Ok(counts.finish())
}

pub(super) fn counts(db: &Connection) -> Result<Counts> {
    let count = |sql| db.query_row(sql, [], |row| row.get::<_, i64>(0));
    let mut counts = Counts::default();
    counts.pending = count("select count(*) from timer_timeout")?.unsigned_abs();
    counts.dead = count("select count(*) from timer_dead")?.unsigned_abs();
    Ok(counts)
}

/// Returns the ids of dead letters of a topic that died before a time.
pub(super) fn dead_before(db: &Connection, topic: &str, time: Micros, max: usize) -> Result<Vec<TimeoutId>> {
    let mut query = db.prepare_cached(
        "select id from timer_dead where topic = ?1 and died < ?2 and typeof(id) = 'blob' and length(id) = 16 limit ?3",
    )?;
    query.query_map(params![topic, time, max as i64], |row| row.get(0).map(id))?.collect()
}
