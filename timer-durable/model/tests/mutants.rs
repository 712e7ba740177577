//! Faults that are built into the protocol, one at a time. The model has to catch each of them.

/// Whether the model catches a mutant.
pub(crate) enum Expected {
    /// A promise is broken in the configuration of this name.
    CaughtIn(&'static str),
    /// No promise is broken, for this reason.
    Harmless(&'static str),
}
use Expected::*;

macro_rules! mutants {
    ($($name:ident: $text:literal => $expected:expr;)*) => {
        /// A fault of the protocol.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) enum Mutant { $($name),* }

        /// Every mutant with its description.
        pub(crate) const ALL: &[(Mutant, &str, Expected)] = &[$((Mutant::$name, $text, $expected)),*];
    };
}

mutants! {
    // Memory and the bound.
    LoadBesideKeeper: "pages are read beside the keeper, and applied after its commits"
        => CaughtIn("one node: calls");
    FullPageIsTheEnd: "a full page sets the bound to infinity" => CaughtIn("one node: calls");
    BoundSkipsOne: "the bound behind a page skips one position" => CaughtIn("one node: calls");
    BoundStandsStill: "the bound behind a page is the page's last row" => CaughtIn("one node: calls");
    PutBeyondBound: "an entry beyond the bound is put into memory" => CaughtIn("one node: calls");
    RetreatKeepsBound: "a retreat leaves the bound where it is" => CaughtIn("one node: calls");
    RetreatDropsFirst: "a retreat drops the earliest entries" => CaughtIn("one node: calls");
    LoadOnlyNull: "a load leaves out rows that an older epoch has begun" => CaughtIn("one node: crash");
    LoadSkipsRunningHere: "a load leaves out rows whose handlers run here" => CaughtIn("one node: lost answer");
    LoadRunning: "a row whose handler runs is loaded and begun again" => CaughtIn("one node: lost answer");
    CancelKeepsMemory: "a cancel leaves the entry in memory"
        => Harmless("begin finds no row, and drops the entry; it lies before the bound and takes no other's place");
    ResetLeavesMemory: "a reset does not change the entry in memory" => CaughtIn("one node: calls");
    RetryLeavesMemory: "a retry does not put the row into memory" => CaughtIn("one node: calls");
    // Begin.
    BeginDropsNotYet: "begin does not tell a row that is due later from one that is gone"
        => CaughtIn("one node: calls");
    BeginEarly: "begin does not compare the due time with the store's clock" => CaughtIn("one node: calls");
    BeginAnyEpoch: "begin ignores the epoch of the row"
        => Harmless("the owner of a shard does not begin what it runs, and a rejoin raises the epoch");
    BeginOnlyNull: "begin refuses rows that an older epoch has begun" => CaughtIn("one node: crash");
    BeginAnyShard: "begin does not check that the shard is the node's" => CaughtIn("two nodes: take-over, calls");
    StartBeforeCommit: "the handler starts before begin is committed" => CaughtIn("one node: calls");
    CountAtEnd: "the attempt is counted when it ends" => CaughtIn("one node: calls");
    StartWithoutLease: "an attempt starts although the lease is over" => CaughtIn("two nodes: take-over, calls");
    // Results.
    ResultOfAnyAttempt: "done and retry ignore the attempt" => CaughtIn("two nodes: take-over");
    ResultOfPending: "done and retry accept a row that is not begun" => CaughtIn("one node: lost answer");
    ResultsUnfenced: "done and retry are not fenced" => CaughtIn("two nodes: take-over");
    RetryStaysBegun: "a retry leaves the row begun" => CaughtIn("one node: calls");
    RetryStays: "a retry leaves the row in the shard of another node, unflagged"
        => CaughtIn("two nodes: take-over, room");
    BuryDeletes: "a dead letter is deleted instead of kept" => CaughtIn("one node: dead letters");
    RequeueResetsAttempt: "a requeue counts attempts from zero" => CaughtIn("one node: dead letters");
    RejoinDropsResults: "a rejoin forgets results whose answer was lost" => CaughtIn("one node: lost answer");
    // Calls.
    AnswerBeforeCommit: "an insert is answered before its commit" => CaughtIn("one node: calls");
    CancelledBeforeCommit: "a cancel is answered before its commit" => CaughtIn("one node: calls");
    CancelRunning: "a cancel removes a row whose attempt runs" => CaughtIn("one node: calls");
    ResetRunning: "a reset changes a row whose attempt runs" => CaughtIn("one node: calls");
    CallsIgnoreHandlers: "after a rejoin, calls change rows whose handlers run here"
        => CaughtIn("one node: lost answer");
    ResetStays: "a reset leaves the row in the shard of another node, unflagged" => CaughtIn("two nodes: clients");
    ResetFlags: "a reset leaves the row in its shard, flagged as foreign"
        => Harmless("the owner sweeps the row; an earlier due time is noticed up to a sweep later");
    KeyNotUnique: "an insert does not look for the holder of its key" => CaughtIn("one node: key");
    ReplaceRunning: "a replace removes a row whose attempt runs" => CaughtIn("one node: key");
    RunningIsKept: "a call beside a running attempt has no effect" => CaughtIn("one node: key");
    EndLeavesQueued: "the end of an attempt leaves the queued call" => CaughtIn("one node: key");
    EachCallIsQueued: "a second call is queued beside the first one" => CaughtIn("one node: key");
    SettledUnflagged: "the row that a queued call creates is not flagged" => CaughtIn("one node: key");
    CancelLeavesQueued: "a cancel of a running key leaves the queued call" => CaughtIn("one node: key");
    BeginBeforeQueued: "a row of an older epoch begins before the queued call has its effect"
        => Harmless("the call has its effect after the next attempt");
    ForeignInsertUnflagged: "a client inserts without the flag" => CaughtIn("two nodes: clients");
    ForeignResetUnflagged: "a client resets without the flag" => CaughtIn("two nodes: clients");
    SweepInTwoSteps: "a sweep reads and clears the flags in two transactions" => CaughtIn("two nodes: clients");
    SweepLeavesToLoad: "a sweep clears the flags and leaves the rows to the next load"
        => CaughtIn("two nodes: clients");
    // Starts, rejoins, leases.
    RejoinKeepsEpoch: "a start or rejoin does not raise the epochs" => CaughtIn("one node: crash");
    RejoinKeepsMemory: "a rejoin keeps the memory" => CaughtIn("one node: lost answer");
    RejoinLeavesAlive: "a rejoin does not fence the old instance" => CaughtIn("two nodes: lost answer");
    RejoinForgetsTried: "a rejoin does not fence the instance of a rejoin whose answer was lost"
        => CaughtIn("two nodes: lost rejoin");
    SameInstance: "a start or rejoin keeps the instance's id" => CaughtIn("two nodes: crash");
    GoesOnAfterBreak: "a node goes on after a lost answer as if it had sent nothing"
        => CaughtIn("one node: lost answer");
    LostAnswerIsFailure: "an insert whose answer was lost is reported as failed" => CaughtIn("one node: lost answer");
    LostAnswerIsSuccess: "an insert whose answer was lost is reported as stored" => CaughtIn("one node: lost answer");
    NoFence: "transactions are not fenced" => CaughtIn("two nodes: take-over");
    TakeOverLeavesAlive: "a take-over does not fence the old owner" => CaughtIn("two nodes: take-over");
    TakeOverKeepsEpoch: "a take-over does not raise the epoch" => CaughtIn("two nodes: take-over");
    TakeOverKeepsBound: "a take-over keeps the bound" => CaughtIn("two nodes: take-over");
    TakeOverKeepsMemory: "a take-over keeps the memory while the bound restarts" => CaughtIn("two nodes: take-over");
    TakeKeepsEpoch: "taking a shard that nobody owns does not raise its epoch"
        => Harmless("a release moves the rows whose attempts run, so none of the released epoch is left");
    ReleaseLeavesRunning: "a release leaves rows whose handlers run here" => CaughtIn("two nodes: release");
    ReleaseThenForget: "a release is sent before the node forgets the shard"
        => Harmless("begin checks the owner of the shard, and a reset into it is seen by the next owner's load");
    // Inserts in doubt.
    NoTombstone: "an end leaves no tombstone" => CaughtIn("two nodes: repeated calls");
    TombstoneOnlyForCallers: "only rows with ids of callers leave tombstones" => CaughtIn("two nodes: insert in doubt");
    TombstoneExpiresEarly: "a tombstone is removed while an insert may still arrive"
        => CaughtIn("two nodes: repeated calls");
    InsertAnyAge: "an insert is accepted at any age of its id" => CaughtIn("two nodes: repeated calls");
}
