//! The faults of a memory store.

use crate::store::Micros;
use std::time::Duration;

/// A fault of a [`MemoryStore`](crate::MemoryStore). Each fault affects one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The call fails and does nothing.
    FailBefore,
    /// The call is executed, and its answer is lost.
    LoseAnswer,
    /// The outcome is unknown, and nothing was executed.
    LoseRequest,
    /// The outcome is unknown, and only the first half of the batch was executed, as by a store
    /// that needs several transactions for a batch. Other calls are executed as a whole.
    TearAnswer,
    /// Another instance has taken over.
    Fence,
    /// The clock of the store steps before the call is executed. Negative steps go back.
    StepClock(Micros),
    /// The answer takes this long. The time passes on the store's clock after the call was
    /// executed.
    Delay(Duration),
}

/// A call of the store that a [`Fault`] can affect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultPoint {
    /// The commit of a batch.
    Write,
    /// A transaction of the user.
    Transact,
    /// Reading a page.
    Load,
    /// Becoming a new instance. A fence affects it as a failure.
    Rejoin,
}
