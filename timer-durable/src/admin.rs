//! The calls of a timer for operators: pauses, backups and figures.

use crate::call::Call;
use crate::lateness::DurableLateRun;
use crate::message::{Message, Reply};
use crate::stats::Stats;
use crate::timer::DurableTimer;
use crate::topic::Topic;
use std::path::{Path, PathBuf};

impl DurableTimer {
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
