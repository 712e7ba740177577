//! Counting the timeouts that are to come.

use crate::call::Call;
use crate::engine::is_keeper;
use crate::error::Error;
use crate::store::{Reader, StoreError, TopicDue};
use crate::time::micros;
use crate::timer::DurableTimer;
use crate::timetable::{Counted, DurableTimetable};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The largest number of delays in one count.
const MAX_DELAYS: usize = 100;

/// The longest time for which a timetable waits for new counts.
const MAX_WAIT: Duration = Duration::from_millis(10);

impl DurableTimer {
    /// Counts the timeouts of each topic that are due within each of `delays` from now on the
    /// store's clock. The delays are at most 100 and ascend. Overdue timeouts count for each delay,
    /// and those that run, are paused or wait for a limit of their topic do not count.
    ///
    /// The store reads an index up to the last delay, so the cost grows with the number of timeouts
    /// that are due by then. [`timetable`](Self::timetable) counts seldom enough for an exporter.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] if there are more than 100 delays or they do not ascend, and as for
    /// [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
    ///
    /// const CLOSE: Topic<()> = Topic::new("order.close");
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<()>| Ok(()));
    /// let (timer, _driver) = builder.build_manual(MemoryStore::new())?;
    /// let minute = Duration::from_secs(60);
    /// timer.new_timeout(CLOSE, minute, &()).wait()?;
    /// timer.new_timeout(CLOSE, 2 * minute, &()).wait()?;
    /// let due = timer.due_within(&[minute, 2 * minute]).wait()?;
    /// assert_eq!((due[0].topic.as_str(), &due[0].counts[..]), ("order.close", &[1, 2][..]));
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn due_within(&self, delays: &[Duration]) -> Call<Vec<TopicDue>> {
        if delays.len() > MAX_DELAYS || !delays.is_sorted() {
            let given = format!("{delays:?}");
            let allowed = "up to 100 delays in ascending order";
            return Call::ready(Err(Error::Setting { name: "delays", given, allowed }));
        }
        let delays: Vec<_> = delays.iter().map(|delay| micros(*delay)).collect();
        self.inner.client.read(move |store| store.due_within(&delays), Ok)
    }

    /// Returns how many timeouts of each topic are due within the next minute, hour and day, by
    /// counts that the timer keeps. An exporter can call it.
    ///
    /// If a count is too old, the thread for reads counts anew, and the call waits for it for at
    /// most 10 ms. So it may return an old count, and the next call returns the new one. A count is
    /// kept for 36,000 times as long as it took, so that all counts take at most 5 ms in a minute.
    /// None is kept for longer than the time that it covers, even if the counts then take more.
    ///
    /// On virtual time each call counts, and on the keeper's own thread none does. If the store is
    /// a [`MemoryStore`](crate::MemoryStore), the keeper counts.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
    ///
    /// const CLOSE: Topic<()> = Topic::new("order.close");
    /// let builder = DurableTimer::builder().topic(CLOSE, |_: &Due<()>| Ok(()));
    /// let (timer, _driver) = builder.build_manual(MemoryStore::new())?;
    /// timer.new_timeout(CLOSE, Duration::from_secs(90), &()).wait()?;
    /// let hour = timer.timetable().hour.expect("it was counted");
    /// assert_eq!((hour[0].topic.as_str(), &hour[0].counts[..3]), ("order.close", &[0, 1, 1][..]));
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[doc(alias = "forecast")]
    pub fn timetable(&self) -> DurableTimetable {
        let counted = &self.inner.client.counted;
        if !is_keeper() {
            let until = Instant::now() + MAX_WAIT;
            let begun = counted.begin(self.inner.client.manual.is_none()).into_iter();
            let counts: Vec<_> = begun.filter_map(|(nth, progress)| self.start_count(nth, progress)).collect();
            for count in counts {
                _ = count.recv_deadline(until);
            }
        }
        counted.get()
    }

    /// Lets the thread for reads count the timeouts of a range, although nobody may wait for it.
    /// The returned channel has a value when it is done.
    fn start_count(&self, nth: usize, progress: Arc<()>) -> Option<oneshot::Receiver<()>> {
        let counted = self.inner.client.counted.clone();
        let figures = self.inner.client.figures.clone();
        let (done, is_done) = oneshot::channel();
        let read = move |reader: Result<&mut dyn Reader, StoreError>| {
            let at = Instant::now();
            let due = reader.and_then(|store| store.due_within(&Counted::delays(nth))).ok();
            let is_usable = due.is_some();
            // The topics become known, unless they are too many.
            due.iter().flatten().for_each(|due| figures.lock().change_topic(&due.topic, |_| {}));
            counted.set(nth, at, due);
            drop(progress);
            // The caller may be gone.
            let _ = done.send(());
            is_usable
        };
        self.inner.client.send_read(Box::new(read)).ok().map(|()| is_done)
    }
}
