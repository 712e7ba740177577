//! A node: applies the answers of the store to its memory, and replaces itself after a lost answer.
//!
//! The keeper of the product does the same. It has one transaction under way at a time, so its own
//! inserts, loads and begins are serial.

use crate::configurations::Protocol;
use crate::mutants::Mutant::*;
use crate::properties::Promise;
use crate::state::{INFINITY, NODES, Node, ROWS, SHARDS, State, Step, has, position};
use crate::transaction::{
    Answer,
    Transaction::{self, *},
};

impl Protocol {
    /// Applies the answer of the store that the node has received.
    pub(crate) fn apply(&self, s: &mut State, n: usize) {
        let Step::Answered(transaction, answer) = s.nodes[n].step else { return };
        let mut node = s.nodes[n];
        node.step = Step::Idle;
        if answer == Answer::Fenced {
            if let Insert { id, .. } = transaction {
                s.history.refused |= 1 << id;
            }
            node.step = Step::Broken;
        } else {
            self.apply_to_memory(s, n, &mut node, transaction, answer);
            self.retreat(&mut node);
        }
        s.nodes[n] = node;
    }

    fn apply_to_memory(&self, s: &mut State, n: usize, node: &mut Node, transaction: Transaction, answer: Answer) {
        match (transaction, answer) {
            (Insert { .. }, Answer::Refused) => {}
            (Insert { id, due, foreign, .. }, answer) => {
                s.history.accepted |= 1 << id;
                match answer {
                    Answer::Done if !foreign => self.put(node, id as usize, due),
                    // The row is not pending, and a sweep finds it when it is.
                    Answer::Queued(_) => {}
                    // The store has moved the holder of the key to this due time, and into this
                    // shard.
                    Answer::Changed(holder) if !foreign => self.put(node, holder as usize, due),
                    _ => {}
                }
                if matches!(answer, Answer::Kept(_) | Answer::Changed(_)) {
                    // The caller was told of the other timeout, and this id never lived.
                    s.history.accepted &= !(1 << id);
                }
            }
            (Cancel { .. }, Answer::Changed(id)) => {
                if !self.is(CancelKeepsMemory) {
                    node.memory[id as usize] = 0;
                }
                self.cancelled(s, id as usize);
            }
            (Reset { due, .. }, Answer::Changed(id)) => {
                let known = node.memory[id as usize] != 0;
                if !self.is(ResetLeavesMemory) && (known || !self.is(ResetFlags)) {
                    self.put(node, id as usize, due);
                }
            }
            (Begin { id }, Answer::Attempt(attempt)) => {
                node.memory[id as usize] = 0;
                self.start(s, n, node, id as usize, attempt);
            }
            (Begin { id }, Answer::NotYet(due)) => self.put(node, id as usize, due),
            (Begin { id }, _) => node.memory[id as usize] = 0,
            (Done { id, .. } | Bury { id, .. }, answer) => {
                self.forget_run(node, id as usize);
                if answer == Answer::Done {
                    node.memory[id as usize] = 0;
                }
            }
            (Retry { id, due, foreign, .. }, answer) => {
                self.forget_run(node, id as usize);
                if answer == Answer::Done && !foreign && !self.is(RetryLeavesMemory) {
                    self.put(node, id as usize, due);
                }
            }
            (Requeue { id, due, .. }, Answer::Done) => self.put(node, id as usize, due),
            (Load { .. }, Answer::Rows(page, bound)) => self.put_page(node, page, bound),
            (Sweep, Answer::Rows(rows, _)) => {
                for (id, due) in rows.into_iter().enumerate().filter(|(_, due)| *due != 0) {
                    self.put(node, id, due);
                }
                if self.is(SweepInTwoSteps) {
                    node.step = Step::Sent(Unflag);
                }
            }
            (Renew, _) => node.lease = !has(s.lapsed, node.instance as usize) && s.is_alive(node.instance),
            (TakeOver { .. } | Take { .. }, Answer::Shards(own)) => {
                if own != node.own && !self.is(TakeOverKeepsBound) {
                    // Rows of the new shards may lie before the bound. The memory goes as well,
                    // because an entry beyond the bound would take the place of a row that is due
                    // earlier.
                    node.bound = 0;
                    if !self.is(TakeOverKeepsMemory) {
                        node.memory = [0; ROWS];
                    }
                }
                node.own = own;
            }
            (Release { shard, .. }, _) => node.own[shard as usize] = 0,
            _ => {}
        }
    }

    /// Puts an entry into memory if it lies before the bound. Otherwise an older entry of the same
    /// row is out of date, and goes.
    fn put(&self, node: &mut Node, id: usize, due: u8) {
        let in_head = position(due, id) < node.bound || self.is(PutBeyondBound);
        node.memory[id] = if in_head { due } else { 0 };
    }

    pub(crate) fn put_page(&self, node: &mut Node, page: [u8; ROWS], bound: u8) {
        node.bound = bound;
        for (id, due) in page.into_iter().enumerate().filter(|(_, due)| *due != 0) {
            if !(self.is(LoadSkipsRunningHere) && node.running[id] != 0) {
                self.put(node, id, due);
            }
        }
    }

    /// Drops the latest entries until the rest fits, and lowers the bound to the first of them.
    fn retreat(&self, node: &mut Node) {
        while node.loaded() > self.capacity {
            let entries = (0..ROWS).filter(|id| node.memory[*id] != 0);
            let key = |id: &usize| position(node.memory[*id], *id);
            let dropped = if self.is(RetreatDropsFirst) { entries.min_by_key(key) } else { entries.max_by_key(key) };
            let Some(id) = dropped else { return };
            if !self.is(RetreatKeepsBound) {
                let latest = (0..ROWS).map(|id| position(node.memory[id], id)).max().unwrap_or(INFINITY);
                node.bound = node.bound.min(if self.is(RetreatDropsFirst) { latest } else { key(&id) });
            }
            node.memory[id] = 0;
        }
    }

    fn forget_run(&self, node: &mut Node, id: usize) {
        node.ended &= !(1 << id);
        node.retrying &= !(1 << id);
        node.running[id] = 0;
    }

    /// Hands an attempt to its handler.
    pub(crate) fn start(&self, s: &mut State, n: usize, node: &mut Node, id: usize, attempt: u8) {
        if has(s.history.started[id], attempt as usize) {
            s.history.break_promise(Promise::AttemptsGrowByOne);
        }
        s.history.started[id] |= 1 << attempt;
        for (m, other) in s.nodes.iter().enumerate().take(NODES) {
            // A handler whose lease is over may still run; the attempt tells the two apart.
            let counts = m == n || other.lease;
            if other.up && other.running[id] != 0 && !has(other.orphaned | other.ended, id) && counts {
                s.history.break_promise(Promise::OneHandlerAtATime);
            }
        }
        node.running[id] = attempt;
        node.orphaned &= !(1 << id);
    }

    /// Records that a caller was told `Cancelled`.
    fn cancelled(&self, s: &mut State, id: usize) {
        s.history.cancelled |= 1 << id;
        let runs = |node: &Node| node.up && node.running[id] != 0 && !has(node.orphaned | node.ended, id);
        if s.nodes.iter().any(runs) {
            s.history.break_promise(Promise::CancelledStaysSo);
        }
    }

    /// Replaces a node whose answer was lost, or a process that was started again, by a new
    /// instance.
    ///
    /// One transaction fences the old instance and raises the epochs of its shards. On a server it
    /// waits for transactions of the old instance that are under way. Handlers that still run here
    /// stay, and the new instance sends their results again.
    pub(crate) fn rejoin(&self, s: &mut State, n: usize) {
        let before = s.nodes[n];
        let instance = self.new_instance(s, n);
        let node = &mut s.nodes[n];
        *node = Node::fresh(instance, [0; SHARDS]);
        if before.up {
            *node = Node {
                running: before.running,
                ended: before.ended,
                retrying: before.retrying,
                orphaned: before.orphaned,
                ..*node
            };
            if self.is(RejoinDropsResults) {
                node.running = std::array::from_fn(|id| if has(node.ended, id) { 0 } else { node.running[id] });
                (node.ended, node.retrying) = (0, 0);
            }
            if self.is(RejoinKeepsMemory) {
                (node.memory, node.bound) = (before.memory, before.bound);
            }
        }
        s.nodes[n].own = s.owned_by(instance);
        if !before.up {
            s.opened = s.shards[0].1;
        }
    }

    /// Executes the transaction of a rejoin whose answer is lost. The node has made the instance's
    /// id, and names it in its next rejoin.
    pub(crate) fn rejoin_in_vain(&self, s: &mut State, n: usize) {
        let instance = self.new_instance(s, n);
        s.nodes[n].tried |= 1 << instance;
    }

    fn new_instance(&self, s: &mut State, n: usize) -> u8 {
        let node = s.nodes[n];
        let instance = if self.is(SameInstance) { node.instance } else { s.next_instance };
        s.next_instance = s.next_instance.max(instance + 1);
        // A process that was started again does not know its predecessor, unless the store is its
        // own.
        if node.up || self.exclusive {
            let tried = if self.is(RejoinForgetsTried) { 0 } else { node.tried };
            let before = tried | 1 << node.instance;
            let raise = u8::from(!self.is(RejoinKeepsEpoch));
            for (owner, epoch) in s.shards.iter_mut().filter(|(owner, _)| has(before, *owner as usize)) {
                (*owner, *epoch) = (instance, *epoch + raise);
            }
            if !self.is(RejoinLeavesAlive) {
                s.alive &= !before;
            }
        }
        s.alive |= 1 << instance;
        s.lapsed &= !(1 << instance);
        instance
    }
}
