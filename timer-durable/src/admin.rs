//! The calls of a timer for operators: dead letters, counts, backups and figures.

use crate::TimeoutId;
use crate::answer::RequeueAnswer;
use crate::call::Call;
use crate::lateness::DurableLateRun;
use crate::message::{Answer, Message, Reply, Request};
use crate::stats::Stats;
use crate::timer::DurableTimer;
use crate::topic::Topic;
use std::path::{Path, PathBuf};

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

    /// Deletes a dead letter. Returns `false` if there is none with this id.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn purge(&self, id: TimeoutId) -> Call<bool> {
        self.inner.client.call(Request::Purge(id), |answer| answer.map(|answer| answer == Answer::Changed))
    }

    /// Pauses a topic, on all nodes and until it is [resumed](Self::resume). When the call answers, no
    /// attempt of the topic begins here. Other nodes on PostgreSQL learn of it within milliseconds,
    /// or by their next renewal of the lease if notifications do not arrive. Attempts that have
    /// begun go on, and calls about the topic work as before.
    ///
    /// Timeouts that become due wait and delay no others. If they are many, they move to a list of
    /// their topic in the store, by one write each. Their limits of lateness go on. Nothing happens
    /// if the topic is paused already.
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store) if nothing was written, or if the store cannot pause
    /// topics, and [`Error::Stopped`](crate::Error::Stopped).
    pub fn pause<P>(&self, topic: Topic<P>) -> Call<()> {
        self.pause_by_name(topic.name)
    }

    /// Resumes a topic. Its timeouts that are due begin in order, and use at most half of
    /// [`max_running`](crate::DurableTimerBuilder::max_running).
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn resume<P>(&self, topic: Topic<P>) -> Call<()> {
        self.resume_by_name(topic.name)
    }

    /// Pauses the topic of this name. It need not have a handler here. Otherwise the same as
    /// [`pause`](Self::pause), for programs that know the name at run time only.
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn pause_by_name(&self, topic: &str) -> Call<()> {
        self.set_paused(topic, true)
    }

    /// Resumes the topic of this name. Otherwise the same as [`resume`](Self::resume).
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn resume_by_name(&self, topic: &str) -> Call<()> {
        self.set_paused(topic, false)
    }

    /// Returns the names of the topics that are paused, in order.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn paused_topics(&self) -> Call<Vec<String>> {
        self.inner.client.use_store(|store| store.paused_topics())
    }

    fn set_paused(&self, topic: &str, is_paused: bool) -> Call<()> {
        let topic = topic.into();
        let message = |reply: Reply<()>| Message::Pause { topic, is_paused, reply };
        self.inner.client.ask_with(None, message, |answer| answer)
    }

    /// Writes a copy of the store to a file while the timer runs. Calls wait until it is done. A
    /// path that begins with `file:` is no URI.
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store) if the copy cannot be written, if the path names no
    /// file, if another connection uses the target, or if the store supports no copies, and
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub fn backup(&self, path: impl AsRef<Path>) -> Call<()> {
        let path: PathBuf = path.as_ref().to_owned();
        self.inner.client.use_store(move |store| store.backup(&path))
    }

    /// Returns figures about this timer. Does not touch the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.client.figures.read()
    }

    /// Returns the ten attempts of the last minute that began the latest, the worst first, each
    /// with the split of its lateness. Attempts that were late by less than a millisecond are left
    /// out. Does not touch the store.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{DurableTimer, MemoryStore};
    ///
    /// let (timer, _driver) = DurableTimer::builder().build_manual(MemoryStore::new())?;
    /// for run in timer.worst() {
    ///     println!("{} {:?} was late by {:?}: {:?}", run.topic, run.key, run.lateness.total(), run.lateness);
    /// }
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    #[must_use]
    pub fn worst(&self) -> Vec<DurableLateRun> {
        self.inner.client.figures.worst()
    }
}
