//! What users hold: timers, builders, timeouts, drivers. No file here names a wheel.

mod builder;
mod cancel;
mod driver;
mod life;
mod manual;
mod timeout;
mod timer;
mod timer_async;
mod weak;

pub use builder::TimerBuilder;
pub use cancel::CancelOnDrop;
pub use driver::{Driver, Turn};
pub use manual::ManualDriver;
pub use timer::Timer;
pub(crate) use timer_async::deadline_at;
pub use weak::WeakTimer;
