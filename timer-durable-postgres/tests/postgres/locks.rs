//! Transactions of other programs that keep timeouts locked.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use timer_durable::store::{Reader, Store};
use timer_durable::transaction::{Insert, Operation, Outcome, Target};
use timer_durable::{
    CancelAnswer, Due, DurableTimer, Error, IfPending, Retry, Schedule, ScheduleAnswer, StoreError, TimeoutId, Topic,
};
use timer_durable_postgres::PostgresStore;

use super::pooler::Pooler;
use super::{Database, LEASE};
use timer_durable_tests::t;

const PATIENCE: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_millis(300);

/// A session of `psql` with an open transaction.
pub(super) struct Session {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    pub(super) fn begin(database: &Database) -> Self {
        let mut process = database.server.psql(&database.name).stdin(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut session = Self { process, input, output };
        writeln!(session.input, "begin;").unwrap();
        session
    }

    /// Executes a statement that has one row, and returns it.
    pub(super) fn ask(&mut self, statement: &str) -> String {
        writeln!(self.input, "{statement};").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    pub(super) fn end(mut self, how: &str) {
        writeln!(self.input, "{how};").unwrap();
        drop(self.input);
        assert!(self.process.wait().unwrap().success());
    }
}

fn open(url: &str) -> (DurableTimer, mpsc::Receiver<String>) {
    let (sender, fired) = mpsc::channel();
    let record =
        move |due: &Due<String>| sender.send(format!("{} {}", due.payload(), due.attempt())).map_err(Retry::new);
    let store = PostgresStore::new(url).unwrap().lease(LEASE);
    (DurableTimer::builder().topic(t(), record).open(store).wait().unwrap(), fired)
}

/// Schedules timeouts and waits for each, which takes longer than a lease.
fn others_go_on(timer: &DurableTimer, fired: &mpsc::Receiver<String>) {
    let begun = std::time::Instant::now();
    for n in 0.. {
        timer.new_timeout(t(), Duration::ZERO, &format!("other{n}")).wait().unwrap();
        assert_eq!(fired.recv_timeout(PATIENCE).unwrap(), format!("other{n} 1"));
        if begun.elapsed() > 2 * LEASE {
            break;
        }
    }
    assert_eq!(timer.stats().rejoins, 0);
}

#[test]
fn a_locked_row_delays_its_timeout_only() {
    for end in ["rollback", "commit"] {
        let Some(database) = Database::create() else { return };
        lock_a_row(&database, &database.url(), end);
    }
}

/// Checks that a locked row delays its timeout only. `end` ends the transaction with the lock.
pub(super) fn lock_a_row(database: &Database, url: &str, end: &str) {
    let (timer, fired) = open(url);
    let mut session = Session::begin(database);
    assert_eq!(session.ask("select 1"), "1", "connected, so that the lock comes before the timeout is due");
    // On a busy machine the timeout may run before the lock.
    let mut lock = || {
        timer.schedule(t(), Schedule::after(SOON).key("17"), &"17".to_owned()).wait().unwrap();
        session.ask("savepoint lock; select timer.cancel('t', '17')") == "cancelled" || {
            session.ask("rollback to lock; select 1");
            assert_eq!(fired.recv_timeout(PATIENCE).unwrap(), "17 1");
            false
        }
    };
    assert!((0..10).any(|_| lock()));
    others_go_on(&timer, &fired);
    let cancel = timer.cancel(t::<()>(), "17");
    others_go_on(&timer, &fired);
    session.end(end);
    let cancelled = cancel.wait().unwrap();
    let ran = if end == "commit" || cancelled == CancelAnswer::Cancelled { None } else { Some("17 1".to_owned()) };
    if ran.is_some() {
        assert_eq!(fired.recv_timeout(PATIENCE).ok(), ran, "the timeout runs when its lock has ended");
    }
    assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
    assert!(fired.try_recv().is_err(), "{end}");
    assert_eq!(database.sql("select count(*) from timer.timeout where ended is null"), "0");
}

#[test]
fn a_call_about_a_locked_row_fails_after_a_while() {
    let Some(database) = Database::create() else { return };
    let (timer, fired) = open(&database.url());
    timer.schedule(t(), Schedule::after(PATIENCE).key("17"), &"17".to_owned()).wait().unwrap();
    let mut session = Session::begin(&database);
    session.ask("select 1 from timer.timeout for update");
    let error = timer.cancel(t::<()>(), "17").wait().unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Locked)), "{error}");
    others_go_on(&timer, &fired);
    session.end("rollback");
    assert_eq!(timer.cancel(t::<()>(), "17").wait().unwrap(), CancelAnswer::Cancelled);
}

#[test]
fn an_insert_whose_key_is_locked_waits_for_the_lock() {
    let Some(database) = Database::create() else { return };
    let (timer, fired) = open(&database.url());
    let keys: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let schedule =
        |key: &String| timer.schedule(t(), Schedule::after(2 * PATIENCE).key(key).if_pending(IfPending::Replace), key);
    let first: Vec<_> = keys.iter().map(schedule).collect();
    let first: Vec<TimeoutId> = first.into_iter().map(|call| call.wait().unwrap().id()).collect();
    let mut session = Session::begin(&database);
    session.ask("select key from timer.timeout where key = '17' for update");
    let mut calls: Vec<_> = keys.iter().map(schedule).collect();
    let seventeenth = calls.remove(17);
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    others_go_on(&timer, &fired);
    session.end("rollback");
    let new = seventeenth.wait().unwrap();
    assert!(matches!(new, ScheduleAnswer::Created(id) if id != first[17]), "{new:?}");
    assert_eq!(database.sql("select count(*) from timer.timeout where ended is null"), "40");
}

#[test]
fn an_insert_whose_key_stays_locked_fails_after_a_while() {
    let Some(database) = Database::create() else { return };
    let (timer, fired) = open(&database.url());
    let schedule =
        |delay| timer.schedule(t(), Schedule::after(delay).key("17").if_pending(IfPending::Earlier), &"17".to_owned());
    let holder = schedule(2 * PATIENCE).wait().unwrap().id();
    let mut session = Session::begin(&database);
    session.ask("select 1 from timer.timeout for update");
    let error = schedule(PATIENCE).wait().unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::Locked)), "{error}");
    others_go_on(&timer, &fired);
    session.end("rollback");
    assert_eq!(schedule(PATIENCE).wait().unwrap(), ScheduleAnswer::Moved(holder));
}

#[test]
fn a_locked_end_delays_its_timeout_only() {
    let Some(database) = Database::create() else { return };
    let (release, released) = mpsc::channel::<()>();
    let released = std::sync::Mutex::new(released);
    let (sender, ids) = mpsc::channel();
    let (others, fired) = mpsc::channel();
    let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE);
    let timer = DurableTimer::builder()
        .topic(Topic::new("held"), move |due: &Due<String>| {
            sender.send(due.id())?;
            released.lock().unwrap().recv()?;
            Ok(())
        })
        .topic(t(), move |due: &Due<String>| Ok(others.send(format!("{} {}", due.payload(), due.attempt()))?))
        .open(store)
        .wait()
        .unwrap();
    timer.new_timeout(Topic::new("held"), Duration::ZERO, &"a".to_owned()).wait().unwrap();
    let id = ids.recv_timeout(PATIENCE).unwrap();
    let mut session = Session::begin(&database);
    assert_eq!(session.ask(&format!("select timer.complete('{id}', 1)")), "t");
    release.send(()).unwrap();
    others_go_on(&timer, &fired);
    session.end("rollback");
    assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
    assert_eq!(timer.stats().done, timer.stats().begun, "the end was written at last");
}

#[test]
fn a_key_that_another_transaction_inserts_delays_its_call_only() {
    let Some(database) = Database::create() else { return };
    let (timer, fired) = open(&database.url());
    let mut session = Session::begin(&database);
    session.ask("select length(timer.schedule('t', 'theirs'::text, '1 hour', '17')::text)");
    let keys: Vec<String> = (0..40).map(|n| n.to_string()).collect();
    let schedule = |key: &String| timer.schedule(t(), Schedule::after(2 * PATIENCE).key(key), key);
    let mut calls: Vec<_> = keys.iter().map(schedule).collect();
    let seventeenth = calls.remove(17);
    calls.into_iter().for_each(|call| _ = call.wait().unwrap());
    others_go_on(&timer, &fired);
    session.end("commit");
    let kept = seventeenth.wait().unwrap();
    assert_eq!(
        database.sql("select replace(id::text, '-', '') from timer.timeout where key = '17'"),
        kept.id().to_string()
    );
    assert!(matches!(kept, ScheduleAnswer::Kept(_)), "{kept:?}");
}

#[test]
fn a_locked_row_of_another_writer_is_collected_later() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(LEASE * 3600));
    let id = database.sql("select replace(timer.schedule('t', 'x'::text, '1 hour')::text, '-', '')");
    let mut session = Session::begin(&database);
    assert_eq!(session.ask("select foreign_xid is not null from timer.timeout for update"), "t");
    let free = database.sql("select replace(timer.schedule('t', 'y'::text, '1 hour')::text, '-', '')");
    let begun = std::time::Instant::now();
    let mut found = Vec::new();
    let mut keep_up = || {
        let next = node.0.next_upkeep().unwrap();
        std::thread::park_timeout(next.saturating_duration_since(std::time::Instant::now()).min(SOON / 4));
        found.extend(node.0.upkeep(&[]).unwrap().foreign.into_iter().map(|(position, _)| position.id.to_string()));
        assert!(begun.elapsed() < PATIENCE, "{found:?}");
        found.clone()
    };
    let only_free = std::slice::from_ref(&free);
    while keep_up() != only_free {}
    // A notification that comes after the lock has ended would make the node look again.
    let settled = std::time::Instant::now() + 3 * SOON;
    while std::time::Instant::now() < settled {
        assert_eq!(keep_up(), only_free);
    }
    session.end("rollback");
    let both = [free.clone(), id];
    while keep_up() != both {}
}

#[test]
fn a_locked_table_makes_calls_wait() {
    let Some(database) = Database::create() else { return };
    PostgresStore::install(&database.url()).wait().unwrap();
    let pooler = Pooler::start(&database, 2);
    for url in [database.url(), pooler.url()] {
        let mut node = super::join(&url, |store| store);
        let mut session = Session::begin(&database);
        session.ask("lock table timer.timeout in access exclusive mode; select 1");
        assert!(matches!(node.0.counts(), Err(StoreError::Failed(_))));
        let unlocking = unlock_soon(session);
        let insert = Insert::new(TimeoutId::made_by(node.0.instance()), node.0.now(), "t");
        node.write([Operation::Insert(insert)]).unwrap();
        unlocking.join().unwrap();
    }
}

/// Locks the whole table for a while.
fn lock_the_table(database: &Database) -> JoinHandle<()> {
    let mut session = Session::begin(database);
    session.ask("lock table timer.timeout in access exclusive mode; select 1");
    unlock_soon(session)
}

fn unlock_soon(session: Session) -> JoinHandle<()> {
    std::thread::spawn(move || {
        std::thread::park_timeout(SOON);
        session.end("commit");
    })
}

#[test]
fn a_locked_table_makes_calls_by_key_wait() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let mut insert = Insert::new(TimeoutId::made_by(node.0.instance()), node.0.now() + 1_000_000_000, "t");
    insert.key = Some("k".to_owned());
    let id = insert.id;
    let target = Target::Key { topic: "t".to_owned(), key: "k".to_owned() };

    let unlocking = lock_the_table(&database);
    let answers = loop {
        match node.write([Operation::Insert(insert.clone())]) {
            // Another transaction might be inserting the same key.
            Ok(outcomes) if outcomes == [Outcome::Locked] => {}
            outcomes => break outcomes.unwrap(),
        }
    };
    assert_eq!(answers, [Outcome::Created { replaced: None }]);
    unlocking.join().unwrap();

    let unlocking = lock_the_table(&database);
    assert_eq!(node.write([Operation::Cancel(target)]).unwrap(), [Outcome::Changed(id)]);
    unlocking.join().unwrap();
}

#[test]
fn a_table_that_is_locked_after_a_commit_leaves_nothing_in_doubt() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join_with(|store| store.lease(PATIENCE));
    let ids = [node.insert(), node.insert()];
    node.attempt(ids[1]);
    database.sql(
        "create function pause() returns trigger language plpgsql as $$
         begin perform pg_sleep(2); return old; end $$;
         create trigger pause before delete on timer.timeout for each row execute function pause()",
    );
    let mut session = Session::begin(&database);
    // The lock is granted between the commit of the first cancel and the look at the second one.
    let locking = std::thread::spawn(move || {
        database.wait_for(
            "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()",
            "1",
        );
        session.ask("lock table timer.timeout in access exclusive mode; select 1");
        std::thread::park_timeout(SOON);
        session.end("commit");
        database
    });
    let answers = node.write(ids.map(Target::Id).into_iter().map(Operation::Cancel)).unwrap();
    assert_eq!(answers, [Outcome::Changed(ids[0]), Outcome::Running]);
    locking.join().unwrap();
}

#[test]
fn a_row_that_is_refused_in_the_second_step_fails_its_call_only() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let insert = |node: &super::Node, key: &str, due: i64| {
        let mut insert = Insert::new(TimeoutId::made_by(node.0.instance()), due, "t");
        insert.key = Some(key.to_owned());
        insert.if_pending = IfPending::Earlier;
        insert
    };
    let later = node.0.now() + 1_000_000_000;
    let keys = ["bad", "a", "b", "c"];
    let first: Vec<Insert> = keys.iter().map(|key| insert(&node, key, later)).collect();
    node.write(first.into_iter().map(Operation::Insert)).unwrap();
    database.sql(
        "create function refuse() returns trigger language plpgsql as $$
         begin if new.key = 'bad' then raise exception 'no bad keys'; end if; return new; end $$;
         create trigger refuse before update on timer.timeout for each row execute function refuse()",
    );
    let second: Vec<Insert> = keys.iter().map(|key| insert(&node, key, later - 1)).collect();
    let answers = node.write(second.into_iter().map(Operation::Insert)).unwrap();
    assert!(matches!(&answers[0], Outcome::Refused(why) if why.contains("no bad keys")), "{answers:?}");
    assert!(answers[1..].iter().all(|answer| matches!(answer, Outcome::Moved(_, due) if *due == later - 1)));
}

#[test]
fn an_end_of_a_locked_row_waits_alone() {
    let Some(database) = Database::create() else { return };
    let mut node = database.join();
    let ids = [node.insert(), node.insert()];
    ids.iter().for_each(|id| assert_eq!(node.attempt(*id).attempt, 1));
    let mut session = Session::begin(&database);
    session.ask(&format!("select 1 from timer.timeout where id = '{}' for update", ids[0]));
    let done = |id| Operation::Done { id, attempt: 1, next: None, then: Vec::new() };
    for _ in 0..2 {
        assert_eq!(node.write(ids.map(done)).unwrap()[0], Outcome::Locked);
    }
    session.end("rollback");
    let ended = [Outcome::Changed(ids[0]), Outcome::NotFound];
    assert_eq!(node.write(ids.map(done)).unwrap(), ended, "the other one was written before");
}

#[test]
fn an_attempt_that_is_cut_off_while_its_row_is_locked_ends_once() {
    let Some(database) = Database::create() else { return };
    let (sender, attempts) = mpsc::channel();
    let (returned, returns) = mpsc::channel();
    let handler = move |due: &Due<()>| {
        sender.send(due.attempt()).map_err(Retry::new)?;
        while due.attempt() == 1 && !due.is_cancelled() {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        // The first attempt reports its end while that of the keeper waits for the lock.
        std::thread::park_timeout(2 * SOON);
        returned.send(()).map_err(Retry::new)
    };
    let topic = t::<()>().backoff(Duration::ZERO, Duration::ZERO);
    let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE);
    let timer = DurableTimer::builder().topic(topic, handler).time_limit(LEASE).open(store).wait().unwrap();
    timer.new_timeout(topic, Duration::ZERO, &()).wait().unwrap();
    assert_eq!(attempts.recv_timeout(PATIENCE), Ok(1));
    let mut session = Session::begin(&database);
    session.ask("select 1 from timer.timeout for update");
    returns.recv_timeout(PATIENCE).unwrap();
    std::thread::park_timeout(SOON);
    session.end("rollback");
    assert_eq!(attempts.recv_timeout(PATIENCE), Ok(2));
    database.wait_for("select count(*) from timer.timeout where ended is null", "0");
    assert_eq!((timer.stop(PATIENCE).wait().unwrap().unfinished, timer.stats().begun), (0, 2));
}
