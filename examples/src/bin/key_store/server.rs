//! A server of expiring keys, written for `tokio::time`. The module above decides which `time` that
//! is.
//!
//! A command is a line, and so is its answer:
//!
//! | command | answer |
//! |---|---|
//! | `set KEY VALUE`, `set KEY VALUE MILLIS` | `ok`; the key expires after that many milliseconds |
//! | `get KEY` | its value, or `nil` |
//! | `take KEY MILLIS` | removes and returns the value, waiting for it that long, else `nil` |
//! | `keys` | the number of keys |
//! | `samples` | the number of counts of the keys, one per period |
//! | `idle MILLIS` | `ok`; the connection closes after that much silence, a minute by default |
//!
//! Values with spaces, a bound on the keys and a bound on the length of a line are absent.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::time::{self, Duration, Instant, MissedTickBehavior};

/// The idle time of a connection that has not set one.
const IDLE: Duration = Duration::from_secs(60);

/// Serves until the future is dropped, and counts the keys once per period.
pub(crate) async fn serve(listener: TcpListener, period: Duration) -> io::Result<()> {
    let store = Arc::new(Store::default());
    // The tasks end with this future.
    let mut tasks = JoinSet::new();
    tasks.spawn(purge(store.clone()));
    tasks.spawn(sample(store.clone(), period));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let store = store.clone();
                tasks.spawn(async move {
                    // The client has hung up or was silent for too long. In both cases the stream
                    // is closed.
                    _ = connection(&store, stream).await;
                });
            }
            // A connection has ended, or its task has panicked.
            Some(ended) = tasks.join_next() => ended?,
        }
    }
}

#[derive(Default)]
struct Store {
    keys: Mutex<Keys>,
    /// Notified when a key is set that expires before all others.
    sooner: Notify,
    /// Notified when a key is set.
    set: Notify,
    samples: AtomicU64,
}

#[derive(Default)]
struct Keys {
    values: HashMap<String, (String, Option<Instant>)>,
    expirations: BTreeSet<(Instant, String)>,
}

impl Keys {
    fn remove(&mut self, key: &str) -> Option<String> {
        let (value, expires) = self.values.remove(key)?;
        if let Some(at) = expires {
            self.expirations.remove(&(at, key.to_owned()));
        }
        Some(value)
    }
}

impl Store {
    fn set(&self, key: &str, value: &str, life: Option<Duration>) {
        let mut keys = self.keys.lock();
        keys.remove(key);
        let expires = life.map(|life| Instant::now() + life);
        keys.values.insert(key.to_owned(), (value.to_owned(), expires));
        if let Some(at) = expires {
            let sooner = keys.expirations.first().is_none_or(|(first, _)| at < *first);
            keys.expirations.insert((at, key.to_owned()));
            if sooner {
                self.sooner.notify_one();
            }
        }
        drop(keys);
        self.set.notify_waiters();
    }

    /// Removes expired keys and returns the time when the next key expires.
    fn purge(&self) -> Option<Instant> {
        let mut keys = self.keys.lock();
        let now = Instant::now();
        while let Some((at, _)) = keys.expirations.first() {
            if *at > now {
                return Some(*at);
            }
            if let Some((_, key)) = keys.expirations.pop_first() {
                keys.values.remove(&key);
            }
        }
        None
    }

    /// Removes and returns the value of a key, waiting for it if necessary.
    async fn take(&self, key: &str, limit: Duration) -> Option<String> {
        let deadline = Instant::now() + limit;
        loop {
            // Created before the look at the keys, so that no `set` between the two is missed.
            let set = self.set.notified();
            let value = self.keys.lock().remove(key);
            if value.is_some() || time::timeout_at(deadline, set).await.is_err() {
                return value;
            }
        }
    }
}

async fn purge(store: Arc<Store>) {
    loop {
        match store.purge() {
            Some(next) => tokio::select! {
                () = time::sleep_until(next) => {}
                () = store.sooner.notified() => {}
            },
            None => store.sooner.notified().await,
        }
    }
}

async fn sample(store: Arc<Store>, period: Duration) {
    let mut ticks = time::interval(period);
    // A missed tick is skipped, because a burst of counts would tell nothing new.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        // ORDERING: Relaxed, because this is only a count.
        store.samples.fetch_add(1, Ordering::Relaxed);
    }
}

async fn connection(store: &Store, stream: TcpStream) -> io::Result<()> {
    let mut idle = IDLE;
    let (commands, mut answers) = stream.into_split();
    let mut commands = BufReader::new(commands).lines();
    while let Some(line) = time::timeout(idle, commands.next_line()).await?? {
        let mut answer = answer(store, &mut idle, &line).await;
        answer.push('\n');
        answers.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

async fn answer(store: &Store, idle: &mut Duration, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let last = words.last().copied().unwrap_or_default();
    let millis = last.parse().ok().filter(|millis| *millis <= 86_400_000).map(Duration::from_millis);
    match (&words[..], millis) {
        (["set", key, value], _) => {
            store.set(key, value, None);
            "ok".to_owned()
        }
        (["set", key, value, _], Some(life)) => {
            store.set(key, value, Some(life));
            "ok".to_owned()
        }
        (["get", key], _) => store.keys.lock().values.get(*key).map_or("nil", |(value, _)| value).to_owned(),
        (["take", key, _], Some(limit)) => store.take(key, limit).await.unwrap_or_else(|| "nil".to_owned()),
        (["keys"], _) => store.keys.lock().values.len().to_string(),
        // ORDERING: Relaxed, because this is only a count.
        (["samples"], _) => store.samples.load(Ordering::Relaxed).to_string(),
        (["idle", _], Some(limit)) => {
            *idle = limit;
            "ok".to_owned()
        }
        (["set", _, _, _] | ["take", _, _] | ["idle", _], None) => {
            format!("error: '{last}' given; allowed: milliseconds, 0..=86400000")
        }
        _ => format!("error: '{line}' given; allowed: set, get, take, keys, samples, idle"),
    }
}
