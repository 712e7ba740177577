//! Reading timeouts back.
//!
//! A list by key follows the index of keys. A list by due time reads the first rows of each topic
//! by the index of due times.

use super::column::uuid;
use super::connection::PostgresConnection;
use super::query_error::QueryError;
use super::statements::TOPICS;
use super::write;
use timer_durable::store::{DueCounts, Micros, Position, StoredPending};
use timer_durable::transaction::Target;
use timer_durable::{Counts, DeadLetter, Filter, Pending, PendingRow, TimeoutId, TimeoutState, TopicDue};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// The columns of a row of `timer.timeout t`.
const COLUMNS: &str =
    "t.id, t.due, t.topic, t.key, t.attempt, t.period, t.planned is not null and t.attempt > t.forgiven,
    case when {RUNS} and t.if_pending is null then coalesce(t.started, t.due) end, t.if_pending is not null";

/// The condition of an attempt that runs, and of a queued call. One of an earlier owner of the
/// shard is pending again.
const RUNS: &str = "t.begun >= (select s.epoch from timer.shard s where s.shard = t.shard)";

/// The end of a query, with its parameters.
struct Tail {
    sql: String,
    types: Vec<Type>,
    values: Vec<Box<dyn ToSql + Sync>>,
}

impl Tail {
    fn new() -> Self {
        Self { sql: "t.ended is null".to_owned(), types: Vec::new(), values: Vec::new() }
    }

    /// Adds a parameter and returns its name.
    fn bind(&mut self, kind: Type, value: impl ToSql + Sync + 'static) -> String {
        self.types.push(kind);
        self.values.push(Box::new(value));
        format!("${}", self.types.len())
    }

    /// Adds a condition, in which `?` is a parameter.
    fn and(&mut self, condition: &str, kind: Type, value: impl ToSql + Sync + 'static) {
        let name = self.bind(kind, value);
        self.sql = format!("{} and {}", self.sql, condition.replace('?', &name));
    }

    fn run(self, connection: &mut PostgresConnection, sql: &str) -> Result<Vec<Row>, QueryError> {
        let sql = sql.replace("{COLUMNS}", COLUMNS).replace("{TAIL}", &self.sql).replace("{RUNS}", RUNS);
        let values: Vec<&(dyn ToSql + Sync)> = self.values.iter().map(|value| &**value).collect();
        connection.run(&sql, &self.types, &values)
    }
}

fn pending<P>(row: &Row, payload: P) -> Pending<P> {
    let running_since: Option<i64> = row.get(7);
    let state = match (running_since, row.get(6)) {
        _ if row.get(8) => TimeoutState::Queued,
        (Some(_), _) => TimeoutState::Running,
        (None, true) => TimeoutState::Retrying,
        (None, false) => TimeoutState::Pending,
    };
    let mut pending = Pending::new(write::id(row, 0), row.get(1), row.get::<_, String>(2), payload);
    pending.key = row.get(3);
    pending.attempt = row.get::<_, i32>(4).unsigned_abs();
    pending.period = row.get(5);
    pending.state = state;
    pending.running_since = running_since;
    pending
}

pub(super) fn get(connection: &mut PostgresConnection, target: &Target) -> Result<Option<StoredPending>, QueryError> {
    let mut tail = Tail::new();
    match target {
        Target::Id(id) => tail.and("t.id = ?", Type::UUID, uuid(*id)),
        // PostgreSQL refuses to compare such a text, and no timeout has it.
        Target::Key { topic, key } if topic.contains('\0') || key.contains('\0') => return Ok(None),
        Target::Key { topic, key } => {
            tail.and("t.topic = ?", Type::TEXT, topic.clone());
            tail.and("t.if_pending is null and t.key = ?", Type::TEXT, key.clone());
        }
    }
    let rows = tail.run(connection, "select {COLUMNS}, t.format, t.payload from timer.timeout t where {TAIL}")?;
    Ok(rows.first().map(|row| pending(row, (row.get(9), row.get(10)))))
}

/// Returns the conditions of a filter, except for those of its order.
fn tail(filter: &Filter) -> Tail {
    let mut tail = Tail::new();
    tail.and("t.due < ?", Type::INT8, filter.due.end);
    if let Some(topic) = &filter.topic {
        tail.and("t.topic = ?", Type::TEXT, topic.clone());
    }
    const RETRIES: &str = "t.planned is not null and t.attempt > t.forgiven";
    tail.sql += &match filter.state {
        // An attempt begins when it is due, so the rest of the list need not be read.
        Some(TimeoutState::Running) => {
            " and {RUNS} and t.if_pending is null and t.due <= (select timer.now())".to_owned()
        }
        Some(TimeoutState::Queued) => " and t.if_pending is not null".to_owned(),
        Some(TimeoutState::Retrying) => format!(" and {RETRIES} and ({{RUNS}}) is not true"),
        Some(TimeoutState::Pending) => format!(" and not ({RETRIES}) and ({{RUNS}}) is not true"),
        None => String::new(),
    };
    tail
}

pub(super) fn list(
    connection: &mut PostgresConnection,
    filter: &Filter,
    after: Option<&PendingRow>,
    limit: usize,
) -> Result<Vec<PendingRow>, QueryError> {
    let has_nul = |text: &Option<String>| text.as_ref().is_some_and(|text| text.contains('\0'));
    if has_nul(&filter.topic) || has_nul(&filter.key_prefix) {
        return Ok(Vec::new());
    }
    let Some((first, end)) = filter.keys() else { return list_by_due(connection, filter, after, limit) };
    let mut tail = tail(filter);
    tail.and("t.key is not null and t.key >= ?", Type::TEXT, first.to_owned());
    tail.and("t.due >= ?", Type::INT8, filter.due.start);
    if let Some(end) = end {
        tail.and("t.key < ?", Type::TEXT, end);
    }
    if let Some((last, Some(key))) = after.map(|row| (row, row.key.clone())) {
        // A queued call is behind the timeout that has its key.
        let key = tail.bind(Type::TEXT, key);
        let is_queued = tail.bind(Type::BOOL, last.state == TimeoutState::Queued);
        tail.sql += &format!(" and (t.key, t.if_pending is not null) > ({key}, {is_queued})");
    }
    let limit = tail.bind(Type::INT8, i64::try_from(limit).unwrap_or(i64::MAX));
    let sql = "select {COLUMNS} from timer.timeout t where {TAIL} order by t.key, t.if_pending is not null limit ";
    Ok(tail.run(connection, &format!("{sql}{limit}"))?.iter().map(|row| pending(row, ())).collect())
}

/// Reads a page of the first rows of each topic.
fn list_by_due(
    connection: &mut PostgresConnection,
    filter: &Filter,
    after: Option<&PendingRow>,
    limit: usize,
) -> Result<Vec<PendingRow>, QueryError> {
    let sql = "
select {COLUMNS} from (
    select r.due, r.id from ({TOPICS}) k, lateral (
        select t.due, t.id from timer.timeout t where t.topic = k.topic and {TAIL} order by t.due, t.id limit {LIMIT}
    ) r order by due, id limit {LIMIT}
) page, lateral (select * from timer.timeout t where t.id = page.id offset 0) t order by page.due, page.id";
    let from = after.map_or(Position::at(filter.due.start), |row| row.position().next());
    let mut tail = tail(filter);
    let due = tail.bind(Type::INT8, from.due);
    let id = tail.bind(Type::UUID, uuid(from.id));
    tail.sql += &format!(" and (t.due, t.id) >= ({due}, {id})");
    let topics = match &filter.topic {
        Some(topic) => format!("select {} as topic", tail.bind(Type::TEXT, topic.clone())),
        None => TOPICS.to_owned(),
    };
    let limit = tail.bind(Type::INT8, i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = tail.run(connection, &sql.replace("{LIMIT}", &limit).replace("{TOPICS}", &topics))?;
    Ok(rows.iter().map(|row| pending(row, ())).collect())
}

pub(super) fn dead_letters(
    connection: &mut PostgresConnection,
    topic: Option<&str>,
    after: Option<TimeoutId>,
    max: usize,
) -> Result<Vec<DeadLetter>, QueryError> {
    let sql = "select id, due, topic, key, attempt, format, payload, reason, ended from timer.timeout
        where reason is not null and ($1::text is null or topic = $1) and ($2::uuid is null or id > $2)
        order by id limit $3";
    let types = [Type::TEXT, Type::UUID, Type::INT8];
    let after = after.map(uuid);
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    Ok(connection.run(sql, &types, &[&topic, &after, &max])?.iter().map(letter).collect())
}

fn letter(row: &Row) -> DeadLetter {
    let topic: String = row.get(2);
    let reason: String = row.get(7);
    let mut letter = DeadLetter::new(write::id(row, 0), row.get(1), topic, reason);
    letter.key = row.get(3);
    letter.attempt = row.get::<_, i32>(4).unsigned_abs();
    letter.format = row.get(5);
    letter.payload = row.get(6);
    letter.died = row.get(8);
    letter
}

/// Counts the timeouts of each topic that are due within each of `delays`. The index of due times
/// finds them for each topic. Only a row that is due may run, so the rows of others are not read
/// for that.
pub(super) fn due_within(connection: &mut PostgresConnection, delays: &[Micros]) -> Result<Vec<TopicDue>, QueryError> {
    let Some(last) = delays.last() else { return Ok(Vec::new()) };
    let mut tail = Tail::new();
    let (last, steps) =
        (tail.bind(Type::INT8, (*last).min(Micros::MAX / 2)), tail.bind(Type::INT8_ARRAY, delays.to_vec()));
    // Each topic counts its timeouts, because the server would sort them all.
    let sql = format!(
        "with clock as materialized (select timer.now() as now)
         select k.topic, c.step, c.count from clock, ({TOPICS}) k, lateral (
             select 0 as step, count(*) from timer.timeout t
             where t.topic = k.topic and t.due <= clock.now and {{TAIL}} and ({{RUNS}}) is not true
             having count(*) > 0
             union all select width_bucket(t.due - clock.now - 1, {steps}), count(*) from timer.timeout t
             where t.topic = k.topic and t.due > clock.now and t.due <= clock.now + {last} and {{TAIL}}
             group by 1
         ) c"
    );
    let mut counts = DueCounts::new(delays);
    for row in tail.run(connection, &sql)? {
        let step = row.get::<_, i32>(1);
        let count = row.get::<_, i64>(2);
        counts.add_step(row.get(0), step.unsigned_abs() as usize, count.unsigned_abs());
    }
    Ok(counts.finish())
}

pub(super) fn counts(connection: &mut PostgresConnection) -> Result<Counts, QueryError> {
    let sql =
        "select count(*) filter (where ended is null), count(*) filter (where reason is not null) from timer.timeout";
    let row = connection.ask(sql)?;
    let count = |column| row.get::<_, i64>(column).unsigned_abs();
    let mut counts = Counts::default();
    counts.pending = count(0);
    counts.dead = count(1);
    Ok(counts)
}
