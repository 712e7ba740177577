//! The effect of an insert on the pending timeout that has its key.

use super::{IfPending, Insert};
use crate::time::Micros;

/// The pending timeout that has the topic and the key of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHolder {
    /// The due time.
    pub due: Micros,
    /// The planned time of the run, or `None` if it is the due time. Until the first attempt of a
    /// timeout that was created by a debounced call, it is the [cap](Insert::cap).
    pub planned: Option<Micros>,
    /// The number of attempts that have begun.
    pub attempts: u32,
    /// Whether an attempt is running.
    pub is_running: bool,
}

/// The effect of an insert on the [`KeyHolder`], as [`Insert::effect_on`] returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyEffect {
    /// The holder stays as it is. The outcome is [`Kept`](super::Outcome::Kept).
    Kept,
    /// The holder stays as it is, and the insert is queued beside its attempt. If a call is queued
    /// there already, that call is the holder, of which no attempt runs, and its effect changes the
    /// queued call. The outcome is [`Queued`](super::Outcome::Queued) in any case.
    Queued,
    /// The holder is due at another time, for which its run is planned anew. The outcome is
    /// [`Moved`](super::Outcome::Moved).
    Moved {
        /// The new due time.
        due: Micros,
    },
    /// The holder gets the format, the payload, the period, the limit of lateness and the trace of
    /// the insert. The outcome is [`Moved`](super::Outcome::Moved).
    Updated {
        /// The new due time, which may be the old one.
        due: Micros,
        /// The new planned time, or `None` if it is the due time.
        planned: Option<Micros>,
    },
    /// The holder ends, and the insert creates its timeout. The outcome is
    /// [`Created`](super::Outcome::Created).
    Replaced,
}

impl Insert {
    /// Returns the effect of this insert at `now` on the pending timeout that has its key. A store
    /// that works in another language, such as SQL, has the same table:
    ///
    /// | [`IfPending`] | effect | due time | planned time |
    /// |---|---|---|---|
    /// | `Keep`, `Refuse` | [`Kept`](KeyEffect::Kept) | the same | the same |
    /// | any other, and an attempt of the holder runs | [`Queued`](KeyEffect::Queued) | the same | the same |
    /// | `Earlier` | [`Moved`](KeyEffect::Moved), or `Kept` if it is due then | the earlier of both | the due time |
    /// | `Later` | `Moved`, or `Kept` if it is due then | the later of both | the due time |
    /// | `Update` with a period | [`Updated`](KeyEffect::Updated) | the earlier of the same and a period from now | the same, or the due time if that changes |
    /// | `Update` without a period | `Updated` | the earlier of both | the same, or the due time if that changes |
    /// | `Debounce` | `Updated` | that of the insert, but not later than the cap | the cap |
    /// | `Replace` | [`Replaced`](KeyEffect::Replaced) | that of the insert | the cap of the insert |
    ///
    /// The cap is the planned time of the holder if it has no attempt, and otherwise that of the
    /// insert. There may be none. Then it limits nothing, and the planned time is the due time.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::transaction::{Insert, KeyEffect, KeyHolder};
    /// use timer_durable::{IfPending, TimeoutId};
    ///
    /// let holder = KeyHolder { due: 5_000, planned: None, attempts: 0, is_running: false };
    /// let mut insert = Insert::new(TimeoutId::new(), 3_000, "lease.end");
    /// insert.if_pending = IfPending::Later;
    /// assert_eq!(insert.effect_on(&holder, 1_000), KeyEffect::Kept);
    /// insert.due = 9_000;
    /// assert_eq!(insert.effect_on(&holder, 1_000), KeyEffect::Moved { due: 9_000 });
    /// ```
    #[must_use]
    pub fn effect_on(&self, holder: &KeyHolder, now: Micros) -> KeyEffect {
        let moved = |due| if due == holder.due { KeyEffect::Kept } else { KeyEffect::Moved { due } };
        match self.if_pending {
            IfPending::Keep | IfPending::Refuse => KeyEffect::Kept,
            _ if holder.is_running => KeyEffect::Queued,
            IfPending::Earlier => moved(holder.due.min(self.due)),
            IfPending::Later => moved(holder.due.max(self.due)),
            IfPending::Update => {
                let due = holder.due.min(self.period.map_or(self.due, |period| now.saturating_add(period)));
                KeyEffect::Updated { due, planned: holder.planned.filter(|_| due == holder.due) }
            }
            IfPending::Debounce => {
                let cap = holder.planned.filter(|_| holder.attempts == 0).or(self.cap);
                KeyEffect::Updated { due: cap.map_or(self.due, |cap| self.due.min(cap)), planned: cap }
            }
            IfPending::Replace => KeyEffect::Replaced,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TimeoutId;

    /// The due time, the period and the cap of a call.
    type Call = (Micros, Option<Micros>, Option<Micros>);

    fn effect(if_pending: IfPending, (due, period, cap): Call, holder: KeyHolder) -> KeyEffect {
        let call = Insert { if_pending, period, cap, ..Insert::new(TimeoutId::new(), due, "") };
        call.effect_on(&holder, 100)
    }

    #[test]
    fn each_rule_has_its_row() {
        use IfPending::{Debounce, Earlier, Keep, Later, Refuse, Replace, Update};
        use KeyEffect::{Kept, Moved, Replaced};
        let updated = |due, planned| KeyEffect::Updated { due, planned };
        let new = KeyHolder { due: 500, planned: None, attempts: 0, is_running: false };
        let capped = KeyHolder { planned: Some(600), ..new };
        let retried = KeyHolder { planned: Some(50), attempts: 2, ..new };
        for (if_pending, call, holder, expected) in [
            (Keep, (400, None, None), new, Kept),
            (Refuse, (400, None, None), new, Kept),
            (Earlier, (400, None, None), new, Moved { due: 400 }),
            (Earlier, (500, None, None), new, Kept),
            (Earlier, (700, None, None), new, Kept),
            (Later, (400, None, None), new, Kept),
            (Later, (700, None, None), capped, Moved { due: 700 }),
            (Update, (400, None, None), new, updated(400, None)),
            (Update, (700, None, None), retried, updated(500, Some(50))),
            (Update, (450, Some(300), None), retried, updated(400, None)),
            (Update, (400, Some(900), None), new, updated(500, None)),
            (Update, (400, Some(Micros::MAX), None), new, updated(500, None)),
            (Debounce, (400, None, None), new, updated(400, None)),
            (Debounce, (900, None, Some(800)), new, updated(800, Some(800))),
            (Debounce, (700, None, Some(800)), capped, updated(600, Some(600))),
            (Debounce, (400, None, None), capped, updated(400, Some(600))),
            (Debounce, (700, None, Some(800)), retried, updated(700, Some(800))),
            (Replace, (400, None, None), new, Replaced),
        ] {
            assert_eq!(effect(if_pending, call, holder), expected, "{if_pending:?} {call:?} on {holder:?}");
            let beside_attempt = if matches!(if_pending, Keep | Refuse) { Kept } else { KeyEffect::Queued };
            assert_eq!(effect(if_pending, call, KeyHolder { is_running: true, ..holder }), beside_attempt);
        }
    }
}
