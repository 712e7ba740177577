//! Reading the store: timeouts, dead letters and counts.
//!
//! If the store can be read beside the keeper, a thread does it, so that neither a commit waits for
//! a read nor a read for a commit. The thread starts with the first read. It closes its connection
//! after a failure, and when nobody has read for a while. Otherwise the keeper reads between two
//! batches.

use crate::TimeoutId;
use crate::call::Call;
use crate::error::Error;
use crate::payload::Payload;
use crate::store::{Counts, DeadLetter, Filter, Pending, PendingRow, Reader, StoreError, StoredPending};
use crate::timer::{DurableTimer, by_key};
use crate::topic::Topic;
use crate::transaction::Target;

/// The longest page of a list.
const MAX_PAGE: usize = 1_000;

impl DurableTimer {
    /// Returns the timeout with this key, or `None` if none is pending or running. A call that is
    /// [queued](crate::ScheduleAnswer::Queued) has an id, by which
    /// [`get_by_id`](Self::get_by_id) returns it.
    ///
    /// The read sees everything that was committed before. It costs one search of an index, and
    /// neither waits for a commit nor delays one, except on a [`MemoryStore`](crate::MemoryStore).
    ///
    /// # Errors
    ///
    /// [`Error::Payload`] if the payload cannot be read as a `P`, [`Error::Store`] if the store
    /// cannot be read, [`Error::Stopped`], and [`Error::QueueFull`] if too many reads wait already.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, Filter, MemoryStore, Schedule, Topic};
    ///
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
    /// let (timer, _driver) = builder.build_manual(MemoryStore::new())?;
    /// timer.schedule(CLOSE, Schedule::after(Duration::from_secs(720)).key("7/17"), "17").wait()?;
    ///
    /// let pending = timer.get(CLOSE, "7/17").wait()?.expect("it is pending");
    /// println!("order {} closes at {:?}", pending.payload, pending.deadline());
    ///
    /// let orders = Filter::new().topic("order.close").key_prefix("7/");
    /// let mut rows = timer.list(&orders, None, 100).wait()?;
    /// while let Some(last) = rows.last() {
    ///     println!("{} timeouts up to {:?}", rows.len(), last.key);
    ///     rows = timer.list(&orders, Some(last), 100).wait()?;
    /// }
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "find")]
    #[doc(alias = "lookup")]
    pub fn get<P: Payload>(&self, topic: Topic<P>, key: &str) -> Call<Option<Pending<P>>> {
        self.get_target(topic, by_key(topic, key))
    }

    /// Returns the timeout with this id, or `None` if none is pending or running, or if it has
    /// another topic.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn get_by_id<P: Payload>(&self, topic: Topic<P>, id: TimeoutId) -> Call<Option<Pending<P>>> {
        self.get_target(topic, Target::Id(id))
    }

    fn get_target<P: Payload>(&self, topic: Topic<P>, target: Target) -> Call<Option<Pending<P>>> {
        self.inner.client.read(move |store| store.get(&target), move |found| decode(topic, found))
    }

    /// Returns up to `limit` timeouts that `filter` shows, at most 1,000, without their payloads.
    /// They are ordered by due time, or by key if the filter has a prefix. `after` is the last row
    /// of the page before. The page behind the last one is empty.
    ///
    /// A page reads the entries of an index and the rows that it returns. A topic without a prefix
    /// and a state also read the rows that they skip. In an SQLite file, a page that is due in more
    /// than two hours also sorts the entries of 71.6 minutes. Timeouts that are moved between two
    /// pages may occur twice or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] if `limit` is out of range, or if the filter has a prefix and no topic,
    /// and as for [`get`](Self::get).
    #[doc(alias = "scan")]
    pub fn list(&self, filter: &Filter, after: Option<&PendingRow>, limit: usize) -> Call<Vec<PendingRow>> {
        Call::from_result(page(filter, after, limit).map(|page| self.inner.client.read(page, Ok)))
    }

    /// Returns up to `max` dead letters whose ids are greater than `after`, ordered by id. With a
    /// topic, returns only those of that topic.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    #[doc(alias = "dead_set")]
    pub fn dead_letters(&self, topic: Option<&str>, after: Option<TimeoutId>, max: usize) -> Call<Vec<DeadLetter>> {
        let topic = topic.map(str::to_owned);
        let read = move |store: &mut dyn Reader| match topic.as_deref() {
            // No timeout has such a topic, and PostgreSQL refuses to compare it.
            Some(topic) if topic.contains('\0') => Ok(Vec::new()),
            topic => store.dead_letters(topic, after, max),
        };
        self.inner.client.read(read, Ok)
    }

    /// Counts the timeouts in the store. May take time proportional to their number.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn counts(&self) -> Call<Counts> {
        self.inner.client.read(|store| store.counts(), Ok)
    }
}

fn decode<P: Payload>(topic: Topic<P>, found: Option<StoredPending>) -> Result<Option<Pending<P>>, Error> {
    let found = found.filter(|found| found.topic == topic.name).map(StoredPending::decode);
    found.transpose().map_err(Error::from)
}

/// Returns the read of a page.
pub(crate) fn page(
    filter: &Filter,
    after: Option<&PendingRow>,
    limit: usize,
) -> Result<impl FnOnce(&mut dyn Reader) -> Result<Vec<PendingRow>, StoreError> + Send + use<>, Error> {
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Error::Setting { name: "limit", given: limit.to_string(), allowed: "1 to 1000" });
    }
    if let (None, Some(prefix)) = (&filter.topic, &filter.key_prefix) {
        return Err(Error::Setting { name: "key_prefix", given: prefix.clone(), allowed: "a prefix with a topic" });
    }
    let filter = filter.clone();
    let after = after.cloned();
    Ok(move |store: &mut dyn Reader| store.list(&filter, after.as_ref(), limit))
}
