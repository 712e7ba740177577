//! The calls of a timer for operators: dead letters, counts, backups and figures.

use crate::TimeoutId;
use crate::engine::is_keeper;
use crate::error::Error;
use crate::lateness::DurableLateRun;
use crate::message::{Answer, Message, Reply, Request};
use crate::stats::Stats;
use crate::timer::DurableTimer;
use crate::topic::Topic;
use std::future::Future;
use std::path::{Path, PathBuf};

impl DurableTimer {
    /// Makes a dead letter pending again and due now. It gets a full number of attempts again, but
    /// their numbers continue. It loses its key if another timeout has taken it. Its period and its
    /// own `max_lateness` ended with it, so it runs once, and only the limit of its topic can make
    /// it expire. To make it periodic again, schedule a new timeout. Returns `false` if there is no
    /// such dead letter.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn requeue(&self, id: TimeoutId) -> Result<bool, Error> {
        self.call(Request::Requeue(id)).map(|answer| answer == Answer::Changed)
    }

    /// The same as [`requeue`](Self::requeue), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`requeue`](Self::requeue).
    pub fn requeue_async(&self, id: TimeoutId) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let answer = self.call_async(Request::Requeue(id));
        async move { answer.await.map(|answer| answer == Answer::Changed) }
    }

    /// Deletes a dead letter. Returns `false` if there is none with this id.
    ///
    /// # Errors
    ///
    /// As for [`cancel`](Self::cancel).
    pub fn purge(&self, id: TimeoutId) -> Result<bool, Error> {
        self.call(Request::Purge(id)).map(|answer| answer == Answer::Changed)
    }

    /// The same as [`purge`](Self::purge), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`purge`](Self::purge).
    pub fn purge_async(&self, id: TimeoutId) -> impl Future<Output = Result<bool, Error>> + Send + use<> {
        let answer = self.call_async(Request::Purge(id));
        async move { answer.await.map(|answer| answer == Answer::Changed) }
    }

    /// Pauses a topic, on all nodes and until it is [resumed](Self::resume). When this returns, no
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
    /// [`Error::Store`] if nothing was written, or if the store cannot pause topics, and
    /// [`Error::Stopped`].
    pub fn pause<P>(&self, topic: Topic<P>) -> Result<(), Error> {
        self.pause_by_name(topic.name)
    }

    /// The same as [`pause`](Self::pause), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn pause_async<P>(&self, topic: Topic<P>) -> impl Future<Output = Result<(), Error>> + Send + use<P> {
        self.pause_by_name_async(topic.name)
    }

    /// Resumes a topic. Its timeouts that are due begin in order, and use at most half of
    /// [`max_running`](crate::DurableTimerBuilder::max_running).
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn resume<P>(&self, topic: Topic<P>) -> Result<(), Error> {
        self.resume_by_name(topic.name)
    }

    /// The same as [`resume`](Self::resume), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn resume_async<P>(&self, topic: Topic<P>) -> impl Future<Output = Result<(), Error>> + Send + use<P> {
        self.resume_by_name_async(topic.name)
    }

    /// Pauses the topic of this name. It need not have a handler here. Otherwise the same as
    /// [`pause`](Self::pause), for programs that know the name at run time only.
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn pause_by_name(&self, topic: &str) -> Result<(), Error> {
        self.set_paused(topic, true)?.recv().unwrap_or(Err(Error::Stopped))
    }

    /// Resumes the topic of this name. Otherwise the same as [`resume`](Self::resume).
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn resume_by_name(&self, topic: &str) -> Result<(), Error> {
        self.set_paused(topic, false)?.recv().unwrap_or(Err(Error::Stopped))
    }

    /// The same as [`pause_by_name`](Self::pause_by_name), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn pause_by_name_async(&self, topic: &str) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let answer = self.set_paused(topic, true);
        async move { answer?.await.unwrap_or(Err(Error::Stopped)) }
    }

    /// The same as [`resume_by_name`](Self::resume_by_name), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`pause`](Self::pause).
    pub fn resume_by_name_async(&self, topic: &str) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let answer = self.set_paused(topic, false);
        async move { answer?.await.unwrap_or(Err(Error::Stopped)) }
    }

    /// Returns the names of the topics that are paused, in order.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store cannot be read, and [`Error::Stopped`].
    pub fn paused_topics(&self) -> Result<Vec<String>, Error> {
        self.use_store(|store| store.paused_topics())
    }

    /// The same as [`paused_topics`](Self::paused_topics), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`paused_topics`](Self::paused_topics).
    pub fn paused_topics_async(&self) -> impl Future<Output = Result<Vec<String>, Error>> + Send + use<> {
        self.use_store_async(|store| store.paused_topics())
    }

    fn set_paused(&self, topic: &str, is_paused: bool) -> Result<oneshot::Receiver<Result<(), Error>>, Error> {
        if is_keeper() {
            return Err(Error::OnKeeper);
        }
        let (topic, (reply, answer)) = (topic.into(), Reply::new());
        self.inner.parts.keeper.send(Message::Pause { topic, is_paused, reply }).map_err(|_| Error::Stopped)?;
        self.settle();
        Ok(answer)
    }

    /// Writes a copy of the store to a file while the timer runs. Calls wait until it is done. A
    /// path that begins with `file:` is no URI.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the copy cannot be written, if the path names no file, if another
    /// connection uses the target, or if the store supports no copies, and [`Error::Stopped`].
    pub fn backup(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path: PathBuf = path.as_ref().to_owned();
        self.use_store(move |store| store.backup(&path))
    }

    /// The same as [`backup`](Self::backup), but does not block the thread.
    ///
    /// # Errors
    ///
    /// As for [`backup`](Self::backup).
    pub fn backup_async<F: AsRef<Path>>(&self, path: F) -> impl Future<Output = Result<(), Error>> + Send + use<F> {
        let path: PathBuf = path.as_ref().to_owned();
        self.use_store_async(move |store| store.backup(&path))
    }

    /// Returns figures about this timer. Does not touch the store.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.inner.parts.figures.read()
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
        self.inner.parts.figures.worst()
    }
}
