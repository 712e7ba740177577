//! The wheel of a shard: either kind, holding entries that know their own location.

use crate::config::WheelKind;
use crate::entry::{EntryTracker, Linked, Timeout};
use crate::wheel::{self, Base, BucketSpan, RawHashed, RawHierarchical, RawWheel};

/// Some slots of a bucket, with the entries and the ticks under which they were linked.
pub(crate) type Part<'a> = wheel::Part<'a, Linked>;

/// A chunk of [`Slots`].
pub(crate) type SlotChunk = wheel::Chunk<Linked>;

/// The entries that a step of a wheel takes out.
pub(crate) type Slots = wheel::Bucket<Linked>;

/// A wheel of entries.
#[allow(clippy::large_enum_variant, reason = "the end of the first one shares a cache line with the lock")]
pub(crate) enum EntryWheel {
    Hierarchical(RawHierarchical<Linked, EntryTracker>),
    Hashed(Box<RawHashed<Linked, EntryTracker>>),
}

macro_rules! either {
    ($ring:expr, $wheel:ident => $what:expr) => {
        match $ring {
            EntryWheel::Hierarchical($wheel) => $what,
            EntryWheel::Hashed($wheel) => $what,
        }
    };
}

impl EntryWheel {
    pub(crate) fn new(kind: WheelKind) -> Self {
        match kind {
            WheelKind::Hierarchical => EntryWheel::Hierarchical(RawHierarchical::new(EntryTracker)),
            WheelKind::Hashed { ticks_per_wheel } => {
                EntryWheel::Hashed(Box::new(RawHashed::new(ticks_per_wheel, EntryTracker)))
            }
        }
    }

    /// Links an entry that is not linked. Calls `now` for the current tick only if the wheel is
    /// empty.
    #[inline]
    pub(crate) fn insert(&mut self, tick: u64, timeout: Timeout, now: impl FnOnce() -> u64) {
        either!(self, wheel => {
            if wheel.base().len == 0 {
                wheel.fast_forward(now());
            }
            wheel.insert(tick, Linked::new(timeout));
        });
    }

    /// Removes an entry if it is linked and `may`, which is then called, returns `true`. If it was
    /// removed, the caller has to take over the reference of the wheel. The entry waits without the
    /// flag `UNLINKED`, or did so until it was cancelled. So it is at its location, or the step
    /// that has taken it out is the last one in this wheel.
    #[inline]
    pub(crate) fn vacate(&mut self, timeout: &Timeout, may: impl Fn() -> bool) -> bool {
        match self {
            EntryWheel::Hierarchical(wheel) => wheel.vacate_if(timeout.location(), may),
            EntryWheel::Hashed(wheel) => wheel.remove(timeout.location(), |at| **at == *timeout && may()).is_some(),
        }
    }

    /// Removes an entry. Returns `None` if it is not linked.
    pub(crate) fn remove(&mut self, timeout: &Timeout) -> Option<Timeout> {
        either!(self, wheel => wheel.remove(timeout.location(), |at| **at == *timeout)).map(Linked::into_timeout)
    }

    /// Returns the tick under which an entry is linked.
    #[inline]
    pub(crate) fn linked(&self, timeout: &Timeout) -> Option<u64> {
        let (tick, at) = either!(self, wheel => wheel.get(timeout.location()))?;
        (**at == *timeout).then_some(tick)
    }

    /// Makes a step towards `tick`, which may take due entries out. Returns `false` if no other
    /// entries are due. `out` must be empty.
    pub(crate) fn take_next(&mut self, tick: u64, out: &mut Slots) -> bool {
        either!(self, wheel => wheel.take_next(tick, out))
    }

    pub(crate) fn has_stale_bound(&self) -> bool {
        either!(self, wheel => wheel.has_stale_bound())
    }

    /// Returns the number of entries that cascaded to a finer level since the last call.
    pub(crate) fn take_cascaded(&mut self) -> u64 {
        either!(self, wheel => wheel.take_cascaded())
    }

    /// Returns a tick not after the earliest deadline. Returns `None` if no entries but overdue
    /// ones are linked.
    pub(crate) fn earliest(&self) -> Option<u64> {
        either!(self, wheel => wheel.earliest())
    }

    /// Appends the buckets that have entries.
    pub(crate) fn spans(&self, out: &mut Vec<BucketSpan>) {
        either!(self, wheel => out.extend(wheel.spans()));
    }

    /// Returns the bucket with this number.
    pub(crate) fn bucket(&self, number: u32) -> Option<&Slots> {
        either!(self, wheel => wheel.bucket(number))
    }

    #[inline]
    pub(crate) fn base(&self) -> &Base<Linked, EntryTracker> {
        either!(self, wheel => wheel.base())
    }

    #[inline]
    pub(crate) fn base_mut(&mut self) -> &mut Base<Linked, EntryTracker> {
        either!(self, wheel => wheel.base_mut())
    }

    /// Returns all entries.
    pub(crate) fn into_entries(mut self) -> impl Iterator<Item = Timeout> {
        let mut entries = Vec::with_capacity(self.base().len);
        either!(&mut self, wheel => entries.extend(wheel.drain().map(|(_, linked)| linked.into_timeout())));
        entries.into_iter()
    }
}
