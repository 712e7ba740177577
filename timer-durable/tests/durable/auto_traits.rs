//! The auto traits of every public type, checked at compile time. A change of this list is a change
//! of the public API.

use timer_durable::{store, transaction};

include!("../../../timer-core/tests/auto_traits/macros.rs");

auto_traits! {
    timer_durable::CancelAnswer: 1 1 1 1,
    timer_durable::CancelCounts: 1 1 1 1,
    timer_durable::Counts: 1 1 1 1,
    timer_durable::DeadFilter: 1 1 1 1,
    timer_durable::DeadLetter: 1 1 1 1,
    timer_durable::Done: 1 1 1 1,
    timer_durable::Due<()>: 1 1 1 0,
    timer_durable::DurableTimer: 1 1 1 1,
    timer_durable::DurableTimerBuilder: 1 1 1 0,
    timer_durable::DurableTimetable: 1 1 1 1,
    timer_durable::Error: 1 1 1 0,
    timer_durable::Fault: 1 1 1 1,
    timer_durable::FaultPoint: 1 1 1 1,
    timer_durable::Filter: 1 1 1 1,
    timer_durable::Histogram: 1 1 1 1,
    timer_durable::IfPending: 1 1 1 1,
    timer_durable::Later: 1 1 1 1,
    timer_durable::ManualDurableDriver: 1 1 1 1,
    timer_durable::Membership: 1 1 1 1,
    timer_durable::MemoryStore: 1 1 1 1,
    timer_durable::ParseIdError: 1 1 1 1,
    timer_durable::PayloadError: 1 1 1 0,
    timer_durable::Pending<()>: 1 1 1 1,
    timer_durable::Pending<Task>: 1 0 1 0,
    timer_durable::RequeueAnswer: 1 1 1 1,
    timer_durable::RequeueCounts: 1 1 1 1,
    timer_durable::ResetAnswer: 1 1 1 1,
    timer_durable::ScheduleAnswer: 1 1 1 1,
    timer_durable::Retry: 1 1 1 1,
    timer_durable::Stats: 1 1 1 1,
    timer_durable::DurableStopReport: 1 1 1 1,
    timer_durable::Schedule: 1 1 1 1,
    timer_durable::StoreError: 1 1 1 1,
    timer_durable::Call<()>: 1 0 1 0,
    timer_durable::NewTimeout: 1 1 1 0,
    timer_durable::TimeoutId: 1 1 1 1,
    timer_durable::TimeoutState: 1 1 1 1,
    timer_durable::Topic<Task>: 1 1 1 1,
    timer_durable::TopicDue: 1 1 1 1,
    timer_durable::Transaction<'static>: 0 0 1 0,
    timer_durable::VirtualClock: 1 1 1 1,
    timer_durable::WeakDurableTimer: 1 1 1 1,
    store::DueCounts<'static>: 1 1 1 1,
    store::LeaseTime: 1 1 1 1,
    store::Position: 1 1 1 1,
    store::Upkeep: 1 1 1 1,
    timer_durable::DueTime: 1 1 1 1,
    transaction::Attempt: 1 1 1 1,
    transaction::Insert: 1 1 1 1,
    transaction::NextRun: 1 1 1 1,
    transaction::Operation: 1 1 1 1,
    transaction::Outcome: 1 1 1 1,
    transaction::Target: 1 1 1 1,
}

#[cfg(feature = "serde")]
auto_traits! {
    timer_durable::Json<()>: 1 1 1 1,
    timer_durable::Json<Task>: 1 0 1 0,
}
