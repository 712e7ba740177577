//! A look for rows that others have written, with its statement, the meaning of its answer, and
//! the transactions that the next one visits.

use super::statements::Sql;
use timer_durable::store::Position;
use tokio_postgres::types::Type;

/// Collects the rows that others have written into the shards of this instance. Its rows are pairs
/// of a kind and a number, with an id and a topic in those of [`COLLECTED`].
///
/// The look visits rows of the transactions from `$4` on, and of those in `$5`, which had not ended
/// at the last look. The answer has the same two facts of this look. A row that another transaction
/// has locked stays. With `is not null`, a plan of the update could read the whole index. A look
/// that finds nothing locks nothing, so it writes nothing.
pub(super) fn sweep() -> Sql {
    let text = "
with seen as materialized (
    select f.id, f.foreign_xid as xid from timer.timeout f where f.foreign_xid >= $4 and f.shard = any ($2)
    union all
    select f.id, f.foreign_xid from timer.timeout f
    where f.foreign_xid = any ($5) and f.shard = any ($2)
    limit $3),
fence as materialized (select from timer.node where id = $1 and alive and exists (select from seen) for share),
swept as (
    update timer.timeout t set foreign_xid = null
    where t.id = any (array(
            select f.id from timer.timeout f where f.id = any (array(select id from seen)) for update skip locked
        )) and coalesce(t.foreign_xid, 0) > 0 and exists (select from fence)
    returning t.id, t.due, t.topic)
select 0, id, due, topic from swept
union all select 1, null, xid, null from seen s where s.id not in (select w.id from swept w)
union all select 2, null, count(*), null from timer.shard where owner is null
union all select 3, null, count(*), null from seen
union all select 4, null, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, null
union all select 5, null, xid::text::bigint, null from pg_snapshot_xip(pg_current_snapshot()) xid
union all select 6, null, count(*), null from timer.node where alive and lease_until >= timer.now()";
    let types = vec![Type::INT8, Type::INT2_ARRAY, Type::INT8, Type::INT8, Type::INT8_ARRAY];
    Sql { text: text.to_owned(), types }
}

/// The kinds of the rows of a look are a row that was collected, with its due time, the transaction
/// of a locked row, the number of shards without an owner, the number of rows that were seen, the
/// first transaction that had not begun, the transactions that had not ended, and the number of
/// nodes.
pub(super) const COLLECTED: i32 = 0;
pub(super) const LOCKED: i32 = 1;
pub(super) const UNOWNED: i32 = 2;
pub(super) const SEEN: i32 = 3;
pub(super) const NEXT_XID: i32 = 4;
pub(super) const OPEN_XID: i32 = 5;
pub(super) const NODES: i32 = 6;

/// The transactions whose rows the next look visits. By default all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontier {
    pub(super) from: i64,
    /// Those before `from` that were under way, or whose rows were locked.
    pub(super) open: Vec<i64>,
}

/// The findings of a look.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) found: Vec<(Position, String)>,
    /// The frontier of the next look, if this one has seen all rows.
    pub(super) next: Option<Frontier>,
    /// A trigger has refused rows, or there are more.
    pub(super) is_partial: bool,
}
