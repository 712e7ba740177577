//! Timers on a real server, through the public API.

use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Wake};
use std::time::{Duration, Instant};

use timer_durable::{
    CancelAnswer, Due, DurableTimer, DurableTimerBuilder, Error, IfPending, ResetAnswer, Retry, Schedule,
    ScheduleAnswer, Topic,
};
use timer_durable_postgres::PostgresStore;
use timer_executor::Task;

use super::{Database, LEASE};
use timer_durable_tests::t;

const PATIENCE: Duration = Duration::from_secs(30);

fn open(database: &Database, builder: DurableTimerBuilder) -> DurableTimer {
    let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE);
    builder.open(store).wait().unwrap()
}

#[test]
fn two_timers_run_each_timeout_once() {
    let Some(database) = Database::create() else { return };
    let (sender, fired) = mpsc::channel();
    let timers = [0, 1].map(|node| {
        let sender = sender.clone();
        let record =
            move |due: &Due<String>| sender.send((due.payload().clone(), due.attempt(), node)).map_err(Retry::new);
        open(&database, DurableTimer::builder().topic(Topic::new("topic"), record))
    });
    // Each timeout goes into a shard of its caller.
    let begun = Instant::now();
    while timers.iter().any(|timer| timer.stats().membership.is_none_or(|member| member.shards != 32)) {
        assert!(begun.elapsed() < PATIENCE, "the timers share the shards");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    for n in 0..200 {
        timers[n % 2]
            .new_timeout(Topic::new("topic"), Duration::from_millis(n as u64 * 5), &n.to_string())
            .wait()
            .unwrap();
    }
    let mut seen = Vec::new();
    let mut runs = [0, 0];
    for _ in 0..200 {
        let (payload, attempt, node): (String, u32, usize) = fired.recv_timeout(PATIENCE).unwrap();
        assert_eq!(attempt, 1);
        seen.push(payload.parse::<usize>().unwrap());
        runs[node] += 1;
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..200).collect::<Vec<_>>());
    assert!(runs.iter().all(|count| *count > 0), "both timers run timeouts: {runs:?}");
    for timer in timers {
        assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
    }
    assert!(fired.try_recv().is_err(), "nothing runs twice");
}

/// The schema's function for the current time is replaced by one whose clock the test sets.
#[test]
fn a_server_clock_that_jumps_loses_nothing() {
    let Some(database) = Database::create() else { return };
    let (sender, fired) = mpsc::channel();
    let timers: Vec<DurableTimer> = (0..2)
        .map(|_| {
            let sender = sender.clone();
            let record =
                move |due: &Due<String>| sender.send((due.payload().clone(), due.attempt())).map_err(Retry::new);
            open(&database, DurableTimer::builder().topic(Topic::new("topic"), record))
        })
        .collect();
    database.sql(
        "create table public.step(micros bigint); insert into public.step values (0);
         create or replace function timer.now() returns bigint language sql volatile as $$
             select (extract(epoch from clock_timestamp()) * 1000000)::bigint + (select micros from public.step) $$",
    );
    let schedule = |prefix: &str, delay: Duration| {
        for n in 0..20 {
            timers[n % 2].new_timeout(Topic::new("topic"), delay, &format!("{prefix}{n}")).wait().unwrap();
        }
    };
    let mut seen = Vec::new();
    let mut expect = |prefix: &str| {
        for _ in 0..20 {
            let (payload, attempt) = fired.recv_timeout(PATIENCE).unwrap();
            assert!(payload.starts_with(prefix) && attempt == 1, "{payload}, attempt {attempt}");
            seen.push(payload);
        }
    };
    schedule("hour", Duration::from_secs(1800));
    schedule("soon", Duration::from_millis(300));
    expect("soon");
    // An hour forward. Every lease seems to be over, and all timeouts of that hour run.
    database.sql("update public.step set micros = 3600000000");
    expect("hour");
    schedule("forward", Duration::from_millis(300));
    expect("forward");
    // Two seconds back, which the timeouts have to wait for.
    let begun = Instant::now();
    schedule("back", Duration::from_millis(1500));
    database.sql("update public.step set micros = micros - 2000000");
    expect("back");
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(2500), "the clock has to catch up, and all ran after {took:?}");
    schedule("after", Duration::from_millis(300));
    expect("after");
    for timer in timers {
        assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
    }
    seen.sort_unstable();
    seen.dedup();
    assert!(seen.len() == 100 && fired.try_recv().is_err(), "nothing runs twice");
}

#[test]
fn calls_reach_timeouts_of_the_other_node() {
    let Some(database) = Database::create() else { return };
    let topic = || DurableTimer::builder().topic(Topic::new("topic"), |_: &Due<String>| Ok(()));
    let first = open(&database, topic());
    let second = open(&database, topic());
    let hour = Duration::from_secs(3600);
    let id = first.schedule(Topic::new("topic"), Schedule::after(hour).key("key"), &String::new()).wait().unwrap();
    let kept = second.schedule(Topic::new("topic"), Schedule::after(hour).key("key"), &String::new()).wait().unwrap();
    assert_eq!(kept, ScheduleAnswer::Kept(id.id()));
    assert_eq!(second.cancel(Topic::<()>::new("topic"), "key").wait().unwrap(), CancelAnswer::Cancelled);
    assert_eq!(first.cancel(Topic::<()>::new("topic"), "key").wait().unwrap(), CancelAnswer::Unknown);
}

#[test]
fn a_timer_is_opened_and_stopped_inside_a_runtime() {
    let Some(database) = Database::create() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE);
        let builder = DurableTimer::builder().topic(Topic::new("topic"), |_: &Due<String>| Ok(()));
        let timer = builder.open(store).await.unwrap();
        timer.new_timeout(Topic::new("topic"), Duration::ZERO, &String::new()).await.unwrap();
        assert!(timer.stop(Duration::from_secs(60)).await.unwrap().released);
        let absent = PostgresStore::new("postgres://user@127.0.0.1:1/shop").unwrap();
        let refused = DurableTimer::builder().open(absent).await.unwrap_err();
        assert!(matches!(refused, Error::Open(_)), "{refused}");
    });
}

#[test]
fn a_nul_character_harms_nobody() {
    let Some(database) = Database::create() else { return };
    let fail = |_: &Due<String>| -> Result<(), Retry> { Err(Retry::dead("bad\0reason")) };
    let timer = open(&database, DurableTimer::builder().topic(Topic::new("topic"), fail));
    let text = String::new();
    let keyed = |key| timer.schedule(Topic::new("topic"), Schedule::after(Duration::ZERO).key(key), &text);
    assert_eq!(keyed("a\0b").wait().unwrap_err().to_string(), "a key with a NUL character was given; none is allowed");
    assert_eq!(timer.cancel(Topic::<()>::new("topic"), "a\0b").wait().unwrap(), CancelAnswer::Unknown);
    keyed("good").wait().unwrap();
    let begun = Instant::now();
    while timer.counts().wait().unwrap().dead == 0 {
        assert!(begun.elapsed() < PATIENCE, "the reason is written");
    }
    assert_eq!(timer.dead_letters(None, None, 9).wait().unwrap()[0].reason, "bad\u{fffd}reason");
}

#[test]
fn a_call_after_a_lost_connection_waits_until_the_node_has_joined() {
    let Some(database) = Database::create() else { return };
    let timer = open(&database, DurableTimer::builder().topic(Topic::new("topic"), |_: &Due<String>| Ok(())));
    let schedule = || timer.new_timeout(Topic::new("topic"), Duration::from_secs(600), &String::new());
    schedule().wait().unwrap();
    for _ in 0..3 {
        database.sql("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()");
        // A renewal may have found the broken connection before.
        if let Err(error) = schedule().wait() {
            assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error}");
        }
        schedule().wait().unwrap();
    }
}

/// A waker that occupies the keeper, which calls it, until the test goes on.
struct Occupying(Mutex<(mpsc::Sender<()>, mpsc::Receiver<()>)>);

impl Wake for Occupying {
    fn wake(self: Arc<Self>) {
        let (occupied, released) = &*self.0.lock().unwrap();
        occupied.send(()).unwrap();
        released.recv_timeout(PATIENCE).unwrap();
    }
}

/// A timer whose handlers wait for the outcome that the test sends.
struct ScriptedTimer {
    timer: DurableTimer,
    begun: mpsc::Receiver<u32>,
    outcome: mpsc::Sender<Result<(), Retry>>,
    /// Has a value after the outcome of a handler was sent to the keeper.
    ended: mpsc::Receiver<()>,
}

impl ScriptedTimer {
    fn open(database: &Database) -> Self {
        let (sender, begun) = mpsc::channel();
        let (outcome, outcomes) = mpsc::channel();
        let outcomes = Mutex::new(outcomes);
        let asks = move |due: &Due<()>| {
            sender.send(due.attempt())?;
            outcomes.lock().unwrap().recv()?
        };
        let (ends, ended) = mpsc::channel();
        let executor = move |task: Task| {
            let ends = ends.clone();
            std::thread::spawn(move || {
                task.run();
                ends.send(())
            });
        };
        let store = PostgresStore::new(&database.url()).unwrap().lease(LEASE * 10);
        let timer = DurableTimer::builder().executor(executor).topic(t(), asks).open(store).wait().unwrap();
        Self { timer, begun, outcome, ended }
    }

    /// Occupies the keeper while `send` sends messages, so that they become one batch.
    fn in_one_batch<R>(&self, send: impl FnOnce() -> R) -> R {
        let (occupied, is_occupied) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let waker = Arc::new(Occupying(Mutex::new((occupied, released)))).into();
        // If the answer is there before the future waits, nothing wakes.
        let _call = loop {
            let mut call = Box::pin(self.timer.cancel(t::<()>(), "none"));
            if call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                break call;
            }
        };
        is_occupied.recv_timeout(PATIENCE).unwrap();
        let result = send();
        release.send(()).unwrap();
        result
    }

    /// Waits until the timeout has begun, and returns the number of parts that shared the commit of
    /// another part so far.
    fn shared_commits(&self, attempt: u32) -> u64 {
        assert_eq!(self.begun.recv_timeout(PATIENCE), Ok(attempt));
        let stats = self.timer.stats();
        stats.operations - stats.commits
    }
}

#[test]
fn a_reset_beside_a_retry_of_its_timeout_is_kept() {
    let Some(database) = Database::create() else { return };
    let scripted = ScriptedTimer::open(&database);
    scripted.timer.schedule(t(), Schedule::after(Duration::ZERO).key("k"), &()).wait().unwrap();
    assert_eq!(scripted.shared_commits(1), 0);
    let reset = scripted.in_one_batch(|| {
        scripted.outcome.send(Err(Retry::after(Duration::from_secs(3_600)).because("later"))).unwrap();
        scripted.ended.recv_timeout(PATIENCE).unwrap();
        scripted.timer.reset(t::<()>(), "k", Duration::from_millis(100))
    });
    // The reset finds an attempt that runs, so the store executes it again after the retry.
    assert_eq!(reset.wait().unwrap(), ResetAnswer::Reset);
    assert_eq!(scripted.shared_commits(2), 1, "the reset and the retry");
    scripted.outcome.send(Ok(())).unwrap();
}

#[test]
fn an_earlier_insert_beside_a_reset_by_id_is_kept() {
    let Some(database) = Database::create() else { return };
    let scripted = ScriptedTimer::open(&database);
    let day = Duration::from_secs(86_400);
    let id = scripted.timer.schedule(t(), Schedule::after(day).key("k"), &()).wait().unwrap().id();
    let (insert, reset) = scripted.in_one_batch(|| {
        let soon = Duration::from_millis(100);
        let insert = scripted.timer.schedule(t(), Schedule::after(soon).key("k").if_pending(IfPending::Earlier), &());
        (insert, scripted.timer.reset_by_id(id, day / 2))
    });
    // The store executes inserts that meet another row last.
    assert_eq!(insert.wait().unwrap(), ScheduleAnswer::Moved(id));
    assert_eq!(reset.wait().unwrap(), ResetAnswer::Reset);
    assert_eq!(scripted.shared_commits(1), 1, "the insert and the reset");
    scripted.outcome.send(Ok(())).unwrap();
}

#[test]
fn a_renewal_that_fails_is_repeated_after_a_pause() {
    let Some(database) = Database::create() else { return };
    let timer = open(&database, DurableTimer::builder().topic(Topic::new("topic"), |_: &Due<String>| Ok(())));
    database.sql(
        "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
         create trigger refuse before update on timer.node for each row execute function refuse()",
    );
    std::thread::park_timeout(2 * LEASE);
    let before = timer.stats().store_errors;
    std::thread::park_timeout(2 * LEASE);
    assert!((1..60).contains(&(timer.stats().store_errors - before)), "renewals in two leases");
}

#[test]
fn attempts_that_sql_completes_are_done() {
    let Some(database) = Database::create() else { return };
    let server = database.server.clone();
    let name = database.name.clone();
    let (sender, completed) = mpsc::channel();
    let complete = move |due: &Due<()>| {
        sender.send(server.sql(&name, &format!("select timer.complete('{}', {})", due.id(), due.attempt())))?;
        Ok(())
    };
    let timer = open(&database, DurableTimer::builder().topic(t(), complete));
    timer.new_timeout(t(), Duration::ZERO, &()).wait().unwrap();
    let soon = Duration::from_millis(100);
    timer.schedule(t(), Schedule::after(soon).key("k").every(soon), &()).wait().unwrap();
    (0..4).for_each(|_| assert_eq!(completed.recv_timeout(PATIENCE).unwrap(), "t"));
    timer.stop(PATIENCE).wait().unwrap();
    let stats = timer.stats();
    assert_eq!((stats.done, stats.refused), (stats.begun, 0));
}

#[test]
fn lateness_on_a_server_is_explained() {
    let Some(database) = Database::create() else { return };
    timer_durable_tests::explained::check(|builder| open(&database, builder));
}
