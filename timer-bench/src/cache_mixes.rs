//! The calls of production caches, from `data/cache-ttls-2020-03.csv`.
//!
//! The file has rates and lifetimes of days, which no run can wait for. So a [`Mix`] compresses the
//! time until the cache has a given number of entries in its steady state, in which as many entries
//! expire as are written. This keeps the ratios of the lifetimes and the number of expirations for
//! each call.

use crate::random::SplitMix64;
use std::time::Duration;

const TABLE: &str = include_str!("../data/cache-ttls-2020-03.csv");

/// The keys for each entry of the steady state.
const KEYS_PER_ENTRY: usize = 10;

/// The least share of writes. A cluster whose share of writes was rounded to zero has some as well.
const MIN_WRITES: f64 = 0.01;

/// The shortest lifetime after compression.
const MIN_LIFETIME: Duration = Duration::from_millis(1);

/// An operation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    /// Reads an entry, and writes it if there is none. `add` of memcached is the same.
    Get,
    /// Writes an entry with a new lifetime.
    Set,
    /// Changes the value of an entry and not its lifetime. Writes it if there is none.
    Change,
    /// Removes an entry.
    Remove,
}

/// A call of a cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) key: u64,
    /// The lifetime that a write gives, in microseconds.
    lifetime: u32,
    pub(crate) verb: Verb,
}

impl Call {
    #[inline]
    pub(crate) fn lifetime(&self) -> Duration {
        Duration::from_micros(self.lifetime.into())
    }
}

/// The statistics of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Mix {
    pub(crate) cluster: usize,
    /// Lifetimes in seconds with their shares.
    lifetimes: Vec<(f64, f64)>,
    verbs: Vec<(Verb, f64)>,
    alpha: f64,
}

/// Returns the mixes of all clusters.
pub(crate) fn all() -> Vec<Mix> {
    TABLE.lines().skip(1).filter_map(Mix::parse).collect()
}

impl Mix {
    fn parse(line: &str) -> Option<Self> {
        let mut columns = line.split(',');
        let cluster = columns.next()?.parse().ok()?;
        let lifetimes =
            pairs(columns.nth(1)?).map(|(name, share)| Some((seconds(name)?, share))).collect::<Option<_>>();
        let verbs = pairs(columns.next()?).map(|(name, share)| (verb(name), share)).collect();
        // A cluster without an exponent is taken as the middle of the others.
        let alpha = columns.next()?.parse().unwrap_or(1.0);
        Some(Self { cluster, lifetimes: lifetimes?, verbs, alpha })
    }

    /// Returns the lifetimes after compression, with their shares. In the steady state, `calls` of
    /// them in each millisecond keep `entries` alive.
    fn compressed(&self, entries: usize, calls: usize) -> Vec<(u32, f64)> {
        let writes: f64 = self.verbs.iter().filter(|(verb, _)| *verb == Verb::Set).map(|(_, share)| share).sum();
        let all: f64 = self.lifetimes.iter().map(|(_, share)| share).sum();
        let mean = self.lifetimes.iter().map(|(seconds, share)| seconds * share).sum::<f64>() / all;
        let mean_micros = entries as f64 / writes.max(MIN_WRITES) / calls as f64 * 1e3;
        let least = MIN_LIFETIME.as_micros() as f64;
        let micros = |seconds: f64| (seconds / mean * mean_micros).max(least) as u32;
        self.lifetimes.iter().map(|(seconds, share)| (micros(*seconds), *share)).collect()
    }

    /// Returns writes of the `entries` that are alive at the beginning, with the rests of their
    /// lifetimes. They are the most popular ones.
    pub(crate) fn entries(&self, random: &mut SplitMix64, entries: usize, calls: usize) -> Vec<Call> {
        let mut lifetimes = self.compressed(entries, calls);
        // Of two entries, the one that lives for longer is more often found alive.
        lifetimes.iter_mut().for_each(|(micros, share)| *share *= f64::from(*micros));
        let call = |rank: usize| {
            let lifetime = (f64::from(pick(&lifetimes, random)) * unit(random)) as u32;
            Call { key: key(rank as u64), lifetime, verb: Verb::Set }
        };
        (0..entries).map(call).collect()
    }

    /// Returns `n` calls. `calls` of them are made in each millisecond.
    pub(crate) fn calls(&self, random: &mut SplitMix64, n: usize, entries: usize, calls: usize) -> Vec<Call> {
        let lifetimes = self.compressed(entries, calls);
        let keys = (entries * KEYS_PER_ENTRY) as f64;
        let call = |_| Call {
            key: key(rank(unit(random), keys, self.alpha)),
            lifetime: pick(&lifetimes, random),
            verb: pick(&self.verbs, random),
        };
        (0..n).map(call).collect()
    }
}

/// Parses `name:share name:share`.
fn pairs(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.split(' ')
        .filter_map(|pair| pair.split_once(':'))
        .filter_map(|(name, share)| Some((name, share.parse().ok()?)))
}

/// Parses a time such as `2.2h`.
fn seconds(text: &str) -> Option<f64> {
    let unit = match text.chars().last()? {
        's' => 1.0,
        'h' => 3_600.0,
        'd' => 86_400.0,
        _ => return None,
    };
    Some(text[..text.len() - 1].parse::<f64>().ok()? * unit)
}

fn verb(name: &str) -> Verb {
    match name {
        "set" | "cas" => Verb::Set,
        "incr" => Verb::Change,
        "delete" => Verb::Remove,
        _ => Verb::Get,
    }
}

/// Returns one of the values with the probability of its share. The shares need not sum up to 1.
fn pick<T: Copy>(shares: &[(T, f64)], random: &mut SplitMix64) -> T {
    let mut left = unit(random) * shares.iter().map(|(_, share)| share).sum::<f64>();
    let last = shares.len() - 1;
    let found = shares[..last].iter().find(|(_, share)| {
        left -= share;
        left < 0.0
    });
    found.unwrap_or(&shares[last]).0
}

/// Returns a number in `0.0..1.0`.
fn unit(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the rank of a key, counted from 0, by the continuous form of Zipf's law.
fn rank(unit: f64, keys: f64, alpha: f64) -> u64 {
    let power = 1.0 - alpha;
    let rank =
        if power.abs() < 1e-6 { keys.powf(unit) } else { ((keys.powf(power) - 1.0) * unit + 1.0).powf(1.0 / power) };
    rank as u64 - 1
}

/// Returns the key of a rank. Neighbors in rank are no neighbors in memory.
fn key(rank: u64) -> u64 {
    SplitMix64::new(rank).next_u64()
}

#[cfg(test)]
mod tests {
    use super::{Mix, Verb, all, rank};
    use crate::random::{SEED, SplitMix64};

    #[test]
    fn all_clusters_are_read() {
        let mixes = all();
        assert_eq!(mixes.len(), 23);
        let shares = |mix: &Mix| mix.lifetimes.iter().map(|(_, share)| share).sum::<f64>();
        assert!(mixes.iter().all(|mix| (0.9..1.1).contains(&shares(mix)) && !mix.verbs.is_empty()));
        let of = |cluster| mixes.iter().find(|mix| mix.cluster == cluster).unwrap();
        let lifetimes: Vec<_> = of(21).lifetimes.iter().map(|(seconds, share)| (seconds.round(), *share)).collect();
        assert_eq!(lifetimes, [(7_920.0, 0.62), (10.0, 0.23), (900.0, 0.14)]);
        assert_eq!((of(46).alpha, of(14).verbs[1]), (1.0, (Verb::Remove, 0.22)));
    }

    #[test]
    fn as_many_entries_expire_as_are_written() {
        let mix = all().into_iter().find(|mix| mix.cluster == 15).unwrap();
        let mut random = SplitMix64::new(SEED);
        let calls = mix.calls(&mut random, 1_000, 100_000, 400);
        assert!(calls.iter().all(|call| call.verb == Verb::Set && call.lifetime().as_millis() == 250));
        let entries = mix.entries(&mut random, 10_000, 400);
        let mean = entries.iter().map(|call| call.lifetime().as_secs_f64()).sum::<f64>() / 1e4;
        assert!((0.012..0.013).contains(&mean), "half of a lifetime of 25 ms is left, and not {mean}");
    }

    #[test]
    fn popular_keys_have_low_ranks() {
        let mut random = SplitMix64::new(SEED);
        let mut share = |alpha| {
            let ranks = (0..10_000).map(|_| rank(super::unit(&mut random), 1e6, alpha));
            ranks.filter(|rank| *rank < 1_000).count()
        };
        assert!(share(0.0) < 30 && (4_500..5_500).contains(&share(1.0)) && share(2.0) > 9_900);
        assert_eq!((rank(0.0, 1e6, 1.5), rank(1.0 - 1e-16, 1e6, 1.0) < 1_000_000), (0, true));
    }
}
