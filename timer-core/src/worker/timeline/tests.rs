//! The loss of the CPU, with a CPU time that the test sets.

use super::*;
use crate::sync::CPU_USE;

const MILLI: Nanos = 1_000_000;
const START: Nanos = 1_000_000 * MILLI;

/// Returns the timeline of a thread that has just woken up.
fn woken() -> Timeline {
    let mut timeline = Timeline::default();
    timeline.extend(START, System, None);
    CPU_USE.set(Some((0, 0)));
    timeline.note_cpu_use(START);
    timeline
}

/// Returns the parts of the time from [`START`], in milliseconds.
fn parts<const N: usize>(timeline: &Timeline, causes: [LateCause; N]) -> [Nanos; N] {
    let parts = timeline.causes.split(START, timeline.causes.end());
    assert_eq!(parts.total_nanos(), timeline.causes.end() - START);
    causes.map(|cause| parts.part_nanos(cause) / MILLI)
}

#[test]
fn a_turn_that_loses_its_cpu_is_the_systems_fault() {
    // A thread that is stopped counts as one that has blocked.
    for blocked in [0, 1] {
        let mut timeline = woken();
        CPU_USE.set(Some((2 * MILLI, blocked)));
        timeline.extend_turn(START + 10 * MILLI, &Counter::default());
        assert_eq!(parts(&timeline, [Turn, System]), [2, 8]);
        assert_eq!(timeline.worked_since(START), 2 * MILLI);
    }
}

#[test]
fn a_batch_that_loses_its_cpu_after_a_wait_for_a_lock_is_no_tasks_fault() {
    let mut timeline = woken();
    let lock_waits = Counter::default();
    lock_waits.add(5 * MILLI);
    CPU_USE.set(Some((MILLI, 1)));
    timeline.extend_turn(START + 6 * MILLI, &lock_waits);
    assert_eq!(parts(&timeline, [Lock, Turn, System]), [5, 1, 0]);
    CPU_USE.set(Some((2 * MILLI, 1)));
    assert_eq!(timeline.extend_by_work(START + 16 * MILLI, Tasks, Some("innocent"), 0), 9 * MILLI);
    assert_eq!(parts(&timeline, [Lock, Turn, Tasks, System]), [5, 1, 1, 9]);
    assert_eq!(timeline.causes.explain(START, Tasks).1, None, "tasks had less than a tenth");
}

#[test]
fn a_task_that_blocks_counts_all_of_its_time() {
    let mut timeline = woken();
    CPU_USE.set(Some((MILLI, 1)));
    assert_eq!(timeline.extend_by_work(START + 10 * MILLI, Tasks, Some("blocks"), 0), 0);
    assert_eq!(parts(&timeline, [Tasks, System]), [10, 0]);
    assert_eq!(timeline.causes.explain(START, Tasks).1, Some("blocks"));
}
