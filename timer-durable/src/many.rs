//! Calls about many timeouts.

use crate::answer::{CancelAnswer, CancelCounts, ScheduleAnswer};
use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::message::{Answer, Message, Request};
use crate::reading::page;
use crate::schedule::{CheckedTimeout, NewTimeout, check_length};
use crate::store::{Filter, PendingRow};
use crate::timer::{DurableTimer, by_key};
use crate::topic::Topic;
use crate::traces;
use crate::transaction::Target;
use std::collections::HashSet;

/// The largest number of timeouts in one commit.
const MAX_TIMEOUTS: usize = 1_000;

/// The largest number of payload bytes in one commit.
const MAX_BYTES: usize = 16 << 20;

/// The number of requests that are sent at a time. Other calls go between them.
const STEP: usize = 500;

impl DurableTimer {
    /// Schedules all of these timeouts in one commit, or none of them. Returns their answers in the
    /// same order. [`Topic::with`] makes a timeout, so their topics and payloads may differ.
    ///
    /// At most 1,000 timeouts with 16 MiB of payloads are allowed, because all other calls wait for
    /// the commit. No two may have the same key or the same id. In a handler, a timeout with the
    /// key of the one that runs is kept. To repeat a call whose outcome is unknown, give each
    /// timeout an [`id`](crate::Schedule::id).
    ///
    /// # Errors
    ///
    /// As for [`schedule`](Self::schedule), with the first timeout that is not allowed or refused,
    /// and [`Error::Setting`] or [`Error::TooLong`] if the call is beyond these limits. Nothing was
    /// scheduled, unless it is [`Error::OutcomeUnknown`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Schedule, Topic};
    ///
    /// const REMIND: Topic<String> = Topic::new("invoice.remind");
    /// const CLOSE: Topic<Vec<u8>> = Topic::new("invoice.close");
    ///
    /// let builder = DurableTimer::builder().topic(REMIND, |_: &Due<String>| Ok(())).topic(CLOSE, |_: &Due<Vec<u8>>| Ok(()));
    /// let (timer, _driver) = builder.build_manual(MemoryStore::new())?;
    /// let day = Duration::from_secs(86_400);
    /// let reminders = [1, 7].map(|n| {
    ///     REMIND.with(Schedule::after(n * day).key(format!("customer-7/{n}")), "invoice 17")
    /// });
    /// let close = CLOSE.with(Schedule::after(14 * day).key("17"), &b"17"[..]);
    /// timer.schedule_many(reminders.into_iter().chain([close])).wait()?;
    ///
    /// // The invoice is paid.
    /// assert_eq!(timer.cancel_many(REMIND, "customer-7/").wait()?.cancelled, 2);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "insert_many")]
    #[doc(alias = "bulk")]
    pub fn schedule_many(&self, timeouts: impl IntoIterator<Item = NewTimeout>) -> Call<Vec<ScheduleAnswer>> {
        let client = &self.inner.client;
        let many = check(client, timeouts);
        Call::from_result(many.map(|many| client.ask(|reply| Message::ScheduleMany(many, reply), |answers| answers)))
    }

    /// Cancels the pending timeouts of a topic whose keys begin with `prefix`. An empty prefix
    /// stands for all keys, and timeouts without a key are left alone. Returns how many were
    /// cancelled, and how many are running and were left alone. Calls that are queued beside these
    /// are cancelled.
    ///
    /// The call reads the keys by an index and cancels up to 500 at a time. Other calls go between
    /// these steps, which go on if the [`Call`] is dropped. A timeout that is scheduled during the
    /// call may be cancelled or not.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel) and [`get`](Self::get). Some timeouts may be cancelled then,
    /// and the call can be repeated.
    #[doc(alias = "cancel_prefix")]
    #[doc(alias = "cancel_all")]
    pub fn cancel_many<P>(&self, topic: Topic<P>, prefix: &str) -> Call<CancelCounts> {
        let client = self.inner.client.clone();
        let filter = Filter::new().topic(topic.name).key_prefix(prefix);
        let call = client.permits.take().map(|permit| {
            Call::of_steps(async move {
                let _permit = permit;
                let mut counts = CancelCounts::default();
                let mut last: Option<PendingRow> = None;
                loop {
                    let rows = client.read_with(None, page(&filter, last.as_ref(), STEP)?, Ok).await?;
                    let targets = rows.iter().map(|row| Target::Id(row.id));
                    ask_all(&client, targets.map(Request::Cancel).collect(), |answer| count(&mut counts, answer))
                        .await?;
                    last = rows.into_iter().last();
                    if last.is_none() {
                        return Ok(counts);
                    }
                }
            })
        });
        Call::from_result(call)
    }

    /// Cancels the pending timeouts with these keys, up to 500 at a time. Returns how many were
    /// cancelled, and how many are running and were left alone. The call goes on if its [`Call`] is
    /// dropped.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel). Some timeouts may be cancelled then, and the call can be
    /// repeated.
    pub fn cancel_keys<P>(
        &self,
        topic: Topic<P>,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Call<CancelCounts> {
        let client = self.inner.client.clone();
        let targets = keys.into_iter().map(|key| by_key(topic, key.as_ref()));
        let requests = targets.map(Request::Cancel).collect();
        let call = client.permits.take().map(|permit| {
            Call::of_steps(async move {
                let _permit = permit;
                let mut counts = CancelCounts::default();
                ask_all(&client, requests, |answer| count(&mut counts, answer)).await?;
                Ok(counts)
            })
        });
        Call::from_result(call)
    }
}

fn count(counts: &mut CancelCounts, answer: Answer) {
    match answer.cancelled() {
        CancelAnswer::Cancelled => counts.cancelled += 1,
        CancelAnswer::QueuedCancelled => {
            counts.cancelled += 1;
            counts.running += 1;
        }
        CancelAnswer::Running => counts.running += 1,
        CancelAnswer::Unknown => {}
    }
}

/// Sends requests for a call that holds a permit, and passes on their answers. Each round sends as
/// many requests as there are permits, up to [`STEP`], and at least one by the permit of the call.
/// They share commits.
pub(crate) async fn ask_all(
    client: &Client,
    requests: Vec<Request>,
    mut take: impl FnMut(Answer),
) -> Result<(), Error> {
    let mut requests = requests.into_iter().peekable();
    while requests.peek().is_some() {
        let mut calls: Vec<Call<Answer>> = Vec::new();
        while calls.len() < STEP {
            let permit = client.permits.take().ok();
            if permit.is_none() && !calls.is_empty() {
                break;
            }
            let Some(request) = requests.next() else { break };
            calls.push(client.ask_with(permit, |reply| Message::Call(request, reply), |answer| answer));
        }
        for call in calls {
            take(call.await?);
        }
    }
    Ok(())
}

/// Returns the timeouts of a call if it is within its limits.
fn check(client: &Client, timeouts: impl IntoIterator<Item = NewTimeout>) -> Result<Vec<CheckedTimeout>, Error> {
    let checked = timeouts.into_iter().map(|new| client.check(new));
    let mut many = checked.collect::<Result<Vec<_>, _>>()?;
    if !(1..=MAX_TIMEOUTS).contains(&many.len()) {
        return Err(Error::Setting { name: "timeouts", given: many.len().to_string(), allowed: "1 to 1000" });
    }
    check_length("call with payloads", many.iter().map(|new| new.payload.len()).sum(), MAX_BYTES)?;
    let mut keys = HashSet::new();
    let mut ids = HashSet::new();
    for new in &many {
        if let Some(key) = new.key.as_deref().filter(|key| !keys.insert((&new.topic, *key))) {
            return Err(Error::Setting { name: "key", given: key.to_owned(), allowed: "each key once" });
        }
        if let Some(id) = new.id.filter(|id| !ids.insert(*id)) {
            return Err(Error::Setting { name: "id", given: id.to_string(), allowed: "each id once" });
        }
    }
    drop(keys);
    for new in many.iter_mut().filter(|new| new.traceparent.is_none()) {
        new.traceparent = traces::created(&new.topic);
    }
    Ok(many)
}
