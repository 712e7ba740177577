use super::super::tests::{Check, Tracked, advance};
use super::*;

impl Check for RawHierarchical<u32, Tracked> {
    fn check(&self) {
        let mut len = self.overdue.len();
        for (at, level) in self.levels.iter().enumerate() {
            let occupied = level.as_ref().map_or(0, |level| level.occupied);
            assert_eq!(self.occupied >> at & 1 == 1, occupied != 0, "the mark of level {at}");
            let Some(level) = level else { continue };
            for (slot, bucket) in level.buckets.iter().enumerate() {
                assert_eq!(occupied >> slot & 1 == 1, !bucket.is_empty(), "the mark of {at}/{slot}");
                bucket.check();
                let (start, end) = span(self.now, at, slot);
                for (position, deadline, value) in bucket.entries() {
                    assert_eq!(place(self.now, deadline), (at, slot));
                    assert!(self.now < start && start <= deadline && deadline <= end);
                    assert_eq!(self.tracker.location(*value), Location::new((at * SLOTS + slot) as u32, position));
                }
                len += bucket.len();
            }
        }
        self.overdue.check();
        for (position, deadline, value) in self.overdue.entries() {
            assert!(deadline <= self.now);
            assert_eq!(self.tracker.location(*value), Location::new(OVERDUE, position));
        }
        assert_eq!(self.len, len);
        assert_eq!(self.tracker.len(), len);
    }

    fn room(&self) -> (usize, usize) {
        let levels: Vec<_> = self.levels.iter().flatten().collect();
        let room: usize = levels.iter().flat_map(|level| &level.buckets).map(Bucket::capacity).sum();
        (room + self.overdue.capacity(), levels.len())
    }
}

fn at(now: u64) -> RawHierarchical<u32, Tracked> {
    let mut wheel = RawHierarchical::new(Tracked::default());
    assert!(!wheel.take_next(now, &mut Vec::new()));
    wheel
}

/// The first tick of a slot on each level, and what is next to it.
fn boundaries() -> impl Iterator<Item = u64> {
    (0..u64::BITS).flat_map(|k| (1u64..4).map(move |n| n << k)).filter(|tick| *tick > 2)
}

// B23: neither an outer level nor the edge of a tick rounds a deadline down.
#[test]
fn a_deadline_lies_within_its_slot_and_now_does_not() {
    for now in boundaries().flat_map(|tick| [tick - 2, tick - 1, tick, tick + 1]) {
        for delay in boundaries().flat_map(|tick| [tick - 2, tick - 1, tick, tick + 1]) {
            let deadline = now.saturating_add(delay);
            if deadline > now {
                let (level, slot) = place(now, deadline);
                let (start, end) = span(now, level, slot);
                assert!(now < start && start <= deadline && deadline <= end, "{deadline} seen from {now}");
                assert_eq!(end - start, u64::MAX >> (63 - (level as u32 * BITS)) >> 1);
            }
        }
    }
}

// B32: a later entry on a fine level must not hide an earlier one on a coarse level.
#[test]
fn a_finer_level_is_always_earlier_than_a_coarser_one() {
    for now in boundaries().map(|tick| tick - 1) {
        let mut wheel = at(now);
        for (value, delay) in (0..).zip([4096u64, 64, 65, 63, 2, 1, 1 << 30]) {
            if let Some(deadline) = now.checked_add(delay) {
                wheel.insert(deadline, value);
            }
        }
        let mut last = now;
        for level in wheel.levels.iter().flatten() {
            for bucket in &level.buckets {
                let deadlines = bucket.entries().map(|(_, deadline, _)| deadline);
                assert!(deadlines.clone().all(|deadline| deadline >= last));
                last = deadlines.max().unwrap_or(last);
            }
        }
    }
}

// B63: a cascade never puts anything back into the bucket that it empties.
#[test]
fn a_cascade_leaves_its_source_empty() {
    for level in 1..LEVELS {
        let start = 1u64 << (level as u32 * BITS);
        let mut wheel = at(start - 1);
        let inside = [0, 1, start / 2, start - 1].map(|offset| start + offset);
        for (value, deadline) in (0..).zip(inside) {
            wheel.insert(deadline, value);
        }
        assert_eq!(wheel.levels.iter().flatten().count(), 1, "all in one slot");
        assert_eq!(advance(&mut wheel, start), [0], "level {level}");
        assert_eq!(wheel.occupied >> level & 1, 0);
        assert_eq!(wheel.tracker.carried(), 3);
        for (value, deadline) in (0..).zip(inside).skip(1) {
            assert_eq!(wheel.next_expiry(), Some(deadline));
            assert_eq!(advance(&mut wheel, deadline), [value]);
        }
    }
}

// B24: a far value is carried down again and again, at most once per level, and is never early.
#[test]
fn a_far_value_cascades_once_per_level_at_most() {
    for deadline in [u64::MAX, (1 << 60) - 1, 0x0123_4567_89ab_cdef] {
        let mut wheel = at(0);
        wheel.insert(deadline, 7);
        // Into the slot on each level, one level after the other: the longest way down.
        for level in (0..LEVELS as u32).rev() {
            let (_, slot) = (level, deadline >> (level * BITS) << (level * BITS));
            if slot < deadline {
                assert!(advance(&mut wheel, slot).is_empty());
            }
        }
        assert!(wheel.tracker.carried() < LEVELS as u64, "{}", wheel.tracker.carried());
        assert_eq!(wheel.next_expiry(), Some(deadline));
        assert_eq!(advance(&mut wheel, deadline), [7]);
    }
}

#[test]
fn a_jump_cascades_only_what_shares_its_last_slot() {
    let mut wheel = at(0);
    for value in 0..10_000 {
        wheel.insert(1 + u64::from(value), value);
    }
    assert_eq!(advance(&mut wheel, 9_999).len(), 9_999);
    // Tick 10,000 alone is carried down, from the slot in which the jump ends.
    assert_eq!(wheel.tracker.carried(), 1);
}
