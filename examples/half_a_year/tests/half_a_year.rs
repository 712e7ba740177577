//! Half a year of the shop in seconds, twice with the same events.
#![allow(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use half_a_year::{Note, Shop};
use timer_adapters::tokio;
use timer_durable::store::Store;
use timer_durable::{DurableTimerBuilder, MemoryStore, VirtualClock};
use timer_durable_sqlite::SqliteStore;
use tokio::time::{Instant, sleep};

/// Half a year, or two months in an unoptimized test. A month takes up to 2 s of CPU.
const MONTHS: u64 = if cfg!(debug_assertions) { 2 } else { 6 };

const MINUTE: Duration = Duration::from_secs(60);

/// Connects from time to time and sends orders.
async fn client(shop: Shop, name: &str, mut random: Rng) {
    loop {
        sleep(random.u32(1..2_880) * MINUTE).await;
        let (requests, received) = tokio::sync::mpsc::channel(1);
        let ordering = async {
            while requests.send(format!("order {name}{:x}", random.u32(..))).await.is_ok() {
                sleep(random.u32(1..15) * MINUTE).await;
            }
        };
        let (served, ()) = tokio::join!(biased; shop.serve(received), ordering);
        served.unwrap();
    }
}

/// Renews its lease, and is sometimes too late.
async fn worker(shop: Shop, name: &str, mut random: Rng) {
    loop {
        shop.renew(&format!("worker {name}")).await.unwrap();
        sleep(random.u32(120..725) * MINUTE).await;
    }
}

/// Runs the shop for half a year, in which it crashes each month, and returns its events.
fn half_a_year<S: Store>(seed: u64, open: impl Fn() -> S) -> Vec<(Duration, String)> {
    let events = Arc::new(Mutex::new(Vec::new()));
    tokio::paused(async {
        let clock = VirtualClock::new(&timer_core::Timer::current());
        let mut random = Rng::with_seed(seed);
        let noted = events.clone();
        let begin = Instant::now();
        let note: Note = Arc::new(move |event| noted.lock().unwrap().push((begin.elapsed(), event)));
        for month in 0..MONTHS {
            let mood = Mutex::new(random.fork());
            let bank =
                move || (mood.lock().unwrap().u32(..4) == 0).then_some(()).ok_or(std::io::ErrorKind::TimedOut.into());
            let open = |builder: DurableTimerBuilder| builder.seed(seed + month).open_on(open(), &clock);
            let shop = Shop::open(note.clone(), bank, open).unwrap();
            let mut tasks = tokio::task::JoinSet::new();
            for name in ["a", "b"] {
                tasks.spawn(client(shop.clone(), name, random.fork()));
                tasks.spawn(worker(shop.clone(), name, random.fork()));
            }
            sleep(182 * 1_440 / 6 * MINUTE).await;
            clock.crash();
            tasks.shutdown().await;
        }
    });
    std::mem::take(&mut *events.lock().unwrap())
}

fn check<S: Store>(open: impl Fn(usize) -> S) {
    let events = half_a_year(7, || open(1));
    for kind in ["is closed", "is closed unpaid", "is refused, attempt 2", "is paid", "loses its lease"] {
        assert!(events.iter().any(|(_, event)| event.ends_with(kind)), "{kind}");
    }
    assert_eq!(half_a_year(7, || open(2)), events);
    assert_ne!(half_a_year(8, || open(3)), events);
}

#[test]
fn half_a_year_in_memory() {
    let stores = [(); 4].map(|()| MemoryStore::new());
    check(|run| stores[run].clone());
}

#[test]
fn half_a_year_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    check(|run| SqliteStore::open(folder.path().join(run.to_string())).unwrap());
}
