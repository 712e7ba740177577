//! The promises of futures ([`timer_core::future`]), on virtual time where possible, and on real
//! executors.

mod executors;
mod interval;
mod names;
mod refusals;
mod sleep;
mod storm;
mod timeout;
mod virtual_time;
mod wakers;
