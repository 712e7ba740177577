//! The ordered collections of the standard library as a [`Structure`].

use super::Structure;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Values by deadline and number.
#[derive(Default)]
pub(super) struct Tree {
    tree: BTreeMap<(u64, u64), u64>,
    number: u64,
    now: u64,
}

impl Structure for Tree {
    type Key = (u64, u64);

    fn now(&self) -> u64 {
        self.now
    }

    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        self.number += 1;
        let key = (deadline, self.number);
        self.tree.insert(key, value);
        key
    }

    fn remove(&mut self, key: Self::Key) -> Option<u64> {
        self.tree.remove(&key)
    }

    fn next_expiry(&self) -> Option<u64> {
        self.tree.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn advance(&mut self, now: u64, mut expired: impl FnMut(u64)) {
        self.now = now;
        while self.next_expiry().is_some_and(|next| next <= now) {
            self.tree.pop_first().into_iter().for_each(|(_, value)| expired(value));
        }
    }
}

/// Values by deadline with the earliest on top.
#[derive(Default)]
pub(super) struct Heap {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    now: u64,
}

impl Structure for Heap {
    const NO_REMOVE: Option<&'static str> = Some("only its first can be taken out");
    type Key = ();

    fn now(&self) -> u64 {
        self.now
    }

    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        self.heap.push(Reverse((deadline, value)));
    }

    fn remove(&mut self, (): ()) -> Option<u64> {
        None
    }

    fn next_expiry(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((deadline, _))| *deadline)
    }

    fn advance(&mut self, now: u64, mut expired: impl FnMut(u64)) {
        self.now = now;
        while self.next_expiry().is_some_and(|next| next <= now) {
            self.heap.pop().into_iter().for_each(|Reverse((_, value))| expired(value));
        }
    }
}
