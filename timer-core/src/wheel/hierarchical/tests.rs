//! The hierarchical wheel below its keys.

use super::super::bucket::CHUNK;
use super::super::location::GENERATION;
use super::super::tests::{Check, Tracked, advance};
use super::*;

impl Check for RawHierarchical<u32, Tracked> {
    fn check(&self) {
        let (mut len, tracker) = (0, &self.base.tracker);
        let mut cascading = 0;
        for (at, level) in self.levels.iter().enumerate() {
            let occupied = level.as_ref().map_or(0, |level| level.occupied);
            assert_eq!(self.occupied >> at & 1 == 1, occupied != 0, "the mark of level {at}");
            let Some(level) = level else { continue };
            for (index, bucket) in level.buckets.iter().enumerate() {
                let is_cascading = self.cascade_of(number(at, index)).is_some();
                let is_marked = occupied >> index & 1 == 1;
                assert_eq!(is_marked, !bucket.is_empty() && !is_cascading, "the mark of {at}/{index}");
                if is_cascading {
                    bucket.check_chunks();
                    assert!(bucket.values() > 0);
                    cascading |= 1 << at;
                } else {
                    bucket.check();
                }
                let (start, end) = span(self.base.now, at, index);
                for (position, deadline, value) in bucket.dated() {
                    assert!(start <= deadline && deadline <= end);
                    assert!(is_cascading || locate(self.base.now, deadline) == (at, index));
                    assert_eq!(bucket.name % GENERATION, number(at, index));
                    assert_eq!(tracker.location(*value), Location::new(bucket.name, position));
                    len += 1;
                }
            }
        }
        assert_eq!(self.cascades.all(), cascading);
        assert_eq!(self.cascades.scanning & self.cascades.resting, 0);
        self.base.overdue.check();
        for (position, deadline, value) in self.base.overdue.dated() {
            assert!(deadline <= self.base.now);
            assert_eq!(tracker.location(*value), Location::new(self.base.overdue.name, position));
            len += 1;
        }
        assert_eq!((self.base.len, tracker.len()), (len, len));
    }

    fn room(&self) -> (usize, usize) {
        let levels = self.levels.iter().flatten();
        let buckets: usize = levels.clone().flat_map(|level| &level.buckets).map(Bucket::capacity).sum();
        (buckets + self.base.overdue.capacity(), levels.count())
    }
}

fn at(now: u64) -> RawHierarchical<u32, Tracked> {
    let mut wheel = RawHierarchical::new(Tracked::default());
    assert!(!wheel.take_next(now, &mut Bucket::default()));
    wheel
}

/// Returns the first ticks of some spans on each level.
fn boundaries() -> impl Iterator<Item = u64> {
    (0..u64::BITS).flat_map(|k| (1u64..4).map(move |n| n << k)).filter(|tick| *tick > 2)
}

// Guards against a fault in which an outer level or the edge of a tick rounded a deadline down.
#[test]
fn a_deadline_lies_within_its_slot_and_now_does_not() {
    for now in boundaries().flat_map(|tick| [tick - 2, tick - 1, tick, tick + 1]) {
        for delay in boundaries().flat_map(|tick| [tick - 2, tick - 1, tick, tick + 1]) {
            let deadline = now.saturating_add(delay);
            if deadline > now {
                let (level, slot) = locate(now, deadline);
                let (start, end) = span(now, level, slot);
                assert!(now < start && start <= deadline && deadline <= end, "{deadline} seen from {now}");
                assert_eq!(end - start, u64::MAX >> (63 - (level as u32 * BITS)) >> 1);
            }
        }
    }
}

// Guards against glommio/glommio#44, in which a later entry on a fine level hid an earlier one on a
// coarse level.
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
                let deadlines = bucket.dated().map(|(_, deadline, _)| deadline);
                assert!(deadlines.clone().all(|deadline| deadline >= last));
                last = deadlines.max().unwrap_or(last);
            }
        }
    }
}

// Guards against RussellLuo/timingwheel#28, in which an insertion into the bucket that was being
// emptied deadlocked.
#[test]
fn a_cascade_leaves_its_source_empty() {
    for level in 1..LEVELS {
        let start = 1u64 << (level as u32 * BITS);
        let mut wheel = at(start - 1);
        let inside = [0, 1, start / 2, start - 1].map(|offset| start + offset);
        for (value, deadline) in (0..).zip(inside) {
            wheel.insert(deadline, value);
        }
        assert_eq!(wheel.levels.iter().flatten().count(), 1, "all values are on one level");
        assert_eq!(advance(&mut wheel, start), [0], "level {level}");
        assert_eq!(wheel.occupied >> level & 1, 0);
        assert_eq!(wheel.take_cascaded(), 3);
        for (value, deadline) in (0..).zip(inside).skip(1) {
            assert_eq!(wheel.next_deadline(), Some(deadline));
            assert_eq!(advance(&mut wheel, deadline), [value]);
        }
    }
}

// Guards against a fault in which a deadline beyond the range of the wheel came early.
#[test]
fn a_far_value_cascades_once_per_level_at_most() {
    for deadline in [u64::MAX, (1 << 60) - 1, 0x0123_4567_89ab_cdef] {
        let mut wheel = at(0);
        wheel.insert(deadline, 7);
        // The clock enters the span on one level after the other, the longest way down.
        for level in (0..LEVELS as u32).rev() {
            let (_, slot) = (level, deadline >> (level * BITS) << (level * BITS));
            if slot < deadline {
                assert!(advance(&mut wheel, slot).is_empty());
            }
        }
        assert!((1..LEVELS as u64).contains(&wheel.take_cascaded()));
        assert_eq!(wheel.next_deadline(), Some(deadline));
        assert_eq!(advance(&mut wheel, deadline), [7]);
    }
}

#[test]
fn a_jump_cascades_only_the_bucket_in_which_it_ends() {
    let mut wheel = at(0);
    for value in 0..10_000 {
        wheel.insert(1 + u64::from(value), value);
    }
    assert_eq!(advance(&mut wheel, 9_999).len(), 9_999);
    // Only the value of tick 10,000 shares the bucket in which the jump ends.
    assert_eq!(wheel.take_cascaded(), 1);
}

/// Returns a wheel at the tick before 4096 with random deadlines in the bucket of level 2 that
/// begins there.
fn crowd(many: u32) -> (RawHierarchical<u32, Tracked>, Vec<u64>) {
    let mut wheel = at(4095);
    let mut random = fastrand::Rng::with_seed(9);
    let deadlines: Vec<u64> = (0..many).map(|_| random.u64(4096..8192)).collect();
    (0..).zip(&deadlines).for_each(|(value, deadline)| wheel.insert(*deadline, value));
    (wheel, deadlines)
}

#[test]
fn a_step_of_a_cascade_is_short_and_leaves_most_values() {
    let (mut wheel, deadlines) = crowd(5000);
    let (mut out, mut due, mut moved) = (Bucket::default(), 0, 0);
    for now in 4096..8192 {
        let (mut more, before) = (true, moved);
        while more {
            more = wheel.take_next(now, &mut out);
            let cascaded = wheel.take_cascaded();
            assert!(cascaded <= CHUNK as u64 && out.values <= 5000 / 100, "{cascaded}, {}", out.values);
            moved += cascaded;
            due += out.values as usize;
            out.drain(|_| ());
        }
        let expected = deadlines.iter().filter(|deadline| **deadline <= now).count();
        assert_eq!(due, expected);
        // At most one of the 64 buckets of the next finer level cascades.
        assert!(moved - before < 5000 / 8, "{} at once at {now}", moved - before);
        assert!(now > 4096 || (wheel.cascades.all() != 0));
    }
    assert!(wheel.base.len == 0 && moved < 2 * 5000);
}

#[test]
fn a_value_that_a_cascade_has_not_read_is_not_forgotten() {
    let (mut wheel, deadlines) = crowd(100);
    assert!(wheel.take_next(4096, &mut Bucket::default()) && wheel.cascades.all() != 0);
    for value in 0..99 {
        let location = wheel.base.tracker.location(value);
        if wheel.remove(location, |at| *at == value).is_some() {
            wheel.base.tracker.forget(value);
        }
    }
    wheel.insert(10_000, 100);
    let location = wheel.base.tracker.location(100);
    assert_eq!(wheel.remove(location, |at| *at == 100), Some(100));
    wheel.base.tracker.forget(100);
    assert_eq!(advance(&mut wheel, deadlines[99]), [99]);
}

#[test]
fn values_that_are_removed_during_a_cascade_leave_no_bound() {
    // Few values, whose removal causes no upkeep, and many.
    for (steps, many) in (0..20).flat_map(|steps| [(steps, 7), (steps, 100)]) {
        let (mut wheel, _) = crowd(many);
        let mut out = Bucket::default();
        for _ in 0..steps {
            wheel.take_next(4096, &mut out);
            out.drain(|_| ());
        }
        for value in 0..many {
            let location = wheel.base.tracker.location(value);
            let _ = wheel.remove(location, |at| *at == value);
        }
        assert_eq!(wheel.earliest(), None, "after {steps}");
        wheel.insert(10_000, 100);
        assert_eq!(wheel.earliest(), Some(10_000), "after {steps}");
    }
}

#[test]
fn a_cascade_gives_up_memory_with_its_values() {
    for before in [4096, 4100, 5000] {
        let (mut wheel, deadlines) = crowd(1000);
        advance(&mut wheel, before);
        let (removed, left): (Vec<u32>, Vec<u32>) =
            (0..).take(1000).filter(|value| deadlines[*value as usize] > before).partition(|value| *value > 30);
        for value in removed {
            let location = wheel.base.tracker.location(value);
            assert_eq!(wheel.remove(location, |at| *at == value), Some(value));
            wheel.base.tracker.forget(value);
            wheel.check();
        }
        assert!(wheel.room().0 < 64 * 4 * 3 + 100, "{:?}", wheel.room());
        advance(&mut wheel, before + 1);
        for value in left.into_iter().filter(|value| deadlines[*value as usize] > before + 1) {
            let location = wheel.base.tracker.location(value);
            assert_eq!(wheel.get(location), Some((deadlines[value as usize], &value)));
        }
    }
}

/// Inserts values while those of a step wait to be decided, also after the clock of an empty wheel
/// has moved on by laps. No location of the step names one of them.
#[test]
fn a_location_of_the_last_step_names_no_value() {
    let mut random = fastrand::Rng::with_seed(3);
    for crowd in [1, 3, 2 * CHUNK] {
        let mut wheel = at(0);
        let mut values = 0..;
        let mut insert = |wheel: &mut RawHierarchical<u32, Tracked>, deadline| {
            wheel.insert(deadline, values.next().unwrap());
        };
        for _ in 0..300 {
            let length = 1 << random.u32(0..14);
            for _ in 0..random.usize(1..=crowd) {
                let deadline = wheel.base.now + random.u64(0..length);
                insert(&mut wheel, deadline);
            }
            // Some rounds end with an empty wheel, whose clock can move.
            for _ in 0..random.usize(1..4 * CHUNK) {
                let mut out = Bucket::default();
                if wheel.base.has_overdue() {
                    wheel.base.take_overdue(&mut out);
                } else if let Some(next) = wheel.next_deadline() {
                    wheel.take_next(next, &mut out);
                }
                let left: Vec<u32> = out.take_all().map(|(_, value)| value).collect();
                let lap = 64 << random.u32(0..7);
                if wheel.base.len == 0 {
                    wheel.fast_forward(wheel.base.now + lap);
                }
                let now = wheel.base.now;
                let inserted = left.len().min(crowd) as u64 / 2;
                (0..=inserted).for_each(|nth| insert(&mut wheel, now + nth % 2 * random.u64(0..=lap)));
                for value in left {
                    let location = wheel.base.tracker.location(value);
                    assert!(!wheel.vacate(location), "{location:?} of a value that has left");
                    wheel.base.tracker.forget(value);
                }
                drop(wheel.base.take_discarded());
            }
            wheel.check();
        }
        for value in wheel.base.tracker.values().collect::<Vec<u32>>() {
            assert!(wheel.vacate(wheel.base.tracker.location(value)));
            wheel.base.tracker.forget(value);
        }
        wheel.check();
    }
}
