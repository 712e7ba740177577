//! The topics of a builder, and their settings.

use super::DurableTimerBuilder;
use crate::done::Done;
use crate::due::Due;
use crate::engine::{Handler, TopicSettings};
use crate::handler::{blocking, spawning};
use crate::payload::Payload;
use crate::retry::Retry;
use crate::topic::Topic;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use timer_executor::TaskExecutor;

impl DurableTimerBuilder {
    /// Adds a topic with a function that handles its timeouts. The function runs on the executor.
    /// Each topic can be added once. If one is added twice, [`open`](Self::open) returns an error.
    ///
    /// | the handler returns | effect |
    /// |---|---|
    /// | `Ok(())` | ends the timeout |
    /// | `Ok(Done::then(NEXT, schedule, &payload))` | ends it and schedules [another one](Done) |
    /// | any error with `?`, `Err(Retry::new(reason))` | repeats it after the [backoff](Retry) |
    /// | `Err(Retry::after(delay))` | repeats the attempt after a delay |
    /// | `Err(Retry::dead(reason))` | makes the timeout a dead letter |
    /// | `Err(Later::after(delay))` | runs again [later](crate::Later), and has not failed |
    ///
    /// A panic is caught and counts as a failed attempt. A closure that returns no `Ok` names its
    /// type, for example `-> Result<(), Retry>`.
    pub fn topic<P: Payload, D: Into<Done>>(
        self,
        topic: Topic<P>,
        handler: impl Fn(&Due<P>) -> Result<D, Retry> + Send + Sync + 'static,
    ) -> Self {
        self.add(topic, blocking(handler))
    }

    /// Adds a topic with an asynchronous function that handles its timeouts. The futures run on the
    /// runtime that was given to [`spawn`](Self::spawn) before.
    ///
    /// Without a runtime, [`open`](Self::open) returns an error.
    #[doc(alias = "async_topic")]
    pub fn topic_async<P, D, F>(
        mut self,
        topic: Topic<P>,
        handler: impl Fn(Due<P>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        P: Payload,
        D: Into<Done>,
        F: Future<Output = Result<D, Retry>> + Send + 'static,
    {
        // A handler without a runtime is never called, because `open` refuses.
        let spawn = self.spawn.clone().unwrap_or_else(|| Arc::new(drop));
        self.lacks_spawn |= self.spawn.is_none();
        self.add(topic, spawning(spawn, handler))
    }

    fn add<P>(mut self, topic: Topic<P>, handler: Handler) -> Self {
        let name: Arc<str> = topic.name.into();
        self.last = Some(name.clone());
        let settings = TopicSettings {
            rules: topic.rules,
            handler,
            time_limit: None,
            executor: None,
            max_running: None,
            rate: None,
            shares_rate: false,
        };
        if self.topics.insert(name.clone(), settings).is_some() {
            self.repeated.get_or_insert(name);
        }
        self
    }

    /// Sets the time limit of the attempts of the topic that was added last. By default there is
    /// none.
    ///
    /// The limit counts from the start of the handler, and the keeper checks it within a turn. An
    /// attempt that runs longer has failed. It is repeated after the backoff of the topic, or
    /// becomes a dead letter after the last attempt, and frees its place among
    /// [`max_running`](Self::max_running).
    ///
    /// An async handler is dropped, which takes effect at its next `await`. A blocking handler sees
    /// [`Due::is_cancelled`], but no library can end it. Until it returns, it keeps its thread, and
    /// the next attempt may run beside it. The default executor starts another thread in its place,
    /// up to 64 of them, and keeps these threads. An executor of yours has the threads that you
    /// give it.
    #[doc(alias = "timeout")]
    pub fn time_limit(self, limit: Duration) -> Self {
        self.set("time_limit", |topic| topic.time_limit = Some(limit))
    }

    /// Sets the executor of the handlers. The default is a pool of 4 threads.
    ///
    /// Behind a topic, sets the executor of that topic alone. If the executor of the timer hangs,
    /// such a topic goes on. If the executor of a topic rejects tasks, only that topic waits. Tasks
    /// in its queue take places, so give the topic a [`max_running`](Self::max_running) as well.
    pub fn executor(mut self, executor: impl TaskExecutor) -> Self {
        let executor: Arc<dyn TaskExecutor> = Arc::new(executor);
        if self.last.is_some() {
            return self.set("executor", |topic| topic.executor = Some(executor));
        }
        self.executor = Some(executor);
        self
    }

    /// Sets the largest number of attempts in flight, at least 1. The default is 512. Attempts that
    /// wait for a thread of the executor have begun, and can no longer be cancelled.
    ///
    /// Behind a topic, sets the largest number of attempts of that topic in this process. By
    /// default a topic may take all places. If it hangs, all topics wait then, so limit a topic
    /// whose handlers depend on others. Its timeouts that are due wait and delay no other topic. If
    /// they are many, they wait in the store, and each of them costs one more write.
    pub fn max_running(mut self, attempts: usize) -> Self {
        if self.last.is_some() {
            return self.set("max_running", |topic| topic.max_running = Some(attempts));
        }
        self.max_running = attempts;
        self
    }

    /// Sets how many attempts of the topic that was added last begin in each period in this
    /// process, with a burst of at most a tenth of a second. The number is at least 1, and the
    /// period is not zero. By default the rate is not limited. Timeouts that are due wait as for
    /// [`max_running`](Self::max_running).
    #[doc(alias = "rate_limit")]
    #[doc(alias = "throttle")]
    pub fn rate(self, attempts: u32, per: Duration) -> Self {
        self.set("rate", |topic| {
            topic.rate = Some((attempts, per));
            topic.shares_rate = false;
        })
    }

    /// Sets how many attempts of the topic that was added last begin in each period on all nodes
    /// that share the store. Otherwise the same as [`rate`](Self::rate), which it replaces. On a
    /// store of one process both are the same.
    ///
    /// Each node gets a part of the rate in proportion to its shards. The nodes together
    /// keep the rate while nodes come, go and die, with a burst of at most a tenth of a second. A
    /// node whose share is less than ten attempts a second may begin one more in each second. After
    /// a node has died, its share is not used until its shards are taken over. All nodes have to
    /// set the same rate, and a node without a handler for the topic does not use its share.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
    ///
    /// const CALL_BANK: Topic<String> = Topic::new("bank.call");
    ///
    /// let (timer, _driver) = DurableTimer::builder()
    ///     .topic(CALL_BANK, |due: &Due<String>| Ok(println!("calling for {}", due.payload())))
    ///     .cluster_rate(100, Duration::from_secs(1))
    ///     .build_manual(MemoryStore::new())?;
    /// # Ok::<(), timer_durable::Error>(())
    /// ```
    pub fn cluster_rate(self, attempts: u32, per: Duration) -> Self {
        self.set("cluster_rate", |topic| {
            topic.rate = Some((attempts, per));
            topic.shares_rate = true;
        })
    }

    /// Changes the topic that was added last.
    fn set(mut self, name: &'static str, set: impl FnOnce(&mut TopicSettings)) -> Self {
        match self.last.as_ref().and_then(|last| self.topics.get_mut(last)) {
            Some(topic) => set(topic),
            None => _ = self.without_topic.get_or_insert(name),
        }
        self
    }

    /// Names a topic that this program schedules and another program handles. Timeouts that begin
    /// here all the same are put back for a minute, and a log event names the topic. A topic that
    /// also has a handler here is an error.
    pub fn topic_elsewhere<P>(mut self, topic: Topic<P>) -> Self {
        self.elsewhere.push(topic.name.into());
        self
    }
}
