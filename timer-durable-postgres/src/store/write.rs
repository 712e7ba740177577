//! Executing a batch.
//!
//! 1. Look for the timeouts that calls address by key. Most batches have none.
//! 2. Execute the batch as one statement, which begins with the fence.
//! 3. Look at the timeouts that were not changed, to tell those that run from those that are
//!    unknown.
//! 4. Execute the inserts that met another row again, by the rules of `IfPending` (`put`).
//!
//! Steps 3 and 4 follow a commit. If they fail as a whole, the answer is [`StoreError::InDoubt`],
//! and the keeper reads everything anew.
//!
//! # Locks of others
//!
//! A transaction of the user that calls `timer.cancel` or `timer.complete` keeps its timeout locked
//! until it ends, and a statement that needs the lock waits with all of its parts. So statements
//! give up soon. The writer then asks for the locked rows (`locks`), and writes the rest of the
//! batch without them. In the normal case this costs nothing.

use super::Link;
use super::column::uuid;
use super::link::Fixed;
use super::part::Part;
use super::parts::Tables;
use super::query_error::QueryError;
use super::statements::{self, PartSet};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use timer_durable::store::{Divider, Micros};
use timer_durable::transaction::{Attempt, Insert, Operation, Outcome, Target};
use timer_durable::{StoreError, TimeoutId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// The limit of repetitions of a statement that meets a deadlock, and of a call whose timeout keeps
/// changing.
pub(super) const REPETITIONS: usize = 8;

/// The time for which a statement is retried that waits for the lock of a table, for example by an
/// `alter table`.
const MAX_TABLE_WAIT: Duration = Duration::from_secs(2);

/// The number of the row of the fence in the answer.
const FENCE_ROW: i32 = -1;

/// What a write needs to know about this instance.
pub(super) struct Writer<'a> {
    pub(super) link: &'a mut Link,
    pub(super) instance: i64,
    /// The epoch of each shard, or `None` if another instance owns it. Valid while the fence holds.
    pub(super) epochs: &'a [Option<i64>],
    pub(super) shards: &'a [i16],
    /// A counter that spreads batches over the shards.
    pub(super) turn: &'a mut usize,
    /// The timeouts that other transactions had locked at the last look.
    pub(super) locked: &'a mut HashSet<Target>,
    /// Finds the inserts that the database refuses.
    pub(super) divider: &'a mut Divider,
    /// The estimate of the current time.
    pub(super) now: Micros,
}

/// A batch whose step 2 is done.
pub(super) struct Draft {
    now: Micros,
    /// `None` if step 2 has changed nothing and the reason is not known yet.
    pub(super) outcomes: Vec<Option<Outcome>>,
    /// The timeouts of the operations.
    pub(super) ids: Vec<Option<TimeoutId>>,
}

/// The answer to a statement.
enum Sent {
    Rows(PartSet, Vec<Row>),
    /// Nothing was written, because other transactions have locked the timeouts of these
    /// operations.
    Locked(Vec<usize>),
}

/// A timeout that a batch did not change.
struct Seen {
    due: Micros,
    shard: i16,
    begun: Option<i64>,
    /// The call that is queued beside its attempt, or the row itself if it is one.
    call: Option<TimeoutId>,
}

impl Writer<'_> {
    /// Executes a batch. Returns the store's time of the commit, too.
    pub(super) fn write(&mut self, batch: &[Operation], until: Instant) -> Result<(Vec<Outcome>, Micros), StoreError> {
        let mut draft = self.execute(batch)?;
        self.follow_up(batch, &mut draft, until).map_err(after_commit)?;
        let outcomes = draft.outcomes.into_iter().map(|outcome| outcome.unwrap_or(Outcome::NotFound));
        Ok((outcomes.collect(), draft.now))
    }

    fn follow_up(&mut self, batch: &[Operation], draft: &mut Draft, until: Instant) -> Result<(), StoreError> {
        for _ in 0..REPETITIONS {
            let mut again = self.explain(batch, draft)?;
            again.extend(self.explain_requeues(batch, draft)?);
            if again.is_empty() {
                break;
            }
            // The timeout was moved or replaced by another instance at the same moment.
            let repeated: Vec<Operation> = again.iter().map(|n| batch[*n].clone()).collect();
            let mut next = self.execute(&repeated)?;
            for (from, n) in again.into_iter().enumerate() {
                draft.outcomes[n] = next.outcomes[from].take();
                draft.ids[n] = next.ids[from];
            }
        }
        self.put(batch, draft, until)
    }

    /// Step 1. Returns the timeout of each operation, or `None` if it names a key that has none.
    fn resolve(&mut self, batch: &[Operation]) -> Result<Vec<Option<TimeoutId>>, StoreError> {
        let mut ids: Vec<Option<TimeoutId>> = batch.iter().map(Operation::id).collect();
        let by_key = (0..batch.len()).filter(|n| ids[*n].is_none());
        // No timeout has a key with a NUL character, and PostgreSQL refuses to compare it.
        let named = by_key.filter_map(|n| Some((n, batch[n].key()?)));
        let named = named.filter(|(_, (topic, key))| !topic.contains('\0') && !key.contains('\0'));
        let (places, (topics, keys)): (Vec<usize>, (Vec<&str>, Vec<&str>)) = named.unzip();
        if !places.is_empty() {
            for row in self.ask(|link| link.query(Fixed::Holders, &[&topics, &keys]))? {
                let place = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0);
                ids[places[place]] = Some(id(&row, 1));
            }
        }
        Ok(ids)
    }

    /// Steps 1 and 2. Operations whose timeouts other transactions have locked are left out.
    fn execute(&mut self, batch: &[Operation]) -> Result<Draft, StoreError> {
        let ids = self.resolve(batch)?;
        // A key without a timeout needs no second look.
        let mut outcomes: Vec<Option<Outcome>> =
            ids.iter().map(|id| id.is_none().then_some(Outcome::NotFound)).collect();
        let instance = self.instance as u32;
        let now = self.now;
        let shard = self.spread(1)[0];
        let (tables, parts, rows) = loop {
            let open: Vec<usize> = (0..batch.len()).filter(|n| outcomes[*n].is_none()).collect();
            let tables = Tables::new(batch, &ids, &open, instance, now);
            match self.send(batch, &ids, &open, &tables, shard)? {
                Sent::Rows(parts, rows) => break (tables, parts, rows),
                Sent::Locked(locked) => locked.into_iter().for_each(|n| outcomes[n] = Some(Outcome::Locked)),
            }
        };
        let mut committed = None;
        let mut inserted = Vec::new();
        for row in &rows {
            let number = row.get(0);
            if number == FENCE_ROW {
                committed = Some(row.get(1));
                if parts.has(Part::Created) {
                    let created = tables.executed(Part::Created, None);
                    created.iter().for_each(|(_, n)| outcomes[*n] = Some(Outcome::Created { replaced: None }));
                }
            }
            match Part::of_row(number) {
                Some(Part::Begun) => {
                    if let Some((_, n)) = tables.find(Part::Begun, id(row, 3)) {
                        outcomes[n] = Some(begun(row));
                    }
                }
                Some(part) => {
                    let executed = tables.executed(part, row.get(2));
                    if part == Part::Inserted {
                        inserted.clone_from(&executed);
                    }
                    for (id, n) in executed {
                        outcomes[n] = match (part, &batch[n]) {
                            (Part::Inserted, Operation::Insert(_)) => Some(Outcome::Created { replaced: None }),
                            // The end itself has its row in another part.
                            (Part::Inserted, _) => continue,
                            _ => Some(Outcome::Changed(id)),
                        };
                    }
                }
                None => {}
            }
        }
        let now = committed.ok_or(StoreError::Fenced)?;
        for (operation, outcome) in batch.iter().zip(&outcomes) {
            if let (Operation::Done { then, .. }, Some(Outcome::Changed(_))) = (operation, outcome) {
                let is_left_out = |then: &&Insert| inserted.iter().all(|(id, _)| *id != then.id);
                then.iter().filter(is_left_out).for_each(Insert::report_taken_key);
            }
        }
        Ok(Draft { now, outcomes, ids })
    }

    /// Step 2 for the operations that are `open`.
    fn send(
        &mut self,
        batch: &[Operation],
        ids: &[Option<TimeoutId>],
        open: &[usize],
        tables: &Tables<'_>,
        shard: i16,
    ) -> Result<Sent, StoreError> {
        if !self.locked.is_empty() && self.expects_locks(batch, open) {
            let locked = self.find_locked(batch, ids, open)?;
            if !locked.is_empty() {
                return Ok(Sent::Locked(locked));
            }
        }
        let own = self.instance;
        let epochs = self.epochs;
        let refuge = (!self.shards.is_empty()).then_some(shard);
        let mut new = tables.has_new_inserts_only();
        let begun = Instant::now();
        let mut attempts = 0;
        loop {
            let parts = tables.parts(new);
            let columns = tables.parameters(shard, parts, &self.link.connection);
            let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&own, &epochs, &refuge];
            parameters.extend(columns.iter().map(|column| &**column));
            match self.link.write(parts, &parameters) {
                Err(error) if error.is_transient() && attempts < REPETITIONS => {
                    // The caller has given an id that was used before.
                    new = false;
                    attempts += 1;
                }
                Err(error) if error.is_locked() => {
                    let mut locked = self.find_locked(batch, ids, open)?;
                    if locked.is_empty() {
                        locked = self.suspect_inserts(batch, open)?;
                    }
                    if !locked.is_empty() {
                        return Ok(Sent::Locked(locked));
                    }
                    if begun.elapsed() > MAX_TABLE_WAIT {
                        return Err(error.into());
                    }
                }
                result => return Ok(Sent::Rows(parts, result?)),
            }
        }
    }

    /// Step 3. Returns the resets and cancels that have to be repeated.
    fn explain(&mut self, batch: &[Operation], draft: &mut Draft) -> Result<Vec<usize>, StoreError> {
        let needs_reason = |operation: &Operation| {
            matches!(operation, Operation::Reset { .. } | Operation::Cancel(_) | Operation::Begin(_))
        };
        let missed: Vec<usize> =
            (0..batch.len()).filter(|n| draft.outcomes[*n].is_none() && needs_reason(&batch[*n])).collect();
        if missed.is_empty() {
            return Ok(missed);
        }
        let ids: Vec<Uuid> = missed.iter().filter_map(|n| draft.ids[*n]).map(uuid).collect();
        let seen: HashMap<TimeoutId, Seen> =
            self.ask(|link| link.query(Fixed::Look, &[&ids]))?.iter().map(seen).collect();
        let mut again = Vec::new();
        for n in missed {
            let seen = draft.ids[n].and_then(|id| seen.get(&id));
            draft.outcomes[n] = match (&batch[n], seen) {
                (Operation::Begin(_), Some(seen)) if self.is_pending_here(seen) => Some(Outcome::NotYet(seen.due)),
                (Operation::Begin(_), _) => Some(Outcome::NotFound),
                (operation, Some(Seen { call: Some(call), .. })) => {
                    self.change_queued(operation, draft.ids[n], *call)?
                }
                (_, Some(seen)) if seen.begun.is_some() => Some(Outcome::Running),
                // The key may belong to another timeout by now.
                (operation, None) if operation.key().is_none() => Some(Outcome::NotFound),
                _ => None,
            };
            if draft.outcomes[n].is_none() {
                again.push(n);
            }
        }
        Ok(again)
    }

    /// Step 3 for dead letters whose keys are taken. Returns the requeues that have to be repeated,
    /// because a key has become free.
    fn explain_requeues(&mut self, batch: &[Operation], draft: &mut Draft) -> Result<Vec<usize>, StoreError> {
        let is_kept = |n: &usize| {
            draft.outcomes[*n].is_none() && matches!(batch[*n], Operation::Requeue { without_key: false, .. })
        };
        let missed: Vec<usize> = (0..batch.len()).filter(is_kept).collect();
        if missed.is_empty() {
            return Ok(missed);
        }
        let ids: Vec<Uuid> = missed.iter().filter_map(|n| draft.ids[*n]).map(uuid).collect();
        let holder = |row: &Row| row.get::<_, Option<Uuid>>(1).map(|id| TimeoutId::from_u128(id.as_u128()));
        let letters: HashMap<TimeoutId, Option<TimeoutId>> =
            self.ask(|link| link.taken(&ids))?.iter().map(|row| (id(row, 0), holder(row))).collect();
        let mut again = Vec::new();
        for n in missed {
            match draft.ids[n].and_then(|id| letters.get(&id)) {
                None => draft.outcomes[n] = Some(Outcome::NotFound),
                Some(Some(holder)) => draft.outcomes[n] = Some(Outcome::Kept(*holder)),
                Some(None) => again.push(n),
            }
        }
        Ok(again)
    }

    /// Cancels or resets a timeout beside whose attempt a call is queued. Returns `None` if the
    /// timeout has ended in between.
    fn change_queued(
        &mut self,
        operation: &Operation,
        id: Option<TimeoutId>,
        call: TimeoutId,
    ) -> Result<Option<Outcome>, StoreError> {
        let Some(id) = id else { return Ok(None) };
        let due = if let Operation::Reset { due, .. } = operation { Some(*due) } else { None };
        let (sql, types) = statements::CHANGE_QUEUED;
        let rows = match self.link.connection.run(sql, types, &[&self.instance, &uuid(id), &due]) {
            Err(error) if error.is_locked() => return Ok(Some(Outcome::Locked)),
            rows => rows?,
        };
        Ok(match rows.first().ok_or(StoreError::Fenced)?.get::<_, &str>(0) {
            "cancelled" | "reset" => Some(Outcome::Changed(id)),
            "queued_cancelled" | "queued_reset" => Some(Outcome::Queued(call)),
            "running" => Some(Outcome::Running),
            _ => None,
        })
    }

    /// Executes a query that locks no row, and repeats it while another transaction has locked the
    /// table.
    pub(super) fn ask(
        &mut self,
        query: impl Fn(&mut Link) -> Result<Vec<Row>, QueryError>,
    ) -> Result<Vec<Row>, StoreError> {
        let begun = Instant::now();
        loop {
            match query(self.link) {
                Err(error) if error.is_locked() && begun.elapsed() < MAX_TABLE_WAIT => {}
                result => return Ok(result?),
            }
        }
    }

    /// Returns the shard of each of `count` rows of a batch. All rows of a batch go to one shard,
    /// because rows of one shard are neighbors in the index of due times. The next batch goes to
    /// the next shard. An instance without shards leaves the rows to the owner of a random shard.
    pub(super) fn spread(&mut self, count: usize) -> Vec<i16> {
        *self.turn = self.turn.wrapping_add(1);
        let shard =
            if self.shards.is_empty() { fastrand::i16(0..64) } else { self.shards[*self.turn % self.shards.len()] };
        vec![shard; count]
    }

    fn is_pending_here(&self, seen: &Seen) -> bool {
        let epoch = self.epochs[seen.shard.unsigned_abs() as usize];
        epoch.is_some_and(|epoch| seen.begun.is_none_or(|begun| begun < epoch))
    }
}

/// Turns a failure after a commit into one whose outcome is unknown.
fn after_commit(error: StoreError) -> StoreError {
    match error {
        StoreError::InDoubt(why) => StoreError::InDoubt(why),
        error => StoreError::InDoubt(format!("a part of the batch was written: {error}")),
    }
}

pub(super) fn id(row: &Row, column: usize) -> TimeoutId {
    TimeoutId::from_u128(row.get::<_, Uuid>(column).as_u128())
}

fn seen(row: &Row) -> (TimeoutId, Seen) {
    let call = row.get::<_, Option<Uuid>>(4).map(|call| TimeoutId::from_u128(call.as_u128()));
    (id(row, 0), Seen { due: row.get(1), shard: row.get(2), begun: row.get(3), call })
}

/// Returns the outcome of an operation that begins an attempt. The attempt is zero if the call that
/// was queued beside an old one has its effect instead.
fn begun(row: &Row) -> Outcome {
    let number = row.get::<_, i32>(4).unsigned_abs();
    if number == 0 {
        return Outcome::NotFound;
    }
    let mut attempt = Attempt::new(number, row.get(1), row.get::<_, String>(7));
    attempt.forgiven = row.get::<_, i32>(5).unsigned_abs();
    attempt.format = row.get(6);
    attempt.key = row.get(8);
    attempt.payload = row.get(9);
    attempt.period = row.get(10);
    attempt.max_lateness = row.get(11);
    attempt.planned = row.get(12);
    attempt.traceparent = row.get(13);
    Outcome::Begun(Box::new(attempt))
}
