//! A ledger of each way to schedule, in memory.

use std::time::{Duration, UNIX_EPOCH};

use timer_durable::MemoryStore;
use timer_durable::store::Store;
use timer_durable_tests::never_early::{DELAY, Ledger, WORK, assert_on_time};

#[test]
fn no_way_to_schedule_is_early_in_memory() {
    let store = MemoryStore::new();
    let clock = store.clone();
    let working = store.clone();
    let now = move || UNIX_EPOCH + Duration::from_micros(clock.now().unsigned_abs());
    let (ledger, builder, ways) = Ledger::new(now, move || working.advance_clock(WORK));
    let (timer, mut driver) = builder.build_manual(store).unwrap();
    let expected = ledger.call(&timer) + ledger.call_in_transactions(&timer);
    driver.advance(DELAY * 110);
    assert_on_time(ways.try_iter(), expected);
}
