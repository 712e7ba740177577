//! The state of the model: the store, the nodes, a transaction of a broken connection, and
//! a history.
//!
//! Everything is a small number, because a state is copied and hashed a million times. An id is an
//! index into arrays of [`ROWS`], a set of ids or of instances is a bit set, and zero stands for
//! "none" in due times, epochs and attempts.

use crate::transaction::{Answer, IfPending, Transaction};

pub(crate) const ROWS: usize = 3;
pub(crate) const SHARDS: usize = 2;
pub(crate) const NODES: usize = 2;

/// The instance of a program that is not a node, such as a client of the database or a caller that
/// made its own id.
pub(crate) const OUTSIDE: u8 = 0;

/// The bound of a node that has every pending row of its shards in memory.
pub(crate) const INFINITY: u8 = 255;

/// One timeout in the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Row {
    pub(crate) shard: u8,
    pub(crate) due: u8,
    pub(crate) attempt: u8,
    /// The attempts before the last requeue. The limit of attempts counts from here.
    pub(crate) forgiven: u8,
    /// The shard's epoch in which the row was begun. Zero if no attempt runs.
    pub(crate) epoch: u8,
    /// A writer that does not own the shard has changed the row, and the owner has to look at it.
    pub(crate) foreign: bool,
}

/// The place of an id in the primary key of the store.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Slot {
    Absent,
    Live(Row),
    /// A call that waits until the attempt has ended of the row with its key.
    Queued(Row, IfPending),
    /// The id has ended. The slot stays taken, so that a late insert of the same id has no effect.
    Tombstone,
    /// A dead letter.
    Buried(Row),
}

/// The connection of a node to the store. A node has one transaction under way at a time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    Idle,
    Sent(Transaction),
    Answered(Transaction, Answer),
    /// The connection is broken, or the store has refused the instance. The node has to rejoin.
    Broken,
}

/// One process with its memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Node {
    pub(crate) up: bool,
    /// The identity in the store. Each start and each rejoin takes a new one.
    pub(crate) instance: u8,
    /// Instances that a rejoin may have made, because its answer was lost.
    pub(crate) tried: u8,
    /// Whether the lease holds by the node's own clock.
    pub(crate) lease: bool,
    /// The epochs of the shards that the node believes to own.
    pub(crate) own: [u8; SHARDS],
    /// The due times of the entries in memory.
    pub(crate) memory: [u8; ROWS],
    /// Every pending row of the node's shards before this position is in memory.
    pub(crate) bound: u8,
    /// The attempts whose handlers run here.
    pub(crate) running: [u8; ROWS],
    /// The handlers that have ended while the store has not confirmed their results.
    pub(crate) ended: u8,
    /// The handlers among them that asked for a retry.
    pub(crate) retrying: u8,
    /// The handlers whose shard another instance has taken. Only properties read it.
    pub(crate) orphaned: u8,
    /// A page that was read while other transactions went on. Only mutants use it.
    pub(crate) page: Option<([u8; ROWS], u8)>,
    pub(crate) step: Step,
}

/// How often each fault and each costly choice may still happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Budget {
    /// Crashes of a node.
    pub(crate) crash: u8,
    /// Starts and rejoins, each of which takes an instance.
    pub(crate) start: u8,
    /// Leases that lapse while their node lives.
    pub(crate) lapse: u8,
    /// Connections that break with a transaction under way.
    pub(crate) broken: u8,
    /// Transactions that are sent, and executed later.
    pub(crate) pause: u8,
    /// Answers that arrive later than their transaction is executed.
    pub(crate) delay: u8,
    pub(crate) cancel: u8,
    pub(crate) reset: u8,
    pub(crate) retry: u8,
    pub(crate) bury: u8,
    /// Requeues and purges of dead letters.
    pub(crate) operate: u8,
    /// Inserts and resets by programs that own no shard.
    pub(crate) foreign: u8,
    /// Shards that a node gives back.
    pub(crate) release: u8,
    /// Inserts of an id that was inserted before.
    pub(crate) repeat: u8,
}

/// The answers that callers got, and the events that properties need. Nothing else reads it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct History {
    /// Ids whose insert was answered with success.
    pub(crate) accepted: u8,
    /// Ids whose insert was answered with a definite failure.
    pub(crate) refused: u8,
    /// Ids whose insert was answered with "unknown".
    pub(crate) unknown: u8,
    /// Ids whose cancel was answered with success.
    pub(crate) cancelled: u8,
    /// Ids that have ended in the store.
    pub(crate) ended: u8,
    /// The last attempt that the store has begun.
    pub(crate) begun: [u8; ROWS],
    /// Ids whose last attempt has succeeded on a node that is alive and owns the row.
    pub(crate) finished: u8,
    /// The attempts that were handed to a handler, as bits.
    pub(crate) started: [u8; ROWS],
    /// Promises that a step has broken.
    pub(crate) broken: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    /// The store's clock.
    pub(crate) now: u8,
    pub(crate) slots: [Slot; ROWS],
    /// When each id was made, plus one. The id itself carries it.
    pub(crate) birth: [u8; ROWS],
    /// The instance that made each id. The id itself carries it.
    pub(crate) maker: [u8; ROWS],
    /// The owner of each shard (zero if nobody owns it) and its epoch.
    pub(crate) shards: [(u8, u8); SHARDS],
    /// The epoch of an exclusive store when its process has opened it.
    pub(crate) opened: u8,
    /// The instances that are not fenced.
    pub(crate) alive: u8,
    /// The instances whose lease has lapsed by the store's clock.
    pub(crate) lapsed: u8,
    pub(crate) next_instance: u8,
    pub(crate) nodes: [Node; NODES],
    /// A transaction of a broken connection which the store may still execute, and its instance.
    pub(crate) late: Option<(u8, Transaction)>,
    pub(crate) left: Budget,
    pub(crate) history: History,
}

impl Node {
    /// A node without memory, as after a start.
    pub(crate) fn fresh(instance: u8, own: [u8; SHARDS]) -> Self {
        Self {
            up: true,
            instance,
            tried: 0,
            lease: true,
            own,
            memory: [0; ROWS],
            bound: 0,
            running: [0; ROWS],
            ended: 0,
            retrying: 0,
            orphaned: 0,
            page: None,
            step: Step::Idle,
        }
    }

    pub(crate) fn loaded(&self) -> usize {
        self.memory.iter().filter(|due| **due != 0).count()
    }

    /// Returns the first shard that the node believes to own.
    pub(crate) fn shard(&self) -> Option<u8> {
        (0..SHARDS as u8).find(|shard| self.own[*shard as usize] != 0)
    }
}

impl State {
    pub(crate) fn live(&self, id: usize) -> Option<Row> {
        if let Slot::Live(row) = self.slots[id] { Some(row) } else { None }
    }

    /// Returns the call that is queued. All rows with a key have the same one.
    pub(crate) fn queued(&self) -> Option<(usize, Row, IfPending)> {
        let queued =
            |id: usize| if let Slot::Queued(row, rule) = self.slots[id] { Some((id, row, rule)) } else { None };
        (0..ROWS).find_map(queued)
    }

    pub(crate) fn is_alive(&self, instance: u8) -> bool {
        instance == OUTSIDE || has(self.alive, instance as usize)
    }

    /// Returns the epochs of the shards that `instance` owns, and zero for the others.
    pub(crate) fn owned_by(&self, instance: u8) -> [u8; SHARDS] {
        self.shards.map(|(owner, epoch)| if owner == instance { epoch } else { 0 })
    }
}

/// The position of a row in the list, in the order of due time and id.
pub(crate) fn position(due: u8, id: usize) -> u8 {
    due * ROWS as u8 + id as u8
}

pub(crate) fn has(set: u8, index: usize) -> bool {
    set & 1 << index != 0
}
