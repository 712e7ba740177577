//! pingora-timeout's `fast_sleep`, boxed and polled once. Dropping it leaves its node in place,
//! which timers of the same 10 ms share. One timer serves the whole process.

use super::sleeping::Sleeping;
use pingora_timeout::fast_timeout::fast_sleep;
use std::pin::Pin;
use std::time::Duration;

#[derive(Clone)]
pub(crate) struct Pingora;

impl Sleeping for Pingora {
    const NAME: &'static str = "pingora";
    const NO_RESET: Option<&'static str> = Some("a sleep cannot be moved");
    type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn build() -> Self {
        Self
    }

    #[inline]
    fn sleep(delay: Duration) -> Self::Sleep {
        Box::pin(fast_sleep(delay))
    }

    fn reset(_: &mut Self::Sleep, _: Duration) {}
}
