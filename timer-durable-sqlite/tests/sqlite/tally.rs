//! The number of pending timeouts in a file, counted in slices while commits go on.

use std::time::{Duration, Instant};

use timer_durable::store::{Position, Reader, Store};
use timer_durable::transaction::{Insert, NextRun, Operation, Outcome, Target};
use timer_durable::{Counts, IfPending, TimeoutId};
use timer_durable_sqlite::SqliteStore;

use timer_durable_tests::folder::Folder;

/// Several slices of rows.
const ROWS: usize = 24_000;

/// An hour in microseconds.
const HOUR: i64 = 3_600_000_000;

/// Returns a deadline that no batch meets.
fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A joined store with the ids of its rows, and random numbers for what happens next.
struct Bench {
    store: SqliteStore,
    ids: Vec<TimeoutId>,
    dead: Vec<TimeoutId>,
    random: fastrand::Rng,
    now: i64,
}

impl Bench {
    fn open(folder: &Folder, ids: Vec<TimeoutId>) -> Self {
        let mut store = SqliteStore::open(folder.file()).unwrap();
        store.rejoin().unwrap();
        let now = store.now();
        Self { store, ids, dead: Vec::new(), random: fastrand::Rng::with_seed(7), now }
    }

    /// Returns a due time in the past, or hours away, where rows are only sorted by slots.
    fn due(&mut self) -> i64 {
        let hours = if self.random.bool() { -1..0 } else { 3..9 };
        self.now + self.random.i64(hours.start * HOUR..hours.end * HOUR)
    }

    fn insert(&mut self, count: usize) {
        let mut batch = Vec::new();
        for _ in 0..count {
            let insert = Insert::new(TimeoutId::new(), self.due(), "t");
            self.ids.push(insert.id);
            batch.push(Operation::Insert(insert));
        }
        self.store.write(&batch, later()).unwrap();
    }

    fn pick(&mut self) -> TimeoutId {
        let index = self.random.usize(..self.ids.len());
        self.ids.swap_remove(index)
    }

    /// Executes every kind of operation except for purges, on random rows.
    fn change(&mut self) {
        self.insert(3);
        let begins: Vec<TimeoutId> = (0..4).map(|_| self.pick()).collect();
        let mut batch: Vec<Operation> = begins.iter().copied().map(Operation::Begin).collect();
        let moved = self.pick();
        let cancelled = self.pick();
        batch.push(Operation::Reset { target: Target::Id(moved), due: self.due() });
        batch.push(Operation::Cancel(Target::Id(cancelled)));
        batch.push(Operation::Cancel(Target::Id(TimeoutId::new())));
        if self.dead.len() > 3 {
            batch.push(Operation::Requeue { id: self.dead.remove(0), due: self.now, without_key: false });
        }
        let outcomes = self.store.write(&batch, later()).unwrap();
        self.ids.push(moved);
        let mut ends = Vec::new();
        for (n, (id, begun)) in begins.into_iter().zip(outcomes).enumerate() {
            let Outcome::Begun(attempt) = begun else { continue };
            let attempt = attempt.attempt;
            let next = self.due();
            let letter = NextRun { due: next, letter: TimeoutId::new() };
            ends.push(match n {
                0 => Operation::Done { id, attempt, next: None, then: Vec::new() },
                1 => Operation::Done { id, attempt, next: Some(next), then: Vec::new() },
                2 if attempt % 2 == 0 => {
                    Operation::Bury { id, attempt, reason: "broken".to_owned(), next: Some(letter) }
                }
                2 => Operation::Retry { id, attempt, due: next, forgive: false },
                _ => {
                    self.dead.push(id);
                    Operation::Bury { id, attempt, reason: "broken".to_owned(), next: None }
                }
            });
        }
        // An end of an attempt that does not run is refused.
        ends.push(Operation::Done { id: self.ids[0], attempt: 99, next: None, then: Vec::new() });
        self.store.write(&ends, later()).unwrap();
        // A page that begins behind a slot moves rows of the slot.
        let far = Position::at(self.now + 5 * HOUR)..Position::END;
        self.store.load("t", far, 9, &mut Vec::new()).unwrap();
    }

    fn counts(&mut self) -> Counts {
        self.store.counts().unwrap()
    }
}

#[test]
fn pending_is_exact_after_slices_and_commits() {
    let folder = Folder::new();
    let mut bench = Bench::open(&folder, Vec::new());
    assert_eq!(bench.store.pending(), Some(0));
    bench.insert(ROWS);
    assert_eq!(bench.store.pending(), Some(ROWS as u64), "a commit changes the number");
    let Bench { store, ids, .. } = bench;
    drop(store);

    let mut bench = Bench::open(&folder, ids);
    let mut slices = 0;
    while bench.store.next_upkeep().is_some() {
        assert_eq!(bench.store.pending(), None, "the count is under way");
        bench.change();
        bench.store.upkeep(&[]).unwrap();
        slices += 1;
    }
    assert!(slices >= 2, "{slices} slices, so no change came between two");
    assert!(!bench.dead.is_empty());
    for _ in 0..10 {
        assert_eq!(bench.store.pending(), Some(bench.counts().pending));
        bench.change();
    }
    bench.store.rejoin().unwrap();
    assert_eq!(bench.store.pending(), None, "a commit of the old instance may be unknown");
}

/// Returns the number of bytes that this thread has read from files.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_timeout_does_not_wait_for_the_payloads_of_others() {
    const LARGE: usize = 1 << 20;
    let folder = Folder::new();
    let mut bench = Bench::open(&folder, Vec::new());
    for _ in 0..40 {
        let [mut large, small] = [(); 2].map(|()| Insert::new(TimeoutId::new(), bench.due(), "t"));
        large.payload = vec![1; LARGE];
        bench.ids.push(small.id);
        bench.store.write(&[large, small].map(Operation::Insert), later()).unwrap();
    }
    let Bench { store, ids, .. } = bench;
    drop(store);
    let before = bytes_read();
    let mut bench = Bench::open(&folder, ids);
    for id in bench.ids.clone() {
        let reset = Operation::Reset { target: Target::Id(id), due: bench.due() };
        bench.store.write(&[reset], later()).unwrap();
    }
    bench.store.load("t", Position::START..Position::END, 99, &mut Vec::new()).unwrap();
    assert_eq!(bench.store.pending(), Some(80));
    let read = bytes_read() - before;
    assert!(read < LARGE as u64, "{read} bytes were read");
}

#[test]
fn a_queued_call_is_counted_out_once() {
    let folder = Folder::new();
    let mut store = SqliteStore::open(folder.file()).unwrap();
    store.rejoin().unwrap();
    let due = store.now() - 1;
    let keyed = |if_pending| {
        let mut insert = Insert::new(TimeoutId::new(), due, "t");
        insert.key = Some("k".to_owned());
        insert.if_pending = if_pending;
        insert
    };
    let running = keyed(IfPending::Keep);
    let call = keyed(IfPending::Debounce);
    for operation in [
        Operation::Insert(running.clone()),
        Operation::Begin(running.id),
        Operation::Insert(call.clone()),
        Operation::Cancel(Target::Id(call.id)),
    ] {
        store.write(&[operation], later()).unwrap();
    }
    assert_eq!(store.pending(), Some(1), "the timeout whose attempt runs");
}
