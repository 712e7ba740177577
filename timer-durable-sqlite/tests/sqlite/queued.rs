//! Calls that are queued beside an attempt, in a file.

use std::path::Path;
use std::time::{Duration, Instant};

use timer_durable::store::{Position, Store};
use timer_durable::transaction::{Insert, Operation, Outcome};
use timer_durable::{Due, DurableTimer, Error, IfPending, Schedule, ScheduleAnswer, TimeoutId};
use timer_durable_sqlite::rusqlite::Connection;
use timer_durable_sqlite::{SqliteHandle, SqliteStore};
use timer_durable_tests::folder::Folder;
use timer_durable_tests::queued;
use timer_durable_tests::t;

use crate::processes::{CHILD, child};

const PATIENCE: Duration = Duration::from_secs(60);
const SESSIONS: usize = 20;
const MILLISECOND: Duration = Duration::from_millis(1);

/// A due time that is over.
const DUE: i64 = 1_000_000;

fn with_store(check: fn(SqliteStore)) {
    let folder = Folder::new();
    check(SqliteStore::open(folder.file()).unwrap());
}

#[test]
fn no_session_loses_its_last_event() {
    with_store(queued::no_session_loses_its_last_event);
}

#[test]
fn new_periods_take_effect_during_a_run() {
    with_store(queued::new_periods_take_effect_during_a_run);
}

#[test]
fn a_call_beside_a_handler_is_kept() {
    with_store(queued::a_call_beside_a_handler_is_kept);
}

/// Opens a file with a call that is queued beside an attempt. Returns the attempt and the call.
fn queue(folder: &Folder) -> (SqliteStore, TimeoutId, TimeoutId) {
    let mut store = SqliteStore::open(folder.file()).unwrap();
    store.rejoin().unwrap();
    let running = run(&mut store);
    let call = keyed(IfPending::Debounce);
    assert_eq!(write(&mut store, Operation::Insert(call.clone())), Outcome::Queued(call.id));
    (store, running, call.id)
}

/// Makes a timeout whose attempt runs.
fn run(store: &mut SqliteStore) -> TimeoutId {
    let insert = keyed(IfPending::Keep);
    let id = insert.id;
    write(store, Operation::Insert(insert));
    assert!(matches!(write(store, Operation::Begin(id)), Outcome::Begun(_)));
    id
}

fn keyed(if_pending: IfPending) -> Insert {
    let mut insert = Insert::new(TimeoutId::new(), DUE, "t");
    insert.key = Some("k".to_owned());
    insert.if_pending = if_pending;
    insert
}

fn write(store: &mut SqliteStore, operation: Operation) -> Outcome {
    store.write(&[operation], Instant::now() + PATIENCE).unwrap().remove(0)
}

/// Deletes the attempt, as another program.
fn delete(folder: &Folder) {
    let deleted = "delete from timer_timeout where if_pending is null";
    Connection::open(folder.file()).unwrap().execute_batch(deleted).unwrap();
}

#[test]
fn a_call_whose_attempt_another_program_has_deleted_goes_on() {
    for joins in ["before", "after", "never"] {
        let folder = Folder::new();
        let (mut store, running, call) = queue(&folder);
        if joins == "before" {
            drop(store);
            store = SqliteStore::open(folder.file()).unwrap();
            store.rejoin().unwrap();
        }
        delete(&folder);
        if joins == "after" {
            store.rejoin().unwrap();
        } else {
            assert_eq!(write(&mut store, Operation::Begin(running)), Outcome::NotFound);
        }
        let upkeep = store.upkeep(&[]).unwrap();
        assert_eq!(upkeep.foreign, [(Position { due: DUE, id: call }, "t".to_owned())], "{joins}");
        assert_eq!(store.pending(), Some(1));
        assert!(matches!(write(&mut store, Operation::Begin(call)), Outcome::Begun(_)));
    }
}

/// The next attempt of the key begins before the store looks for the call.
#[test]
fn a_call_whose_attempt_another_program_has_deleted_does_not_block_its_key() {
    let folder = Folder::new();
    let (mut store, _, call) = queue(&folder);
    delete(&folder);
    let id = run(&mut store);
    assert_eq!(write(&mut store, Operation::Insert(keyed(IfPending::Debounce))), Outcome::Queued(call));
    let done = Operation::Done { id, attempt: 1, next: None, then: Vec::new() };
    assert_eq!(write(&mut store, done), Outcome::Changed(id));
    assert!(matches!(write(&mut store, Operation::Begin(call)), Outcome::Begun(_)));
}

/// Opens a timer whose handlers work for a while and note their payload in the transaction that
/// ends them.
fn open(file: &Path) -> (DurableTimer, SqliteHandle) {
    let store = SqliteStore::open(file).unwrap();
    let sqlite = store.handle();
    let noting = sqlite.clone();
    let handle = move |due: &Due<String>| {
        std::thread::park_timeout(5 * MILLISECOND);
        let handled = (due.key().unwrap_or_default().to_owned(), due.payload().clone());
        let _result = noting.complete(due, move |tx| {
            tx.connection().execute("insert into handled values (?1, ?2)", handled)?;
            Ok(())
        });
        Ok(())
    };
    let topic = t().attempts(1_000_000).backoff(MILLISECOND, 5 * MILLISECOND);
    (DurableTimer::builder().topic(topic, handle).open(store).wait().unwrap(), sqlite)
}

/// Writes an event of a session with its call, and whether the call was queued.
fn send((timer, sqlite): &(DurableTimer, SqliteHandle), session: usize) -> Result<(), Error> {
    let send = sqlite.transaction(timer, move |tx| {
        let last = "select coalesce(max(version), 0) + 1 from events where session = ?1";
        let version: i64 = tx.connection().query_row(last, [session.to_string()], |row| row.get(0))?;
        let schedule = Schedule::debounce(20 * MILLISECOND).key(session.to_string());
        let answer = tx.schedule(t::<String>(), schedule, &version.to_string())?;
        let is_queued = matches!(answer, ScheduleAnswer::Queued(_));
        let event = (session.to_string(), version, is_queued);
        tx.connection().execute("insert into events values (?1, ?2, ?3)", event)?;
        Ok(())
    });
    send.wait()
}

/// A process sends events to sessions and handles them. It is killed at random moments. The last
/// event of each session is handled, and no handler repeats one that was committed.
#[test]
fn kills_lose_no_last_event() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let folder = Path::new(&folder);
        let begun = Instant::now();
        let timer = open(&folder.join("timeouts.db"));
        std::fs::write(folder.join("opened"), "").unwrap();
        // The parent kills this process. If the parent itself is killed, the process ends here.
        while begun.elapsed() < PATIENCE {
            send(&timer, fastrand::usize(..SESSIONS)).unwrap();
            std::thread::park_timeout(MILLISECOND);
        }
        return;
    }
    let folder = Folder::new();
    let (timer, sqlite) = open(&folder.file());
    let create =
        "create table events(session text, version integer, is_queued integer, primary key (session, version));
                  create table handled(session text, version integer)";
    sqlite.transaction(&timer, move |tx| Ok(tx.connection().execute_batch(create)?)).wait().unwrap();
    timer.stop(PATIENCE).wait().unwrap();
    drop(timer);
    let kills = std::env::var("TIMER_LEDGER_KILLS").map_or(6_u32, |kills| kills.parse().unwrap());
    let opened = folder.path().join("opened");
    let begun = Instant::now();
    for n in 0..kills {
        let mut process = child("queued::kills_lose_no_last_event", &folder).spawn().unwrap();
        while !opened.exists() {
            assert!(begun.elapsed() < PATIENCE * (n + 1), "a process opens the file");
            std::thread::park_timeout(MILLISECOND);
        }
        std::thread::park_timeout(fastrand::u32(50..400) * MILLISECOND);
        process.kill().unwrap();
        process.wait().unwrap();
        std::fs::remove_file(&opened).unwrap();
    }
    let (timer, sqlite) = open(&folder.file());
    let begun = Instant::now();
    while timer.counts().wait().unwrap().pending > 0 {
        assert!(begun.elapsed() < PATIENCE * 2, "{:?}", timer.counts());
        std::thread::park_timeout(10 * MILLISECOND);
    }
    let count = |query: &'static str| {
        let count = move |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        sqlite.transaction(&timer, move |tx| Ok(tx.connection().query_row(query, [], count)?)).wait().unwrap()
    };
    let lost = count(
        "select count(*) from (select session, max(version) as last from events group by session) e
         where last is not (select h.version from handled h where h.session = e.session order by rowid desc limit 1)",
    );
    let sent = count("select count(*) from events");
    let queued = count("select sum(is_queued) from events");
    let handled = count("select count(*) from handled");
    println!("{sent} events, {queued} of them queued, {handled} handled, {kills} kills, {lost} sessions lost");
    let unordered = count(
        "select count(*) from handled a, handled b where a.session = b.session and a.rowid < b.rowid and a.version >= b.version",
    );
    assert_eq!((lost, unordered), (0, 0), "lost, and repeated or in another order");
    assert!(queued > 0, "{sent} events");
}
