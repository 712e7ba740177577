//! Topics, which name handlers and have the rules of their timeouts.

use crate::payload::{AsPayload, Payload};
use crate::schedule::{NewTimeout, Schedule};
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;
use timer_executor::panics;

/// The name of a handler, with the type of its payloads and the rules of its timeouts.
///
/// A topic is a constant of the program. The handler and all calls use the same constant, so a
/// payload of another type does not compile. A name that is made at run time lives as long as the
/// program, see [`String::leak`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
///
/// const REMIND: Topic<String> = Topic::new("invoice.remind")
///     .attempts(20)
///     .backoff(Duration::from_secs(5), Duration::from_secs(3600))
///     .max_lateness(Duration::from_secs(2 * 86_400));
///
/// let builder = DurableTimer::builder().topic(REMIND, |due: &Due<String>| {
///     println!("reminding {}", due.payload());
///     Ok(())
/// });
/// let (timer, _driver) = builder.build_manual(MemoryStore::new())?;
/// timer.new_timeout(REMIND, Duration::from_secs(86_400), "17").wait()?;
/// # Ok::<(), timer_durable::Error>(())
/// ```
///
/// A number is no payload of this topic:
///
/// ```compile_fail,E0277
/// # use std::time::Duration;
/// # use timer_durable::{DurableTimer, MemoryStore, Topic};
/// # const REMIND: Topic<String> = Topic::new("invoice.remind");
/// # let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
/// timer.new_timeout(REMIND, Duration::from_secs(86_400), &17).wait()?;
/// # Ok::<(), timer_durable::Error>(())
/// ```
pub struct Topic<P> {
    pub(crate) name: &'static str,
    pub(crate) rules: Rules,
    payload: PhantomData<fn(P) -> P>,
}

/// The rules of a topic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) attempts: u32,
    backoff: Backoff,
    pub(crate) max_lateness: Option<Duration>,
    /// The time for which dead letters are kept.
    pub(crate) keep_dead: Option<Duration>,
}

/// The delay after a failed attempt.
#[derive(Clone, Copy, Debug)]
enum Backoff {
    /// Random, up to a limit that doubles with each attempt, from the first limit to the last.
    Jitter(Duration, Duration),
    /// A function of the user, which takes the number of failed attempts.
    By(fn(u32) -> Duration),
}

impl<P> Topic<P> {
    /// Returns a topic with 10 attempts, a backoff of up to 1 s to 1 h, and no limit of lateness.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let backoff = Backoff::Jitter(Duration::from_secs(1), Duration::from_secs(3600));
        let rules = Rules { attempts: 10, backoff, max_lateness: None, keep_dead: None };
        Self { name, rules, payload: PhantomData }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Sets the number of attempts after which a timeout becomes a dead letter, at least 1.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.rules.attempts = if attempts == 0 { 1 } else { attempts };
        self
    }

    /// Sets the longest delay after the first failed attempt, which doubles with each further one
    /// up to `max`. The delay is random between zero and the longest one, so that timeouts that
    /// fail together are not repeated together.
    #[must_use]
    pub const fn backoff(mut self, first: Duration, max: Duration) -> Self {
        self.rules.backoff = Backoff::Jitter(first, max);
        self
    }

    /// Sets a function that returns the delay after a failed attempt. It gets the number of
    /// attempts that have failed, from 1, and the delay has no jitter. The keeper calls it, so it
    /// must not block. If it panics, the delay is a second.
    #[must_use]
    pub const fn backoff_by(mut self, delay: fn(u32) -> Duration) -> Self {
        self.rules.backoff = Backoff::By(delay);
        self
    }

    /// Makes a timeout expire if it is more than `limit` late when it could begin. It ends without
    /// a run and is counted in [`Stats::expired`](crate::Stats::expired). The lateness is measured
    /// as for [`Schedule::max_lateness`].
    #[must_use]
    pub const fn max_lateness(mut self, limit: Duration) -> Self {
        self.rules.max_lateness = Some(limit);
        self
    }

    /// Deletes the dead letters of the topic once they have been dead for `limit`, within an hour.
    /// By default they stay until they are [purged](crate::DurableTimer::purge). Each process with a
    /// handler of the topic deletes them, also those that another process has buried.
    #[must_use]
    pub const fn keep_dead(mut self, limit: Duration) -> Self {
        self.rules.keep_dead = Some(limit);
        self
    }
}

impl<P: Payload> Topic<P> {
    /// Returns a timeout for [`DurableTimer::schedule_many`](crate::DurableTimer::schedule_many),
    /// which has an example.
    pub fn with(self, schedule: Schedule, payload: &(impl AsPayload<P> + ?Sized)) -> NewTimeout {
        NewTimeout { topic: self.name, schedule, format: P::FORMAT, payload: payload.encode_as() }
    }
}

impl Rules {
    /// Returns the delay after `tries` failed attempts.
    pub(crate) fn delay_after(&self, tries: u32, random: &mut fastrand::Rng) -> Duration {
        match self.backoff {
            Backoff::Jitter(first, max) => {
                let longest = first.saturating_mul(1 << tries.saturating_sub(1).min(30)).min(max);
                longest.mul_f64(random.f64())
            }
            Backoff::By(delay) => panics::catch(|| delay(tries)).unwrap_or(Duration::from_secs(1)),
        }
    }
}

// Derived implementations would need them of the payload.
impl<P> Clone for Topic<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Topic<P> {}

impl<P> fmt::Debug for Topic<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic").field("name", &self.name).field("rules", &self.rules).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the longest of many delays after this number of failed attempts, in seconds.
    fn longest(rules: Rules, tries: u32) -> u64 {
        let mut random = fastrand::Rng::with_seed(7);
        let delays = (0..1_000).map(|_| rules.delay_after(tries, &mut random));
        delays.max().unwrap_or_default().as_secs_f64().ceil() as u64
    }

    #[test]
    fn the_longest_backoff_doubles_up_to_its_limit() {
        let rules = Topic::<()>::new("t").backoff(Duration::from_secs(1), Duration::from_secs(5)).rules;
        assert_eq!([1, 2, 3, 4, 99].map(|tries| longest(rules, tries)), [1, 2, 4, 5, 5]);
    }

    #[test]
    fn a_function_of_the_user_decides_the_backoff() {
        let delay = |tries| if tries == 3 { panic!("no delay") } else { Duration::from_secs(7 * u64::from(tries)) };
        let rules = Topic::<()>::new("t").backoff_by(delay).rules;
        let mut random = fastrand::Rng::with_seed(7);
        assert_eq!([1, 2, 3].map(|tries| rules.delay_after(tries, &mut random).as_secs()), [7, 14, 1]);
    }
}
