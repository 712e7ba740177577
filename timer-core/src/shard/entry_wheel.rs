//! The wheel of a shard: either kind, holding entries that know their own location.

use crate::config::WheelKind;
use crate::entry::{InEntry, Timeout};
use crate::wheel::{self, RawHashed, RawHierarchical, RawWheel};

/// What a wheel gives out: the tick under which an entry was linked, and the entry, unless it was taken out since.
pub(crate) type Place = wheel::Place<Timeout>;

/// A wheel of entries.
pub(crate) enum EntryWheel {
    Hierarchical(RawHierarchical<Timeout, InEntry>),
    Hashed(RawHashed<Timeout, InEntry>),
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
            WheelKind::Hierarchical => EntryWheel::Hierarchical(RawHierarchical::new(InEntry)),
            WheelKind::Hashed { ticks_per_wheel } => EntryWheel::Hashed(RawHashed::new(ticks_per_wheel, InEntry)),
        }
    }

    /// Before something is linked: it is not before `now`, which is asked for if the wheel is empty.
    #[inline]
    pub(crate) fn wind_if_empty(&mut self, now: impl FnOnce() -> u64) {
        either!(self, wheel => if wheel.len() == 0 {
            wheel.wind(now());
        });
    }

    /// Links an entry that is not linked.
    #[inline]
    pub(crate) fn insert(&mut self, tick: u64, timeout: Timeout) {
        either!(self, wheel => wheel.insert(tick, timeout));
    }

    /// Takes an entry out, if it is in.
    #[inline]
    pub(crate) fn remove(&mut self, timeout: &Timeout) -> Option<Timeout> {
        either!(self, wheel => wheel.remove(timeout.location(), |at| at == timeout))
    }

    /// The tick under which an entry is linked.
    #[inline]
    pub(crate) fn linked(&self, timeout: &Timeout) -> Option<u64> {
        let (tick, at) = either!(self, wheel => wheel.get(timeout.location()))?;
        (at == timeout).then_some(tick)
    }

    /// Takes out what was due when it came in. `out` must be empty.
    pub(crate) fn take_overdue(&mut self, out: &mut Vec<Place>) {
        either!(self, wheel => wheel.take_overdue(out));
    }

    /// A step towards `tick`: takes out some of what is due, perhaps nothing. `false` if nothing else is. `out` must be empty.
    pub(crate) fn take_next(&mut self, tick: u64, out: &mut Vec<Place>) -> bool {
        either!(self, wheel => wheel.take_next(tick, out))
    }

    /// Whether a further step would tidy something, when all that is due has been taken.
    pub(crate) fn is_untidy(&self) -> bool {
        either!(self, wheel => wheel.is_untidy())
    }

    /// Arrays to be freed without the lock.
    pub(crate) fn take_emptied(&mut self) -> Vec<Vec<Place>> {
        either!(self, wheel => wheel.take_emptied())
    }

    /// How many entries were carried to a finer level since it was last asked.
    pub(crate) fn take_carried(&mut self) -> u64 {
        either!(self, wheel => wheel.take_carried())
    }

    /// A tick not beyond the earliest one linked; `None` if nothing but the overdue is linked.
    pub(crate) fn earliest(&self) -> Option<u64> {
        either!(self, wheel => wheel.earliest())
    }

    pub(crate) fn has_overdue(&self) -> bool {
        either!(self, wheel => wheel.has_overdue())
    }

    /// All that is linked.
    pub(crate) fn into_entries(mut self) -> impl Iterator<Item = Timeout> {
        let mut out = Vec::new();
        either!(&mut self, wheel => wheel.drain(&mut out));
        out.into_iter().map(|(_, timeout)| timeout)
    }
}
