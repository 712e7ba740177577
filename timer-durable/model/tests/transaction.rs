//! The transactions of a node, with the names that the product gives to them, and the answers.

use crate::state::{ROWS, SHARDS};

/// The effect of an insert whose key has a pending timeout already.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum IfPending {
    Keep,
    Replace,
    Earlier,
    Later,
    Refuse,
}

/// One transaction. The product writes many of them in one commit; the model has one at a time,
/// because a commit orders the parts of a batch and no id is in a batch twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Transaction {
    /// `foreign` is set by a writer that owns no shard.
    Insert {
        id: u8,
        due: u8,
        shard: u8,
        foreign: bool,
        if_pending: IfPending,
    },
    Cancel {
        id: u8,
    },
    Reset {
        id: u8,
        due: u8,
        shard: u8,
    },
    Begin {
        id: u8,
    },
    Done {
        id: u8,
        attempt: u8,
    },
    /// `foreign` is set by a node that owns no shard it could move the row to.
    Retry {
        id: u8,
        attempt: u8,
        due: u8,
        shard: u8,
        foreign: bool,
    },
    Bury {
        id: u8,
        attempt: u8,
    },
    Requeue {
        id: u8,
        due: u8,
        shard: u8,
    },
    Purge {
        id: u8,
    },
    Load {
        from: u8,
    },
    /// Collects the rows of the node's shards that others have written.
    Sweep,
    /// The second half of a sweep that was split into two transactions. Only a mutant uses it.
    Unflag,
    /// Removes the tombstones that no insert can meet any more.
    Expire,
    Renew,
    TakeOver {
        instance: u8,
    },
    Take {
        shard: u8,
    },
    /// The rows in `moved`, whose handlers run here, go to the shard `to`.
    Release {
        shard: u8,
        to: u8,
        moved: u8,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Answer {
    /// The instance was taken over, and nothing was written.
    Fenced,
    Done,
    /// No row fits, or the id of an insert is older than the store accepts.
    Refused,
    /// The row that a cancel or a reset has changed.
    Changed(u8),
    /// The id of an insert is in the store already, alive or ended.
    Exists,
    /// The key has this pending timeout, which the insert has left alone.
    Kept(u8),
    /// The call of this id is queued beside the attempt of the key's row.
    Queued(u8),
    /// The row is pending and due later.
    NotYet(u8),
    Attempt(u8),
    /// Due times by id, and the bound behind the page.
    Rows([u8; ROWS], u8),
    Shards([u8; SHARDS]),
}
