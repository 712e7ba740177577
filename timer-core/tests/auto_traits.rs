//! The auto traits of every public type, checked at compile time.
//!
//! A change of this list is a change of the public API.

use timer_core::{delay_queue, executor, time, wheel};

include!("auto_traits/macros.rs");

auto_traits! {
    // The timer.
    timer_core::BuildError: 1 1 1 1,
    timer_core::CancelOnDrop: 1 1 1 1,
    timer_core::Driver: 1 0 1 0,
    timer_core::LagSnapshot: 1 1 1 1,
    timer_core::LateCause: 1 1 1 1,
    timer_core::LateRun: 1 1 1 1,
    timer_core::Lateness: 1 1 1 1,
    timer_core::ManualDriver: 1 0 1 0,
    timer_core::MissedTickBehavior: 1 1 1 1,
    timer_core::Named<(), Task>: 1 0 1 0,
    timer_core::RejectReason: 1 1 1 1,
    timer_core::ScheduleError<Task>: 1 1 1 0,
    timer_core::StopError: 1 1 1 1,
    timer_core::StopReport: 1 1 1 0,
    timer_core::Timeout: 1 1 1 1,
    timer_core::Timer: 1 1 1 1,
    timer_core::TimerBuilder: 1 1 1 0,
    timer_core::TimerStats: 1 1 1 1,
    timer_core::Timetable: 1 1 1 1,
    timer_core::Turn: 1 1 1 1,
    timer_core::Unprocessed: 1 1 1 0,
    timer_core::WeakTimer: 1 1 1 1,
    timer_core::WheelKind: 1 1 1 1,
    timer_core::DeadlockError: 1 1 1 1,
    // Futures.
    timer_core::Elapsed: 1 1 1 1,
    timer_core::Interval: 1 1 1 1,
    timer_core::Sleep: 1 1 1 1,
    timer_core::TimeoutFuture<()>: 1 1 1 1,
    timer_core::TimeoutFuture<Task>: 1 0 1 0,
    timer_core::TimeoutFuture<Pinned>: 1 1 0 1,
    time::EnterGuard: 0 0 1 1,
    // Lateness.
    timer_core::lateness::Timeline<timer_core::LateCause>: 1 1 1 1,
    timer_core::lateness::WorstRuns<(), ()>: 1 1 1 1,
    // Delay queues.
    delay_queue::DelayMap<(), ()>: 1 1 1 1,
    delay_queue::DelayQueue<()>: 1 1 1 1,
    delay_queue::DelayQueue<Task>: 1 0 1 0,
    delay_queue::Expired<()>: 1 1 1 1,
    delay_queue::SharedDelayQueue<()>: 1 1 1 0,
    // Wheels.
    wheel::HashedWheel<()>: 1 1 1 1,
    wheel::HashedWheel<Task>: 1 0 1 0,
    wheel::HierarchicalWheel<()>: 1 1 1 1,
    wheel::HierarchicalWheel<Task>: 1 0 1 0,
    wheel::Key: 1 1 1 1,
    // Executors.
    executor::ImmediateExecutor: 1 1 1 1,
    executor::ExecuteError: 1 0 1 0,
    executor::Task: 1 0 1 0,
}
