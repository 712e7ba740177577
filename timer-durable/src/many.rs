//! Calls about many timeouts.

use crate::answer::{CancelAnswer, CancelCounts, ScheduleAnswer};
use crate::error::Error;
use crate::message::{Answer, Message, Request};
use crate::new_timeout::{NewTimeout, check_length};
use crate::store::{Filter, PendingRow};
use crate::timeout_builder::TimeoutBuilder;
use crate::timer::{DurableTimer, by_key};
use crate::topic::Topic;
use crate::traces;
use crate::transaction::Target;
use std::collections::HashSet;
use std::future::Future;

/// The most timeouts of one commit.
const MAX_TIMEOUTS: usize = 1_000;

/// The most payload bytes of one commit.
const MAX_BYTES: usize = 16 << 20;

/// The number of cancels that are sent at a time. Other calls go between them.
const STEP: usize = 500;

impl DurableTimer {
    /// Schedules all of these timeouts in one commit, or none of them. Returns their answers in the
    /// same order.
    ///
    /// At most 1,000 timeouts with 16 MiB of payloads are allowed, because all other calls wait for
    /// the commit. No two may have the same key or the same id. In a handler, a timeout with the
    /// key of the one that runs is kept. To repeat a call whose outcome is unknown, give each
    /// timeout an [`id`](TimeoutBuilder::id).
    ///
    /// # Errors
    ///
    /// As for [`TimeoutBuilder::schedule`], with the first timeout that is not allowed or refused,
    /// and [`Error::Setting`] or [`Error::TooLong`] if the call is beyond these limits. Nothing was
    /// scheduled, unless it is [`Error::OutcomeUnknown`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
    ///
    /// const REMIND: Topic<String> = Topic::new("invoice.remind");
    ///
    /// let builder = DurableTimer::builder().topic(REMIND, |_: &Due<String>| Ok(()));
    /// let (timer, _driver) = builder.build_manual(MemoryStore::new())?;
    /// let days = [1, 7, 14];
    /// timer.schedule_many(days.map(|day| {
    ///     let call = timer.timeout_builder(REMIND, "17").key(&format!("customer-7/{day}"));
    ///     call.after(Duration::from_secs(day * 86_400))
    /// }))?;
    ///
    /// // The invoice is paid.
    /// assert_eq!(timer.cancel_many(REMIND, "customer-7/")?.cancelled, 3);
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "insert_many")]
    #[doc(alias = "bulk")]
    pub fn schedule_many<'t>(
        &self,
        timeouts: impl IntoIterator<Item = TimeoutBuilder<'t>>,
    ) -> Result<Vec<ScheduleAnswer>, Error> {
        let many = check(timeouts)?;
        self.wait(self.start(|reply| Message::ScheduleMany(many, reply))?)
    }

    /// The same as [`schedule_many`](Self::schedule_many), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`schedule_many`](Self::schedule_many).
    pub fn schedule_many_async<'t, I: IntoIterator<Item = TimeoutBuilder<'t>>>(
        &self,
        timeouts: I,
    ) -> impl Future<Output = Result<Vec<ScheduleAnswer>, Error>> + Send + use<'t, I> {
        let answers = check(timeouts).map(|many| self.start_async(|reply| Message::ScheduleMany(many, reply)));
        async move { answers?.await }
    }

    /// Cancels the pending timeouts of a topic whose keys begin with `prefix`. An empty prefix
    /// stands for all keys, and timeouts without a key are left alone. Returns how many were
    /// cancelled, and how many are running and were left alone.
    ///
    /// The call reads the keys by an index and cancels up to 500 at a time. Other calls go between
    /// these steps. A timeout that is scheduled during the call may be cancelled or not.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel) and [`get`](Self::get). Some timeouts may be cancelled then,
    /// and the call can be repeated.
    #[doc(alias = "cancel_prefix")]
    #[doc(alias = "cancel_all")]
    pub fn cancel_many<P>(&self, topic: Topic<P>, prefix: &str) -> Result<CancelCounts, Error> {
        let filter = Filter::new().topic(topic.name).key_prefix(prefix);
        let (mut counts, mut after) = (CancelCounts::default(), None);
        loop {
            let rows = self.list(&filter, after.as_ref(), STEP)?;
            counts.add(self.cancel_all(rows.iter().map(|row| Target::Id(row.id)))?);
            after = Some(match rows.into_iter().last() {
                Some(last) => last,
                None => return Ok(counts),
            });
        }
    }

    /// The same as [`cancel_many`](Self::cancel_many), but does not block the thread. The future
    /// has to be awaited to the end.
    ///
    /// # Errors
    ///
    /// As for [`cancel_many`](Self::cancel_many).
    pub fn cancel_many_async<P>(
        &self,
        topic: Topic<P>,
        prefix: &str,
    ) -> impl Future<Output = Result<CancelCounts, Error>> + Send + use<P> {
        let filter = Filter::new().topic(topic.name).key_prefix(prefix);
        let timer = self.clone();
        async move {
            let (mut counts, mut after) = (CancelCounts::default(), None::<PendingRow>);
            loop {
                let rows = timer.list_async(&filter, after.as_ref(), STEP).await?;
                counts.add(timer.cancel_all_async(rows.iter().map(|row| Target::Id(row.id)).collect()).await?);
                after = Some(match rows.into_iter().last() {
                    Some(last) => last,
                    None => return Ok(counts),
                });
            }
        }
    }

    /// Cancels the pending timeouts with these keys, up to 500 at a time. Returns how many were
    /// cancelled, and how many are running and were left alone.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel). Some timeouts may be cancelled then, and the call can be
    /// repeated.
    pub fn cancel_keys<P>(
        &self,
        topic: Topic<P>,
        keys: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<CancelCounts, Error> {
        let mut counts = CancelCounts::default();
        let mut targets = keys.into_iter().map(|key| by_key(topic, key.as_ref())).peekable();
        while targets.peek().is_some() {
            counts.add(self.cancel_all(targets.by_ref().take(STEP))?);
        }
        Ok(counts)
    }

    /// The same as [`cancel_keys`](Self::cancel_keys), but does not block the thread. The future
    /// has to be awaited to the end.
    ///
    /// # Errors
    ///
    /// As for [`cancel_keys`](Self::cancel_keys).
    pub fn cancel_keys_async<P, K, I>(
        &self,
        topic: Topic<P>,
        keys: I,
    ) -> impl Future<Output = Result<CancelCounts, Error>> + Send + use<P, K, I>
    where
        K: AsRef<str>,
        I: IntoIterator<Item = K>,
    {
        let targets: Vec<Target> = keys.into_iter().map(|key| by_key(topic, key.as_ref())).collect();
        let timer = self.clone();
        async move {
            let mut counts = CancelCounts::default();
            for step in targets.chunks(STEP) {
                counts.add(timer.cancel_all_async(step.to_vec()).await?);
            }
            Ok(counts)
        }
    }

    /// Sends all cancels, and then waits for the answers, so that they share commits.
    fn cancel_all(&self, targets: impl Iterator<Item = Target>) -> Result<CancelCounts, Error> {
        let start = |target| self.start(|reply| Message::Call(Request::Cancel(target), reply));
        let answers = targets.map(start).collect::<Result<Vec<_>, _>>()?;
        CancelCounts::of(answers.into_iter().map(|answer| self.wait(answer)))
    }

    fn cancel_all_async(
        &self,
        targets: Vec<Target>,
    ) -> impl Future<Output = Result<CancelCounts, Error>> + Send + use<> {
        let calls: Vec<_> = targets.into_iter().map(|target| self.call_async(Request::Cancel(target))).collect();
        async move {
            let mut answers = Vec::with_capacity(calls.len());
            for call in calls {
                answers.push(call.await);
            }
            CancelCounts::of(answers.into_iter())
        }
    }
}

impl CancelCounts {
    /// Counts answers, of which the first error counts for all.
    fn of(answers: impl Iterator<Item = Result<Answer, Error>>) -> Result<Self, Error> {
        let mut counts = Self::default();
        for answer in answers {
            match answer?.cancelled() {
                CancelAnswer::Cancelled => counts.cancelled += 1,
                CancelAnswer::Running => counts.running += 1,
                CancelAnswer::Unknown => {}
            }
        }
        Ok(counts)
    }

    fn add(&mut self, other: Self) {
        self.cancelled += other.cancelled;
        self.running += other.running;
    }
}

/// Returns the timeouts of a call if it is within its limits.
fn check<'t>(timeouts: impl IntoIterator<Item = TimeoutBuilder<'t>>) -> Result<Vec<NewTimeout>, Error> {
    let mut many = timeouts.into_iter().map(TimeoutBuilder::into_timeout).collect::<Result<Vec<_>, _>>()?;
    if !(1..=MAX_TIMEOUTS).contains(&many.len()) {
        return Err(Error::Setting { name: "timeouts", given: many.len().to_string(), allowed: "1 to 1000" });
    }
    check_length("call with payloads", many.iter().map(|new| new.payload.len()).sum(), MAX_BYTES)?;
    let (mut keys, mut ids) = (HashSet::new(), HashSet::new());
    for new in &many {
        if let Some(key) = new.key.as_deref().filter(|key| !keys.insert((&new.topic, *key))) {
            return Err(Error::Setting { name: "key", given: key.to_owned(), allowed: "each key once" });
        }
        if let Some(id) = new.id.filter(|id| !ids.insert(*id)) {
            return Err(Error::Setting { name: "id", given: id.to_string(), allowed: "each id once" });
        }
    }
    drop((keys, ids));
    for new in many.iter_mut().filter(|new| new.traceparent.is_none()) {
        new.traceparent = traces::created(&new.topic);
    }
    Ok(many)
}
