//! The SQL of the store.

use super::column::{Column, InsertColumn, OperationColumn};
use super::part::{Definition, LIVE, Names, PARTS, Part};
use super::pooler::MARK;
use tokio_postgres::types::Type;

/// A statement with the types of its parameters.
pub(super) struct Sql {
    pub(super) text: String,
    pub(super) types: Vec<Type>,
}

/// The fence, with which each statement that changes timeouts begins.
///
/// It is the share lock on the row of this instance. A take-over has to wait for it, so nothing of
/// an instance is executed after it was taken over. All parts of a batch are one statement with it,
/// so a client cannot stall between them.
const FENCE: &str = "
with fence as materialized (
    select timer.now() as now, pg_current_xact_id()::text::bigint as xid from timer.node where id = $1 and alive for share)";

/// A set of parts. PostgreSQL starts each part of a statement even if it changes no row, which
/// takes longer than the change of one row. So each set has its own statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct PartSet(u32);

impl PartSet {
    /// All parts, with the insert that expects a conflict. All sets with a rare part share one
    /// statement, so that a connection prepares at most 97 of them.
    pub(super) const ALL: Self = Self((1 << PARTS.len()) - 2);

    /// Adds a part if it has rows.
    pub(super) fn add(&mut self, part: Part, is_used: bool) {
        self.0 |= u32::from(is_used) << part as u16;
    }

    /// Returns the parts in the order of the statement. Inserts follow the ends, because an end may
    /// create the next timeout of its key.
    pub(super) fn iter(self) -> impl Iterator<Item = Part> {
        let (inserts, others) = PARTS.split_at(Part::Moved as usize);
        others.iter().chain(inserts).map(|definition| definition.part).filter(move |part| self.has(*part))
    }

    pub(super) fn has(self, part: Part) -> bool {
        self.0 & 1 << part as u16 != 0
    }

    /// Returns the set of the statement that executes these parts.
    pub(super) fn widen(self) -> Self {
        if self.0 >= 1 << Part::CancelledYoung as u16 { Self::ALL } else { self }
    }
}

/// The columns of an answer behind the part, the due time and the ids, for a row without them.
const NULLS: &str = "null::uuid, null::int, null::int, null::smallint, null::text, null::text, null::bytea,
    null::bigint, null::bigint, null::bigint, null::text";

/// The statement of a batch, with the answers of its parts. A part has one row with the ids that it
/// has changed, or null if it has changed all of its rows. The begun attempts have a row each.
pub(super) fn write(parts: PartSet) -> Sql {
    let mut types = vec![Type::INT8, Type::INT8_ARRAY, Type::INT2];
    let mut text = FENCE.to_owned();
    let mut answers = format!("\nselect -1, now, null::uuid[], {NULLS} from fence");
    let mut announced: Vec<String> = Vec::new();
    let ended = [Part::Done, Part::DoneYoung, Part::Repeated].into_iter().filter(|part| parts.has(*part));
    let ended = ended.map(|part| format!(" or i.predecessor in (select e.id from {} e)", part.definition().name));
    let ended: String = ended.collect();
    for part in parts.iter() {
        let Definition { name, columns, text: query, .. } = part.definition();
        let names = Names { columns, first: types.len() + 1, ended: &ended };
        text.push_str(&format!(",\n{name} as ({})", query(&names)));
        answers.extend(answer(part, name, &names).map(|answer| format!("\nunion all {answer}")));
        announced.extend(announcement(part, name, &names));
        types.extend(columns.iter().map(|column| column.sql_type()));
    }
    text.push_str(&answers);
    if !announced.is_empty() {
        // The owners of the shards learn of rows that an instance without shards has written.
        text.push_str(&format!(
            "\nunion all select -2, null, null, null, null, null, null, pg_notify('timer', '')::text, null, null, null, null, null, null
             where ({}) and current_setting('timer_durable.notify', true) is distinct from 'off'",
            announced.join(" or ")
        ));
    }
    Sql { text, types }
}

/// Returns the query of a part's answer.
fn answer(part: Part, name: &str, names: &Names<'_>) -> Option<String> {
    let number = part as i32;
    match part {
        // It has inserted all rows if the fence has a row.
        Part::Created | Part::BuriedLetter => None,
        Part::Begun => Some(format!(
            "select {number}, due, null, id, attempt, forgiven, format, topic, key, payload, period, max_lateness, planned,
                traceparent from {name}"
        )),
        _ => {
            let ids = names.of(Column::Id);
            Some(format!(
                "select {number}, null, case when (select count(*) from {name}) < cardinality({ids})
                    then array(select id from {name}) end, {NULLS}"
            ))
        }
    }
}

/// Returns the condition under which a part has written rows for other owners, if it may do so.
fn announcement(part: Part, name: &str, names: &Names<'_>) -> Option<String> {
    match part {
        Part::Created => Some("$3 is null".to_owned()),
        Part::Inserted | Part::Moved | Part::Postponed | Part::BuriedRun => {
            Some(format!("$3 is null and exists (select from {name})"))
        }
        Part::Repeated => {
            let kinds = names.of(Column::Operation(OperationColumn::Kind));
            Some(format!("2 = any ({kinds}) or $3 is null and exists (select from {name})"))
        }
        _ => None,
    }
}

/// The statement of inserts that met another row.
pub(super) fn put() -> Sql {
    let text = "
with fence as materialized (select from timer.node where id = $1 and alive for share)
select i.n, p.answer, p.other, p.due
from fence, unnest($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) with ordinality
    as i(id, due, topic, format, payload, period, max_lateness, traceparent, key, until, if_pending, shard, cap, n),
    lateral timer.put(i.id, i.due, i.topic, i.key, i.if_pending, i.format, i.payload, i.period, i.max_lateness,
                      i.until, i.shard, $2, $1, i.cap, i.traceparent) p
union all select 0, null, null, null from fence
order by 1";
    let mut types = vec![Type::INT8, Type::BOOL];
    types.push(Type::UUID_ARRAY);
    types.extend(InsertColumn::ALL.map(InsertColumn::sql_type));
    types.extend([Type::TEXT_ARRAY, Type::INT2_ARRAY, Type::INT8_ARRAY]);
    Sql { text: text.to_owned(), types }
}

/// The ids of the timeouts that have a key. The lateral query is a search by the index for each
/// key.
pub(super) fn holders() -> Sql {
    let text = "
select k.n, h.id from unnest($1, $2) with ordinality as k(topic, key, n), lateral (
    select t.id from timer.timeout t where t.topic = k.topic and t.key = k.key and t.key is not null and t.ended is null
        and t.if_pending is null offset 0
) h";
    Sql { text: text.to_owned(), types: vec![Type::TEXT_ARRAY, Type::TEXT_ARRAY] }
}

/// The state of timeouts that a batch did not change.
pub(super) fn look() -> Sql {
    let text = format!(
        "select id, due, shard, begun, case when if_pending is null then queued else id end from timer.timeout t
         where id = any ($1) and {LIVE}"
    );
    Sql { text, types: vec![Type::UUID_ARRAY] }
}

/// The dead letters that a batch did not change, with the timeouts that have their keys.
pub(super) const TAKEN: (&str, &[Type]) = (
    "select t.id, (
         select o.id from timer.timeout o where o.topic = t.topic and o.key = t.key and o.key is not null and o.ended is null
             and o.if_pending is null
     ) from timer.timeout t where t.id = any ($1) and t.reason is not null",
    &[Type::UUID_ARRAY],
);

/// The dead letters of a topic that died before a time.
pub(super) const DEAD_BEFORE: (&str, &[Type]) = (
    "select t.id from timer.timeout t where t.reason is not null and t.topic = $1 and t.ended < $2 limit $3",
    &[Type::TEXT, Type::INT8, Type::INT8],
);

/// Cancels or moves a timeout beside whose attempt a call is queued.
pub(super) const CHANGE_QUEUED: (&str, &[Type]) = (
    "with fence as materialized (select from timer.node where id = $1 and alive for share)
     select case when $3::bigint is null then timer.cancel($2) else timer.move($2, $3) end from fence",
    &[Type::INT8, Type::UUID, Type::INT8],
);

/// Settles the queued calls whose attempts were deleted without firing the triggers of the table.
/// If a timeout has the key of such a call, its row gets the id of the call, and a trigger lets the
/// call take effect when no attempt of the timeout runs. Otherwise the call becomes the timeout of
/// its key.
pub(super) const SETTLE_ORPHANS: &str = "
with orphan as materialized (
    select q.id, h.id as holder from timer.timeout q left join lateral (
        select t.id, t.queued from timer.timeout t
        where t.topic = q.topic and t.key = q.key and t.key is not null and t.ended is null and t.if_pending is null offset 0
    ) h on true
    where q.if_pending is not null and h.queued is distinct from q.id
),
named as (update timer.timeout t set queued = o.id from orphan o where t.id = o.holder)
update timer.timeout t set begun = null, if_pending = null, foreign_xid = pg_current_xact_id()::text::bigint
from orphan o where t.id = o.id and o.holder is null and t.if_pending is not null";

/// The ids of timeouts and dead letters that other transactions have locked, or beside which a
/// queued call is locked. The locks that this statement takes end with it.
pub(super) fn locked() -> Sql {
    let text = "
with needed as materialized (
    select t.id, t.id as target from timer.timeout t where t.id = any ($1)
    union all
    select q.id, t.id from timer.timeout t, lateral (
        select c.id from timer.timeout c where c.id = t.queued offset 0
    ) q where t.id = any ($1)
),
free as materialized (
    select id from timer.timeout where id = any (array(select n.id from needed n)) for update skip locked
)
select n.target from needed n where n.id not in (select f.id from free f)";
    Sql { text: text.to_owned(), types: vec![Type::UUID_ARRAY] }
}

/// A page of a topic. The index has the shard behind the order, so the rows of shards before the
/// first one or behind the last one of this instance are skipped without a look at the table. Those
/// between them that have another owner have no epoch.
pub(super) fn load() -> Sql {
    let text = "
select t.due, t.id from timer.timeout t
where t.topic = $1 and t.ended is null and (t.due, t.id) >= ($2, $3) and (t.due, t.id) < ($4, $5)
    and t.shard >= $6 and t.shard <= $7
    and ($8)[t.shard + 1] is not null and (t.begun is null or t.begun < ($8)[t.shard + 1])
order by t.due, t.id limit $9";
    let mut types = vec![Type::TEXT, Type::INT8, Type::UUID, Type::INT8, Type::UUID];
    types.extend([Type::INT2, Type::INT2, Type::INT8_ARRAY, Type::INT8]);
    Sql { text: text.to_owned(), types }
}

/// The topics with timeouts, by one look into the index for each.
pub(super) const TOPICS: &str = "
    with recursive list(topic) as (
        (select t.topic from timer.timeout t where t.ended is null order by t.topic limit 1)
        union all
        select (
            select t.topic from timer.timeout t where t.ended is null and t.topic > l.topic order by t.topic limit 1
        ) from list l where l.topic is not null
    )
    select topic from list where topic is not null";

/// Renews the lease, and reads the mark of the session and a hash of the paused topics.
pub(super) fn renew() -> Sql {
    let text = format!(
        "select now, shards, epochs, suspects, next_lapse, nodes, taken, {MARK},
    (select hashtextextended(string_agg(topic, e'\\n' order by topic), 0) from timer.paused)
from timer.renew($1, $2, $3, $4, $5)"
    );
    let types = vec![Type::INT8, Type::INT8, Type::UUID_ARRAY, Type::BOOL, Type::INT8_ARRAY];
    Sql { text, types }
}
