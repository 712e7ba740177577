//! The list behind a set of timers, with a unique label for each.
//!
//! The lock guards only the list. Nothing is locked while a timer is read or a handle is dropped,
//! because dropping the last handle of a timer runs user code.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of timers up to which each [`List::add`] looks for timers that are gone. In a longer
/// list it does so whenever the list has doubled, so that its cost does not depend on the length.
const FEW: usize = 64;

/// A timer of a set.
#[derive(Clone, Debug)]
pub(crate) struct Watched<T> {
    /// The number of this timer among all that were ever watched.
    pub(crate) number: u64,
    /// The value of the label `timer`, unique within the set.
    pub(crate) label: String,
    /// A weak handle, with which settings may be stored.
    pub(crate) timer: T,
}

/// The timers of a set, which its clones share.
#[derive(Clone, Debug)]
pub(crate) struct Watchlist<T>(Arc<Mutex<List<T>>>);

impl<T> Default for Watchlist<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone> Watchlist<T> {
    /// Adds a timer and returns its label: `wanted`, or with `-2`, `-3` and so on if another living
    /// timer has that label. `upgrade` returns a handle of a living timer.
    pub(crate) fn add<H>(&self, wanted: String, timer: T, upgrade: impl Fn(&T) -> Option<H>) -> String {
        // The guard of the lock is dropped before the handles, one of which may be the last one.
        let mut handles = Vec::new();
        self.lock().add(wanted, timer, |timer| upgrade(timer).map(|handle| handles.push(handle)).is_some())
    }

    /// Calls `read` with each timer. Removes those for which it returns `None`, because they are
    /// gone.
    pub(crate) fn read<R>(&self, read: impl Fn(Watched<T>) -> Option<R>) -> Vec<R> {
        let watched = self.lock().watched.clone();
        let mut results = Vec::with_capacity(watched.len());
        let mut gone = Vec::new();
        for watched in watched {
            let number = watched.number;
            match read(watched) {
                Some(result) => results.push(result),
                None => gone.push(number),
            }
        }
        self.lock().remove(&gone);
        results
    }

    pub(crate) fn labels(&self) -> Vec<String> {
        self.lock().watched.iter().map(|watched| watched.label.clone()).collect()
    }

    /// Returns the timer with this label.
    #[cfg(feature = "durable")]
    pub(crate) fn get(&self, label: &str) -> Option<T> {
        self.lock().watched.iter().find(|watched| watched.label == label).map(|watched| watched.timer.clone())
    }

    fn lock(&self) -> MutexGuard<'_, List<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The timers of a set, in the order in which they were added.
#[derive(Debug)]
struct List<T> {
    watched: Vec<Watched<T>>,
    labels: HashSet<String>,
    /// The least number that may be free behind a label. All smaller ones are taken.
    next: HashMap<String, u64>,
    count: u64,
    /// The length after the last look for timers that are gone.
    swept: usize,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { watched: Vec::new(), labels: HashSet::new(), next: HashMap::new(), count: 0, swept: 0 }
    }
}

impl<T> List<T> {
    /// Adds a timer, after removing those that are not alive if there is a reason to look.
    fn add(&mut self, wanted: String, timer: T, mut is_alive: impl FnMut(&T) -> bool) -> String {
        if self.watched.len() <= FEW || self.watched.len() >= 2 * self.swept {
            self.retain(|watched| is_alive(&watched.timer));
            self.swept = self.watched.len();
        }
        let label = if self.labels.contains(&wanted) {
            let next = self.next.entry(wanted.clone()).or_insert(2);
            while self.labels.contains(&format!("{wanted}-{next}")) {
                *next += 1;
            }
            format!("{wanted}-{next}")
        } else {
            wanted
        };
        self.labels.insert(label.clone());
        self.count += 1;
        self.watched.push(Watched { number: self.count, label: label.clone(), timer });
        label
    }

    /// Removes the timers with these numbers, which ascend. Their labels are free again.
    fn remove(&mut self, numbers: &[u64]) {
        if !numbers.is_empty() {
            self.retain(|watched| numbers.binary_search(&watched.number).is_err());
        }
    }

    fn retain(&mut self, mut stays: impl FnMut(&Watched<T>) -> bool) {
        let Self { watched, labels, next, .. } = self;
        watched.retain(|watched| {
            let stays = stays(watched);
            if !stays {
                labels.remove(&watched.label);
                next.clear();
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::List;
    use std::cell::Cell;

    #[test]
    fn the_cost_of_adding_does_not_depend_on_the_number_of_timers() {
        const MANY: u64 = 20_000;
        let mut list = List::default();
        let upgrades = Cell::new(0);
        let is_alive = |(): &()| {
            upgrades.set(upgrades.get() + 1);
            true
        };
        for n in 1..=MANY {
            let label = list.add("timer".to_owned(), (), is_alive);
            assert_eq!(label, if n == 1 { "timer".to_owned() } else { format!("timer-{n}") });
        }
        assert!(upgrades.get() < 3 * MANY, "{}", upgrades.get());
    }

    #[test]
    fn labels_of_timers_that_are_gone_are_used_again() {
        let mut list = List::default();
        let mut longest = 0;
        for n in 0..10_000_u32 {
            let label = list.add("timer".to_owned(), n, |other| other % 10 == 0 && other + 1_000 > n);
            longest = longest.max(label.len());
        }
        assert!(longest <= "timer-100".len() && list.watched.len() <= 2 * 100, "{longest} {}", list.watched.len());
    }
}
