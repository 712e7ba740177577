//! The parts of a batch, each with its SQL.

use tokio_postgres::types::Type;

/// A part of a batch. Its name in Rust is also that of its query in the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Created,
    Inserted,
    Moved,
    Cancelled,
    Done,
    Repeated,
    Begun,
    // The parts that are rare: tombstones, dead letters and their ends.
    CancelledYoung,
    DoneYoung,
    Postponed,
    Buried,
    BuriedRun,
    BuriedLetter,
    Requeued,
    Purged,
    PurgedYoung,
}

/// The statement of a part. `{1}` is the first of its own parameters.
pub(super) struct Definition {
    pub(super) part: Part,
    pub(super) types: &'static [Type],
    pub(super) text: &'static str,
}

/// The types of the columns of inserts: shard, id, due, topic, format, payload, period,
/// max_lateness, traceparent, key, until, and predecessor. New inserts have the first nine.
pub(super) static INSERT_TYPES: [Type; 12] = [
    Type::INT2,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::INT2_ARRAY,
    Type::BYTEA_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::INT8_ARRAY,
    Type::UUID_ARRAY,
];

/// All parts, in the order of [`Part`].
///
/// No id may occur twice, because a statement sees each row as it was before and changes it once.
/// The ids of each part are sorted, so that `width_bucket` finds the values of a row by a binary
/// search, and the plan is a search by `id` whatever the statistics say. A join with `unnest` can
/// be planned the other way round.
pub(super) static PARTS: [Definition; 16] = [
    // Rows without a key whose ids this instance has made. Nothing is there to conflict with, and
    // a statement that expects a conflict looks for it before each row.
    Definition {
        part: Part::Created,
        types: INSERT_TYPES.split_at(9).0,
        text: "
    insert into timer.timeout(id, shard, foreign_xid, due, topic, format, payload, period, max_lateness, traceparent)
    select i.id, {1}, case when $3 is null then fence.xid end, i.due, i.topic, i.format, i.payload, i.period,
        i.max_lateness, i.traceparent
    from fence, unnest({2}, {3}, {4}, {5}, {6}, {7}, {8}, {9})
        as i(id, due, topic, format, payload, period, max_lateness, traceparent)",
    },
    Definition {
        part: Part::Inserted,
        types: &INSERT_TYPES,
        text: "
    insert into timer.timeout(id, shard, foreign_xid, due, topic, format, payload, period, max_lateness, key, traceparent)
    select i.id, {1}, case when $3 is null then fence.xid end, i.due, i.topic, i.format, i.payload, i.period,
        i.max_lateness, i.key, i.traceparent
    from fence, unnest({2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12})
        as i(id, due, topic, format, payload, period, max_lateness, traceparent, key, until, predecessor)
    where (i.until is null or i.until > fence.now or i.predecessor is not null) and (i.predecessor is null{ENDED})
    on conflict do nothing returning id",
    },
    Definition {
        part: Part::Moved,
        types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
        text: "
    update timer.timeout t set due = ({2})[width_bucket(t.id, {1})], {SHARD_OF_WRITER}, planned = null, shelved = false
    where t.id = any ({1}) and t.begun is null and {LIVE} and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::Cancelled,
        types: &[Type::UUID_ARRAY],
        text: "
    delete from timer.timeout t
    where t.id = any ({1}) and t.begun is null and {LIVE} and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::Done,
        types: &[Type::UUID_ARRAY, Type::INT4_ARRAY],
        text: "
    delete from timer.timeout t
    where t.id = any ({1}) and t.attempt = ({2})[width_bucket(t.id, {1})] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::Repeated,
        types: &[Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY, Type::INT2_ARRAY],
        text: "
    update timer.timeout t set due = ({3})[width_bucket(t.id, {1})], begun = null,
        foreign_xid = case when $3 is null or ({4})[width_bucket(t.id, {1})] = 2 then (select xid from fence) end,
        shard = case
            when ({4})[width_bucket(t.id, {1})] = 2 then floor(random() * 64)::smallint
            when ($2)[t.shard + 1] is null then coalesce($3, t.shard)
            else t.shard
        end,
        forgiven = case ({4})[width_bucket(t.id, {1})]
            when 1 then t.attempt when 2 then t.forgiven + 1 when 3 then t.attempt else t.forgiven
        end,
        planned = case
            when ({4})[width_bucket(t.id, {1})] = 1 or ({4})[width_bucket(t.id, {1})] = 3 and t.period is null then null
            else coalesce(t.planned, t.due)
        end
    where t.id = any ({1}) and t.attempt = ({2})[width_bucket(t.id, {1})] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::Begun,
        types: &[Type::UUID_ARRAY, Type::TEXT_ARRAY],
        text: "
    update timer.timeout t set
        attempt = case when t.shelved or t.topic <> all ({2}) then t.attempt + 1 else t.attempt end,
        begun = case when t.shelved or t.topic <> all ({2}) then ($2)[t.shard + 1] else t.begun end,
        shelved = not t.shelved and t.topic = any ({2}), foreign_xid = null,
        started = (select now from fence)
    where t.id = any ({1}) and t.due <= (select now from fence) and {LIVE}
        and (t.begun is null or t.begun < ($2)[t.shard + 1]) and ($2)[t.shard + 1] is not null
    returning t.id, case when not t.shelved then t.attempt end as attempt, t.due, t.forgiven, t.format, t.topic, t.key,
        case when t.shelved then '' else t.payload end as payload, t.period, t.max_lateness,
        coalesce(t.planned, t.due) as planned, t.traceparent",
    },
    Definition {
        part: Part::CancelledYoung,
        types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
        text: "
    update timer.timeout t set ended = ({2})[width_bucket(t.id, {1})], key = null, payload = '', foreign_xid = null
    where t.id = any ({1}) and t.begun is null and {LIVE} and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::DoneYoung,
        types: &[Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY],
        text: "
    update timer.timeout t set ended = ({3})[width_bucket(t.id, {1})], key = null, payload = '', foreign_xid = null
    where t.id = any ({1}) and t.attempt = ({2})[width_bucket(t.id, {1})] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    },
    // With a new payload.
    Definition {
        part: Part::Postponed,
        types: &[Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY, Type::INT2_ARRAY, Type::BYTEA_ARRAY],
        text: "
    update timer.timeout t set due = ({3})[width_bucket(t.id, {1})], begun = null, {SHARD_OF_WRITER},
        forgiven = t.attempt, planned = case when t.period is not null then coalesce(t.planned, t.due) end,
        format = ({4})[width_bucket(t.id, {1})], payload = ({5})[width_bucket(t.id, {1})]
    where t.id = any ({1}) and t.attempt = ({2})[width_bucket(t.id, {1})] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::Buried,
        types: &[Type::UUID_ARRAY, Type::INT4_ARRAY, Type::TEXT_ARRAY],
        text: "
    update timer.timeout t set ended = (select now from fence), reason = ({3})[width_bucket(t.id, {1})], foreign_xid = null
    where t.id = any ({1}) and t.attempt = ({2})[width_bucket(t.id, {1})] and t.begun is not null and {LIVE}
        and exists (select from fence)
    returning t.id",
    },
    // A periodic timeout goes on, and its last run becomes a dead letter. `o` is the row before the
    // update.
    Definition {
        part: Part::BuriedRun,
        types: &[Type::UUID_ARRAY, Type::INT4_ARRAY, Type::INT8_ARRAY, Type::UUID_ARRAY, Type::TEXT_ARRAY],
        text: "
    update timer.timeout t set due = ({3})[width_bucket(t.id, {1})], begun = null, {SHARD_OF_WRITER},
        forgiven = t.attempt, planned = null
    from timer.timeout o
    where t.id = any ({1}) and o.id = t.id and t.attempt = ({2})[width_bucket(t.id, {1})] and t.begun is not null
        and {LIVE} and exists (select from fence)
    returning t.id, t.shard, t.attempt, t.format, t.topic, t.key, t.payload, o.due,
        ({4})[width_bucket(t.id, {1})] as letter, ({5})[width_bucket(t.id, {1})] as reason",
    },
    Definition {
        part: Part::BuriedLetter,
        types: &[],
        text: "
    insert into timer.timeout(id, due, attempt, shard, format, topic, key, payload, ended, reason)
    select r.letter, r.due, r.attempt, r.shard, r.format, r.topic, r.key, r.payload, (select now from fence), r.reason
    from BuriedRun r",
    },
    Definition {
        part: Part::Requeued,
        types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
        text: "
    update timer.timeout t set ended = null, reason = null, begun = null, forgiven = t.attempt, {SHARD_OF_WRITER}, planned = null, traceparent = null,
        due = ({2})[width_bucket(t.id, {1})], period = null, max_lateness = null,
        key = case when exists (
            select from timer.timeout o where o.topic = t.topic and o.key = t.key and o.ended is null
        ) then null else t.key end
    where t.id = any ({1}) and t.reason is not null and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::Purged,
        types: &[Type::UUID_ARRAY],
        text: "
    delete from timer.timeout t
    where t.id = any ({1}) and t.reason is not null and exists (select from fence)
    returning t.id",
    },
    Definition {
        part: Part::PurgedYoung,
        types: &[Type::UUID_ARRAY, Type::INT8_ARRAY],
        text: "
    update timer.timeout t set ended = ({2})[width_bucket(t.id, {1})], reason = null, key = null, payload = ''
    where t.id = any ({1}) and t.reason is not null and exists (select from fence)
    returning t.id",
    },
];

impl Part {
    /// Returns the part of a row of the answer. The rows of the fence and the notification belong
    /// to none.
    pub(super) fn of_row(number: i32) -> Option<Self> {
        PARTS.get(usize::try_from(number).ok()?).map(|definition| definition.part)
    }
}
