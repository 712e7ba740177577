//! The reference that a wheel has to an entry, and the tracker of such a wheel.

use super::Timeout;
use crate::sync::Ordering;
use crate::wheel::{Location, Tracker};
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A reference that a wheel has to an entry. It is counted, and it is not dropped, because the
/// wheel does not read the slot of an entry that was cancelled or moved. Each one becomes a
/// [`Timeout`] again ([`Timeout::wheel_reference`]), or the canceller takes it over
/// ([`Timeout::take_over`]).
pub(crate) struct Linked(ManuallyDrop<Timeout>);

impl Linked {
    #[inline]
    pub(crate) fn new(timeout: Timeout) -> Self {
        Linked(ManuallyDrop::new(timeout))
    }

    #[inline]
    pub(crate) fn into_timeout(self) -> Timeout {
        ManuallyDrop::into_inner(self.0)
    }
}

impl Deref for Linked {
    type Target = Timeout;

    #[inline]
    fn deref(&self) -> &Timeout {
        &self.0
    }
}

/// The tracker of a wheel of entries, which store their locations themselves.
#[derive(Debug, Default)]
pub(crate) struct EntryTracker;

impl Tracker<Linked> for EntryTracker {
    #[inline]
    fn moved(&mut self, linked: &Linked, location: Location) {
        let header = linked.header();
        // ORDERING: Relaxed, as in `Timeout::location`, because the holder of the shard's lock
        // writes.
        header.bucket.store(location.bucket, Ordering::Relaxed);
        header.position.store(location.position, Ordering::Relaxed);
    }

    #[inline]
    fn prefetch(linked: &Linked) {
        linked.prefetch();
    }
}
