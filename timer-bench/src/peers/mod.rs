//! The compared timers, a file for each. `crate::registry` lists them.

#[cfg(feature = "peers")]
pub(crate) mod async_io;
pub(crate) mod btree;
#[cfg(feature = "tokio")]
pub(crate) mod caches;
pub(crate) mod external;
pub(crate) mod floor;
#[cfg(feature = "peers")]
pub(crate) mod moka;
pub(crate) mod ours;
#[cfg(feature = "peers")]
pub(crate) mod pingora;
#[cfg(feature = "tokio")]
pub(crate) mod queues;
#[cfg(feature = "tokio")]
mod sleeping;
#[cfg(feature = "tokio")]
pub(crate) mod tokio;
