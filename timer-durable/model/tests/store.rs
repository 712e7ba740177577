//! The transactions of the store. Each of them is one atomic step, and begins with the fence.
//!
//! The steps read and write rows as the SQL of the product does. They know nothing of memory.

use crate::configurations::Protocol;
use crate::mutants::Mutant::*;
use crate::properties::Promise;
use crate::state::{INFINITY, Node, OUTSIDE, ROWS, Row, Slot, State, has, position};
use crate::transaction::{
    Answer,
    IfPending::{self, *},
    Transaction::{self, *},
};

/// How long after its birth the store accepts the insert of an id. Tombstones last as long.
pub(crate) const WINDOW: u8 = 1;

impl Protocol {
    /// Executes one transaction of `instance` and returns the store's answer.
    pub(crate) fn execute(&self, s: &mut State, instance: u8, transaction: Transaction) -> Answer {
        let fenced = !s.is_alive(instance);
        let result = matches!(transaction, Done { .. } | Retry { .. } | Bury { .. });
        if fenced && !self.is(NoFence) && !(self.is(ResultsUnfenced) && result) {
            return Answer::Fenced;
        }
        let before = (s.slots, s.shards);
        let answer = self.write(s, instance, transaction);
        if fenced && before != (s.slots, s.shards) {
            s.history.break_promise(Promise::FencedWritesNothing);
        }
        answer
    }

    fn write(&self, s: &mut State, instance: u8, transaction: Transaction) -> Answer {
        match transaction {
            Insert { id, due, shard, foreign, if_pending } => {
                let row = Row { shard, due, attempt: 0, forgiven: 0, epoch: 0, foreign };
                self.insert(s, instance, id as usize, row, if_pending)
            }
            Cancel { id } => {
                let Some((id, row)) = self.target(s, id as usize) else { return Answer::Refused };
                if self.is_begun(s, row) && !self.is(CancelRunning) {
                    let Some((queued, ..)) = s.queued() else { return Answer::Refused };
                    if !self.is(CancelLeavesQueued) {
                        self.end(s, instance, queued);
                    }
                    return Answer::Changed(queued as u8);
                }
                self.leave_running(s, id, row);
                self.end(s, instance, id);
                Answer::Changed(id as u8)
            }
            Reset { id, due, shard } => {
                let Some((id, row)) = self.target(s, id as usize) else { return Answer::Refused };
                if self.is_begun(s, row) && !self.is(ResetRunning) {
                    let Some((queued, row, rule)) = s.queued() else { return Answer::Refused };
                    s.slots[queued] = Slot::Queued(Row { due, ..row }, rule);
                    return Answer::Queued(queued as u8);
                }
                self.leave_running(s, id, row);
                let (shard, foreign) = if self.is(ResetStays) {
                    (row.shard, row.foreign)
                } else if self.is(ResetFlags) || instance == OUTSIDE {
                    (row.shard, !self.is(ForeignResetUnflagged))
                } else {
                    (shard, false)
                };
                s.slots[id] = Slot::Live(Row { due, shard, foreign, epoch: 0, ..row });
                Answer::Changed(id as u8)
            }
            Begin { id } => self.begin(s, instance, id as usize),
            Done { id, attempt } => {
                let Some(row) = self.begun_by(s, id, attempt) else { return Answer::Refused };
                if row.attempt != attempt {
                    s.history.break_promise(Promise::LateResultsRefused);
                }
                self.end(s, instance, id as usize);
                self.settle(s, instance);
                Answer::Done
            }
            Retry { id, attempt, due, shard, foreign } => {
                let Some(row) = self.begun_by(s, id, attempt) else { return Answer::Refused };
                if row.epoch == 0 {
                    // The attempt has been put back before. A reset may have followed.
                    s.history.break_promise(Promise::ResetsStay);
                }
                let (shard, foreign) = match foreign {
                    _ if self.is(RetryStays) => (row.shard, row.foreign),
                    true => (row.shard, true),
                    false => (shard, false),
                };
                let epoch = if self.is(RetryStaysBegun) { row.epoch } else { 0 };
                let attempt = attempt.max(row.attempt);
                s.slots[id as usize] = Slot::Live(Row { due, epoch, shard, foreign, attempt, ..row });
                self.settle(s, instance);
                Answer::Done
            }
            Bury { id, attempt } => {
                let Some(row) = self.begun_by(s, id, attempt) else { return Answer::Refused };
                s.slots[id as usize] = if self.is(BuryDeletes) { Slot::Absent } else { Slot::Buried(row) };
                self.settle(s, instance);
                Answer::Done
            }
            Requeue { id, due, shard } => {
                let Slot::Buried(row) = s.slots[id as usize] else { return Answer::Refused };
                let attempt = if self.is(RequeueResetsAttempt) { 0 } else { row.attempt };
                let live = Row { due, shard, attempt, forgiven: attempt, epoch: 0, foreign: false };
                s.slots[id as usize] = Slot::Live(live);
                Answer::Done
            }
            Purge { id } => {
                if !matches!(s.slots[id as usize], Slot::Buried(_)) {
                    return Answer::Refused;
                }
                self.end(s, instance, id as usize);
                Answer::Done
            }
            Load { from } => self.load(s, instance, from),
            Sweep => {
                let mut found = [0; ROWS];
                for (id, due) in found.iter_mut().enumerate() {
                    let Some(mut row) = s.live(id).filter(|row| row.foreign && owns(s, instance, row)) else {
                        continue;
                    };
                    *due = row.due;
                    row.foreign = self.is(SweepInTwoSteps);
                    s.slots[id] = Slot::Live(row);
                }
                Answer::Rows(if self.is(SweepLeavesToLoad) { [0; ROWS] } else { found }, 0)
            }
            Unflag => {
                for id in 0..ROWS {
                    if let Some(row) = s.live(id).filter(|row| owns(s, instance, row)) {
                        s.slots[id] = Slot::Live(Row { foreign: false, ..row });
                    }
                }
                Answer::Done
            }
            Expire => {
                for id in 0..ROWS {
                    if s.slots[id] == Slot::Tombstone && (!self.is_young(s, id) || self.is(TombstoneExpiresEarly)) {
                        s.slots[id] = Slot::Absent;
                    }
                }
                Answer::Done
            }
            Renew => {
                s.lapsed &= !(1 << instance);
                Answer::Done
            }
            TakeOver { instance: other } => {
                if has(s.alive, other as usize) && has(s.lapsed, other as usize) {
                    self.take_over(s, instance, other);
                }
                Answer::Shards(s.owned_by(instance))
            }
            Take { shard } => {
                let (owner, epoch) = &mut s.shards[shard as usize];
                if *owner == 0 {
                    (*owner, *epoch) = (instance, *epoch + u8::from(!self.is(TakeKeepsEpoch)));
                }
                Answer::Shards(s.owned_by(instance))
            }
            Release { shard, to, moved } => {
                for id in (0..ROWS).filter(|id| has(moved, *id)) {
                    if let Some(row) = s.live(id).filter(|row| row.shard == shard) {
                        s.slots[id] = Slot::Live(Row { shard: to, epoch: s.shards[to as usize].1, ..row });
                    }
                }
                let owner = &mut s.shards[shard as usize].0;
                if *owner == instance {
                    *owner = 0;
                }
                Answer::Done
            }
        }
    }

    fn insert(&self, s: &mut State, instance: u8, id: usize, row: Row, if_pending: IfPending) -> Answer {
        if !self.is_young(s, id) && !self.is(InsertAnyAge) {
            return Answer::Refused;
        }
        if s.slots[id] != Slot::Absent {
            return Answer::Exists;
        }
        let holder = self.holder(s);
        let Some((holder, held)) = holder.filter(|_| !self.is(KeyNotUnique)) else {
            return self.create(s, id, row);
        };
        // Only its handler can end a holder whose attempt has begun.
        let is_begun = self.is_begun(s, held) && !self.is(ReplaceRunning);
        if is_begun && !matches!(if_pending, Keep | Refuse) {
            if !self.is(RunningIsKept) {
                return self.queue(s, instance, id, row, if_pending);
            }
            s.history.break_promise(Promise::CallsAreQueued);
        }
        if is_begun || !replaces(if_pending, row, held) {
            return Answer::Kept(holder as u8);
        }
        self.leave_running(s, holder, held);
        self.end(s, instance, holder);
        self.create(s, id, row)
    }

    /// Queues a call beside the attempt of the row with its key. A call that is queued there
    /// already is treated as a pending row would be.
    fn queue(&self, s: &mut State, instance: u8, id: usize, row: Row, if_pending: IfPending) -> Answer {
        if let Some((queued, held, _)) = s.queued().filter(|_| !self.is(EachCallIsQueued)) {
            if !replaces(if_pending, row, held) {
                return Answer::Kept(queued as u8);
            }
            self.end(s, instance, queued);
        }
        s.slots[id] = Slot::Queued(row, if_pending);
        Answer::Queued(id as u8)
    }

    /// Lets the queued call have its effect after the end of an attempt. The row that it creates is
    /// flagged, because the node that has ended the attempt does not know its due time.
    fn settle(&self, s: &mut State, instance: u8) {
        let Some((id, row, if_pending)) = s.queued() else { return };
        let is_running = self.holder(s).is_some_and(|(_, held)| held.epoch != 0);
        if is_running || self.is(EndLeavesQueued) {
            return;
        }
        if let Some((holder, held)) = self.holder(s) {
            if !replaces(if_pending, row, held) {
                return self.end(s, instance, id);
            }
            self.end(s, instance, holder);
        }
        s.slots[id] = Slot::Live(Row { foreign: !self.is(SettledUnflagged), ..row });
    }

    fn create(&self, s: &mut State, id: usize, row: Row) -> Answer {
        if has(s.history.ended, id) {
            s.history.break_promise(Promise::OneLife);
        }
        s.slots[id] = Slot::Live(Row { foreign: row.foreign && !self.is(ForeignInsertUnflagged), ..row });
        Answer::Done
    }

    fn begin(&self, s: &mut State, instance: u8, id: usize) -> Answer {
        let Some(row) = s.live(id) else { return Answer::Refused };
        let (owner, epoch) = s.shards[row.shard as usize];
        if owner != instance && !self.is(BeginAnyShard) {
            return Answer::Refused;
        }
        let pending = row.epoch == 0 || (row.epoch < epoch && !self.is(BeginOnlyNull)) || self.is(BeginAnyEpoch);
        if !pending {
            return Answer::Refused;
        }
        if row.epoch != 0 && s.queued().is_some() && !self.is(BeginBeforeQueued) {
            // The attempt of an earlier epoch has ended.
            s.slots[id] = Slot::Live(Row { epoch: 0, foreign: true, ..row });
            self.settle(s, instance);
            return Answer::Refused;
        }
        if row.due > s.now {
            if !self.is(BeginEarly) {
                return if self.is(BeginDropsNotYet) { Answer::Refused } else { Answer::NotYet(row.due) };
            }
            s.history.break_promise(Promise::NeverEarly);
        }
        if row.attempt - row.forgiven >= self.attempts {
            s.slots[id] = Slot::Buried(row);
            self.settle(s, instance);
            return Answer::Refused;
        }
        if has(s.history.cancelled, id) {
            s.history.break_promise(Promise::CancelledStaysSo);
        }
        if has(s.history.finished, id) {
            s.history.break_promise(Promise::ResultsAreKept);
        }
        let attempt = row.attempt + 1;
        if attempt != s.history.begun[id] + 1 && !self.is(CountAtEnd) {
            s.history.break_promise(Promise::AttemptsGrowByOne);
        }
        s.history.begun[id] = attempt;
        let stored = if self.is(CountAtEnd) { row.attempt } else { attempt };
        s.slots[id] = Slot::Live(Row { attempt: stored, epoch, ..row });
        Answer::Attempt(attempt)
    }

    /// Reads a page of one row. A page that is shorter than asked for is the end of the list.
    pub(crate) fn load(&self, s: &State, instance: u8, from: u8) -> Answer {
        let is_next = |id: usize, row: &Row| {
            let pending =
                if self.is(LoadOnlyNull) { row.epoch == 0 } else { row.epoch < s.shards[row.shard as usize].1 };
            owns(s, instance, row) && (pending || self.is(LoadRunning)) && position(row.due, id) >= from
        };
        let rows = (0..ROWS).filter_map(|id| s.live(id).filter(|row| is_next(id, row)).map(|row| (row.due, id)));
        let mut page = [0; ROWS];
        let Some((due, id)) = rows.min() else { return Answer::Rows(page, INFINITY) };
        page[id] = due;
        let next = position(due, id) + 1;
        let bound = match self.mutant {
            Some(FullPageIsTheEnd) => INFINITY,
            Some(BoundSkipsOne) => next + 1,
            Some(BoundStandsStill) => next - 1,
            _ => next,
        };
        Answer::Rows(page, bound)
    }

    pub(crate) fn take_over(&self, s: &mut State, instance: u8, other: u8) {
        if !self.is(TakeOverLeavesAlive) {
            s.alive &= !(1 << other);
        }
        for (owner, epoch) in s.shards.iter_mut().filter(|(owner, _)| *owner == other) {
            (*owner, *epoch) = (instance, *epoch + u8::from(!self.is(TakeOverKeepsEpoch)));
        }
        let is_of = |node: &&mut Node| (node.tried | 1 << node.instance) & 1 << other != 0;
        for node in s.nodes.iter_mut().filter(is_of) {
            node.orphaned |= (0..ROWS).filter(|id| node.running[*id] != 0).fold(0, |set, id| set | 1 << id);
            s.history.finished &= !node.orphaned;
        }
    }

    /// Records that a call changes a row. Nobody but its handler may change one whose attempt runs.
    fn leave_running(&self, s: &mut State, id: usize, row: Row) {
        let runs = |node: &Node| node.up && node.running[id] == row.attempt && !has(node.orphaned | node.ended, id);
        if row.epoch != 0 && s.nodes.iter().any(runs) {
            s.history.break_promise(Promise::RunningIsLeftAlone);
        }
    }

    /// Ends a life. Leaves a tombstone if an insert of the id may still arrive. Then the id is
    /// young, and its maker may not know that the store has accepted it.
    fn end(&self, s: &mut State, instance: u8, id: usize) {
        s.history.ended |= 1 << id;
        let unsure = match s.maker[id] {
            OUTSIDE => true,
            maker => maker != instance && !self.is(TombstoneOnlyForCallers),
        };
        let buried = unsure && self.is_young(s, id) && !self.is(NoTombstone);
        s.slots[id] = if buried { Slot::Tombstone } else { Slot::Absent };
    }

    /// Returns `true` if a handler may work on the row, or a call is queued beside it. In an
    /// exclusive store, a handler of an earlier process is dead.
    fn is_begun(&self, s: &State, row: Row) -> bool {
        let opened = if self.is(CallsIgnoreHandlers) { s.shards[row.shard as usize].1 } else { s.opened };
        row.epoch != 0 && (row.epoch >= opened || !self.exclusive || s.queued().is_some())
    }

    pub(crate) fn is_young(&self, s: &State, id: usize) -> bool {
        s.now < s.birth[id] + WINDOW
    }

    /// Returns the row that a cancel or a reset addresses, by its key if rows have one, else by its
    /// id.
    fn target(&self, s: &State, id: usize) -> Option<(usize, Row)> {
        if self.if_pending.is_empty() { s.live(id).map(|row| (id, row)) } else { self.holder(s) }
    }

    /// Returns the live row that has the key.
    fn holder(&self, s: &State) -> Option<(usize, Row)> {
        if self.if_pending.is_empty() {
            return None;
        }
        (0..ROWS).find_map(|id| s.live(id).map(|row| (id, row)))
    }

    /// Returns the row if `attempt` is the one that the store has begun last and not ended.
    fn begun_by(&self, s: &State, id: u8, attempt: u8) -> Option<Row> {
        let row = s.live(id as usize)?;
        let stored = if self.is(CountAtEnd) { row.attempt + 1 } else { row.attempt };
        let begun = row.epoch != 0 || self.is(ResultOfPending);
        ((stored == attempt || self.is(ResultOfAnyAttempt)) && begun).then_some(row)
    }
}

/// Returns `true` if a call with this row ends the row `held` and takes its place.
fn replaces(if_pending: IfPending, row: Row, held: Row) -> bool {
    match if_pending {
        Keep | Refuse => false,
        Replace => true,
        Earlier => row.due < held.due,
        Later => row.due > held.due,
    }
}

/// Returns `true` if the row is in a shard of `instance`.
pub(crate) fn owns(s: &State, instance: u8, row: &Row) -> bool {
    s.shards[row.shard as usize].0 == instance
}
