//! Reading the store: timeouts, dead letters and counts.
//!
//! If the store can be read beside the keeper, a thread does it, so that neither a commit waits for
//! a read nor a read for a commit. The thread starts with the first read. It closes its connection
//! after a failure, and when nobody has read for a while. Otherwise the keeper reads between two
//! batches.

use crate::TimeoutId;
use crate::engine::is_keeper;
use crate::error::Error;
use crate::message::{Message, Reply};
use crate::payload::Payload;
use crate::permits::CallPermit;
use crate::reader_thread::Read;
use crate::store::{Counts, DeadLetter, Filter, Pending, PendingRow, Reader, StoreError, StoredPending};
use crate::timer::{AnswerTo, DurableTimer, by_key};
use crate::topic::Topic;
use crate::transaction::Target;
use std::future::Future;

/// The longest page of a list.
const MAX_PAGE: usize = 1_000;

impl DurableTimer {
    /// Returns the timeout with this key, or `None` if none is pending or running.
    ///
    /// The read sees everything that was committed before. It costs one search of an index, and
    /// neither waits for a commit nor delays one, except on a [`MemoryStore`](crate::MemoryStore).
    ///
    /// # Errors
    ///
    /// [`Error::Payload`] if the payload cannot be read as a `P`, [`Error::Store`] if the store
    /// cannot be read, [`Error::Stopped`], and [`Error::OnKeeper`] on the keeper's own thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, Filter, IfPending, MemoryStore, Topic};
    ///
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<String>| Ok(()));
    /// let (timer, _driver) = builder.build_manual(MemoryStore::new())?;
    /// timer.new_timeout_keyed(CLOSE, "7/17", Duration::from_secs(720), "17", IfPending::Keep)?;
    ///
    /// let pending = timer.get(CLOSE, "7/17")?.expect("it is pending");
    /// println!("order {} closes at {:?}", pending.payload, pending.deadline());
    ///
    /// let orders = Filter::new().topic("order.close").key_prefix("7/");
    /// let mut rows = timer.list(&orders, None, 100)?;
    /// while let Some(last) = rows.last() {
    ///     println!("{} timeouts up to {:?}", rows.len(), last.key);
    ///     rows = timer.list(&orders, Some(last), 100)?;
    /// }
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "find")]
    #[doc(alias = "lookup")]
    pub fn get<P: Payload>(&self, topic: Topic<P>, key: &str) -> Result<Option<Pending<P>>, Error> {
        let target = by_key(topic, key);
        decode(topic, self.read(move |store| store.get(&target))?)
    }

    /// The same as [`get`](Self::get), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn get_async<P: Payload>(
        &self,
        topic: Topic<P>,
        key: &str,
    ) -> impl Future<Output = Result<Option<Pending<P>>, Error>> + Send + use<P> {
        let target = by_key(topic, key);
        let found = self.read_async(move |store| store.get(&target));
        async move { decode(topic, found.await?) }
    }

    /// Returns the timeout with this id, or `None` if none is pending or running, or if it has
    /// another topic.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn get_by_id<P: Payload>(&self, topic: Topic<P>, id: TimeoutId) -> Result<Option<Pending<P>>, Error> {
        decode(topic, self.read(move |store| store.get(&Target::Id(id)))?)
    }

    /// The same as [`get_by_id`](Self::get_by_id), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn get_by_id_async<P: Payload>(
        &self,
        topic: Topic<P>,
        id: TimeoutId,
    ) -> impl Future<Output = Result<Option<Pending<P>>, Error>> + Send + use<P> {
        let found = self.read_async(move |store| store.get(&Target::Id(id)));
        async move { decode(topic, found.await?) }
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
    pub fn list(&self, filter: &Filter, after: Option<&PendingRow>, limit: usize) -> Result<Vec<PendingRow>, Error> {
        self.read(page(filter, after, limit)?)
    }

    /// The same as [`list`](Self::list), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`list`](Self::list).
    pub fn list_async(
        &self,
        filter: &Filter,
        after: Option<&PendingRow>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<PendingRow>, Error>> + Send + use<> {
        let rows = page(filter, after, limit).map(|page| self.read_async(page));
        async move { rows?.await }
    }

    /// Returns up to `max` dead letters whose ids are greater than `after`, ordered by id. With a
    /// topic, returns only those of that topic.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store cannot be read, and [`Error::Stopped`].
    #[doc(alias = "dead_set")]
    pub fn dead_letters(
        &self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        self.read(dead_letters(topic, after, max))
    }

    /// The same as [`dead_letters`](Self::dead_letters), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`dead_letters`](Self::dead_letters).
    pub fn dead_letters_async(
        &self,
        topic: Option<&str>,
        after: Option<TimeoutId>,
        max: usize,
    ) -> impl Future<Output = Result<Vec<DeadLetter>, Error>> + Send + use<> {
        self.read_async(dead_letters(topic, after, max))
    }

    /// Counts the timeouts in the store. May take time proportional to their number.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store cannot be read, and [`Error::Stopped`].
    pub fn counts(&self) -> Result<Counts, Error> {
        self.read(|store| store.counts())
    }

    /// The same as [`counts`](Self::counts), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`counts`](Self::counts).
    pub fn counts_async(&self) -> impl Future<Output = Result<Counts, Error>> + Send + use<> {
        self.read_async(|store| store.counts())
    }

    pub(crate) fn read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
    ) -> Result<R, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        let permits = &self.inner.parts.read_permits;
        let permit = permits.take().or_else(|permit| permit.recv()).map_err(|_| Error::Stopped)?;
        self.start_read(read, permit)?.recv().unwrap_or(Err(Error::Stopped))
    }

    pub(crate) fn read_async<R, F>(&self, read: F) -> impl Future<Output = Result<R, Error>> + Send + use<R, F>
    where
        R: Send + 'static,
        F: FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
    {
        let started = match self.inner.parts.read_permits.take() {
            Ok(permit) => Ok(self.start_read(read, permit)),
            Err(permit) => Err((permit, self.downgrade(), read)),
        };
        async move {
            let answer = match started {
                Ok(answer) => answer,
                Err((permit, timer, read)) => {
                    let permit = permit.await.map_err(|_| Error::Stopped)?;
                    timer.upgrade().ok_or(Error::Stopped)?.start_read(read, permit)
                }
            };
            answer?.await.unwrap_or(Err(Error::Stopped))
        }
    }

    /// Lets the thread for reads call a function, or the keeper if there is none. A function whose
    /// answer nobody waits for is not called.
    fn start_read<R: Send + 'static>(
        &self,
        read: impl FnOnce(&mut dyn Reader) -> Result<R, StoreError> + Send + 'static,
        permit: CallPermit,
    ) -> Result<AnswerTo<R>, Error> {
        let (reply, answer) = Reply::new();
        let reply = reply.holding(permit);
        let read: Read = Box::new(move |reader| {
            if reply.is_abandoned() {
                return reader.is_ok();
            }
            let result = reader.and_then(read);
            let is_usable = result.is_ok();
            reply.send(result.map_err(Error::from));
            is_usable
        });
        self.send_read(read).map(|()| answer)
    }

    /// Sends a read to the thread for reads, or to the keeper if there is none.
    pub(crate) fn send_read(&self, read: Read) -> Result<(), Error> {
        let parts = &self.inner.parts;
        if parts.shutdown.is_requested() {
            return Err(Error::Stopped);
        }
        if let Err(read) = parts.reader.send(read) {
            let read = move |mut store: &mut dyn crate::store::Store| _ = read(Ok(&mut store));
            parts.keeper.send(Message::UseStore(Box::new(read))).map_err(|_| Error::Stopped)?;
            self.settle();
        }
        Ok(())
    }
}

fn decode<P: Payload>(topic: Topic<P>, found: Option<StoredPending>) -> Result<Option<Pending<P>>, Error> {
    let found = found.filter(|found| found.topic == topic.name).map(StoredPending::decode);
    found.transpose().map_err(Error::from)
}

/// Returns the read of dead letters.
fn dead_letters(
    topic: Option<&str>,
    after: Option<TimeoutId>,
    max: usize,
) -> impl FnOnce(&mut dyn Reader) -> Result<Vec<DeadLetter>, StoreError> + Send + use<> {
    let topic = topic.map(str::to_owned);
    move |store: &mut dyn Reader| match topic.as_deref() {
        // No timeout has such a topic, and PostgreSQL refuses to compare it.
        Some(topic) if topic.contains('\0') => Ok(Vec::new()),
        topic => store.dead_letters(topic, after, max),
    }
}

/// Returns the read of a page.
fn page(
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
