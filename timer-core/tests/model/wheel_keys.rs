//! Keys and their values in both wheels, through growth, reuse, freed memory and drops.

use std::collections::BTreeMap;
use std::rc::Rc;
use timer_core::wheel::{HashedWheel, HierarchicalWheel, Key, TimingWheel};

/// A million uses of one slot, or fewer in a debug build.
const MILLION: u64 = if cfg!(debug_assertions) { 150_000 } else { 1_000_000 };

/// The largest number of values that fill a bucket at a time.
const CROWD: u64 = if cfg!(debug_assertions) { 15_000 } else { 60_000 };

// Guards against tokio-rs/tokio#3558, in which a stale id or a reused slot removed another value.
fn reuse_one_slot(mut wheel: impl TimingWheel<u64>) {
    let mut keys = Vec::with_capacity(MILLION as usize);
    for value in 0..MILLION {
        let key = wheel.insert(value + 10, value);
        if value % 2 == 0 {
            assert_eq!(wheel.remove(key), Some(value));
        } else {
            let mut due = Vec::new();
            wheel.advance(value + 10, |value| due.push(value));
            assert_eq!(due, [value]);
        }
        keys.push(key);
    }
    let last = wheel.insert(u64::MAX, 7);
    for key in keys {
        assert_ne!(key, last);
        assert_eq!(wheel.remove(key), None);
    }
    assert_eq!(wheel.remove(last), Some(7));
}

#[test]
fn keys_of_a_million_uses_of_a_slot_find_nothing() {
    reuse_one_slot(HierarchicalWheel::new());
    reuse_one_slot(HashedWheel::new(512));
}

// Guards against aeron-io/agrona#346 and tokio-rs/tokio#4170, in which ids were wrong after growth
// or shrinking. Here memory is also given back.
fn grow_and_empty(mut wheel: impl TimingWheel<u64>) {
    let mut old: Vec<Key> = Vec::new();
    for size in [1, 2, 3, 7, 64, 255, 256, 257, 1000, 5000, 3, 300] {
        let keys: Vec<Key> = (0..size).map(|value| wheel.insert(1 + value * 37 % 10_007, value)).collect();
        let (later, first): (Vec<u64>, Vec<u64>) = (0..size).partition(|value| value % 3 == 1);
        for value in first.into_iter().chain(later) {
            assert_eq!(wheel.remove(keys[value as usize]), Some(value));
        }
        assert!(wheel.is_empty());
        old.extend(keys);
        assert!(old.iter().all(|key| wheel.remove(*key).is_none()));
    }
}

#[test]
fn every_key_finds_its_own_value_at_every_size() {
    grow_and_empty(HierarchicalWheel::new());
    grow_and_empty(HashedWheel::new(1));
    grow_and_empty(HashedWheel::new(512));
}

// Guards against aeron-io/agrona#346 while the wheel moves its values.
fn remove_during_cascades(mut wheel: impl TimingWheel<u64>) {
    let deadline = |value: u64| 100 + value * value * 31 % 100_000;
    let keys: Vec<Key> = (0..3000).map(|value| wheel.insert(deadline(value), value)).collect();
    for (value, key) in (0..3000u64).zip(keys) {
        let mut due = Vec::new();
        wheel.advance(value * 20, |value| due.push(value));
        assert!(due.iter().all(|due| deadline(*due) <= value * 20));
        let expected = (deadline(value) > value * 20).then_some(value);
        assert_eq!(wheel.remove(key), expected);
    }
}

#[test]
fn a_key_finds_its_value_after_any_cascade() {
    remove_during_cascades(HierarchicalWheel::new());
    remove_during_cascades(HashedWheel::new(64));
}

/// Fills a bucket of a random level, six times. Some values are removed while they cascade.
fn crowds(mut wheel: impl TimingWheel<u64>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut live: BTreeMap<(u64, u64), Key> = BTreeMap::new();
    let mut now = 0;
    let mut serial = 0;
    for _ in 0..6 {
        let slot = 1 << (6 * random.u32(1..6));
        let start = (now / slot + 1) * slot;
        for _ in 0..random.u64(1000..CROWD) {
            let deadline = start + random.u64(0..slot);
            live.insert((deadline, serial), wheel.insert(deadline, serial));
            serial += 1;
        }
        for _ in 0..300 {
            now = match random.u32(0..10) {
                0 => now + random.u64(0..slot),
                1..3 => now + random.u64(0..slot / 64 + 2),
                _ => wheel.next_deadline().unwrap_or(now),
            };
            let mut due = Vec::new();
            wheel.advance(now, |value| due.push(value));
            let later = live.split_off(&(now + 1, 0));
            let mut expected: Vec<u64> =
                std::mem::replace(&mut live, later).into_keys().map(|(_, value)| value).collect();
            due.sort_unstable();
            expected.sort_unstable();
            assert_eq!(due, expected);
            let many = if random.u32(0..40) == 0 { live.len() } else { random.usize(0..30) };
            for _ in 0..many {
                let from = (now + random.u64(0..slot), 0);
                let any = live.range(from..).next().or_else(|| live.iter().next()).map(|(entry, key)| (*entry, *key));
                if let Some((entry, key)) = any {
                    live.remove(&entry);
                    assert_eq!(wheel.remove(key), Some(entry.1));
                    assert_eq!(wheel.remove(key), None);
                }
            }
            assert_eq!(wheel.len(), live.len());
            let earliest = live.keys().next().map(|(deadline, _)| *deadline);
            assert_eq!(wheel.next_deadline().is_some(), earliest.is_some());
            assert!(wheel.next_deadline() <= earliest && wheel.next_deadline().is_none_or(|next| next > now));
        }
    }
}

#[test]
fn crowds_in_one_slot_lose_no_value() {
    for seed in 0..6 {
        crowds(HierarchicalWheel::new(), seed);
    }
    crowds(HashedWheel::new(512), 6);
}

fn drop_values(mut wheel: impl TimingWheel<Rc<()>>) {
    let value = Rc::new(());
    for deadline in [0, 1, 70, 5000, u64::MAX] {
        wheel.insert(deadline, Rc::clone(&value));
    }
    assert_eq!(Rc::strong_count(&value), 6);
    wheel.advance(70, drop);
    assert_eq!(Rc::strong_count(&value), 3);
    drop(wheel);
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn a_dropped_wheel_drops_its_values_once() {
    drop_values(HierarchicalWheel::new());
    drop_values(HashedWheel::new(64));
}

#[test]
fn a_wheel_may_be_sent_to_another_thread() {
    fn send<T: Send>(_: T) {}
    send(HierarchicalWheel::<String>::new());
    send(HashedWheel::<String>::new(8));
}
