//! Models of a thread that reads the counters of others. If it sees the end of a timeout, it also
//! sees its start.
//!
//! The reader is the thread that the model starts, because of the limit of loom that [`super`]
//! describes. Its loads come after the stores of the main thread in the first execution, and loom
//! moves each of them before those stores.

use super::executor::Keeper;
use super::{beside, check, engine, new, set_time, turn};
use timer_executor::Task;

/// One timeout stays pending. Another one is scheduled and cancelled while a reader counts.
fn schedule_and_cancel_and_count() {
    let engine = engine();
    let (kept, _) = new(&engine, 9);
    let reader = beside(&engine, move |engine| engine.pending());
    let (timeout, _) = new(&engine, 5);
    assert!(timeout.cancel());
    let pending = reader.join().unwrap();
    assert!((1..=2).contains(&pending), "an end was seen without its start");
    assert_eq!(engine.pending(), 1);
    assert!(kept.cancel());
}

model!(check, schedule_and_cancel_and_count,
    adding_without_release ["without its start"] Relaxed "counters/counter.rs" "self.0.store(before.wrapping_add(n)",
    reading_without_acquire ["without its start"] Relaxed "counters/counter.rs" "fn get .. self.0.load(Ordering::Acquire)",
);

/// The reader reads the two counters in the wrong order.
#[test]
#[should_panic(expected = "without its start")]
fn negative_starts_are_read_before_ends() {
    check(|| {
        let engine = engine();
        let (_kept, _) = new(&engine, 9);
        let reader = beside(&engine, move |engine| {
            let shard = engine.shards()[0];
            let scheduled = shard.scheduled();
            scheduled.saturating_sub(shard.cancelled())
        });
        let (timeout, _) = new(&engine, 5);
        assert!(timeout.cancel());
        let pending = reader.join().unwrap();
        assert!((1..=2).contains(&pending), "an end was seen without its start");
    });
}

/// The shard counts the start of a timeout, and the thread of an executor counts its end. Another
/// timeout stays pending.
fn an_end_elsewhere() {
    let (engine, keeper) = Keeper::timer();
    let (kept, _) = new(&engine, 90);
    set_time(&engine, 5);
    let reader = beside(&engine, move |engine| engine.pending());
    drop(new(&engine, 5));
    assert_eq!(turn(&mut engine.dispatcher()), 1);
    keeper.take().into_iter().for_each(Task::run);
    let pending = reader.join().unwrap();
    assert!((1..=2).contains(&pending), "an end was seen without its start");
    assert_eq!((engine.pending(), engine.stats().expired), (1, 1));
    assert!(kept.cancel());
}

model!(check, an_end_elsewhere,
    adding_elsewhere_without_release ["without its start"] Relaxed "counters/counter.rs" "self.0.fetch_add(n",
    reading_elsewhere_without_acquire ["without its start"] Relaxed "counters/counter.rs" "fn add_contended .. self.0.load(Ordering::Acquire)",
);
