//! Promise 13, second part. More than 64 live timers cause one warning. The timers of the whole
//! process count, so this test is a separate binary.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

mod support;

use support::{log, named};
use timer_core::Timer;
use tracing::Level;

#[test]
fn the_65th_live_timer_causes_one_warning() {
    let complaints = log::complaints("one-of-many");
    let build = |count| (0..count).map(|_| named("one-of-many")).collect::<Vec<Timer>>();
    // Dropped timers do not count.
    for _ in 0..3 {
        drop(build(64));
    }
    let few = build(64);
    assert_eq!(complaints.try_iter().count(), 0, "64 timers cause no warning");
    let clones = few.clone();
    assert_eq!(complaints.try_iter().count(), 0, "clones are the same timer");
    let one_more = build(1);
    let event = complaints.try_recv().expect("the 65th timer causes a warning");
    assert_eq!(event.level, Level::WARN);
    assert!(event.fields.contains("live=65"), "{event:?}");
    assert!(event.message.contains("share it"), "{event:?}");
    let more = build(10);
    drop((few, clones, one_more, more));
    drop(build(80));
    assert_eq!(complaints.try_iter().count(), 0, "one warning is enough");
}
