//! Durable timeouts beside other ways to keep timeouts on disk. Another implementation is a
//! [`Subject`](subject::Subject), and another row is a function in the list of
//! [`cases`].

pub mod cases;
#[cfg(feature = "durable")]
pub(crate) mod growth;
#[cfg(feature = "durable")]
pub(crate) mod neighbor;
#[cfg(feature = "durable")]
pub(crate) mod ours;
#[cfg(feature = "durable")]
pub(crate) mod poller;
#[cfg(feature = "durable")]
pub(crate) mod store;
pub mod subject;
