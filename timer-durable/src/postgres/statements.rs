//! The SQL of the store.

use std::time::Duration;
use tokio_postgres::types::Type;

/// A statement with the types of its parameters.
pub(super) struct Sql {
    pub(super) text: String,
    pub(super) types: Vec<Type>,
}

impl Sql {
    /// Lets the fence limit the time that the statement waits for locks. It does so for a session
    /// without settings, as behind a pooler.
    pub(super) fn limit_locks(&mut self, limit: Duration) {
        let set = format!("set_config('lock_timeout', '{}', true)", limit.as_millis());
        let fences =
            [("(select timer.now() as now from timer.node", "timer.now() as now, "), ("(select from timer.node", "")];
        for (fence, columns) in fences {
            self.text = self.text.replacen(fence, &format!("(select {columns}{set} from timer.node"), 1);
        }
    }
}

/// The fence, with which each statement begins.
///
/// It is the share lock on the row of this instance. A take-over has to wait for it, so nothing of
/// an instance is executed after it was taken over. All parts of a batch are one statement with it,
/// so a client cannot stall between them.
const FENCE: &str = "
with fence as materialized (select timer.now() as now from timer.node where id = $1 and alive for share)";

/// A part of a batch: the kind of its rows in the answer, its name, and its statement.
type Part = (Kind, &'static str, &'static str);

/// The parts that occur all the time.
///
/// No id occurs twice, because a statement sees each row as it was before and changes it once. The
/// ids of each part are sorted, so that `width_bucket` finds the values of a row by a binary
/// search, and the plan is a search by `id` whatever the statistics say. A join with `unnest` can
/// be planned the other way round.
const COMMON: &[Part] = &[
    (
        Kind::Inserted,
        "inserted",
        "
    insert into timer.timeout(id, shard, is_foreign, due, topic, key, format, payload, period, max_lateness)
    select i.id, i.shard, $3 is null, i.due, i.topic, i.key, i.format, i.payload, i.period, i.max_lateness
    from fence, unnest($4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
        as i(id, shard, due, topic, key, format, payload, period, max_lateness, until)
    where i.until is null or i.until > fence.now
    on conflict do nothing returning id",
    ),
    (
        Kind::Moved,
        "moved",
        "
    update timer.timeout t set due = ($15)[width_bucket(t.id, $14)], {MINE}
    where t.id = any ($14) and t.begun is null and {LIVE} and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Cancelled,
        "cancelled",
        "
    delete from timer.timeout t
    where t.id = any ($16) and t.begun is null and {LIVE} and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Done,
        "done",
        "
    delete from timer.timeout t
    where t.id = any ($17) and t.attempt = ($18)[width_bucket(t.id, $17)] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Repeated,
        "repeated",
        "
    update timer.timeout t set due = ($21)[width_bucket(t.id, $19)], begun = null,
        is_foreign = $3 is null or ($22)[width_bucket(t.id, $19)] = 2,
        shard = case
            when ($22)[width_bucket(t.id, $19)] = 2 then floor(random() * 64)::smallint
            when ($2)[t.shard + 1] is null then coalesce($3, t.shard)
            else t.shard
        end,
        forgiven = case when ($22)[width_bucket(t.id, $19)] > 0 then t.attempt else t.forgiven end
    where t.id = any ($19) and t.attempt = ($20)[width_bucket(t.id, $19)] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Begun,
        "begun",
        "
    update timer.timeout t set attempt = t.attempt + 1, begun = ($2)[t.shard + 1], is_foreign = false
    where t.id = any ($23) and t.due <= (select now from fence) and {LIVE}
        and (t.begun is null or t.begun < ($2)[t.shard + 1]) and ($2)[t.shard + 1] is not null
    returning t.id, t.attempt, t.due, t.forgiven, t.format, t.topic, t.key, t.payload, t.period, t.max_lateness",
    ),
];

/// The parts that are rare: tombstones, dead letters and their ends.
const RARE: &[Part] = &[
    (
        Kind::Cancelled,
        "cancelled_young",
        "
    update timer.timeout t set ended = ($25)[width_bucket(t.id, $24)], key = null, payload = '', is_foreign = false
    where t.id = any ($24) and t.begun is null and {LIVE} and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Done,
        "done_young",
        "
    update timer.timeout t set ended = ($28)[width_bucket(t.id, $26)], key = null, payload = '', is_foreign = false
    where t.id = any ($26) and t.attempt = ($27)[width_bucket(t.id, $26)] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Buried,
        "buried",
        "
    update timer.timeout t set ended = (select now from fence), reason = ($31)[width_bucket(t.id, $29)], is_foreign = false
    where t.id = any ($29) and t.attempt = ($30)[width_bucket(t.id, $29)] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Requeued,
        "requeued",
        "
    update timer.timeout t set ended = null, reason = null, begun = null, forgiven = t.attempt, {MINE},
        due = ($33)[width_bucket(t.id, $32)], period = null, max_lateness = null,
        key = case when exists (
            select from timer.timeout o where o.topic = t.topic and o.key = t.key and o.ended is null
        ) then null else t.key end
    where t.id = any ($32) and t.reason is not null and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Purged,
        "purged",
        "
    delete from timer.timeout t
    where t.id = any ($34) and t.reason is not null and exists (select from fence)
    returning t.id",
    ),
    (
        Kind::Purged,
        "purged_young",
        "
    update timer.timeout t set ended = ($36)[width_bucket(t.id, $35)], reason = null, key = null, payload = ''
    where t.id = any ($35) and t.reason is not null and exists (select from fence)
    returning t.id",
    ),
];

/// Neither a tombstone nor a dead letter. Written as `ended is null`, it would allow a plan that
/// reads the whole index of due times and compares each id.
const LIVE: &str = "coalesce(t.ended, 0) = 0";

/// Whoever writes a due time moves the row into a shard of its own, or marks it for the owner.
const MINE: &str = "is_foreign = $3 is null,
        shard = case when ($2)[t.shard + 1] is null then coalesce($3, t.shard) else t.shard end";

/// The part of a batch that a row of the answer belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Fence,
    Inserted,
    Moved,
    Cancelled,
    Done,
    Repeated,
    Buried,
    Requeued,
    Purged,
    Begun,
    Notified,
}

impl Kind {
    pub(super) const ALL: [Self; 11] = [
        Self::Fence,
        Self::Inserted,
        Self::Moved,
        Self::Cancelled,
        Self::Done,
        Self::Repeated,
        Self::Buried,
        Self::Requeued,
        Self::Purged,
        Self::Begun,
        Self::Notified,
    ];
}

/// The parts that a statement has. PostgreSQL starts each part of a statement even if it changes no
/// row, which takes longer than the change of one row. So batches of one part have statements of
/// their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// One of the common parts.
    Only(usize),
    /// All common parts.
    Common,
    All,
}

impl Scope {
    /// Returns all scopes, each at its [`index`](Self::index).
    pub(super) fn every() -> impl Iterator<Item = Self> {
        (0..COMMON.len()).map(Self::Only).chain([Self::Common, Self::All])
    }

    pub(super) fn index(self) -> usize {
        match self {
            Self::Only(part) => part,
            Self::Common => COMMON.len(),
            Self::All => COMMON.len() + 1,
        }
    }

    fn parts(self) -> impl Iterator<Item = &'static Part> {
        let (common, rare) = match self {
            Self::Only(part) => (&COMMON[part..=part], &RARE[..0]),
            Self::Common => (COMMON, &RARE[..0]),
            Self::All => (COMMON, RARE),
        };
        common.iter().chain(rare)
    }
}

/// The statement of a batch. A parameter has the same number in each scope.
pub(super) fn write(scope: Scope) -> Sql {
    let mut types = vec![Type::INT8, Type::INT8_ARRAY, Type::INT2];
    types.extend([Type::UUID_ARRAY, Type::INT2_ARRAY, Type::INT8_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY]);
    types.extend([Type::INT2_ARRAY, Type::BYTEA_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY]);
    types.extend([Type::UUID_ARRAY, Type::INT8_ARRAY]);
    types.push(Type::UUID_ARRAY);
    types.extend([Type::UUID_ARRAY, Type::INT4_ARRAY]);
    types.extend([Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY, Type::INT2_ARRAY]);
    types.push(Type::UUID_ARRAY);
    if scope == Scope::All {
        types.extend([Type::UUID_ARRAY, Type::INT8_ARRAY]);
        types.extend([Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY]);
        types.extend([Type::UUID_ARRAY, Type::INT4_ARRAY, Type::TEXT_ARRAY]);
        types.extend([Type::UUID_ARRAY, Type::INT8_ARRAY]);
        types.push(Type::UUID_ARRAY);
        types.extend([Type::UUID_ARRAY, Type::INT8_ARRAY]);
    }
    let mut text = FENCE.to_owned();
    let mut answer = format!(
        "
select {}::int, null::uuid, null::int, now, null::int, null::smallint, null::text, null::text, null::bytea, null::bigint, null::bigint from fence",
        Kind::Fence as i32
    );
    let columns = "null::int, null::bigint, null::int, null::smallint, null::text, null::text, null::bytea, null::bigint, null::bigint";
    let mut announced = Vec::new();
    for (kind, name, statement) in scope.parts() {
        text.push_str(&format!(",\n{name} as ({statement})"));
        answer.push_str(&match kind {
            Kind::Begun => format!("\nunion all select {}, * from {name}", *kind as i32),
            _ => format!("\nunion all select {}, id, {columns} from {name}", *kind as i32),
        });
        match kind {
            Kind::Inserted | Kind::Moved => announced.push(format!("$3 is null and exists (select from {name})")),
            Kind::Repeated => {
                announced.push(format!("2 = any ($22) or $3 is null and exists (select from {name})"));
            }
            _ => {}
        }
    }
    text.push_str(&answer);
    if !announced.is_empty() {
        // The owners of the shards learn of rows that an instance without shards has written.
        text.push_str(&format!(
            "\nunion all select {}, null, null::int, null::bigint, null::int, null::smallint, pg_notify('timer', '')::text, null, null, null, null
             where {}",
            Kind::Notified as i32,
            announced.join(" or ")
        ));
    }
    Sql { text: text.replace("{MINE}", MINE).replace("{LIVE}", LIVE), types }
}

/// The statement of inserts that met another row.
pub(super) fn put() -> Sql {
    let text = "
with fence as materialized (select from timer.node where id = $1 and alive for share)
select i.n, p.answer, p.other, p.due
from fence, unnest($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) with ordinality
    as i(id, due, topic, key, if_pending, format, payload, period, max_lateness, until, shard, n),
    lateral timer.put(i.id, i.due, i.topic, i.key, i.if_pending, i.format, i.payload, i.period, i.max_lateness,
                      i.until, i.shard, $2, $1) p
union all select 0, null, null, null from fence
order by 1";
    let mut types =
        vec![Type::INT8, Type::BOOL, Type::UUID_ARRAY, Type::INT8_ARRAY, Type::TEXT_ARRAY, Type::TEXT_ARRAY];
    types.extend([Type::TEXT_ARRAY, Type::INT2_ARRAY, Type::BYTEA_ARRAY, Type::INT8_ARRAY, Type::INT8_ARRAY]);
    types.extend([Type::INT8_ARRAY, Type::INT2_ARRAY]);
    Sql { text: text.to_owned(), types }
}

/// The ids of the timeouts that have a key. The lateral query is a search by the index for each
/// key.
pub(super) fn holders() -> Sql {
    let text = "
select k.n, h.id from unnest($1, $2) with ordinality as k(topic, key, n), lateral (
    select t.id from timer.timeout t where t.topic = k.topic and t.key = k.key and t.key is not null and t.ended is null offset 0
) h";
    Sql { text: text.to_owned(), types: vec![Type::TEXT_ARRAY, Type::TEXT_ARRAY] }
}

/// The state of timeouts that a batch did not change.
pub(super) fn look() -> Sql {
    let text = "select id, due, shard, begun from timer.timeout t where id = any ($1) and {LIVE}";
    Sql { text: text.replace("{LIVE}", LIVE), types: vec![Type::UUID_ARRAY] }
}

/// The ids of timeouts and dead letters that other transactions have locked. The locks that the
/// statement takes itself end with it.
pub(super) fn locked() -> Sql {
    let text = "
with free as materialized (select id from timer.timeout where id = any ($1) for update skip locked)
select t.id from timer.timeout t where t.id = any ($1) and t.id not in (select f.id from free f)";
    Sql { text: text.to_owned(), types: vec![Type::UUID_ARRAY] }
}

/// A page. Each shard's head is read by the index, because a plain search over many shards would
/// sort all that is pending.
pub(super) fn load() -> Sql {
    let text = "
select s.shard, r.due, r.id from unnest($1, $2) as s(shard, epoch), lateral (
    select t.due, t.id from timer.timeout t
    where t.shard = s.shard and t.ended is null and (t.due, t.id) >= ($3, $4) and (t.due, t.id) < ($5, $6)
        and (t.begun is null or t.begun < s.epoch)
    order by t.due, t.id limit $7
) r order by r.due, r.id";
    let types = vec![Type::INT2_ARRAY, Type::INT8_ARRAY, Type::INT8, Type::UUID, Type::INT8, Type::UUID, Type::INT8];
    Sql { text: text.to_owned(), types }
}

/// Collects the rows that others have written into the shards of this instance, and counts the
/// shards that nobody owns. A row that another transaction has locked stays, and the last row of the
/// answer says whether there is one.
pub(super) fn sweep() -> Sql {
    let text = "
with fence as materialized (select from timer.node where id = $1 and alive for share),
seen as materialized (
    select f.id from timer.timeout f where f.is_foreign and f.shard = any ($2) limit $3),
swept as (
    update timer.timeout t set is_foreign = false
    where t.id = any (array(
            select f.id from timer.timeout f where f.id = any (array(select id from seen)) for update skip locked
        )) and t.is_foreign and exists (select from fence)
    returning t.id, t.due)
select id, due from swept
union all select null, count(*) from timer.shard where owner is null and exists (select from fence)
union all select null, -1 where exists (select from seen s where s.id not in (select w.id from swept w))";
    Sql { text: text.to_owned(), types: vec![Type::INT8, Type::INT2_ARRAY, Type::INT8] }
}

/// Renews the lease.
pub(super) fn renew() -> Sql {
    let text = "select now, shards, epochs, suspects, next_lapse, nodes, taken from timer.renew($1, $2, $3, $4, $5)";
    let types = vec![Type::INT8, Type::INT8, Type::UUID_ARRAY, Type::BOOL, Type::INT8_ARRAY];
    Sql { text: text.to_owned(), types }
}
