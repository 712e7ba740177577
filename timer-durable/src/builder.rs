//! The builder of a timer.

mod check;
mod topics;

use crate::call::Call;
use crate::client::Client;
use crate::engine::{Keeper, Settings, THREADS, TopicSettings, as_keeper};
use crate::error::Error;
use crate::figures::Figures;
use crate::handler::Spawn;
use crate::manual::{ManualDurableDriver, ManualKeeper, put_on_virtual_time};
use crate::message::{Message, Reply};
use crate::permits::CallPermits;
use crate::reader_thread::ReaderThread;
use crate::shutdown::Shutdown;
use crate::store::Store;
use crate::timer::DurableTimer;
use crate::virtual_clock::{Place, VirtualClock};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use timer_executor::{TaskExecutor, ThreadPoolExecutor};

/// Builds a [`DurableTimer`].
///
/// [`executor`](Self::executor) and [`max_running`](Self::max_running) are settings of the timer
/// before the first topic. Behind a topic they are settings of that topic alone, as
/// [`time_limit`](Self::time_limit) and [`rate`](Self::rate) always are. All other settings are of
/// the timer, wherever they stand.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use timer_durable::{Due, DurableTimer, MemoryStore, Topic};
///
/// const CLOSE: Topic<String> = Topic::new("order.close");
///
/// let timer = DurableTimer::builder()
///     .name("billing")
///     .topic(CLOSE, |due: &Due<String>| {
///         println!("closing {}", due.payload());
///         Ok(())
///     })
///     .open(MemoryStore::new()) // or the store of another crate
///     .wait()?;
/// timer.new_timeout(CLOSE, Duration::from_secs(1800), "order 17").wait()?;
/// # Ok::<(), timer_durable::Error>(())
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
    hides_keys: bool,
    overdue_rate: Option<u32>,
    seed: Option<u64>,
}

/// The number of positions that are read from the store at a time.
const PAGE: usize = 2_000;

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
            hides_keys: false,
            overdue_rate: None,
            seed: None,
        }
    }

    /// Sets the name of the timer and of its thread. Log events and metrics show it. The default is
    /// `timer`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
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

    /// Sets the largest number of timeouts in memory, at least 4. The default is 100,000. Half of
    /// it is for overdue timeouts. These were due when the store was opened, or when the timer
    /// joined it again or gained shards. Each timeout takes about 128 bytes. Later timeouts are
    /// read from the store when their time comes.
    pub fn capacity(mut self, timeouts: usize) -> Self {
        self.capacity = timeouts;
        self
    }

    /// Sets the number of calls and ends beyond which a transaction takes no further ones, at least
    /// 1. The default is 2,048. Begins, and ends that a failed commit has left, may come on top.
    pub fn max_batch(mut self, operations: usize) -> Self {
        self.max_batch = operations;
        self
    }

    /// Sets the largest number of calls that wait for the store, at least 1. The default is 16,384.
    /// Further calls are refused with [`Error::QueueFull`], so that memory is bounded. Reads have a
    /// queue of their own with the same bound. Each thread that waits for its call before it makes
    /// another one has one place.
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

    /// Leaves keys out of [`DurableTimer::worst`] and so of a live page that shows them, for keys
    /// that are personal data.
    pub fn hide_keys(mut self) -> Self {
        self.hides_keys = true;
        self
    }

    /// Opens a store and starts the keeper's thread, which connects to the store if that has to be
    /// done. If the [`Call`] is dropped, the timer stops as soon as it is open.
    ///
    /// # Errors
    ///
    /// - [`Error::Setting`] if a setting is not allowed, if a topic was added twice, or if an async
    ///   topic has no runtime.
    /// - [`Error::Open`] if the store cannot be reached or used, and [`Error::Store`] if it cannot
    ///   be joined.
    /// - [`Error::ThreadRefused`] if the system refuses the keeper's thread or a thread of the
    ///   default executor.
    pub fn open(self, store: impl Into<Box<dyn Store>>) -> Call<DurableTimer> {
        Call::from_result(self.check().and_then(|()| self.start(store.into())))
    }

    /// Opens a store on the keeper's thread.
    fn start(self, store: Box<dyn Store>) -> Result<Call<DurableTimer>, Error> {
        let name = self.name.clone();
        let (reply, answer) = Reply::new();
        let (started, starts) = oneshot::channel();
        let run = move || {
            let (client, keeper) = match self.assemble(store, None) {
                Ok(parts) => parts,
                Err(error) => return reply.send(Err(error)),
            };
            tracing::debug!(timer = %client.name, "the keeper starts");
            reply.send(Ok(DurableTimer::new(client, starts.recv().ok())));
            keeper.run();
        };
        let thread = std::thread::Builder::new().name(name).spawn(|| as_keeper(run)).map_err(Error::ThreadRefused)?;
        // The thread needs it for the handle of the timer.
        let _sent = started.send(thread);
        Ok(Call::sent(answer, |answer| answer))
    }

    /// Sets the seed of the random delays of [`backoff`](crate::Topic::backoff). The default is a
    /// random one, and 0 on virtual time.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Opens a store on virtual time, for tests. The returned driver moves the time and runs the
    /// handlers. [`open_on`](Self::open_on) lets a timer in memory do that. There is no [`Call`],
    /// because nothing is waited for on virtual time.
    ///
    /// The time begins at 2001-09-09, or at the latest time in the store. A store in a file does
    /// not sync the file on virtual time.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] as for [`open`](Self::open), and [`Error::Store`] if the store cannot be
    /// joined, or if its clock cannot be moved, as that of a server.
    #[doc(alias = "mock")]
    pub fn build_manual(self, store: impl Into<Box<dyn Store>>) -> Result<(DurableTimer, ManualDurableDriver), Error> {
        let keeper = ManualKeeper::new(None);
        let timer = self.open_manual(store.into(), &keeper)?;
        Ok((timer, ManualDurableDriver::new(keeper)))
    }

    /// Opens a store on a clock that follows a timer in memory, for tests of programs that use
    /// both. See [`VirtualClock`].
    ///
    /// # Errors
    ///
    /// As for [`build_manual`](Self::build_manual).
    #[doc(alias = "paused")]
    #[doc(alias = "start_paused")]
    pub fn open_on(self, store: impl Into<Box<dyn Store>>, clock: &VirtualClock) -> Result<DurableTimer, Error> {
        self.open_manual(store.into(), &ManualKeeper::new(Some(Place::new(clock))))
    }

    fn open_manual(self, mut store: Box<dyn Store>, host: &Arc<ManualKeeper>) -> Result<DurableTimer, Error> {
        self.check()?;
        put_on_virtual_time(&mut *store, host)?;
        let (client, keeper) = self.assemble(store, Some(host))?;
        host.attach(keeper);
        Ok(DurableTimer::new(client, None))
    }

    /// Makes the keeper and the client of a timer whose settings are allowed.
    fn assemble(
        mut self,
        mut store: Box<dyn Store>,
        manual: Option<&Arc<ManualKeeper>>,
    ) -> Result<(Client, Keeper), Error> {
        store.open().map_err(Error::Open)?;
        let (executor, pool): (Arc<dyn TaskExecutor>, _) = match (manual, self.executor) {
            (Some(manual), _) => (manual.executor(), None),
            (None, Some(executor)) => (executor, None),
            (None, None) => {
                let pool = Arc::new(ThreadPoolExecutor::try_new(THREADS).map_err(Error::ThreadRefused)?);
                (pool.clone(), Some(pool))
            }
        };
        let figures = Arc::new(Figures::new(self.hides_keys));
        let channel = crossbeam_channel::unbounded::<Message>();
        let shutdown = Arc::<Shutdown>::default();
        let client = Client {
            name: self.name.clone(),
            store: store.describe(),
            keeper: channel.0.clone(),
            // On virtual time the keeper reads, because the time would not wait for a thread.
            reader: ReaderThread::new(&self.name, store.connect_reader().filter(|_| manual.is_none())),
            permits: CallPermits::new(self.max_queued_calls),
            read_permits: CallPermits::new(self.max_queued_calls),
            figures: figures.clone(),
            counted: Arc::default(),
            shutdown: shutdown.clone(),
            topics: self.topics.keys().chain(&self.elsewhere).cloned().collect(),
            max_payload: self.max_payload,
            manual: manual.cloned(),
        };
        if manual.is_some() {
            for own in self.topics.values_mut().filter_map(|topic| topic.executor.as_mut()) {
                *own = executor.clone();
            }
        }
        let settings = Settings {
            name: self.name,
            capacity: self.capacity,
            page: PAGE,
            max_batch: self.max_batch,
            max_running: self.max_running,
            overdue_rate: self.overdue_rate,
            seed: self.seed.unwrap_or_else(|| if manual.is_some() { 0 } else { fastrand::u64(..) }),
            topics: self.topics,
            elsewhere: self.elsewhere,
            max_payload: self.max_payload,
            executor,
            pool,
            settle: manual.map(|manual| manual.settler()),
        };
        let keeper = Keeper::new(store, settings, channel, figures, shutdown).map_err(Error::Store)?;
        Ok((client, keeper))
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
