//! The lease of an instance.

use std::time::{Duration, Instant};
use timer_durable::store::{LeaseTime, Micros};

/// The lease unless another one is set.
const DEFAULT: Duration = Duration::from_secs(15);

/// The shortest lease.
const SHORTEST: Duration = Duration::from_millis(500);

/// The lease, as far as this process knows.
///
/// It counts from the time before a renewal was sent, and is an eighth shorter here than on the
/// server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    length: Duration,
    end: LeaseTime,
    /// The time since which the lease has never been over.
    steady_since: Instant,
}

impl Lease {
    /// Creates a lease that is over.
    pub(super) fn new() -> Self {
        Self { length: DEFAULT, end: LeaseTime::now(), steady_since: Instant::now() }
    }

    pub(super) fn set_length(&mut self, length: Duration) {
        self.length = length.max(SHORTEST);
    }

    pub(super) fn micros(&self) -> Micros {
        Micros::try_from(self.length.as_micros()).unwrap_or(Micros::MAX)
    }

    /// Returns the longest time that a statement may take.
    pub(super) fn limit(&self) -> Duration {
        (self.length / 2).clamp(Duration::from_millis(500), Duration::from_secs(10))
    }

    /// Returns the time between two renewals.
    pub(super) fn interval(&self) -> Duration {
        self.length / 3
    }

    /// Returns the time for which the lease of another instance must have been over.
    pub(super) fn grace(&self) -> Duration {
        self.interval().min(Duration::from_secs(1))
    }

    /// Returns the time after which an upkeep that has failed is repeated.
    pub(super) fn pause(&self) -> Duration {
        (self.length / 8).min(Duration::from_secs(1))
    }

    pub(super) fn is_over(&self) -> bool {
        self.end <= LeaseTime::now()
    }

    pub(super) fn end(&self) -> Instant {
        self.end.instant()
    }

    /// Begins the lease of a new instance, which is over until the first renewal.
    pub(super) fn begin(&mut self) {
        self.steady_since = Instant::now();
        self.end = LeaseTime::now();
    }

    /// Notes that a renewal is sent. Returns the time from which it counts.
    pub(super) fn send(&mut self, sent: Instant) -> LeaseTime {
        let begun = LeaseTime::now();
        if self.end <= begun {
            // The server may have been away, so the leases of others are over without their fault.
            self.steady_since = sent;
        }
        begun
    }

    /// Returns `true` if other instances whose leases are over at `sent` had the time to renew.
    pub(super) fn is_steady(&self, sent: Instant) -> bool {
        sent.duration_since(self.steady_since) > self.length + Duration::from_secs(1)
    }

    /// Takes the lease of a renewal.
    pub(super) fn extend(&mut self, begun: LeaseTime) {
        self.end = begun.after(self.length - self.length / 8);
    }
}
