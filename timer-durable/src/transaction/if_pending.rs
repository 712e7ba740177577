//! The rule of a call whose key has a timeout already.

/// The effect of an insert if a timeout with the same topic and key is pending.
///
/// While an attempt of the timeout runs, only its handler can end it. A call with another rule than
/// `Keep` and `Refuse` is then *queued*: the store keeps it, and it has its effect right after the
/// attempt has ended. A further call changes the one that is queued, as if that were pending. A
/// call in the handler itself is about the next timeout of the key, see
/// [`Schedule::key`](crate::Schedule::key). [`Insert::effect_on`](super::Insert::effect_on) has all
/// rules as a table.
///
/// # Examples
///
/// A lease that is extended, but never shortened:
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, IfPending, MemoryStore, Schedule, Topic};
///
/// const LEASE: Topic<()> = Topic::new("lease.end");
///
/// let (timer, _driver) = DurableTimer::builder().topic(LEASE, |_: &Due<()>| Ok(())).build_manual(MemoryStore::new())?;
/// for seconds in [10, 5] {
///     let schedule = Schedule::after(Duration::from_secs(seconds)).key("node-7").if_pending(IfPending::Later);
///     timer.schedule(LEASE, schedule, &()).wait()?;
/// }
/// # Ok::<(), timer_durable::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum IfPending {
    /// Keeps the pending timeout and returns its id.
    #[default]
    Keep,
    /// Ends the pending timeout and creates the new one.
    Replace,
    /// Keeps the pending timeout and moves it to the earlier of both due times.
    Earlier,
    /// Keeps the pending timeout and moves it to the later of both due times.
    Later,
    /// Keeps the pending timeout with its id and phase, and gives it the payload, the period and
    /// the limit of lateness of the call. It is moved to the earlier of its due time and one new
    /// period from now. Without a period, it is moved to the earlier of both due times.
    ///
    /// A program that schedules a periodic timeout at each start uses this. A new period takes
    /// effect at once, and frequent restarts do not put off the next run.
    Update,
    /// Keeps the pending timeout with its id, and gives it the due time, the payload, the period
    /// and the limit of lateness of the call. So it is due when no call has come for a while.
    /// [`Schedule::cap`](crate::Schedule::cap) limits how long calls can put it off.
    Debounce,
    /// Refuses the call.
    Refuse,
}

impl IfPending {
    /// Returns the name, such as `keep`, by which SQL functions and command lines know the value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Replace => "replace",
            Self::Earlier => "earlier",
            Self::Later => "later",
            Self::Update => "update",
            Self::Debounce => "debounce",
            Self::Refuse => "refuse",
        }
    }

    /// Returns the value with this [name](Self::name), or `None` for other names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        use IfPending::{Debounce, Earlier, Keep, Later, Refuse, Replace, Update};
        [Keep, Replace, Earlier, Later, Update, Debounce, Refuse].into_iter().find(|rule| rule.name() == name)
    }

    /// Returns the rule of a queued call after a further call with this rule has
    /// [updated](super::KeyEffect::Updated) it. `Replace` stays `Replace`.
    #[must_use]
    pub const fn after(self, queued: Self) -> Self {
        if matches!(queued, Self::Replace) { queued } else { self }
    }
}
