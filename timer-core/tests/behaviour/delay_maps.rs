//! Delay maps, whose keys are those of the user and may panic.

use crate::support::panics::panic_on_purpose;
use crate::support::wakers::Bell;
use crate::support::*;
use std::cell::Cell;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};
use timer_core::delay_queue::{DelayMap, DelayQueue, SharedDelayQueue};

#[test]
fn the_entry_of_a_map_is_replaced() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (_, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut map = DelayMap::new(&timer);
    assert_eq!(map.insert("a".to_owned(), 1, SECOND), None);
    assert_eq!(map.insert("b".to_owned(), 2, 2 * SECOND), None);
    assert_eq!(map.insert("a".to_owned(), 3, 3 * SECOND), Some(1));
    assert_eq!((map.len(), map.get("a"), map.peek().map(String::as_str)), (2, Some(&3), Some("b")));
    driver.advance(HOUR);
    let mut out = Vec::new();
    assert_eq!(map.poll_expired_many(&mut cx, &mut out, 10), Poll::Ready(2));
    let out: Vec<_> = out.into_iter().map(|item| (item.key_ref().clone(), item.into_inner())).collect();
    assert_eq!(out, [("b".to_owned(), 2), ("a".to_owned(), 3)]);
    assert!(map.is_empty() && !map.reset("a", SECOND) && map.remove("a").is_none() && map.get("b").is_none());
    assert_eq!(map.insert("a".to_owned(), 4, SECOND), None, "a key is new after its item came out");
}

#[test]
fn a_map_that_nothing_polls_needs_no_timer() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut map = DelayMap::with_hasher(&timer, BuildHasherDefault::<DefaultHasher>::default());
    let begin = timer.now();
    map.extend([("c", 3, 3 * SECOND), ("a", 1, SECOND), ("b", 2, 2 * SECOND)]);
    let mut out = Vec::new();
    while let Some(wake) = map.next_deadline() {
        driver.advance(wake - timer.now() - NANO);
        assert!(map.try_next().is_none());
        driver.advance(NANO);
        assert_eq!(timer.pending_timeouts(), 0, "a look at the map arms the timer");
        out.extend(map.try_next().map(|expired| (expired.key(), expired.deadline() - begin)));
    }
    assert_eq!(out, [("a", SECOND), ("b", 2 * SECOND), ("c", 3 * SECOND)]);
    assert!(map.get("a").is_none() && map.try_next().is_none());
}

#[test]
fn an_expired_entry_can_be_hidden() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut map = DelayMap::new(&timer);
    let deadline = timer.now() + SECOND;
    map.insert("a", 1, SECOND);
    driver.advance(SECOND - NANO);
    assert_eq!((map.get_unexpired("a"), map.get_unexpired("b")), (Some(&1), None));
    driver.advance(NANO);
    assert_eq!((map.get_unexpired("a"), map.get_with_deadline("a")), (None, Some((&1, deadline))));
    assert_eq!(map.insert("a", 2, SECOND), Some(1), "it is in the map until it comes out");
    assert_eq!(map.get_unexpired("a"), Some(&2));
    assert!(map.try_next().is_none(), "it has the new deadline");
}

/// The owner of a queue of each kind.
#[derive(Default)]
struct Owner {
    map: DelayMap<u8, u8>,
    queue: DelayQueue<u8>,
    shared: SharedDelayQueue<u8>,
}

#[test]
fn the_default_is_on_the_timer_that_the_thread_has_entered() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let _entered = timer_core::time::enter(timer);
    let mut owner = Owner::default();
    owner.map.insert(1, 1, HOUR);
    owner.queue.insert(1, HOUR);
    owner.shared.insert(1, HOUR);
    driver.advance(HOUR);
    assert!(owner.map.try_next().is_some() && owner.queue.try_next().is_some() && owner.shared.try_take().is_some());
}

thread_local! {
    static PANICS: Cell<Option<(&'static str, u32)>> = const { Cell::new(None) };
}

/// A key whose methods panic on demand. A map needs no clones of it.
#[derive(Debug)]
struct Fragile(u32);

impl Fragile {
    fn panic_if(&self, method: &str) {
        if PANICS.get() == Some((method, self.0)) {
            panic_on_purpose();
        }
    }
}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.panic_if("hash");
        self.0.hash(state);
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        self.panic_if("eq");
        self.0 == other.0
    }
}

impl Eq for Fragile {}

/// Calls `f` while a method of a key panics, and asserts that the call panics.
fn assert_panics<R>(method: &'static str, key: u32, f: impl FnOnce() -> R) {
    PANICS.set(Some((method, key)));
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err(), "{method} of {key}");
    PANICS.set(None);
}

#[test]
fn a_key_that_panics_leaves_no_entry_behind() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (_, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut map = DelayMap::new(&timer);
    map.insert(Fragile(1), "former", 2 * SECOND);
    for (method, key) in [("hash", 1), ("hash", 2), ("eq", 1)] {
        assert_panics(method, key, || map.insert(Fragile(key), "new", SECOND));
        assert_eq!((map.len(), map.get(&Fragile(1)), map.get(&Fragile(2))), (1, Some(&"former"), None));
    }
    for method in ["hash", "eq"] {
        assert_panics(method, 1, || map.remove(&Fragile(1)));
        assert_panics(method, 1, || map.reset(&Fragile(1), SECOND));
    }
    driver.advance(2 * SECOND - NANO);
    assert!(map.poll_expired(&mut cx).is_pending());
    driver.advance(NANO);
    let Poll::Ready(Some(expired)) = map.poll_expired(&mut cx) else { panic!("the entry is due") };
    assert_eq!(expired.into_inner(), "former");
    assert!(map.is_empty());
}

#[test]
fn an_entry_whose_key_panics_takes_no_other_with_it() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let (_, waker) = Bell::new();
    let mut cx = Context::from_waker(&waker);
    let mut map = DelayMap::new(&timer);
    for id in 1..=4 {
        map.insert(Fragile(id), (), id * SECOND);
    }
    driver.advance(HOUR);
    let mut out = Vec::new();
    assert_panics("hash", 2, || map.poll_expired_many(&mut cx, &mut out, 9));
    PANICS.set(Some(("eq", 3)));
    assert_eq!(map.poll_expired_many(&mut cx, &mut out, 9), Poll::Ready(2), "an expiry compares no keys");
    PANICS.set(None);
    assert!(out.iter().map(|expired| expired.key_ref().0).eq([1, 3, 4]) && map.is_empty());
    for round in 0..2 {
        // The hash table still has the row of the dropped entry, which others use now.
        for id in [9, 2, 5] {
            assert_eq!(map.insert(Fragile(id), (), SECOND), None, "the key is new");
        }
        assert!(map.remove(&Fragile(9 - 4 * round)).is_some() && map.get(&Fragile(2)).is_some());
        driver.advance(SECOND);
        assert_eq!(map.poll_expired_many(&mut cx, &mut out, 9), Poll::Ready(2));
        assert!(map.get(&Fragile(2)).is_none() && map.is_empty());
    }
}

/// A key whose `Drop` panics while it is armed.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Bomb(u32);

impl Drop for Bomb {
    fn drop(&mut self) {
        if ARMED.take() {
            panic_on_purpose();
        }
    }
}

thread_local! {
    static ARMED: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn a_map_is_empty_although_the_drop_of_a_key_has_panicked() {
    let (timer, mut driver) = manual(WHEELS[0]);
    let mut map = DelayMap::new(&timer);
    for n in 0..3 {
        map.insert(Bomb(n), n, SECOND);
    }
    ARMED.set(true);
    assert!(catch_unwind(AssertUnwindSafe(|| map.clear())).is_err());
    assert_eq!((map.len(), map.get(&Bomb(1))), (0, None));
    map.insert(Bomb(1), 100, 60 * SECOND);
    driver.advance(SECOND);
    let (_, waker) = Bell::new();
    assert!(map.poll_expired(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(map.get(&Bomb(1)), Some(&100));
}
