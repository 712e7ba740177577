//! Deadlines for tower services: for a response, for the frames of its body, and between retries.
//!
//! ```
//! use std::time::Duration;
//! use timer_adapters::tower::TimeoutLayer;
//! use timer_core::Timer;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//!
//! # futures::executor::block_on(async {
//! let service = ServiceBuilder::new()
//!     .layer(TimeoutLayer::new(Timer::current(), Duration::from_millis(2)))
//!     .service(service_fn(|()| std::future::pending::<Result<(), std::io::Error>>()));
//! let error = service.oneshot(()).await.unwrap_err();
//! assert!(error.is::<timer_core::time::error::Elapsed>());
//! # });
//! ```

mod backoff;
mod body;
mod timeout;

pub use backoff::{ExponentialBackoff, ExponentialBackoffMaker};
pub use body::{ResponseBodyFuture, ResponseBodyTimeout, ResponseBodyTimeoutLayer, TimeoutBody};
pub use timeout::{ResponseFuture, Timeout, TimeoutLayer};

/// The error of the services here, the same type as `tower::BoxError`. It contains the error of the
/// inner service or [`Elapsed`](timer_core::time::error::Elapsed).
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
