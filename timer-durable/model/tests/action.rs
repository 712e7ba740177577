//! The actions of the model. They are the steps of a transaction, the faults, and the calls of
//! programs that are not nodes.

use std::fmt;

use crate::transaction::Transaction;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    Tick,
    /// A client that is not a node inserts a new row.
    ClientInserts {
        id: u8,
        due: u8,
        shard: u8,
    },
    /// The same, and the client loses its connection before the store executes the insert.
    ClientLosesInsert {
        id: u8,
        due: u8,
        shard: u8,
    },
    ClientResets {
        id: u8,
        due: u8,
    },
    ClientCancels {
        id: u8,
    },
    /// The node sends a transaction, the store executes it, and the node applies the answer.
    Do(u8, Transaction),
    Send(u8, Transaction),
    /// The store executes the transaction under way, and the node applies the answer.
    Finish(u8),
    Execute(u8),
    Apply(u8),
    Lapse(u8),
    Crash(u8),
    Restart(u8),
    Break(u8),
    Rejoin(u8),
    RejoinInVain(u8),
    /// The store executes the transaction of a broken connection.
    ExecuteLate,
    /// A loader beside the keeper reads or applies a page. Only mutants do it.
    ReadPage(u8),
    ApplyPage(u8),
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tick => write!(f, "the store's clock advances"),
            Self::ClientInserts { id, due, shard } => write!(f, "a client inserts row {id}, due {due}, shard {shard}"),
            Self::ClientLosesInsert { id, due, shard } => {
                write!(f, "a client sends an insert of row {id}, due {due}, shard {shard}, and loses its connection")
            }
            Self::ClientResets { id, due } => write!(f, "a client resets row {id} to {due}"),
            Self::ClientCancels { id } => write!(f, "a client cancels row {id}"),
            Self::Do(n, transaction) => write!(f, "N{n} {transaction:?}"),
            Self::Send(n, transaction) => write!(f, "N{n} sends {transaction:?}"),
            Self::Finish(n) => write!(f, "the store executes it, N{n} applies the answer"),
            Self::Execute(n) => write!(f, "the store executes it, the answer is on its way to N{n}"),
            Self::Apply(n) => write!(f, "N{n} applies the answer"),
            Self::Lapse(n) => write!(f, "the lease of N{n} lapses"),
            Self::Crash(n) => write!(f, "N{n} crashes"),
            Self::Restart(n) => write!(f, "N{n} starts again"),
            Self::Break(n) => write!(f, "N{n} loses its connection"),
            Self::Rejoin(n) => write!(f, "N{n} rejoins as a new instance"),
            Self::RejoinInVain(n) => write!(f, "N{n} rejoins, and loses its connection before the answer"),
            Self::ExecuteLate => write!(f, "the store executes the transaction of the lost connection"),
            Self::ReadPage(n) => write!(f, "the loader of N{n} reads a page"),
            Self::ApplyPage(n) => write!(f, "the loader of N{n} applies its page"),
        }
    }
}
