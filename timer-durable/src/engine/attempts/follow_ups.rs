//! The timeouts that follow an attempt.
//!
//! They are created with the end of the attempt: those of the [`Done`] that its handler returns,
//! and the next timeout of its key, for which the handler has called its timer.

use super::{Attempts, Running};
use crate::TimeoutId;
use crate::answer::ScheduleAnswer;
use crate::done::Done;
use crate::engine::settings::Settings;
use crate::engine::unwritten::insert;
use crate::error::Error;
use crate::message::{AttemptEnd, AttemptResult};
use crate::schedule::CheckedTimeout;
use crate::store::Micros;
use crate::time::When;
use crate::transaction::{IfPending, Insert, KeyEffect, KeyHolder};

impl Attempts {
    /// Returns the reason why a follow-up cannot be scheduled, if there is one.
    pub(super) fn allow_follow_ups(&self, done: &Done) -> Result<(), String> {
        let Settings { topics, elsewhere, max_payload, .. } = &*self.settings;
        for CheckedTimeout { topic, payload, .. } in done.then.as_ref().map_err(String::clone)? {
            if !topics.contains_key(topic) && !elsewhere.contains(topic) {
                return Err(format!("the topic `{topic}` of a follow-up has no handler here"));
            }
            if payload.len() > *max_payload {
                return Err(format!("the payload of a follow-up is too long: {} bytes", payload.len()));
            }
        }
        Ok(())
    }

    pub(super) fn follow_ups(&self, then: Option<&CheckedTimeout>, done: &Done, now: Micros) -> Vec<Insert> {
        let follow_ups = then.into_iter().chain(done.then.iter().flatten());
        follow_ups.map(|then| insert(then.clone(), now, self.instance)).collect()
    }

    /// Returns `true` if a handler schedules the next timeout of its key.
    pub(crate) fn is_follow_up(&self, new: &CheckedTimeout) -> bool {
        let running = new.after.and_then(|id| self.running.get(&id));
        running.is_some_and(|running| {
            let progress = &running.progress;
            !progress.has_completed()
                && !progress.is_in_transaction()
                && (running.period.is_none() || new.if_pending == IfPending::Replace)
        })
    }

    /// Keeps a follow-up for the commit that ends the attempt. Returns the answer of the call, or
    /// `None` if the attempt has ended.
    pub(crate) fn follow_up(
        &mut self,
        mut new: Box<CheckedTimeout>,
        now: Micros,
    ) -> Option<Result<ScheduleAnswer, Error>> {
        let made = TimeoutId::made_at(now, self.instance);
        let running = new.after.and_then(|id| self.running.get_mut(&id))?;
        let id = *new.id.get_or_insert(made);
        let due = new.when.from(now);
        new.when = When::At(due);
        let Some(then) = running.then.as_mut() else {
            running.then = Some(new);
            return Some(Ok(ScheduleAnswer::Created(id)));
        };
        let holder = then.id.unwrap_or(id);
        Some(match effect_on_follow_up(&new, then, now) {
            KeyEffect::Kept if new.if_pending == IfPending::Refuse => Err(Error::KeyTaken { id: holder }),
            // No attempt of the follow-up runs, so the call is never queued.
            KeyEffect::Kept | KeyEffect::Queued => Ok(ScheduleAnswer::Kept(holder)),
            KeyEffect::Moved { due } => {
                then.when = When::At(due);
                then.max_delay = None;
                Ok(ScheduleAnswer::Moved(holder))
            }
            KeyEffect::Updated { due, planned } => {
                let max_delay = planned.map(|cap| cap.saturating_sub(now));
                **then = CheckedTimeout { id: Some(holder), when: When::At(due), max_delay, ..*new };
                Ok(ScheduleAnswer::Moved(holder))
            }
            KeyEffect::Replaced => {
                *then = new;
                Ok(ScheduleAnswer::Created(id))
            }
        })
    }

    /// Returns the follow-ups of an attempt that a transaction has ended without them. The calls of
    /// its handler were answered, so their timeout is created whatever the handler returns.
    pub(crate) fn ended_elsewhere(&mut self, running: Running, ended: &AttemptEnd, now: Micros) -> Vec<Insert> {
        self.stuck.entry((ended.id, ended.attempt)).and_modify(|has_ended| *has_ended = true);
        let done = if let AttemptResult::Done(done) = &ended.result { Some(done.clone()) } else { running.late };
        self.late_follow_ups(running.then.as_deref(), &done.unwrap_or_default(), now)
    }

    /// Notes that the handler of an attempt that was cut off has returned. If a transaction may
    /// have ended the attempt, its follow-ups wait until that is known. Returns those that need not
    /// wait.
    pub(crate) fn returned_late(&mut self, ended: AttemptEnd, now: Micros) -> Vec<Insert> {
        let has_ended_elsewhere = self.stuck.remove(&(ended.id, ended.attempt)).unwrap_or_default();
        let AttemptResult::Done(done) = ended.result else { return Vec::new() };
        if has_ended_elsewhere {
            return self.late_follow_ups(None, &done, now);
        }
        if let Some(running) = self.get_mut(ended.id, ended.attempt) {
            running.late = Some(done);
        }
        Vec::new()
    }

    fn late_follow_ups(&self, then: Option<&CheckedTimeout>, done: &Done, now: Micros) -> Vec<Insert> {
        let nothing = Done::new();
        let done = if self.allow_follow_ups(done).is_ok() { done } else { &nothing };
        self.follow_ups(then, done, now)
    }
}

/// Returns the effect of a call in a handler on the follow-up that has its key.
fn effect_on_follow_up(new: &CheckedTimeout, then: &CheckedTimeout, now: Micros) -> KeyEffect {
    let (due, planned) = then.times(now);
    let holder = KeyHolder { due, planned, attempts: 0, is_running: false };
    let (due, cap) = new.times(now);
    let call = Insert { cap, period: new.period, if_pending: new.if_pending, ..Insert::new(TimeoutId::new(), due, "") };
    call.effect_on(&holder, now)
}
