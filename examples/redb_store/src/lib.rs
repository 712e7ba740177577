//! A store of durable timeouts in one file, on [redb](https://docs.rs/redb), which is Rust alone.
//!
//! ```no_run
//! use redb_store::RedbStore;
//! use std::time::Duration;
//! use timer_durable::{Due, DurableTimer, Topic};
//!
//! const CLOSE: Topic<String> = Topic::new("order.close");
//!
//! let builder = DurableTimer::builder().topic(CLOSE, |due: &Due<String>| {
//!     println!("closing order {}", due.payload());
//!     Ok(())
//! });
//! let timer = builder.open(RedbStore::open("timeouts.redb")?).wait()?;
//! timer.new_timeout(CLOSE, Duration::from_secs(1800), "17").wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A file has one owner. The open of a second process, or of a second store in the same process,
//! fails with [`OpenError::InUse`]. Each batch of calls is one transaction, which redb syncs before
//! a call answers. The user's own tables can be in the same file, because the work of
//! [`DurableTimer::transaction`](timer_durable::DurableTimer::transaction) gets the
//! [`WriteTransaction`](redb::WriteTransaction) as the
//! [connection](timer_durable::Transaction::connection).
//!
//! The chapter [write a store](timer_durable::book::write_a_store) explains the parts. An operation
//! passes through them in this order:
//!
//! | module | contents |
//! |---|---|
//! | `store` | the trait, with a transaction for each call of the keeper |
//! | `file` | opening the file, and its transactions and failures |
//! | `batch` | the operations of a transaction until its commit |
//! | `rows` | the rows that the operations read and write |
//! | `forms` | the form of a row in a table |
//! | `tables` | the tables of the file |
//! | `reader` | the reads, from one moment of the same tables |
//!
//! After a crash, redb checks the whole file at its next open, unless each commit also saves which
//! pages are free ([`set_quick_repair`](redb::WriteTransaction::set_quick_repair)). That makes a
//! commit slower, and a file of many gigabytes needs it.
#![forbid(unsafe_code)]

mod batch;
mod file;
mod forms;
mod reader;
mod rows;
mod store;
mod tables;

pub use file::OpenError;
pub use store::RedbStore;
