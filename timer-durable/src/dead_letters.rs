//! The calls about dead letters: requeue and purge, one or many.

use crate::TimeoutId;
use crate::answer::{RequeueAnswer, RequeueCounts};
use crate::call::Call;
use crate::client::Client;
use crate::error::Error;
use crate::many::ask_all;
use crate::message::{Answer, Request};
use crate::store::{DeadFilter, Reader};
use crate::timer::DurableTimer;

/// The number of dead letters that are read at a time, with their payloads.
const PAGE: usize = 100;

impl DurableTimer {
    /// Makes a dead letter pending again and due now. It gets a full number of attempts again, but
    /// their numbers continue. Its period and its own `max_lateness` ended with it, so it runs
    /// once, and only the limit of its topic can make it expire. To make it periodic again,
    /// schedule a new timeout.
    ///
    /// A dead letter has given up its key. If another timeout has the key by now, the letter stays
    /// dead. This is always so for the dead letter of a run whose series goes on.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    ///
    /// # Examples
    ///
    /// A job that was scheduled again after its first run had failed for good:
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, RequeueAnswer, Retry, Schedule, Topic};
    ///
    /// const SYNC: Topic<()> = Topic::new("account.sync");
    ///
    /// let handler = |_: &Due<()>| -> Result<(), Retry> { Err(Retry::dead("no such account")) };
    /// let (timer, mut driver) = DurableTimer::builder().topic(SYNC, handler).build_manual(MemoryStore::new())?;
    /// let sync = |delay| timer.schedule(SYNC, Schedule::after(delay).key("account-7"), &()).wait();
    /// let dead = sync(Duration::ZERO)?.id();
    /// driver.run_due();
    /// let pending = sync(Duration::from_secs(3600))?.id();
    /// assert_eq!(timer.requeue(dead).wait()?, RequeueAnswer::KeyTaken(pending));
    /// assert_eq!(timer.requeue_without_key(dead).wait()?, RequeueAnswer::Requeued);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn requeue(&self, id: TimeoutId) -> Call<RequeueAnswer> {
        self.requeue_as(id, false)
    }

    /// Makes a dead letter pending again as a timeout without a key, which runs beside the one that
    /// may have the key by now. Otherwise the same as [`requeue`](Self::requeue).
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn requeue_without_key(&self, id: TimeoutId) -> Call<RequeueAnswer> {
        self.requeue_as(id, true)
    }

    fn requeue_as(&self, id: TimeoutId, without_key: bool) -> Call<RequeueAnswer> {
        self.inner.client.call(Request::Requeue { id, without_key }, |answer| answer.map(Answer::requeued))
    }

    /// Makes the dead letters that the filter shows pending again and due now, as
    /// [`requeue`](Self::requeue) does, in the order of their ids. Returns how many were requeued,
    /// and how many stay dead because their keys are taken. Of several letters with the same key,
    /// one is requeued.
    ///
    /// The call reads the dead letters of the topic, or all of them, and requeues up to 100 at a
    /// time. Other calls go between these steps, which go on if the [`Call`] is dropped.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel) and [`get`](Self::get). Some may be requeued then, and the
    /// call can be repeated.
    ///
    /// # Examples
    ///
    /// After an outage of the mail server:
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use timer_durable::{DeadFilter, DurableTimer, MemoryStore};
    ///
    /// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
    /// let outage = SystemTime::now() - Duration::from_secs(3600)..;
    /// let counts = timer.requeue_many(&DeadFilter::new().topic("mail.send").died(outage)).wait()?;
    /// println!("{} requeued, {} left", counts.requeued, counts.key_taken);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn requeue_many(&self, filter: &DeadFilter) -> Call<RequeueCounts> {
        let client = self.inner.client.clone();
        let filter = filter.clone();
        let call = client.permits.take().map(|permit| {
            Call::of_steps(async move {
                let _permit = permit;
                let mut counts = RequeueCounts::default();
                let request = |id| Request::Requeue { id, without_key: false };
                let count = |answer: Answer| match answer.requeued() {
                    RequeueAnswer::Requeued => counts.requeued += 1,
                    RequeueAnswer::KeyTaken(_) => counts.key_taken += 1,
                    RequeueAnswer::Unknown => {}
                };
                ask_about_all(&client, filter, request, count).await?;
                Ok(counts)
            })
        });
        Call::from_result(call)
    }

    /// Deletes a dead letter. Returns `false` if there is none with this id.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn purge(&self, id: TimeoutId) -> Call<bool> {
        self.inner.client.call(Request::Purge(id), |answer| answer.map(|answer| answer == Answer::Changed))
    }

    /// Deletes the dead letters that the filter shows, and returns their number. Otherwise the same
    /// as [`requeue_many`](Self::requeue_many). [`Topic::keep_dead`](crate::Topic::keep_dead)
    /// deletes them by their age.
    ///
    /// # Errors
    ///
    /// As for [`requeue_many`](Self::requeue_many).
    pub fn purge_many(&self, filter: &DeadFilter) -> Call<u64> {
        let client = self.inner.client.clone();
        let filter = filter.clone();
        let call = client.permits.take().map(|permit| {
            Call::of_steps(async move {
                let _permit = permit;
                let mut purged = 0;
                let count = |answer| purged += u64::from(answer == Answer::Changed);
                ask_about_all(&client, filter, Request::Purge, count).await?;
                Ok(purged)
            })
        });
        Call::from_result(call)
    }
}

/// Sends a request about each dead letter that the filter shows, for a call that holds a permit.
async fn ask_about_all(
    client: &Client,
    filter: DeadFilter,
    request: impl Fn(TimeoutId) -> Request,
    mut count: impl FnMut(Answer),
) -> Result<(), Error> {
    let mut after = None;
    loop {
        let topic = filter.topic.clone();
        let read = move |store: &mut dyn Reader| store.dead_letters(topic.as_deref(), after, PAGE);
        let letters = client.read_with(None, read, Ok).await?;
        let Some(last) = letters.last() else { return Ok(()) };
        after = Some(last.id);
        let shown = letters.iter().filter(|letter| filter.shows(letter));
        ask_all(client, shown.map(|letter| request(letter.id)).collect(), &mut count).await?;
    }
}
