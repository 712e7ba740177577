//! Histograms of durations.

use std::time::Duration;

/// The upper bounds of the buckets of exported histograms, from 100 us to 1 min. A last bucket has
/// no bound. [`Histogram::counts`](timer_core::LagSnapshot::counts) returns the number of durations
/// in each of them.
pub const BOUNDS: [Duration; 18] = [
    Duration::from_micros(100),
    Duration::from_micros(200),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

/// The number of durations by size, each of which is known to 1 %.
///
/// # Examples
///
/// The lag of the last minute:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
/// let (timer, mut driver) = builder.build_manual(MemoryStore::new())?;
/// let minute_ago = timer.stats().topics["order.close"].clone();
/// timer.new_timeout(CLOSE, Duration::from_secs(30), "17").wait()?;
/// driver.advance(Duration::from_secs(60));
/// let now = &timer.stats().topics["order.close"];
/// let lag = now.lag.since(&minute_ago.lag);
/// let lateness = now.lateness.since(&minute_ago.lateness);
/// println!("{} began, 99 % within {:?}, late by {lateness:?}", lag.count(), lag.quantile(0.99));
/// # assert_eq!(lag.count(), 1);
/// # Ok::<(), timer_durable::Error>(())
/// ```
pub type Histogram = timer_core::LagSnapshot;
