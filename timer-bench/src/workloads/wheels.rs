//! W12: the data structures alone, on one thread and without a clock. N entries are due at ticks of
//! 1 ms, 10 s to an hour ahead.
//!
//! `ns/insert` is the cost of an insertion, and `ns/next_expiry` that of a query for the next
//! expiry when all entries are in. `ns/remove` removes all entries in random order, and `ns/expire`
//! hops from one next expiry to the next until the structure is empty. All are CPU times. Small
//! sizes are repeated on the same, used structure.

mod standard;
#[cfg(feature = "peers")]
mod wheel_of_hhwt;

use super::Stop;
use super::out::Out;
use crate::process::cpu;
use crate::random::{SEED, SplitMix64};
use crate::row::short;
use crate::settings::Settings;
use std::hint::black_box;
use std::time::Duration;
use timer_core::wheel::{HashedWheel, HierarchicalWheel, TimingWheel};

const FULL: &[usize] = &[1_000, 100_000, 1_000_000, 10_000_000];
const QUICK: &[usize] = &[1_000, 100_000];

/// The least number of operations that are timed.
const MIN_OPERATIONS: usize = 300_000;

/// The earliest and the latest tick from now.
const FIRST: u64 = 10_000;
const LAST: u64 = 3_600_000;

/// The round of the hashed wheel, 30 s rounded up to a power of two.
const TICKS_PER_WHEEL: usize = 32_768;

/// A structure that holds values until their tick.
trait Structure: Default {
    /// The reason why an entry cannot be removed, if it cannot.
    const NO_REMOVE: Option<&'static str> = None;
    /// The key that finds an entry again.
    type Key;

    fn now(&self) -> u64;
    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key;
    fn remove(&mut self, key: Self::Key) -> Option<u64>;
    fn next_expiry(&self) -> Option<u64>;
    fn advance(&mut self, now: u64, expired: impl FnMut(u64));
}

pub(super) fn run(peer: &str, settings: &Settings, out: &Out) -> Result<(), Stop> {
    let run = match peer {
        "timer" => sizes::<Levels>,
        "timer-hashed" => sizes::<Rounds>,
        "btree" => sizes::<standard::Tree>,
        "heap" => sizes::<standard::Heap>,
        #[cfg(feature = "peers")]
        "hhwt" => sizes::<wheel_of_hhwt::Wheel>,
        _ => return Err(Stop::Unavailable("no structure to be used alone".to_owned())),
    };
    run(settings, out);
    Ok(())
}

fn sizes<S: Structure>(settings: &Settings, out: &Out) {
    for n in settings.list("n", FULL, QUICK) {
        once::<S>(n, &format!("n={}", short(n)), out);
    }
}

fn once<S: Structure>(n: usize, params: &str, out: &Out) {
    let rounds = MIN_OPERATIONS.div_ceil(n.max(1));
    let mut structure = S::default();
    let mut keys = Vec::with_capacity(n);
    let [mut inserting, mut asking, mut removing, mut expiring] = [Duration::ZERO; 4];
    for _ in 0..rounds {
        inserting += fill(&mut structure, n, &mut keys);
        asking += timed(|| {
            for _ in 0..n {
                black_box(black_box(&structure).next_expiry());
            }
        });
        if S::NO_REMOVE.is_none() {
            SplitMix64::new(SEED + 1).shuffle(&mut keys);
            removing += timed(|| {
                for key in keys.drain(..) {
                    black_box(structure.remove(key));
                }
            });
            fill(&mut structure, n, &mut keys);
        }
        keys.clear();
        let mut sum = 0_u64;
        expiring += timed(|| {
            while let Some(next) = structure.next_expiry() {
                structure.advance(next, |value| sum = sum.wrapping_add(value));
            }
        });
        // Each value came out exactly once.
        assert_eq!(sum, n as u64 * (n as u64).saturating_sub(1) / 2);
    }
    let operations = n * rounds;
    out.each(params, inserting, operations, "ns/insert");
    out.each(params, asking, operations, "ns/next_expiry");
    match S::NO_REMOVE {
        None => out.each(params, removing, operations, "ns/remove"),
        Some(why) => out.unavailable(params, "ns/remove", why),
    }
    out.each(params, expiring, operations, "ns/expire");
}

fn fill<S: Structure>(structure: &mut S, n: usize, keys: &mut Vec<S::Key>) -> Duration {
    let (now, mut random) = (structure.now(), SplitMix64::delays(0));
    timed(|| {
        for value in 0..n as u64 {
            let deadline = now + FIRST + random.below(LAST - FIRST);
            keys.push(structure.insert(deadline, value));
        }
    })
}

/// Returns the CPU time of `work`, which suits a single thread that never waits better than wall
/// time.
fn timed(work: impl FnOnce()) -> Duration {
    let before = cpu();
    work();
    cpu() - before
}

/// A wheel of this workspace.
struct Wheel<W>(W);

type Levels = Wheel<HierarchicalWheel<u64>>;
type Rounds = Wheel<HashedWheel<u64>>;

impl Default for Levels {
    fn default() -> Self {
        Self(HierarchicalWheel::new())
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Self(HashedWheel::new(TICKS_PER_WHEEL))
    }
}

impl<W: TimingWheel<u64>> Structure for Wheel<W>
where
    Self: Default,
{
    type Key = timer_core::wheel::Key;

    fn now(&self) -> u64 {
        self.0.now()
    }

    fn insert(&mut self, deadline: u64, value: u64) -> Self::Key {
        self.0.insert(deadline, value)
    }

    fn remove(&mut self, key: Self::Key) -> Option<u64> {
        self.0.remove(key)
    }

    fn next_expiry(&self) -> Option<u64> {
        self.0.next_expiry()
    }

    fn advance(&mut self, now: u64, expired: impl FnMut(u64)) {
        self.0.advance(now, expired);
    }
}

#[cfg(test)]
mod tests {
    use super::{Levels, Rounds, Structure, standard};

    /// Inserts three values, removes one if possible, and expires the rest.
    fn trace<S: Structure>() -> Vec<u64> {
        let mut structure = S::default();
        let keys = [30_000, 10_000, 20_000].map(|deadline| structure.insert(deadline, deadline));
        if S::NO_REMOVE.is_none() {
            let [_, _, last] = keys;
            assert_eq!(structure.remove(last), Some(20_000));
        }
        let mut trace = Vec::new();
        while let Some(next) = structure.next_expiry() {
            assert!(next > structure.now());
            structure.advance(next, |value| trace.push(value));
        }
        trace
    }

    #[test]
    fn all_structures_do_the_same_work() {
        let expected = [10_000, 30_000];
        assert_eq!(trace::<Levels>(), expected);
        assert_eq!(trace::<Rounds>(), expected);
        assert_eq!(trace::<standard::Tree>(), expected);
        assert_eq!(trace::<standard::Heap>(), [10_000, 20_000, 30_000]);
        #[cfg(feature = "peers")]
        assert_eq!(trace::<super::wheel_of_hhwt::Wheel>(), expected);
    }
}
