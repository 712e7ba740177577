//! A server of keys that expire, written for `tokio::time`. What stands above decides what `time` is.
//!
//! A command is a line, and so is its answer:
//!
//! | command | answer |
//! |---|---|
//! | `set KEY VALUE`, `set KEY VALUE MILLIS` | `ok`; the key is gone after so many milliseconds |
//! | `get KEY` | its value, or `nil` |
//! | `take KEY MILLIS` | its value, and the key is gone; waits for one, but no longer, then `nil` |
//! | `keys` | how many there are |
//! | `samples` | how often the keys were counted, once per period |
//! | `idle MILLIS` | `ok`; this connection is closed when it says nothing for so long, a minute by default |
//!
//! Absent: values with spaces, a bound on the keys, a bound on the length of a line.

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

/// Of a connection that has not said otherwise.
const IDLE: Duration = Duration::from_secs(60);

/// Serves until it is dropped, and counts the keys once per period.
pub(crate) async fn serve(listener: TcpListener, period: Duration) -> io::Result<()> {
    let store = Arc::new(Store::default());
    // They end when this does.
    let mut tasks = JoinSet::new();
    tasks.spawn(purge(store.clone()));
    tasks.spawn(sample(store.clone(), period));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let store = store.clone();
                tasks.spawn(async move {
                    // The client is gone, or has said nothing for too long: either way the stream is closed.
                    _ = connection(&store, stream).await;
                });
            }
            // A connection has ended, or a task has panicked.
            Some(ended) = tasks.join_next() => ended?,
        }
    }
}

#[derive(Default)]
struct Store {
    keys: Mutex<Keys>,
    /// A key was set that expires before all others.
    sooner: Notify,
    /// A key was set.
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

    /// Removes what has expired; when the next key does.
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

    /// Waits for the key, if need be.
    async fn take(&self, key: &str, limit: Duration) -> Option<String> {
        let deadline = Instant::now() + limit;
        loop {
            // Made before the look, so that no `set` goes unseen between them.
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
    // The two differ in what they do unless told.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        // ORDERING: Relaxed: a count to look at, on which nothing hangs.
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
        // ORDERING: Relaxed, as above.
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
