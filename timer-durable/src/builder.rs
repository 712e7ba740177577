//! The builder of a timer.

use crate::done::Done;
use crate::due::Due;
use crate::engine::{Handler, Keeper, Settings, THREADS, TopicSettings};
use crate::error::Error;
use crate::handler::{Spawn, blocking, spawning};
use crate::manual::{ManualDurableDriver, Shared};
use crate::memory_store::MemoryStore;
use crate::message::Message;
use crate::payload::Payload;
use crate::permits::CallPermits;
use crate::reader_thread::ReaderThread;
use crate::retry::Retry;
use crate::shutdown::Shutdown;
use crate::stats::Figures;
use crate::store::Store;
use crate::timer::{DurableTimer, Host, Parts};
use crate::topic::Topic;
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use timer_executor::{TaskExecutor, ThreadPoolExecutor};

/// Builds a [`DurableTimer`].
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, SqliteStore, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let timer = DurableTimer::builder()
///     .name("billing")
///     .topic(CLOSE, |due: &Due<String>| {
///         println!("closing {}", due.payload());
///         Ok(())
///     })
///     .open(SqliteStore::open("timeouts.db")?)?;
/// timer.new_timeout(CLOSE, Duration::from_secs(1800), "order 17")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a builder does nothing until it opens a store"]
pub struct DurableTimerBuilder {
    name: String,
    topics: HashMap<Arc<str>, TopicSettings>,
    /// The topic that was added last.
    last: Option<Arc<str>>,
    /// The first setting of a topic that was given before any topic.
    without_topic: Option<&'static str>,
    elsewhere: Vec<Arc<str>>,
    /// The first topic that was added twice.
    repeated: Option<Arc<str>>,
    executor: Option<Arc<dyn TaskExecutor>>,
    spawn: Option<Spawn>,
    /// Whether an async topic was added before there was a function to run its futures.
    lacks_spawn: bool,
    capacity: usize,
    max_running: usize,
    max_batch: usize,
    max_queued_calls: usize,
    max_payload: usize,
    overdue_rate: Option<u32>,
}

/// The number of positions that are read from the store at a time.
const PAGE: usize = 2_000;

/// The longest pause after a failure of the store.
const MAX_PAUSE: Duration = Duration::from_secs(1);

impl DurableTimer {
    /// Returns a builder with default settings and without topics.
    pub fn builder() -> DurableTimerBuilder {
        DurableTimerBuilder::new()
    }
}

impl DurableTimerBuilder {
    fn new() -> Self {
        Self {
            name: "timer".to_owned(),
            topics: HashMap::new(),
            last: None,
            without_topic: None,
            elsewhere: Vec::new(),
            repeated: None,
            executor: None,
            spawn: None,
            lacks_spawn: false,
            capacity: 100_000,
            max_running: 512,
            max_batch: 2_048,
            max_queued_calls: 16_384,
            max_payload: 1 << 20,
            overdue_rate: None,
        }
    }

    /// Sets the name of the timer and of its thread. Log events and metrics show it. The default is
    /// `timer`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Adds a topic with a function that handles its timeouts. The function runs on the executor.
    /// Each topic can be added once. If one is added twice, [`open`](Self::open) returns an error.
    ///
    /// | the handler returns | effect |
    /// |---|---|
    /// | `Ok(())` | ends the timeout |
    /// | `Ok(Done::then(NEXT, delay, &payload))` | ends it and schedules [another one](Done) |
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
        let settings = TopicSettings { rules: topic.rules, handler, time_limit: None };
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

    /// Changes the topic that was added last.
    fn set(mut self, name: &'static str, set: impl FnOnce(&mut TopicSettings)) -> Self {
        match self.last.as_ref().and_then(|last| self.topics.get_mut(last)) {
            Some(topic) => set(topic),
            None => _ = self.without_topic.get_or_insert(name),
        }
        self
    }

    /// Sets the function that runs the futures of [`topic_async`](Self::topic_async) on a runtime.
    /// It is called on a thread of the executor, which belongs to no runtime.
    ///
    /// # Examples
    ///
    /// ```
    /// use timer_durable::{Due, DurableTimer, Topic};
    ///
    /// const CLOSE: Topic<String> = Topic::new("order.close");
    ///
    /// let builder = DurableTimer::builder()
    ///     .spawn(|future| {
    ///         // With tokio, `handle.spawn(future);` where the program has made
    ///         // `handle = tokio::runtime::Handle::current()` inside its runtime.
    ///         std::thread::spawn(|| futures::executor::block_on(future));
    ///     })
    ///     .topic_async(CLOSE, |due: Due<String>| async move {
    ///         println!("closing {}", due.payload());
    ///         Ok(())
    ///     });
    /// ```
    pub fn spawn(mut self, spawn: impl Fn(Pin<Box<dyn Future<Output = ()> + Send>>) + Send + Sync + 'static) -> Self {
        self.spawn = Some(Arc::new(spawn));
        self
    }

    /// Names a topic that this program schedules and another program handles. Timeouts that begin
    /// here all the same are put back for a minute, and a log event names the topic. A topic that
    /// also has a handler here is an error.
    pub fn topic_elsewhere<P>(mut self, topic: Topic<P>) -> Self {
        self.elsewhere.push(topic.name.into());
        self
    }

    /// Sets the executor of the handlers. The default is a pool of 4 threads.
    pub fn executor(mut self, executor: impl TaskExecutor) -> Self {
        self.executor = Some(Arc::new(executor));
        self
    }

    /// Sets the largest number of timeouts in memory, at least 4. The default is 100,000. Half of
    /// it is for overdue timeouts. These were due when the store was opened, or when the timer
    /// joined it again or gained shards. Each timeout takes about 128 bytes. Later timeouts are
    /// read from the store when their time comes.
    pub fn capacity(mut self, timeouts: usize) -> Self {
        self.capacity = timeouts;
        self
    }

    /// Sets the largest number of attempts in flight, at least 1. The default is 512. Attempts that
    /// wait for a thread of the executor have begun, and can no longer be cancelled.
    pub fn max_running(mut self, attempts: usize) -> Self {
        self.max_running = attempts;
        self
    }

    /// Sets the number of calls and ends beyond which a transaction takes no further ones, at least
    /// 1. The default is 2,048. Begins, and ends that a failed commit has left, may come on top.
    pub fn max_batch(mut self, operations: usize) -> Self {
        self.max_batch = operations;
        self
    }

    /// Sets the largest number of calls that wait for the store, at least 1. The default is 16,384.
    /// Further calls wait until others are answered, and further futures are pending. A caller that
    /// does not want to wait can drop its future.
    pub fn max_queued_calls(mut self, calls: usize) -> Self {
        self.max_queued_calls = calls;
        self
    }

    /// Sets the longest payload in bytes. The default is 1 MiB.
    pub fn max_payload(mut self, bytes: usize) -> Self {
        self.max_payload = bytes;
        self
    }

    /// Sets how many overdue timeouts, in the sense of [`capacity`](Self::capacity), begin per
    /// second, at least 1. They use at most half of [`max_running`](Self::max_running) in any case.
    /// By default their rate is not limited.
    pub fn overdue_rate(mut self, per_second: u32) -> Self {
        self.overdue_rate = Some(per_second);
        self
    }

    /// Opens a store and starts the keeper's thread.
    ///
    /// # Errors
    ///
    /// - [`Error::Setting`] if a setting is not allowed, if a topic was added twice, or if an async
    ///   topic has no runtime.
    /// - [`Error::Store`] if the store cannot be joined.
    /// - [`Error::ThreadRefused`] if the system refuses the keeper's thread or a thread of the
    ///   default executor.
    pub fn open(self, store: impl Store) -> Result<DurableTimer, Error> {
        let (parts, keeper) = self.assemble(store, None)?;
        let name = parts.name.clone();
        tracing::debug!(timer = %name, "the keeper starts");
        let run = move || crate::engine::as_keeper(|| keeper.run());
        let thread = std::thread::Builder::new().name(name).spawn(run).map_err(Error::ThreadRefused)?;
        Ok(DurableTimer::new(parts, Host::Thread(Mutex::new(Some(thread)))))
    }

    /// Opens a memory store on virtual time, for tests. The returned driver moves the time and runs
    /// the handlers.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] as for [`open`](Self::open), and [`Error::Store`] if a fault was injected
    /// at [`FaultPoint::Rejoin`](crate::FaultPoint::Rejoin).
    pub fn build_manual(self, store: MemoryStore) -> Result<(DurableTimer, ManualDurableDriver), Error> {
        let shared = Shared::new(store.clone());
        let (parts, keeper) = self.assemble(store, Some(&shared))?;
        let driver = shared.attach(keeper);
        Ok((DurableTimer::new(parts, Host::Manual(shared)), driver))
    }

    fn assemble<S: Store>(self, store: S, manual: Option<&Shared>) -> Result<(Parts, Keeper<S>), Error> {
        let least = |name, given: usize, least, allowed| {
            if given < least { Err(Error::Setting { name, given: given.to_string(), allowed }) } else { Ok(()) }
        };
        if self.name.contains('\0') {
            let given = format!("{:?}", self.name);
            return Err(Error::Setting { name: "name", given, allowed: "a name without NUL characters" });
        }
        let handled_elsewhere = self.elsewhere.iter().find(|topic| self.topics.contains_key(*topic));
        if let Some(topic) = self.repeated.as_ref().or(handled_elsewhere) {
            return Err(Error::Setting { name: "topic", given: topic.to_string(), allowed: "each topic once" });
        }
        least("capacity", self.capacity, 4, "at least 4")?;
        least("max_running", self.max_running, 1, "at least 1")?;
        if self.lacks_spawn {
            let (given, allowed) = ("none".to_owned(), "a function, because async topics need `spawn` before them");
            return Err(Error::Setting { name: "spawn", given, allowed });
        }
        if let Some(name) = self.without_topic {
            let (given, allowed) = ("no topic".to_owned(), "a topic before it");
            return Err(Error::Setting { name, given, allowed });
        }
        if self.topics.values().any(|topic| topic.time_limit.is_some_and(|limit| limit.is_zero())) {
            return Err(Error::Setting { name: "time_limit", given: "0".to_owned(), allowed: "more than zero" });
        }
        least("max_batch", self.max_batch, 1, "at least 1")?;
        least("max_queued_calls", self.max_queued_calls, 1, "at least 1")?;
        least("overdue_rate", self.overdue_rate.map_or(1, |rate| rate as usize), 1, "at least 1")?;
        let (executor, pool): (Arc<dyn TaskExecutor>, _) = match (manual, self.executor) {
            (Some(manual), _) => (manual.executor(), None),
            (None, Some(executor)) => (executor, None),
            (None, None) => {
                let pool = Arc::new(ThreadPoolExecutor::try_new(THREADS).map_err(Error::ThreadRefused)?);
                (pool.clone(), Some(pool))
            }
        };
        let (figures, channel) = (Arc::<Figures>::default(), crossbeam_channel::unbounded::<Message>());
        let shutdown = Arc::<Shutdown>::default();
        let parts = Parts {
            name: self.name.clone(),
            store: store.describe(),
            keeper: channel.0.clone(),
            reader: ReaderThread::new(&self.name, store.connect_reader()),
            permits: Arc::new(CallPermits::new(self.max_queued_calls)),
            figures: figures.clone(),
            shutdown: shutdown.clone(),
            topics: self.topics.keys().chain(&self.elsewhere).cloned().collect(),
            max_payload: self.max_payload,
        };
        let settings = Settings {
            name: self.name,
            capacity: self.capacity,
            page: PAGE,
            max_batch: self.max_batch,
            max_running: self.max_running,
            overdue_rate: self.overdue_rate,
            max_pause: if manual.is_some() { Duration::ZERO } else { MAX_PAUSE },
            topics: self.topics,
            elsewhere: self.elsewhere,
            max_payload: self.max_payload,
            executor,
            pool,
            settle: manual.map(Shared::settler),
        };
        let keeper = Keeper::new(store, settings, channel, figures, shutdown).map_err(Error::Store)?;
        Ok((parts, keeper))
    }
}

impl fmt::Debug for DurableTimerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableTimerBuilder")
            .field("name", &self.name)
            .field("topics", &self.topics.keys())
            .field("capacity", &self.capacity)
            .field("max_running", &self.max_running)
            .finish_non_exhaustive()
    }
}
