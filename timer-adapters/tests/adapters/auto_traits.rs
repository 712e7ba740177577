//! The auto traits of every public type, checked at compile time. A change of this list is a change
//! of the public API.

use timer_adapters::tokio::{runtime, time};
use timer_adapters::{hyper, quinn, stream, tower};
use timer_core::delay_queue::DelayQueue;

include!("../../../timer-core/tests/auto_traits/macros.rs");

auto_traits! {
    hyper::ConnectionError<()>: 1 1 1 1,
    hyper::ConnectionError<Task>: 1 0 1 0,
    hyper::ConnectionLimits<()>: 1 1 1 0,
    hyper::HyperTimer: 1 1 1 1,
    hyper::Limit: 1 1 1 1,
    hyper::LimitedBody<()>: 1 1 1 0,
    hyper::LimitedConnection<()>: 1 1 1 1,
    hyper::LimitedConnection<Pinned>: 1 1 0 1,
    hyper::LimitedConnection<Task>: 1 0 1 0,
    hyper::LimitedFuture<(), ()>: 1 1 1 0,
    hyper::LimitedFuture<Pinned, ()>: 1 1 0 0,
    hyper::LimitedIo<()>: 1 1 1 1,
    hyper::LimitedService<(), ()>: 1 1 1 0,
    quinn::TimedRuntime<()>: 1 1 1 1,
    quinn::TimedRuntime<Task>: 1 0 1 0,
    stream::ChunksTimeoutStream<stream::IntervalStream>: 1 1 1 1,
    stream::DebounceStream<stream::IntervalStream>: 1 1 1 1,
    stream::DelayMapStream<(), ()>: 1 1 1 1,
    stream::DelayQueueStream<()>: 1 1 1 1,
    stream::DelayQueueStream<Task>: 1 0 1 0,
    stream::IntervalStream: 1 1 1 1,
    stream::IntervalStream<time::Interval>: 1 1 1 1,
    stream::OnTokio<DelayQueue<()>>: 1 1 1 0,
    stream::OnTokio<DelayQueue<Task>>: 1 0 1 0,
    stream::ThrottleStream<stream::IntervalStream>: 1 1 1 1,
    stream::TimeoutStream<stream::IntervalStream>: 1 1 1 1,
    runtime::Builder: 1 1 1 0,
    runtime::Runtime: 1 1 1 1,
    time::Interval: 1 1 1 1,
    time::Sleep: 1 1 1 1,
    time::Timeout<()>: 1 1 1 1,
    time::Timeout<Pinned>: 1 1 0 1,
    time::Timeout<Task>: 1 0 1 0,
    tower::ExponentialBackoff: 1 1 1 1,
    tower::ExponentialBackoffMaker: 1 1 1 1,
    tower::ResponseBodyFuture<()>: 1 1 1 1,
    tower::ResponseBodyFuture<Pinned>: 1 1 0 1,
    tower::ResponseBodyTimeout<()>: 1 1 1 1,
    tower::ResponseBodyTimeoutLayer: 1 1 1 1,
    tower::ResponseFuture<()>: 1 1 1 1,
    tower::ResponseFuture<Pinned>: 1 1 0 1,
    tower::Timeout<()>: 1 1 1 1,
    tower::Timeout<Task>: 1 0 1 0,
    tower::TimeoutBody<()>: 1 1 1 1,
    tower::TimeoutBody<Pinned>: 1 1 0 1,
    tower::TimeoutLayer: 1 1 1 1,
}
