//! Collecting the rows that others have written into the shards of this instance.
//!
//! A row names the transaction that has written it. A look has seen all rows of the transactions
//! that had ended when it began, and collects them. So the next look begins with the first
//! transaction that had not begun, and asks for the transactions that were under way one by one. It
//! visits neither the rows of earlier looks nor their dead versions, which stay in the index while
//! anybody has an old snapshot.

use super::agenda::Task;
use super::statements::Sql;
use super::{PostgresStore, write};
use std::time::{Duration, Instant};
use timer_durable::store::{Divided, Divider, Position, Store, StoreError};
use tokio_postgres::types::Type;

/// The longest time between two looks. A notification brings the next one forward.
const INTERVAL: Duration = Duration::from_secs(1);

/// The most rows that one look collects.
const MAX_ROWS: i64 = 10_000;

/// Collects the rows that others have written into the shards of this instance. Its rows are pairs
/// of a kind and a number, with an id in those of [`COLLECTED`].
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
    returning t.id, t.due)
select 0, id, due from swept
union all select 1, null, xid from seen s where s.id not in (select w.id from swept w)
union all select 2, null, count(*) from timer.shard where owner is null
union all select 3, null, count(*) from seen
union all select 4, null, pg_snapshot_xmax(pg_current_snapshot())::text::bigint
union all select 5, null, xid::text::bigint from pg_snapshot_xip(pg_current_snapshot()) xid
union all select 6, null, count(*) from timer.node where alive and lease_until >= timer.now()";
    let types = vec![Type::INT8, Type::INT2_ARRAY, Type::INT8, Type::INT8, Type::INT8_ARRAY];
    Sql { text: text.to_owned(), types }
}

/// The kinds of the rows of a look are a row that was collected, with its due time, the transaction
/// of a locked row, the number of shards without an owner, the number of rows that were seen, the
/// first transaction that had not begun, the transactions that had not ended, and the number of
/// nodes.
const COLLECTED: i32 = 0;
const LOCKED: i32 = 1;
const UNOWNED: i32 = 2;
const SEEN: i32 = 3;
const NEXT_XID: i32 = 4;
const OPEN_XID: i32 = 5;
const NODES: i32 = 6;

/// The transactions whose rows the next look visits. By default all of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Frontier {
    from: i64,
    /// Those before `from` that were under way, or whose rows were locked.
    open: Vec<i64>,
}

/// The findings of a look.
#[derive(Default)]
struct Look {
    found: Vec<Position>,
    /// The frontier of the next look, if this one has seen all rows.
    next: Option<Frontier>,
    /// A trigger has refused rows, or there are more.
    is_partial: bool,
}

impl PostgresStore {
    pub(super) fn sweep(&mut self) -> Result<Vec<Position>, StoreError> {
        self.agenda.set(Task::Look, Instant::now() + INTERVAL);
        if self.has_gained {
            // No look has visited the rows of these shards.
            self.frontier = Frontier::default();
        }
        let shards = self.shards.clone();
        let frontier = self.frontier.clone();
        let mut look = Look::default();
        let until = Instant::now() + self.lease.limit();
        // If nothing was found, nothing can be forgotten, so an error fails the look.
        let swept = Divider::new().execute(&shards, until, |shards| {
            self.sweep_shards(shards, &frontier, &mut look)?;
            Ok(vec![(); shards.len()])
        })?;
        for (shard, swept) in shards.iter().zip(swept) {
            match swept {
                Divided::Done(()) => continue,
                Divided::Refused(error) => {
                    tracing::warn!(server = self.describe(), shard, %error, "rows of other writers were refused");
                }
                // No later look would find the rows of the other shards, so the keeper has to be
                // told of them now. The next look meets the error again, if it lasts.
                Divided::NotReached => self.signals.again(),
            }
            look.is_partial = true;
        }
        if let Some(mut next) = look.next.filter(|_| !look.is_partial) {
            next.open.retain(|xid| *xid < next.from);
            self.frontier = next;
        }
        self.figures.foreign += look.found.len() as u64;
        Ok(look.found)
    }

    /// Collects the rows of some shards. If a trigger of the user refuses a row, the rows of its
    /// shard stay until another look.
    fn sweep_shards(&mut self, shards: &[i16], frontier: &Frontier, look: &mut Look) -> Result<(), StoreError> {
        let instance = self.instance;
        let rows = self.link()?.sweep(&[&instance, &shards, &MAX_ROWS, &frontier.from, &frontier.open])?;
        // The parts of a look have different snapshots. The earliest one counts.
        let next = look.next.get_or_insert(Frontier { from: i64::MAX, open: Vec::new() });
        for row in &rows {
            let number: i64 = row.get(2);
            match row.get(0) {
                COLLECTED => look.found.push(Position { due: number, id: write::id(row, 1) }),
                LOCKED | OPEN_XID => next.open.push(number),
                SEEN if number >= MAX_ROWS => {
                    look.is_partial = true;
                    self.signals.again();
                }
                SEEN => {}
                NEXT_XID => next.from = next.from.min(number),
                // A renewal takes a share of them, or gives one.
                UNOWNED if number == 0 => {}
                NODES if number == i64::from(self.figures.nodes) => {}
                _ => self.agenda.bring_forward(Task::Renewal, self.earliest_upkeep()),
            }
        }
        Ok(())
    }
}
