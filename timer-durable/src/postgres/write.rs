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
//! give up soon. The writer then asks for the locked rows (`locks`), and the keeper writes the rest
//! of the batch without them. In the normal case this costs nothing.

use super::Link;
use super::parts::{Tables, uuid};
use super::query_error::QueryError;
use super::statements::{Part, Parts};
use crate::TimeoutId;
use crate::store::{Micros, StoreError};
use crate::transaction::{Answers, Attempt, Batch, Begun, Changed, Inserted, Target};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// The limit of repetitions of a statement that meets a deadlock, and of a call whose timeout keeps
/// changing.
pub(super) const REPETITIONS: usize = 8;

/// The time for which a statement is repeated if it waits for a lock that is not a row lock, such
/// as that of an `alter table`.
const MAX_TABLE_WAIT: Duration = Duration::from_secs(2);

/// The number of the row of the fence in the answer.
const FENCE_ROW: i32 = -1;

/// The facts about this instance that a write needs.
pub(super) struct Writer<'a> {
    pub(super) link: &'a mut Link,
    pub(super) instance: i64,
    /// By shard, `None` if another instance owns it. Right as long as the fence holds.
    pub(super) epochs: &'a [Option<i64>],
    pub(super) shards: &'a [i16],
    /// Grows, so that batches are spread over the shards.
    pub(super) turn: &'a mut usize,
    /// The timeouts that other transactions had locked at the last look.
    pub(super) locked: &'a mut HashSet<Target>,
    /// The estimate of the present.
    pub(super) now: Micros,
}

/// The answers of step 2. Calls that changed nothing are `None`.
pub(super) struct Draft {
    now: Micros,
    pub(super) inserts: Vec<Option<Inserted>>,
    resets: Vec<Option<Changed>>,
    cancels: Vec<Option<Changed>>,
    begins: Vec<Option<Begun>>,
    ends: [Vec<bool>; 5],
    /// The ids of the targets.
    targets: [Vec<Option<TimeoutId>>; 2],
}

/// A timeout that a batch did not change.
struct Seen {
    due: Micros,
    shard: i16,
    begun: Option<i64>,
}

impl Writer<'_> {
    /// Executes a batch. Returns the store's time of the commit, too.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(Answers, Micros), StoreError> {
        let mut draft = self.execute(batch)?;
        let now = draft.now;
        self.follow_up(batch, &mut draft).map_err(after_commit)?;
        let unknown = |changed: Option<Changed>| changed.unwrap_or(Changed::Unknown);
        let [dones, retries, buries, requeues, purges] = draft.ends;
        let answers = Answers {
            inserts: draft.inserts.into_iter().map(|answer| answer.unwrap_or(Inserted::Exists)).collect(),
            resets: draft.resets.into_iter().map(unknown).collect(),
            cancels: draft.cancels.into_iter().map(unknown).collect(),
            dones,
            retries,
            buries,
            requeues,
            purges,
            begins: draft.begins.into_iter().map(|begun| begun.unwrap_or(Begun::Gone)).collect(),
        };
        Ok((answers, now))
    }

    fn follow_up(&mut self, batch: &Batch, draft: &mut Draft) -> Result<(), StoreError> {
        for _ in 0..REPETITIONS {
            let again = self.explain(batch, draft)?;
            let [resets, cancels] = &again;
            if resets.is_empty() && cancels.is_empty() {
                break;
            }
            // The timeout was moved or replaced by another instance at the same moment.
            let repeated = Batch {
                resets: resets.iter().map(|n| batch.resets[*n].clone()).collect(),
                cancels: cancels.iter().map(|n| batch.cancels[*n].clone()).collect(),
                ..Batch::default()
            };
            let next = self.execute(&repeated)?;
            for (from, n) in resets.iter().enumerate() {
                draft.resets[*n] = next.resets[from];
                draft.targets[0][*n] = next.targets[0][from];
            }
            for (from, n) in cancels.iter().enumerate() {
                draft.cancels[*n] = next.cancels[from];
                draft.targets[1][*n] = next.targets[1][from];
            }
        }
        self.put(batch, draft)
    }

    /// Step 1. Returns the ids of the targets.
    fn resolve<'t>(&mut self, targets: impl Iterator<Item = &'t Target>) -> Result<Vec<Option<TimeoutId>>, StoreError> {
        let (mut ids, mut topics, mut keys, mut places) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for target in targets {
            match target {
                Target::Id(id) => ids.push(Some(*id)),
                // No timeout has such a key, and PostgreSQL refuses to compare it.
                Target::Key { topic, key } if topic.contains('\0') || key.contains('\0') => ids.push(None),
                Target::Key { topic, key } => {
                    topics.push(topic.as_str());
                    keys.push(key.as_str());
                    places.push(ids.len());
                    ids.push(None);
                }
            }
        }
        if !places.is_empty() {
            for row in self.ask(|link| link.holders(&[&topics, &keys]))? {
                let place = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(0);
                ids[places[place]] = Some(id(&row, 1));
            }
        }
        Ok(ids)
    }

    /// Steps 1 and 2.
    fn execute(&mut self, batch: &Batch) -> Result<Draft, StoreError> {
        let targets =
            [self.resolve(batch.resets.iter().map(|reset| &reset.target))?, self.resolve(batch.cancels.iter())?];
        let instance = self.instance as u32;
        let tables = Tables::new(batch, &targets[0], &targets[1], instance, self.now);
        let shard = self.spread(1)[0];
        let (parts, rows) = self.send(batch, &targets, &tables, shard)?;
        let mut draft = Draft {
            now: 0,
            inserts: vec![None; batch.inserts.len()],
            // A key without a timeout needs no second look.
            resets: targets[0].iter().map(|id| id.is_none().then_some(Changed::Unknown)).collect(),
            cancels: targets[1].iter().map(|id| id.is_none().then_some(Changed::Unknown)).collect(),
            begins: vec![None; batch.begins.len()],
            ends: [
                &batch.dones.len(),
                &batch.retries.len(),
                &batch.buries.len(),
                &batch.requeues.len(),
                &batch.purges.len(),
            ]
            .map(|len| vec![false; *len]),
            targets,
        };
        let mut is_alive = false;
        for row in &rows {
            let number = row.get(0);
            if number == FENCE_ROW {
                is_alive = true;
                draft.now = row.get(1);
                if parts.has(Part::Created) {
                    draft.inserts.fill(Some(Inserted::Created { replaced: None }));
                }
            }
            let Some(part) = Part::of_row(number) else { continue };
            if part == Part::Begun {
                if let Some(n) = tables.begins.find(id(row, 3)) {
                    draft.begins[n] = Some(Begun::Attempt(Box::new(attempt(row))));
                }
                continue;
            }
            let ids: Option<Vec<Uuid>> = row.get(2);
            tables.each(part, ids.as_deref(), |id, n| match part {
                Part::Inserted => draft.inserts[n] = Some(Inserted::Created { replaced: None }),
                Part::Moved => draft.resets[n] = Some(Changed::Changed(id)),
                Part::Cancelled | Part::CancelledYoung => draft.cancels[n] = Some(Changed::Changed(id)),
                Part::Done | Part::DoneYoung => draft.ends[0][n] = true,
                Part::Repeated if n < tables.dones_len => draft.ends[0][n] = true,
                Part::Repeated => draft.ends[1][n - tables.dones_len] = true,
                Part::Buried => draft.ends[2][n] = true,
                Part::Requeued => draft.ends[3][n] = true,
                Part::Purged | Part::PurgedYoung => draft.ends[4][n] = true,
                Part::Created | Part::Begun => {}
            });
        }
        if is_alive { Ok(draft) } else { Err(StoreError::Fenced) }
    }

    /// Step 2. Returns the parts that were executed, too.
    fn send(
        &mut self,
        batch: &Batch,
        targets: &[Vec<Option<TimeoutId>>; 2],
        tables: &Tables<'_>,
        shard: i16,
    ) -> Result<(Parts, Vec<Row>), StoreError> {
        if !self.locked.is_empty() && self.expects_locks(batch) {
            self.check_locks(batch, targets)?;
        }
        let (own, epochs) = (self.instance, self.epochs);
        let refuge = (!self.shards.is_empty()).then_some(shard);
        let mut new = tables.has_new_inserts_only(own as u32);
        let (begun, mut attempts) = (Instant::now(), 0);
        loop {
            let parts = tables.parts(new);
            let columns = tables.parameters(shard, own as u32, parts);
            let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&own, &epochs, &refuge];
            parameters.extend(columns.iter().map(|column| &**column));
            match self.link.write(parts, &parameters) {
                Err(error) if error.is_transient() && attempts < REPETITIONS => {
                    // The caller has given an id that was used before.
                    new = false;
                    attempts += 1;
                }
                Err(error) if error.is_locked() => {
                    self.check_locks(batch, targets)?;
                    self.suspect_inserts(batch)?;
                    if begun.elapsed() > MAX_TABLE_WAIT {
                        return Err(error.into());
                    }
                }
                result => return Ok((parts, result?)),
            }
        }
    }

    /// Step 3. Returns the resets and cancels that have to be repeated.
    fn explain(&mut self, batch: &Batch, draft: &mut Draft) -> Result<[Vec<usize>; 2], StoreError> {
        let missed = |answers: &[Option<Changed>]| -> Vec<usize> {
            answers.iter().enumerate().filter(|(_, answer)| answer.is_none()).map(|(n, _)| n).collect()
        };
        let calls = [missed(&draft.resets), missed(&draft.cancels)];
        let begins: Vec<usize> = (0..batch.begins.len()).filter(|n| draft.begins[*n].is_none()).collect();
        let targets = calls.iter().zip(&draft.targets).flat_map(|(missed, ids)| missed.iter().filter_map(|n| ids[*n]));
        let ids: Vec<Uuid> = targets.chain(begins.iter().map(|n| batch.begins[*n])).map(uuid).collect();
        if ids.is_empty() {
            return Ok([Vec::new(), Vec::new()]);
        }
        let seen: HashMap<TimeoutId, Seen> = self.ask(|link| link.look(&[&ids]))?.iter().map(seen).collect();
        for n in begins {
            let pending = seen.get(&batch.begins[n]).filter(|seen| self.is_pending_here(seen));
            draft.begins[n] = Some(pending.map_or(Begun::Gone, |seen| Begun::NotYet(seen.due)));
        }
        let mut again = [Vec::new(), Vec::new()];
        for (part, missed) in calls.iter().enumerate() {
            for n in missed {
                let target = draft.targets[part][*n];
                let by_key = match part {
                    0 => matches!(batch.resets[*n].target, Target::Key { .. }),
                    _ => matches!(batch.cancels[*n], Target::Key { .. }),
                };
                let answers = if part == 0 { &mut draft.resets } else { &mut draft.cancels };
                match target.and_then(|id| seen.get(&id)) {
                    Some(seen) if seen.begun.is_some() => answers[*n] = Some(Changed::Running),
                    // The key may belong to another timeout by now.
                    None if !by_key => answers[*n] = Some(Changed::Unknown),
                    _ => again[part].push(*n),
                }
            }
        }
        Ok(again)
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
    (id(row, 0), Seen { due: row.get(1), shard: row.get(2), begun: row.get(3) })
}

fn attempt(row: &Row) -> Attempt {
    Attempt {
        forgiven: row.get::<_, i32>(5).unsigned_abs(),
        format: row.get(6),
        key: row.get(8),
        payload: row.get(9),
        period: row.get(10),
        max_lateness: row.get(11),
        planned: row.get(12),
        ..Attempt::new(row.get::<_, i32>(4).unsigned_abs(), row.get(1), row.get::<_, String>(7))
    }
}
