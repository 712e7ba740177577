//! The bounded configurations that are explored completely.

use crate::mutants::Mutant;
use crate::state::Budget;
use crate::transaction::IfPending::{self, *};

/// The protocol in one configuration, perhaps with a fault built in.
#[derive(Clone, Debug)]
pub(crate) struct Protocol {
    pub(crate) name: &'static str,
    /// The store belongs to one process, as an SQLite file does, so a start proves that the process
    /// before it is dead. Otherwise two nodes share the store.
    pub(crate) exclusive: bool,
    /// A transaction of a broken connection may be executed later.
    pub(crate) late: bool,
    /// Callers make the ids, and may repeat a call at any time.
    pub(crate) caller_ids: bool,
    /// The policies of inserts that share one key. Empty: no row has a key.
    pub(crate) if_pending: &'static [IfPending],
    pub(crate) rows: usize,
    /// The number of entries that a node keeps in memory.
    pub(crate) capacity: usize,
    /// The attempts after which a row that is begun again becomes a dead letter.
    pub(crate) attempts: u8,
    /// Due times go from 1 to this, and the clock with them.
    pub(crate) last_due: u8,
    pub(crate) budget: Budget,
    pub(crate) mutant: Option<Mutant>,
    /// Left to the long run.
    pub(crate) long: bool,
}

impl Protocol {
    pub(crate) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub(crate) fn nodes(&self) -> usize {
        if self.exclusive { 1 } else { 2 }
    }
}

const NONE: Budget = Budget {
    crash: 0,
    start: 0,
    lapse: 0,
    broken: 0,
    pause: 0,
    delay: 0,
    cancel: 0,
    reset: 0,
    retry: 0,
    bury: 0,
    operate: 0,
    foreign: 0,
    release: 0,
    repeat: 0,
};

const ONE_NODE: Protocol = Protocol {
    name: "",
    exclusive: true,
    late: false,
    caller_ids: false,
    if_pending: &[],
    rows: 1,
    capacity: 1,
    attempts: 9,
    last_due: 2,
    budget: NONE,
    mutant: None,
    long: false,
};

const TWO_NODES: Protocol = Protocol { exclusive: false, late: true, ..ONE_NODE };

/// Every configuration. The names are also the ones that mutants refer to.
pub(crate) const ALL: &[Protocol] = &[
    Protocol {
        name: "one node: calls",
        rows: 2,
        budget: Budget { cancel: 1, reset: 1, retry: 1, pause: 1, delay: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol { name: "one node: three rows", rows: 3, budget: Budget { reset: 1, cancel: 1, ..NONE }, ..ONE_NODE },
    Protocol {
        name: "one node: crash",
        rows: 2,
        budget: Budget { crash: 1, start: 1, cancel: 1, reset: 1, retry: 1, pause: 1, delay: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol {
        name: "one node: lost answer",
        rows: 2,
        budget: Budget { broken: 1, start: 1, cancel: 1, reset: 1, retry: 1, pause: 1, delay: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol {
        name: "one node: crash twice, poison",
        attempts: 2,
        budget: Budget { crash: 3, start: 3, cancel: 1, retry: 1, operate: 1, pause: 1, delay: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol {
        name: "one node: dead letters",
        rows: 2,
        budget: Budget { bury: 1, operate: 2, cancel: 1, crash: 1, start: 1, pause: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol {
        name: "one node: key",
        rows: 3,
        if_pending: &[Keep, Replace, Earlier, Later, Refuse],
        budget: Budget { cancel: 1, reset: 1, retry: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol {
        name: "one node: key, crash",
        rows: 2,
        if_pending: &[Keep, Replace, Earlier, Later, Refuse],
        budget: Budget { crash: 1, start: 1, cancel: 1, retry: 1, repeat: 1, pause: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol {
        name: "one node: repeated calls",
        rows: 1,
        caller_ids: true,
        budget: Budget { broken: 1, crash: 1, start: 2, cancel: 1, repeat: 2, retry: 1, pause: 1, delay: 1, ..NONE },
        ..ONE_NODE
    },
    Protocol { name: "two nodes: clients", rows: 2, budget: Budget { reset: 1, foreign: 2, ..NONE }, ..TWO_NODES },
    Protocol {
        name: "two nodes: calls, clients",
        rows: 2,
        budget: Budget { cancel: 1, reset: 1, foreign: 2, retry: 1, pause: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: take-over",
        rows: 2,
        budget: Budget { lapse: 1, start: 1, pause: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: take-over, calls",
        budget: Budget { lapse: 1, start: 1, reset: 1, cancel: 1, retry: 1, pause: 1, delay: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: take-over twice",
        budget: Budget { lapse: 2, start: 2, retry: 1, pause: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: take-over, room",
        capacity: 2,
        budget: Budget { lapse: 1, start: 1, retry: 1, pause: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: crash",
        budget: Budget { crash: 1, lapse: 1, start: 1, pause: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: crash, calls",
        budget: Budget { crash: 1, lapse: 1, start: 1, cancel: 1, foreign: 1, retry: 1, pause: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: crash twice",
        budget: Budget { crash: 2, lapse: 1, start: 2, pause: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol { name: "two nodes: release", rows: 2, budget: Budget { release: 1, retry: 1, ..NONE }, ..TWO_NODES },
    Protocol {
        name: "two nodes: release, pause",
        rows: 2,
        budget: Budget { release: 1, retry: 1, pause: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: release, calls",
        budget: Budget { release: 1, lapse: 1, start: 1, reset: 1, foreign: 1, retry: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: lost answer",
        budget: Budget { broken: 1, start: 2, cancel: 1, reset: 1, foreign: 1, retry: 1, pause: 1, delay: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: lost answer, take-over",
        budget: Budget { broken: 1, lapse: 1, start: 2, retry: 1, pause: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: lost rejoin",
        budget: Budget { broken: 2, start: 3, lapse: 1, retry: 1, pause: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: three rows",
        rows: 3,
        budget: Budget { reset: 1, foreign: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: insert in doubt",
        budget: Budget { broken: 1, start: 1, lapse: 1, cancel: 1, repeat: 1, pause: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: insert in doubt, crash",
        budget: Budget { broken: 1, crash: 1, lapse: 1, start: 1, cancel: 1, repeat: 1, pause: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: repeated calls",
        caller_ids: true,
        budget: Budget { broken: 1, start: 1, cancel: 1, repeat: 1, pause: 1, delay: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: repeated calls, take-over",
        caller_ids: true,
        budget: Budget { broken: 1, lapse: 1, start: 1, cancel: 1, repeat: 1, pause: 1, delay: 1, ..NONE },
        long: true,
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: clients in doubt",
        caller_ids: true,
        budget: Budget { broken: 1, foreign: 1, cancel: 1, repeat: 1, retry: 1, ..NONE },
        ..TWO_NODES
    },
    Protocol {
        name: "two nodes: key",
        rows: 2,
        if_pending: &[Keep, Replace, Earlier, Later, Refuse],
        budget: Budget { cancel: 1, foreign: 1, retry: 1, ..NONE },
        ..TWO_NODES
    },
];
