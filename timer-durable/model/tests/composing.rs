//! The choice of the next transaction of a node, from the calls of its program and the duties of
//! its keeper.

use crate::configurations::Protocol;
use crate::mutants::Mutant::*;
use crate::state::{INFINITY, ROWS, SHARDS, Slot, State, Step, has};
use crate::store::owns;
use crate::transaction::{
    IfPending,
    Transaction::{self, *},
};

impl Protocol {
    /// Returns the transactions that an idle node may send.
    pub(crate) fn transactions(&self, s: &State, n: usize) -> Vec<Transaction> {
        let mut list = Vec::new();
        self.calls(s, n, &mut list);
        self.duties(s, n, &mut list);
        list
    }

    /// Adds the transactions of callers.
    fn calls(&self, s: &State, n: usize, list: &mut Vec<Transaction>) {
        let node = &s.nodes[n];
        let shard = node.shard().unwrap_or(0);
        let foreign = node.shard().is_none();
        let dues = 1..=self.last_due;
        let policies = if self.if_pending.is_empty() { &[IfPending::Keep] } else { self.if_pending };
        let may_repeat = |id: &usize| {
            // A caller repeats a call with the id that it has made, or with the id in the error of
            // a call whose outcome is unknown.
            s.left.repeat > 0 && s.birth[*id] != 0 && (self.caller_ids || has(s.history.unknown, *id))
        };
        for id in self.unused_id(s).into_iter().chain((0..self.rows).filter(may_repeat)) {
            for due in dues.clone() {
                let insert = |if_pending: &_| Insert { id: id as u8, due, shard, foreign, if_pending: *if_pending };
                list.extend(policies.iter().map(insert));
            }
        }
        for (id, slot) in (0..self.rows as u8).zip(s.slots) {
            match slot {
                Slot::Live(row) => {
                    if s.left.cancel > 0 {
                        list.push(Cancel { id });
                    }
                    if s.left.reset > 0 && !foreign {
                        let others = dues.clone().filter(|due| *due != row.due);
                        list.extend(others.map(|due| Reset { id, due, shard }));
                    }
                }
                Slot::Buried(_) if s.left.operate > 0 => {
                    list.push(Purge { id });
                    if !foreign {
                        list.push(Requeue { id, due: self.last_due, shard });
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the transactions that the keeper sends by itself.
    pub(crate) fn duties(&self, s: &State, n: usize, list: &mut Vec<Transaction>) {
        let node = &s.nodes[n];
        list.extend((0..self.rows).filter(|id| self.may_begin(s, n, *id)).map(|id| Begin { id: id as u8 }));
        for id in (0..self.rows as u8).filter(|id| node.running[*id as usize] != 0) {
            let attempt = node.running[id as usize];
            let ended = has(node.ended, id as usize);
            let retrying = has(node.retrying, id as usize);
            // A result whose answer was lost is sent again as it was.
            if !retrying {
                list.push(Done { id, attempt });
            }
            if retrying || (!ended && s.left.retry > 0) {
                let shard = node.shard().unwrap_or(0);
                let foreign = node.shard().is_none();
                list.push(Retry { id, attempt, due: self.last_due, shard, foreign });
            }
            if s.left.bury > 0 && !ended {
                list.push(Bury { id, attempt });
            }
        }
        if !self.is(LoadBesideKeeper) && node.bound != INFINITY && node.loaded() < self.capacity {
            list.push(Load { from: node.bound });
        }
        if (0..self.rows).any(|id| s.live(id).is_some_and(|row| row.foreign && owns(s, node.instance, &row))) {
            list.push(Sweep);
        }
        if self.expires(s) {
            list.push(Expire);
        }
        if !self.exclusive {
            self.lease_duties(s, n, list);
        }
    }

    /// Returns `true` if the entry is due by the node's idea of the store's clock, which may be one
    /// tick ahead. An attempt that still runs here is not begun again.
    pub(crate) fn may_begin(&self, s: &State, n: usize, id: usize) -> bool {
        let node = &s.nodes[n];
        let free = node.running[id] == 0 || self.is(LoadRunning);
        node.memory[id] != 0 && node.memory[id] <= s.now + 1 && free && node.lease
    }

    /// Returns `true` if an expiry of tombstones would remove one.
    fn expires(&self, s: &State) -> bool {
        (0..ROWS).any(|id| s.slots[id] == Slot::Tombstone && (!self.is_young(s, id) || self.is(TombstoneExpiresEarly)))
    }

    fn lease_duties(&self, s: &State, n: usize, list: &mut Vec<Transaction>) {
        let node = &s.nodes[n];
        if !node.lease {
            list.push(Renew);
        }
        let others = (1..s.next_instance).filter(|other| *other != node.instance);
        list.extend(
            others
                .filter(|other| has(s.alive, *other as usize) && has(s.lapsed, *other as usize))
                .map(|instance| TakeOver { instance }),
        );
        for shard in 0..SHARDS as u8 {
            if s.shards[shard as usize].0 == 0 {
                list.push(Take { shard });
            }
            if node.own[shard as usize] != 0 && s.left.release > 0 {
                let moved = (0..ROWS).filter(|id| node.running[*id] != 0).fold(0, |set, id| set | 1 << id);
                let kept = (0..SHARDS as u8).find(|to| *to != shard && node.own[*to as usize] != 0);
                match kept {
                    Some(_) if self.is(ReleaseLeavesRunning) => list.push(Release { shard, to: shard, moved: 0 }),
                    Some(to) => list.push(Release { shard, to, moved }),
                    // A node that keeps no shard waits until no handler runs.
                    None if moved == 0 || self.is(ReleaseLeavesRunning) => {
                        list.push(Release { shard, to: shard, moved: 0 });
                    }
                    None => {}
                }
            }
        }
    }

    /// Sends a transaction. The node keeps it until the answer arrives.
    pub(crate) fn send(&self, s: &mut State, n: usize, transaction: Transaction) {
        let node = &mut s.nodes[n];
        node.step = Step::Sent(transaction);
        match transaction {
            Insert { id, .. } => {
                let instance = node.instance;
                s.left.repeat -= u8::from(s.birth[id as usize] != 0);
                self.make_id(s, id as usize, instance);
                if self.is(AnswerBeforeCommit) {
                    s.history.accepted |= 1 << id;
                }
            }
            Cancel { id } => {
                s.left.cancel -= 1;
                if self.is(CancelledBeforeCommit) {
                    s.history.cancelled |= 1 << id;
                }
            }
            Reset { .. } => s.left.reset -= 1,
            Begin { id } if self.is(StartBeforeCommit) => {
                let mut node = *node;
                let attempt = s.live(id as usize).map_or(1, |row| row.attempt + 1);
                self.start(s, n, &mut node, id as usize, attempt);
                s.nodes[n] = node;
            }
            Done { id, .. } => {
                if !has(node.ended | node.orphaned, id as usize) {
                    s.history.finished |= 1 << id;
                }
                node.ended |= 1 << id;
            }
            Retry { id, .. } => {
                s.left.retry -= u8::from(!has(node.ended, id as usize));
                node.ended |= 1 << id;
                node.retrying |= 1 << id;
            }
            Bury { id, .. } => {
                s.left.bury -= 1;
                node.ended |= 1 << id;
            }
            Requeue { .. } | Purge { .. } => s.left.operate -= 1,
            Release { shard, .. } => {
                s.left.release -= 1;
                if !self.is(ReleaseThenForget) {
                    node.own[shard as usize] = 0;
                }
            }
            _ => {}
        }
    }
}
