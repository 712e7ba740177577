//! The promises of futures ([`timer_core::future`]), on virtual time where possible, and on real
//! executors.

mod bound;
mod end_of_life;
mod executors;
mod global_names;
mod infallible;
mod interval;
mod sleep;
mod storm;
mod timeout;
mod virtual_time;
mod wakers;
