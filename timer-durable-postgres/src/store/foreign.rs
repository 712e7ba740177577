//! Collecting the rows that others have written into the shards of this instance.
//!
//! A row names the transaction that has written it. A look has seen all rows of the transactions
//! that had ended when it began, and collects them. So the next look begins with the first
//! transaction that had not begun, and asks for the transactions that were under way one by one. It
//! visits neither the rows of earlier looks nor their dead versions, which stay in the index while
//! anybody has an old snapshot.

use super::agenda::Task;
use super::link::Fixed;
use super::look::{COLLECTED, Findings, Frontier, LOCKED, NEXT_XID, NODES, OPEN_XID, SEEN, UNOWNED};
use super::statements::SETTLE_ORPHANS;
use super::{PostgresStore, write};
use std::time::{Duration, Instant};
use timer_durable::StoreError;
use timer_durable::store::{Divided, Divider, Position, Store};

/// The longest time between two looks. A notification brings the next one forward.
const INTERVAL: Duration = Duration::from_secs(1);

/// The largest number of rows that one look collects.
const MAX_ROWS: i64 = 10_000;

impl PostgresStore {
    pub(super) fn sweep(&mut self) -> Result<Vec<(Position, String)>, StoreError> {
        self.agenda.set(Task::Look, Instant::now() + INTERVAL);
        if self.has_gained {
            // No look has visited the rows of these shards.
            self.frontier = Frontier::default();
            self.owes_settling = true;
        }
        if self.owes_settling {
            self.settle_orphans();
        }
        let shards = self.shards.clone();
        let frontier = self.frontier.clone();
        let mut look = Findings::default();
        if shards.is_empty() {
            // A node without shards looks for one without an owner.
            self.sweep_shards(&[], &frontier, &mut look)?;
        }
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

    /// Settles the queued calls whose attempts were deleted without firing the triggers. A failure
    /// is only logged, because it must not fail the upkeep that renews the lease. The next look
    /// tries again.
    fn settle_orphans(&mut self) {
        let settled = self.link().and_then(|link| Ok(link.connection.run(SETTLE_ORPHANS, &[], &[])?));
        match self.check(settled) {
            Ok(_) => self.owes_settling = false,
            Err(error) => {
                tracing::warn!(server = self.describe(), %error, "calls whose attempts were deleted stay queued");
            }
        }
    }

    /// Collects the rows of some shards. If a trigger of the user refuses a row, the rows of its
    /// shard stay until another look.
    fn sweep_shards(&mut self, shards: &[i16], frontier: &Frontier, look: &mut Findings) -> Result<(), StoreError> {
        let instance = self.instance;
        let rows =
            self.link()?.query(Fixed::Sweep, &[&instance, &shards, &MAX_ROWS, &frontier.from, &frontier.open])?;
        // The parts of a look have different snapshots. The earliest one counts.
        let next = look.next.get_or_insert(Frontier { from: i64::MAX, open: Vec::new() });
        for row in &rows {
            let number: i64 = row.get(2);
            match row.get(0) {
                COLLECTED => look.found.push((Position { due: number, id: write::id(row, 1) }, row.get(3))),
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
