//! Faults of other timing wheels, each as a test of both wheels.

use timer_core::wheel::{HashedWheel, HierarchicalWheel, Key, TimingWheel};

/// A wheel of either kind.
#[derive(Debug)]
enum AnyWheel {
    Hashed(HashedWheel<u64>),
    Hierarchical(HierarchicalWheel<u64>),
}

impl AnyWheel {
    fn insert(&mut self, deadline: u64, value: u64) -> Key {
        match self {
            AnyWheel::Hashed(wheel) => wheel.insert(deadline, value),
            AnyWheel::Hierarchical(wheel) => wheel.insert(deadline, value),
        }
    }

    fn remove(&mut self, key: Key) -> Option<u64> {
        match self {
            AnyWheel::Hashed(wheel) => wheel.remove(key),
            AnyWheel::Hierarchical(wheel) => wheel.remove(key),
        }
    }

    fn advance(&mut self, now: u64, expired: impl FnMut(u64)) {
        match self {
            AnyWheel::Hashed(wheel) => wheel.advance(now, expired),
            AnyWheel::Hierarchical(wheel) => wheel.advance(now, expired),
        }
    }

    fn next_deadline(&self) -> Option<u64> {
        match self {
            AnyWheel::Hashed(wheel) => wheel.next_deadline(),
            AnyWheel::Hierarchical(wheel) => wheel.next_deadline(),
        }
    }

    fn now(&self) -> u64 {
        match self {
            AnyWheel::Hashed(wheel) => wheel.now(),
            AnyWheel::Hierarchical(wheel) => wheel.now(),
        }
    }

    fn len(&self) -> usize {
        match self {
            AnyWheel::Hashed(wheel) => wheel.len(),
            AnyWheel::Hierarchical(wheel) => wheel.len(),
        }
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns wheels of every kind whose clock is at `now`, with the span of their first round.
fn wheels(now: u64) -> Vec<(u64, AnyWheel)> {
    let mut all = vec![(64, AnyWheel::Hierarchical(HierarchicalWheel::new()))];
    all.extend([1u16, 8, 512].map(|slots| (slots.into(), AnyWheel::Hashed(HashedWheel::new(slots.into())))));
    for (_, wheel) in &mut all {
        wheel.advance(now, |_| unreachable!());
    }
    all
}

fn advance(wheel: &mut AnyWheel, now: u64) -> Vec<u64> {
    let mut due = Vec::new();
    wheel.advance(now, |value| due.push(value));
    due.sort_unstable();
    due
}

/// Returns every 2^k that fits, for the boundaries of every level, wheel and integer.
fn powers() -> impl Iterator<Item = u64> {
    (0..u64::BITS).map(|k| 1 << k)
}

/// Checks that a value is pending before its deadline and comes out at it.
fn assert_due_at(wheel: &mut AnyWheel, deadline: u64) {
    if let Some(before) = deadline.checked_sub(1).filter(|before| *before > wheel.now()) {
        assert_eq!(advance(wheel, before), [], "a value came early: {wheel:?}");
    }
    assert_eq!(wheel.next_deadline(), Some(deadline));
    assert_eq!(advance(wheel, deadline), [deadline], "{wheel:?}");
}

// Guards against a fault in which the mark of an empty slot was a legal deadline.
#[test]
fn the_largest_deadline_can_be_removed_and_can_expire() {
    for (_, mut wheel) in wheels(0) {
        let key = wheel.insert(u64::MAX, 1);
        assert_eq!(wheel.next_deadline(), Some(u64::MAX));
        assert_eq!(wheel.remove(key), Some(1));
        assert_eq!((wheel.len(), wheel.next_deadline()), (0, None));
        wheel.insert(u64::MAX, u64::MAX);
        assert_due_at(&mut wheel, u64::MAX);
        // At the end of time every deadline has passed.
        wheel.insert(u64::MAX, 3);
        wheel.insert(0, 4);
        assert_eq!(wheel.next_deadline(), Some(u64::MAX));
        assert_eq!(advance(&mut wheel, u64::MAX), [3, 4]);
    }
}

// Guards against a fault with delays just under a round while the clock is behind.
#[test]
fn delays_just_under_a_round_are_right() {
    for lag in 0..4 {
        for (span, mut wheel) in wheels(1000) {
            let deadline = 1000 + lag + span.max(2) - 1;
            wheel.insert(deadline, deadline);
            assert_eq!(advance(&mut wheel, 1000 + lag.min(deadline - 1001)), []);
            assert_due_at(&mut wheel, deadline);
        }
    }
}

// Guards against netty/netty#744, in which an exact multiple of the round came a round early or
// late.
#[test]
fn multiples_of_a_round_are_due_in_their_round() {
    for now in [0, 1, 63, 64, 511, 512, 4095, 1 << 20] {
        for (span, _) in wheels(0) {
            for round in [1, 2, 3, 63, 64, 65] {
                for deadline in [now + round * span - 1, now + round * span, now + round * span + 1] {
                    for (_, mut wheel) in wheels(now).into_iter().filter(|_| deadline > now) {
                        wheel.insert(deadline, deadline);
                        assert_due_at(&mut wheel, deadline);
                    }
                }
            }
        }
    }
}

// Guards against netty/netty#12888. The entries of one slot are not sorted by round.
#[test]
fn rounds_of_a_slot_may_be_inserted_in_any_order() {
    for descending in [true, false] {
        for (span, mut wheel) in wheels(0) {
            let mut deadlines: Vec<u64> = (1..50).map(|round| 3 + round * span).collect();
            if descending {
                deadlines.reverse();
            } else {
                fastrand::Rng::with_seed(17).shuffle(&mut deadlines);
            }
            for deadline in &deadlines {
                wheel.insert(*deadline, *deadline);
            }
            deadlines.sort_unstable();
            for deadline in deadlines {
                assert_due_at(&mut wheel, deadline);
            }
        }
    }
}

// Guards against twitter/rpc-perf#180, in which delays longer than the wheel were early.
#[test]
fn delays_of_up_to_a_thousand_rounds_are_not_early() {
    for (span, mut wheel) in wheels(77) {
        for factor in (1..1000).rev() {
            wheel.insert(77 + factor * span, 77 + factor * span);
        }
        for factor in 1..1000 {
            assert_due_at(&mut wheel, 77 + factor * span);
        }
        assert!(wheel.is_empty());
    }
}

// Guards against element-hq/synapse#17850, in which a deadline between two others got a second
// bucket.
#[test]
fn a_deadline_between_two_others_keeps_its_order() {
    for (_, mut wheel) in wheels(0) {
        for deadline in [100, 300, 200, 100, 200, 300] {
            wheel.insert(deadline, deadline);
        }
        for deadline in [100, 200, 300] {
            assert_eq!(wheel.next_deadline(), Some(deadline));
            assert_eq!(advance(&mut wheel, deadline), [deadline, deadline]);
        }
    }
}

// Guards against netty/netty#7760, in which far deadlines overflowed, wrapped, or moved to the end
// of the range.
#[test]
fn the_farthest_deadlines_stay_pending() {
    for now in [0, 1, 1 << 32, (1 << 62) + 12345, u64::MAX - 10] {
        for deadline in [u64::MAX, u64::MAX - 1, u64::MAX - now, 1 << 63, now | 1 << 63] {
            for (_, mut wheel) in wheels(now).into_iter().filter(|_| deadline > now) {
                wheel.insert(deadline, deadline);
                for step in powers().take(60) {
                    if let Some(to) = now.checked_add(step).filter(|to| *to < deadline) {
                        assert_eq!(advance(&mut wheel, to), [], "{deadline} at {to}");
                    }
                }
                assert_due_at(&mut wheel, deadline);
            }
        }
    }
}

// Guards against tokio-rs/tokio#8334, in which an entry one whole rotation away was reported first
// and hid nearer ones.
#[test]
fn a_far_value_hides_no_near_one() {
    for boundary in powers().skip(1) {
        for before in [1, 2, 63, 64] {
            let Some(now) = boundary.checked_sub(before) else {
                continue;
            };
            for residue in [0, 1, 31, 62, 63] {
                for (_, mut wheel) in wheels(now) {
                    // The values are a whole rotation away, of this boundary's level, the level
                    // below and the level above.
                    for rotation in [boundary, boundary >> 6, boundary.saturating_mul(64)] {
                        wheel.insert(now.saturating_add(rotation).saturating_add(residue).saturating_add(200), 0);
                    }
                    let near: Vec<u64> = (1..100).filter_map(|delay| now.checked_add(delay)).collect();
                    for deadline in near.iter().rev() {
                        wheel.insert(*deadline, *deadline);
                    }
                    for deadline in near {
                        assert_eq!(wheel.next_deadline(), Some(deadline));
                        assert_eq!(advance(&mut wheel, deadline), [deadline]);
                    }
                }
            }
        }
    }
}

// Guards against glommio/glommio#44 and ben-manes/caffeine#431, in which the next expiry was that
// of a finer level, although a coarser one had an earlier value.
#[test]
fn next_deadline_is_the_minimum_beside_every_boundary() {
    for boundary in powers() {
        for (_, mut wheel) in wheels(boundary - 1) {
            let after = boundary.saturating_add(1);
            wheel.insert(after, after);
            assert_eq!(wheel.next_deadline(), Some(after));
            let key = wheel.insert(boundary, boundary);
            assert_eq!(wheel.next_deadline(), Some(boundary));
            wheel.remove(key);
            assert_eq!(wheel.next_deadline(), Some(after), "a removal from a small bucket keeps the expiry exact");
            assert_due_at(&mut wheel, after);
        }
    }
}

// Guards against Yiling-J/theine-go#64, in which the slot that the clock enters was forgotten.
#[test]
fn values_due_at_the_tick_of_a_jump_come_out() {
    for to in powers().skip(1) {
        for (_, mut wheel) in wheels(0) {
            wheel.insert(to, to);
            wheel.insert(to - 1, to - 1);
            wheel.insert(to + 1, to + 1);
            assert_eq!(advance(&mut wheel, to), [to - 1, to]);
            assert_eq!(wheel.next_deadline(), Some(to + 1));
        }
    }
}

// Guards against camunda/camunda#767, in which a call handled one tick, or entries were taken out
// of their slot and dropped.
#[test]
fn one_call_over_a_billion_ticks_returns_all() {
    for (_, mut wheel) in wheels(5) {
        let deadlines: Vec<u64> = (0..1000u64).map(|n| 6 + n * 2_000_003).collect();
        for deadline in &deadlines {
            wheel.insert(*deadline, *deadline);
        }
        let (due, later): (Vec<u64>, Vec<u64>) = deadlines.into_iter().partition(|deadline| *deadline <= 1_000_000_005);
        assert_eq!(advance(&mut wheel, 1_000_000_005), due);
        assert_eq!(wheel.next_deadline(), later.first().copied());
        assert_eq!(advance(&mut wheel, u64::MAX), later);
    }
}

// Guards against vesoft-inc/nebula#802, a fault with the maximal delay at the last position of a
// wheel.
#[test]
fn the_longest_delays_are_right_at_every_position() {
    for now in (0..600).chain(4000..4200) {
        for (span, mut wheel) in wheels(now) {
            let mut deadlines = [now + span, now + span * 64 - 1, now + 4095, now + 4096, u64::MAX - 1];
            for deadline in deadlines {
                wheel.insert(deadline, deadline);
            }
            deadlines.sort_unstable();
            for deadline in deadlines {
                assert_eq!(advance(&mut wheel, deadline - 1), []);
                let due = advance(&mut wheel, deadline);
                assert!(due.iter().all(|value| *value == deadline));
            }
            assert!(wheel.is_empty());
        }
    }
}

// Guards against wingo/fibers#89, in which years of ticks were handled one by one. With this fault
// the test would not end.
#[test]
fn a_jump_costs_no_ticks() {
    for (_, mut wheel) in wheels(0) {
        for jump in 1..16u64 {
            let deadline = jump << 60;
            wheel.insert(deadline, jump);
            wheel.insert(deadline + 1, 99);
            assert_eq!(advance(&mut wheel, deadline), [jump]);
            assert_eq!(advance(&mut wheel, deadline + (1 << 59)), [99]);
        }
    }
}

// Guards against tokio-rs/tokio#3551, in which large values overflowed into marks or beyond an
// array.
#[test]
fn powers_of_two_are_right_as_delay_and_uptime() {
    for uptime in powers().flat_map(|power| [power - 1, power, power + 1]) {
        for delay in powers().flat_map(|power| [power - 1, power, power + 1]) {
            let deadline = uptime.saturating_add(delay);
            for (_, mut wheel) in wheels(uptime).into_iter().filter(|_| deadline > uptime) {
                wheel.insert(deadline, deadline);
                assert_due_at(&mut wheel, deadline);
                assert!(wheel.is_empty());
            }
        }
    }
}

#[test]
fn values_overdue_at_insertion_come_next() {
    for now in [1, 64, 1 << 40, u64::MAX] {
        for to in [0, now - 1, now, now.saturating_add(1)] {
            for (_, mut wheel) in wheels(now) {
                let removed = wheel.insert(now, 9);
                for deadline in [0, now - 1, now] {
                    wheel.insert(deadline, deadline);
                }
                assert_eq!(wheel.next_deadline(), Some(now.saturating_add(1)));
                assert_eq!(wheel.remove(removed), Some(9));
                let mut expected = vec![0, now - 1, now];
                expected.sort_unstable();
                assert_eq!(advance(&mut wheel, to), expected);
                assert_eq!((wheel.now(), wheel.next_deadline()), (now.max(to), None));
            }
        }
    }
}

#[test]
fn a_clock_set_back_changes_nothing() {
    for (_, mut wheel) in wheels(1_000_000) {
        wheel.insert(1_000_100, 1_000_100);
        for back in [999_999, 64, 0] {
            assert_eq!(advance(&mut wheel, back), []);
            assert_eq!((wheel.now(), wheel.next_deadline()), (1_000_000, Some(1_000_100)));
        }
        assert_due_at(&mut wheel, 1_000_100);
    }
}
