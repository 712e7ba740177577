//! A store of durable timeouts in one file, on [redb](https://docs.rs/redb), which is written in
//! Rust alone.
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
//! A file has one owner. Opening it in a second process, or by a second store in the same process,
//! fails with [`OpenError::InUse`]. Each batch of calls is one transaction, which redb syncs before
//! the calls are answered. The user's own tables can be in the same file, because the work of
//! [`DurableTimer::transaction`](timer_durable::DurableTimer::transaction) gets the
//! [`WriteTransaction`](redb::WriteTransaction) as the
//! [connection](timer_durable::Transaction::connection).
//!
//! The chapter [write a store](timer_durable::book::write_a_store) explains the parts. An operation
//! passes through them in this order:
//!
//! | module | contents |
//! |---|---|
//! | `store` | the implementation of the trait, with a transaction for each call of the keeper |
//! | `file` | the file, how it is opened, its transactions and its failures |
//! | `batch` | the operations of a transaction until its commit |
//! | `rows` | the rows that the operations read and write |
//! | `forms` | the form of a row in a table |
//! | `tables` | the tables of the file |
//! | `reader` | the reads, from one moment of the same tables |
//!
//! After a crash, redb checks the whole file when it is opened, unless each commit also saves the
//! list of free pages ([`set_quick_repair`](redb::WriteTransaction::set_quick_repair)). Saving the
//! list makes a commit slower, but a file of many gigabytes needs it.
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
