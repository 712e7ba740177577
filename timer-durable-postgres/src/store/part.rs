//! The parts of a batch, each with its SQL.

use super::column::Column::{self, Id, Insert, Operation, Predecessor, Shard, Until};
use super::column::InsertColumn;
use super::column::OperationColumn::{Attempt, Due, Format, Kind, Letter, Payload, Reason, WithoutKey};

/// Neither a tombstone nor a dead letter. Written as `ended is null`, it would allow a plan that
/// reads the whole index of due times and compares each id.
pub(super) const LIVE: &str = "coalesce(t.ended, 0) = 0";

/// An instance that writes a due time moves the row into one of its own shards. An instance without
/// shards marks the row for the owner instead.
const SHARD_OF_WRITER: &str = "foreign_xid = case when $3 is null then (select xid from fence) end,
        shard = case when ($2)[t.shard + 1] is null then coalesce($3, t.shard) else t.shard end";

/// A part of a batch.
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

/// The query of a part.
pub(super) struct Definition {
    pub(super) part: Part,
    /// Its name in the statement.
    pub(super) name: &'static str,
    pub(super) columns: &'static [Column],
    pub(super) text: fn(&Names<'_>) -> String,
}

/// The names of a part's parameters in a statement, such as `$4`.
pub(super) struct Names<'s> {
    pub(super) columns: &'static [Column],
    /// The number of the first one.
    pub(super) first: usize,
    /// The condition that a predecessor of an insert has ended in the same statement, or nothing.
    pub(super) ended: &'s str,
}

impl Names<'_> {
    pub(super) fn of(&self, column: Column) -> String {
        let place = self.columns.iter().take_while(|own| **own != column).count();
        format!("${}", self.first + place)
    }

    /// Returns the names of all arrays.
    fn arrays(&self) -> String {
        let arrays = self.columns.iter().filter(|column| **column != Shard);
        arrays.map(|column| self.of(*column)).collect::<Vec<_>>().join(", ")
    }

    /// Returns the value for the row `t`.
    ///
    /// The ids of each part are sorted, so that `width_bucket` finds the values of a row by a
    /// binary search, and the plan is a search by `id` whatever the statistics say. A join with
    /// `unnest` can be planned the other way round.
    fn value(&self, column: Column) -> String {
        format!("({})[width_bucket(t.id, {})]", self.of(column), self.of(Id))
    }

    /// Returns the condition that the row `t` is a timeout of the part that does not run.
    fn is_pending(&self) -> String {
        format!("t.id = any ({}) and t.begun is null and {LIVE} and exists (select from fence)", self.of(Id))
    }

    /// Returns the condition that the row `t` is a timeout of the part whose attempt runs.
    fn is_running(&self) -> String {
        let attempt = self.value(Operation(Attempt));
        let ids = self.of(Id);
        format!(
            "t.id = any ({ids}) and t.attempt = {attempt} and t.begun is not null and {LIVE}
        and exists (select from fence)"
        )
    }

    /// Returns the condition that the row `t` is a dead letter of the part.
    fn is_dead(&self) -> String {
        format!("t.id = any ({}) and t.reason is not null and exists (select from fence)", self.of(Id))
    }
}

/// The columns of inserts. Those without a key have the first nine.
const INSERTED: [Column; 12] = [
    Shard,
    Id,
    Insert(InsertColumn::Due),
    Insert(InsertColumn::Topic),
    Insert(InsertColumn::Format),
    Insert(InsertColumn::Payload),
    Insert(InsertColumn::Period),
    Insert(InsertColumn::MaxLateness),
    Insert(InsertColumn::Traceparent),
    Insert(InsertColumn::Key),
    Insert(InsertColumn::Until),
    Predecessor,
];

/// All parts, in the order of [`Part`].
///
/// No id may occur twice, because a statement sees each row as it was before and changes it once.
pub(super) static PARTS: [Definition; 16] = [
    // Rows without a key whose ids this instance has made. Nothing is there to conflict with, and
    // a statement that expects a conflict looks for it before each row.
    Definition {
        part: Part::Created,
        name: "created",
        columns: INSERTED.split_at(9).0,
        text: |names| {
            let shard = names.of(Shard);
            let arrays = names.arrays();
            format!(
                "
    insert into timer.timeout(id, shard, foreign_xid, due, topic, format, payload, period, max_lateness, traceparent)
    select i.id, {shard}, case when $3 is null then fence.xid end, i.due, i.topic, i.format, i.payload, i.period,
        i.max_lateness, i.traceparent
    from fence, unnest({arrays}) as i(id, due, topic, format, payload, period, max_lateness, traceparent)"
            )
        },
    },
    // A call does not take the key of a timeout that ends in this statement, because the call that
    // is queued beside it comes first.
    Definition {
        part: Part::Inserted,
        name: "inserted",
        columns: &INSERTED,
        text: |names| {
            let shard = names.of(Shard);
            let arrays = names.arrays();
            let ended = names.ended;
            format!(
                "
    insert into timer.timeout(id, shard, foreign_xid, due, topic, format, payload, period, max_lateness, key, traceparent)
    select i.id, {shard}, case when $3 is null then fence.xid end, i.due, i.topic, i.format, i.payload, i.period,
        i.max_lateness, i.key, i.traceparent
    from fence, unnest({arrays})
        as i(id, due, topic, format, payload, period, max_lateness, traceparent, key, until, predecessor)
    where (i.until is null or i.until > fence.now or i.predecessor is not null) and (i.predecessor is null{ended})
        and (i.key is null or i.predecessor is not null or not exists (
            select from timer.timeout t where t.topic = i.topic and t.key = i.key and t.key is not null and t.ended is null offset 0
        ))
    on conflict do nothing returning id"
            )
        },
    },
    Definition {
        part: Part::Moved,
        name: "moved",
        columns: &[Id, Operation(Due)],
        text: |names| {
            let due = names.value(Operation(Due));
            let is_pending = names.is_pending();
            format!(
                "
    update timer.timeout t set due = {due}, {SHARD_OF_WRITER}, planned = null
    where {is_pending} returning t.id"
            )
        },
    },
    Definition {
        part: Part::Cancelled,
        name: "cancelled",
        columns: &[Id],
        text: |names| format!("delete from timer.timeout t where {} returning t.id", names.is_pending()),
    },
    Definition {
        part: Part::Done,
        name: "done",
        columns: &[Id, Operation(Attempt)],
        text: |names| format!("delete from timer.timeout t where {} returning t.id", names.is_running()),
    },
    Definition {
        part: Part::Repeated,
        name: "repeated",
        columns: &[Id, Operation(Attempt), Operation(Due), Operation(Kind)],
        text: |names| {
            let due = names.value(Operation(Due));
            let kind = names.value(Operation(Kind));
            let is_running = names.is_running();
            format!(
                "
    update timer.timeout t set due = {due}, begun = null,
        foreign_xid = case when $3 is null or {kind} = 2 then (select xid from fence) end,
        shard = case
            when {kind} = 2 then floor(random() * 64)::smallint
            when ($2)[t.shard + 1] is null then coalesce($3, t.shard)
            else t.shard
        end,
        forgiven = case {kind}
            when 1 then t.attempt when 2 then t.forgiven + 1 when 3 then t.attempt else t.forgiven
        end,
        planned = case when {kind} = 1 or {kind} = 3 and t.period is null then null else coalesce(t.planned, t.due) end
    where {is_running} returning t.id"
            )
        },
    },
    // Beside the attempt of an earlier owner, a call may be queued. It has its effect now, and its
    // row is collected as one that another program has written. A planned time behind the due time
    // is a cap, which ends with the attempt.
    Definition {
        part: Part::Begun,
        name: "begun",
        columns: &[Id],
        text: |names| {
            let ids = names.of(Id);
            format!(
                "
    update timer.timeout t set attempt = t.attempt + (t.queued is null)::int, started = (select now from fence),
        begun = case when t.queued is null then ($2)[t.shard + 1] end,
        planned = case when t.planned < t.due then t.planned end,
        foreign_xid = case when t.queued is not null then (select xid from fence) end
    where t.id = any ({ids}) and t.due <= (select now from fence) and {LIVE}
        and (t.begun is null or t.begun < ($2)[t.shard + 1]) and ($2)[t.shard + 1] is not null
    returning t.id, case when t.queued is null then t.attempt else 0 end as attempt, t.due, t.forgiven, t.format, t.topic,
        t.key, t.payload, t.period, t.max_lateness,
        coalesce(t.planned, t.due) as planned, t.traceparent"
            )
        },
    },
    Definition {
        part: Part::CancelledYoung,
        name: "cancelled_young",
        columns: &[Id, Until],
        text: |names| {
            let until = names.value(Until);
            let is_pending = names.is_pending();
            format!(
                "
    update timer.timeout t set ended = {until}, key = null, payload = '', foreign_xid = null
    where {is_pending} returning t.id"
            )
        },
    },
    Definition {
        part: Part::DoneYoung,
        name: "done_young",
        columns: &[Id, Operation(Attempt), Until],
        text: |names| {
            let until = names.value(Until);
            let is_running = names.is_running();
            format!(
                "
    update timer.timeout t set ended = {until}, key = null, payload = '', foreign_xid = null
    where {is_running} returning t.id"
            )
        },
    },
    // With a new payload.
    Definition {
        part: Part::Postponed,
        name: "postponed",
        columns: &[Id, Operation(Attempt), Operation(Due), Operation(Format), Operation(Payload)],
        text: |names| {
            let due = names.value(Operation(Due));
            let format = names.value(Operation(Format));
            let payload = names.value(Operation(Payload));
            let is_running = names.is_running();
            format!(
                "
    update timer.timeout t set due = {due}, begun = null, {SHARD_OF_WRITER}, forgiven = t.attempt,
        planned = case when t.period is not null then coalesce(t.planned, t.due) end, format = {format}, payload = {payload}
    where {is_running} returning t.id"
            )
        },
    },
    Definition {
        part: Part::Buried,
        name: "buried",
        columns: &[Id, Operation(Attempt), Operation(Reason)],
        text: |names| {
            let reason = names.value(Operation(Reason));
            let is_running = names.is_running();
            format!(
                "
    update timer.timeout t set ended = (select now from fence), reason = {reason}, foreign_xid = null
    where {is_running} returning t.id"
            )
        },
    },
    // A periodic timeout goes on, and its last run becomes a dead letter. `o` is the row before the
    // update.
    Definition {
        part: Part::BuriedRun,
        name: "buried_run",
        columns: &[Id, Operation(Attempt), Operation(Due), Operation(Letter), Operation(Reason)],
        text: |names| {
            let due = names.value(Operation(Due));
            let letter = names.value(Operation(Letter));
            let reason = names.value(Operation(Reason));
            let is_running = names.is_running();
            format!(
                "
    update timer.timeout t set due = {due}, begun = null, {SHARD_OF_WRITER}, forgiven = t.attempt, planned = null
    from timer.timeout o where o.id = t.id and {is_running}
    returning t.id, t.shard, t.attempt, t.format, t.topic, t.key, t.payload, o.due, {letter} as letter, {reason} as reason"
            )
        },
    },
    Definition {
        part: Part::BuriedLetter,
        name: "buried_letter",
        columns: &[],
        text: |_| {
            "
    insert into timer.timeout(id, due, attempt, shard, format, topic, key, payload, ended, reason)
    select r.letter, r.due, r.attempt, r.shard, r.format, r.topic, r.key, r.payload, (select now from fence), r.reason
    from buried_run r"
                .to_owned()
        },
    },
    // Of several letters with the same key, one is requeued.
    Definition {
        part: Part::Requeued,
        name: "requeued",
        columns: &[Id, Operation(Due), Operation(WithoutKey)],
        text: |names| {
            let due = names.value(Operation(Due));
            let without_key = names.value(Operation(WithoutKey));
            let ids = names.of(Id);
            let is_dead = names.is_dead();
            format!(
                "
    update timer.timeout t set ended = null, reason = null, begun = null, forgiven = t.attempt, {SHARD_OF_WRITER},
        planned = null, traceparent = null, due = {due}, period = null, max_lateness = null,
        key = case when not {without_key} then t.key end
    where {is_dead} and ({without_key} or t.key is null or t.id in (
        select distinct on (f.topic, f.key) f.id from timer.timeout f
        where f.id = any ({ids}) and f.reason is not null order by f.topic, f.key, f.id
    ) and not exists (
        select from timer.timeout o where o.topic = t.topic and o.key = t.key and o.ended is null and o.if_pending is null
    )) returning t.id"
            )
        },
    },
    Definition {
        part: Part::Purged,
        name: "purged",
        columns: &[Id],
        text: |names| format!("delete from timer.timeout t where {} returning t.id", names.is_dead()),
    },
    Definition {
        part: Part::PurgedYoung,
        name: "purged_young",
        columns: &[Id, Until],
        text: |names| {
            let until = names.value(Until);
            let is_dead = names.is_dead();
            format!(
                "
    update timer.timeout t set ended = {until}, reason = null, key = null, payload = ''
    where {is_dead} returning t.id"
            )
        },
    },
];

impl Part {
    pub(super) fn definition(self) -> &'static Definition {
        &PARTS[self as usize]
    }

    pub(super) fn is_insert(self) -> bool {
        matches!(self, Self::Created | Self::Inserted)
    }

    /// Returns the part of a row of the answer. The rows of the fence and the notification belong
    /// to none.
    pub(super) fn of_row(number: i32) -> Option<Self> {
        PARTS.get(usize::try_from(number).ok()?).map(|definition| definition.part)
    }
}
