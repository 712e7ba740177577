//! The wheel of a shard: either kind, holding entries that know their own spot.

use crate::entry::AnyEntry;
use crate::sync::Arc;
use crate::wheel::{self, Levels, Places, RawWheel, Ring, Spot};

/// Which wheel a timer uses.
///
/// # Examples
///
/// ```
/// use timer_core::{Timer, WheelKind};
///
/// let timer = Timer::builder().wheel(WheelKind::Hashed { ticks_per_wheel: 512 }).build()?;
/// # Ok::<(), timer_core::BuildError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WheelKind {
    /// Hierarchical wheels, scheme 7 of Varghese and Lauck (1987), as in Kafka: far timeouts wait in coarse levels and are
    /// cascaded down. Any delay, any number of timeouts; the default.
    #[default]
    #[doc(alias = "TimingWheel")]
    Hierarchical,
    /// One wheel with rounds, scheme 6 of Varghese and Lauck (1987), as in Netty. Good when most delays are shorter than
    /// the wheel; a tick with something due walks all entries of its bucket.
    #[doc(alias = "HashedWheelTimer")]
    Hashed {
        /// How many ticks one round has: 1 to 2^30, rounded up to a power of two. Netty's default is 512.
        ticks_per_wheel: usize,
    },
}

/// An entry that has left a wheel, and the tick under which it was linked.
pub(crate) type Due = wheel::Entry<Arc<dyn AnyEntry>>;

/// Entries remember their spots themselves.
#[derive(Debug, Default)]
pub(crate) struct InEntry;

impl Places<Arc<dyn AnyEntry>> for InEntry {
    #[inline]
    fn put(&mut self, entry: &Arc<dyn AnyEntry>, spot: Spot) {
        entry.head().set_spot(spot);
    }
}

/// A wheel of entries.
pub(crate) enum EntryWheel {
    Hierarchical(Levels<Arc<dyn AnyEntry>, InEntry>),
    Hashed(Ring<Arc<dyn AnyEntry>, InEntry>),
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
            WheelKind::Hierarchical => EntryWheel::Hierarchical(Levels::new(InEntry)),
            WheelKind::Hashed { ticks_per_wheel } => EntryWheel::Hashed(Ring::new(ticks_per_wheel, InEntry)),
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, tick: u64, entry: Arc<dyn AnyEntry>) {
        either!(self, wheel => wheel.insert(tick, entry));
    }

    /// Takes an entry out, if it is in.
    #[inline]
    pub(crate) fn remove(&mut self, entry: &Arc<dyn AnyEntry>) -> Option<Arc<dyn AnyEntry>> {
        either!(self, wheel => wheel.remove(entry.head().spot(), |at| Arc::ptr_eq(at, entry)))
    }

    /// The tick under which an entry is linked.
    #[inline]
    pub(crate) fn linked(&self, entry: &Arc<dyn AnyEntry>) -> Option<u64> {
        let (tick, at) = either!(self, wheel => wheel.get(entry.head().spot()))?;
        Arc::ptr_eq(at, entry).then_some(tick)
    }

    /// Moves what was due when it came in to the end of `due`.
    pub(crate) fn take_overdue(&mut self, due: &mut Vec<Due>) {
        either!(self, wheel => wheel.take_overdue(due));
    }

    /// Moves what is due at `now` in the next bucket to the end of `due`; `false` if there was nothing.
    pub(crate) fn take_due(&mut self, now: u64, due: &mut Vec<Due>) -> bool {
        either!(self, wheel => wheel.take_due(now, due))
    }

    pub(crate) fn next_expiry(&self) -> Option<u64> {
        either!(self, wheel => wheel.next_expiry())
    }

    pub(crate) fn has_overdue(&self) -> bool {
        either!(self, wheel => wheel.has_overdue())
    }

    pub(crate) fn drain(&mut self, out: &mut Vec<Due>) {
        either!(self, wheel => wheel.drain(out));
    }

    pub(crate) fn cascaded(&self) -> u64 {
        either!(self, wheel => wheel.cascaded())
    }
}
