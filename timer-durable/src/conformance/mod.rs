//! Checks for implementations of [`Store`].
//!
//! Each check opens an empty store, executes batches, and compares the outcomes with the meaning
//! that [`transaction`](crate::transaction) documents. A check that fails panics with its name.
//! [`run_shared`] has further checks for stores that several instances share.
//!
//! ```
//! use timer_durable::MemoryStore;
//! use timer_durable::conformance;
//!
//! conformance::run(MemoryStore::new);
//! ```

mod attempts;
mod bench;
mod key_effects;
mod pages;
mod queued;
mod reads;
mod rows;
mod shared;

use crate::store::Store;
use bench::{Bench, Check, ok};

/// Runs all checks, each on a store that `open` returns. The store has to be empty and to be used
/// by nobody else.
///
/// # Panics
///
/// If a check fails.
pub fn run<S: Store>(mut open: impl FnMut() -> S) {
    let checks =
        pages::checks::<S>().into_iter().chain(rows::checks()).chain(attempts::checks()).chain(reads::checks());
    for (name, check) in checks.chain(key_effects::checks()).chain(queued::checks()) {
        let mut store = open();
        ok(store.rejoin(), name);
        check(&mut Bench { store, name });
    }
}

/// Runs the checks of leases, take-overs and the writes of others. Each uses two stores that `open`
/// returns. Both stores share one list. It has to be empty and not in use by any other instance.
/// The checks take less time with a short lease.
///
/// # Panics
///
/// If a check fails.
pub fn run_shared<S: Store>(mut open: impl FnMut() -> [S; 2]) {
    for (name, check) in shared::checks::<S>() {
        let [mut first, mut second] = open().map(|store| Bench { store, name });
        check(&mut first, &mut second);
    }
}
