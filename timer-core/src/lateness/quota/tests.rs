//! The throttled time of a control group in files that the tests write.

use super::*;
use crate::counters::LateCause::{self, Quota, System, Turn};
use crate::sync::cgroup_tests as files;

const MILLI: Nanos = 1_000_000;

/// A control group whose throttled time the test sets.
pub(crate) struct Throttled(files::System);

impl Throttled {
    pub(crate) fn new() -> Self {
        let throttled = Self(files::System::new("0::/a\n", "/", "cgroup2 none rw"));
        throttled.set(7_000);
        throttled
    }

    pub(crate) fn set(&self, millis: u64) {
        let text = format!("nr_periods 9\nnr_throttled 9\nthrottled_usec {}\n", 1_000 * millis);
        self.0.write("sys/fs/cgroup/cpu/a/cpu.stat", &text);
    }

    pub(crate) fn watch(&self) -> QuotaWatch {
        QuotaWatch::of(self.0.cgroup())
    }
}

/// Names the time since `due`, in milliseconds. Returns the parts of the system and the quota.
fn name(watch: &mut QuotaWatch, timeline: &mut Timeline<LateCause>, due: u64) -> [u64; 2] {
    watch.name(timeline, due * MILLI, System, Quota);
    let split = timeline.split(due * MILLI, timeline.end());
    assert_eq!(split.total_nanos(), timeline.end() - due * MILLI);
    [System, Quota].map(|cause| split.part_nanos(cause) / MILLI)
}

#[test]
fn the_throttled_time_is_the_quotas() {
    let group = Throttled::new();
    let mut watch = group.watch();
    let mut timeline = Timeline::new(System, 4);
    timeline.extend(5_000 * MILLI, System, None);
    timeline.extend(5_010 * MILLI, Turn, None);
    group.set(7_250);
    assert_eq!(name(&mut watch, &mut timeline, 4_990), [10, 0], "too short");
    assert_eq!(name(&mut watch, &mut timeline, 4_700), [50, 250]);
    assert_eq!(timeline.split(4_700 * MILLI, 4_740 * MILLI).part_nanos(System), 40 * MILLI, "the latest part");
    assert_eq!(name(&mut watch, &mut timeline, 4_000), [750, 250], "the time before was not late");
    // The sum over several CPUs exceeds the lateness.
    timeline.extend(6_900 * MILLI, System, None);
    group.set(20_000);
    assert_eq!(name(&mut watch, &mut timeline, 6_700), [0, 200]);
}

#[test]
fn a_reading_counts_for_a_second() {
    let group = Throttled::new();
    let mut watch = group.watch();
    let mut timeline = Timeline::new(System, 4);
    let mut next = |end: u64, throttled: u64| {
        timeline.extend(end * MILLI, System, None);
        group.set(7_000 + throttled);
        name(&mut watch, &mut timeline, end - 200)
    };
    assert_eq!(next(10_000, 150), [50, 150]);
    assert_eq!(next(10_500, 600), [50, 150], "no second reading");
    assert_eq!(next(11_000, 650), [0, 200], "500 ms since the first reading");
    assert_eq!(next(12_100, 650), [200, 0]);
    assert_eq!(next(13_100, 0), [200, 0], "the group was replaced");
}

#[test]
fn without_a_group_the_system_keeps_its_part() {
    let mut timeline = Timeline::new(System, 4);
    timeline.extend(5_000 * MILLI, System, None);
    assert_eq!(name(&mut QuotaWatch::default(), &mut timeline, 1_000), [4_000, 0]);
}
