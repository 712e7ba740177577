//! Boxed stores.

use super::{Connect, Membership, Micros, Position, Store, StoreError, TransactionWork, Upkeep};
use crate::TimeoutId;
use crate::transaction::{Operation, Outcome};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Implements methods of [`Store`] by those of the store in the box. The first list borrows the
/// store, and the second one borrows it exclusively.
macro_rules! forward {
    (
        $($read:ident($($input:ident: $input_type:ty),*) -> $output:ty;)*
        &mut: $($change:ident($($argument:ident: $type:ty),*) -> $result:ty;)*
    ) => {
        $(fn $read(&self, $($input: $input_type),*) -> $output {
            (**self).$read($($input),*)
        })*
        $(fn $change(&mut self, $($argument: $type),*) -> $result {
            (**self).$change($($argument),*)
        })*
    };
}

/// A store that is chosen while the program runs.
impl<S: Store + ?Sized> Store for Box<S> {
    forward! {
        describe() -> String;
        instance() -> u32;
        now() -> Micros;
        time_until(time: Micros) -> Duration;
        max_sleep() -> Option<Duration>;
        pending() -> Option<u64>;
        next_upkeep() -> Option<Instant>;
        must_rejoin() -> bool;
        membership() -> Option<Membership>;
        may_begin() -> bool;
        lease_end() -> Option<Instant>;
        connect_reader() -> Option<Connect>;
        &mut:
        advance_time(by: Duration) -> Result<(), StoreError>;
        write(batch: &[Operation], until: Instant) -> Result<Vec<Outcome>, StoreError>;
        write_all(inserts: &[Operation]) -> Result<Vec<Outcome>, StoreError>;
        load(range: Range<Position>, max: usize, out: &mut Vec<Position>) -> Result<Position, StoreError>;
        set_blocked(topics: &[Arc<str>]) -> Result<(), StoreError>;
        load_shelf(topic: &str, max: usize, out: &mut Vec<Position>) -> Result<(), StoreError>;
        find_topics(
            ids: &[TimeoutId], topics: &[Arc<str>], out: &mut Vec<(TimeoutId, usize)>
        ) -> Result<(), StoreError>;
        shelved_topics() -> Result<Vec<String>, StoreError>;
        set_paused(topic: &str, is_paused: bool) -> Result<(), StoreError>;
        paused_topics() -> Result<Vec<String>, StoreError>;
        open() -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
        rejoin() -> Result<(), StoreError>;
        set_waker(wake: Arc<dyn Fn() + Send + Sync>) -> ();
        upkeep(running: &[TimeoutId]) -> Result<Upkeep, StoreError>;
        transact(work: TransactionWork<'_>) -> Result<(), StoreError>;
        backup(path: &Path) -> Result<(), StoreError>;
        leave() -> Result<(), StoreError>;
    }
}
