//! Checks of timeouts in the user's own transaction, for any driver of PostgreSQL.
//!
//! A driver is a function that takes steps in a transaction. The module `drivers` has them.

use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, Instant};

use timer_durable::{
    Done, Due, DurableTimer, IfPending, Payload, PayloadError, Retry, Schedule, Topic, WeakDurableTimer,
};
use timer_durable_postgres::PostgresStore;

use crate::drivers::DRIVERS;
use timer_durable_tests::postgres_server::{self, Server};

/// The topic of the orders, whose payload is the number of the order.
pub(crate) const CLOSE: Topic<String> =
    Topic::new("order.close").attempts(1_000_000).backoff(Duration::from_millis(1), Duration::from_millis(5));

/// A topic whose payload cannot be encoded.
pub(crate) const BROKEN: Topic<Broken> = Topic::new("order.broken");

pub(crate) struct Broken;

impl Payload for Broken {
    const FORMAT: i16 = 100;

    fn encode(&self) -> Result<Vec<u8>, PayloadError> {
        Err(PayloadError::new("it is broken"))
    }

    fn decode(_: Vec<u8>, _: i16) -> Result<Self, PayloadError> {
        Ok(Self)
    }
}

const PATIENCE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A step in a transaction.
pub(crate) enum Step<'s> {
    Sql(String),
    /// Schedules a timeout with this payload.
    Schedule(Schedule, String),
    /// Schedules a timeout whose payload cannot be encoded.
    ScheduleBroken,
    Cancel(&'s str),
    Reset(&'s str, Duration),
    Complete(&'s Due<String>),
}

/// The end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Commit,
    RollBack,
}

/// Takes the steps in one transaction on a new connection. Returns the answers.
pub(crate) type Driver = fn(&str, Vec<Step<'_>>, End) -> Result<Vec<String>, String>;

/// Takes steps by the calls of a driver. `$execute` executes a text without an answer, and `$wait`
/// is `.await` for an asynchronous driver.
#[macro_export]
macro_rules! take_steps {
    ($steps:expr, $tx:expr, |$sql:ident| $execute:expr, $($wait:tt)*) => {{
        use $crate::in_transaction::{BROKEN, Broken, CLOSE, Step};
        use timer_durable_postgres::prelude::*;
        let mut answers = Vec::new();
        for step in $steps {
            answers.push(match step {
                Step::Sql($sql) => {
                    $execute;
                    String::new()
                }
                Step::Schedule(schedule, payload) => {
                    format!("{:?}", CLOSE.schedule_in($tx, schedule, &payload)$($wait)*?)
                }
                Step::ScheduleBroken => {
                    let soon = timer_durable::Schedule::after(std::time::Duration::ZERO);
                    format!("{:?}", BROKEN.schedule_in($tx, soon, &Broken)$($wait)*?)
                }
                Step::Cancel(key) => format!("{:?}", CLOSE.cancel_in($tx, key)$($wait)*?),
                Step::Reset(key, delay) => format!("{:?}", CLOSE.reset_in($tx, key, delay)$($wait)*?),
                Step::Complete(due) => format!("{:?}", due.complete_in($tx)$($wait)*?),
            });
        }
        answers
    }};
}

/// Runs a check for each driver.
fn with_each(check: fn(Driver)) {
    std::thread::scope(|scope| {
        for (name, driver) in DRIVERS {
            std::thread::Builder::new().name((*name).to_owned()).spawn_scoped(scope, || check(*driver)).unwrap();
        }
    });
}

#[test]
fn an_order_and_its_timeout_are_written_together() {
    with_each(schedules);
}

#[test]
fn an_attempt_ends_with_the_transaction() {
    with_each(ends);
}

#[test]
fn a_handler_that_is_cut_off_has_its_follow_ups() {
    with_each(follows);
}

/// Processes place orders and close them, each in one transaction with its timeout. They are killed
/// at random moments. Every order is closed once, and none that was rolled back.
#[test]
fn kills_lose_and_repeat_nothing() {
    if let Ok(child) = std::env::var(CHILD) {
        let words: Vec<&str> = child.split(' ').collect();
        let [role, name, url] = words[..] else { panic!("{child}") };
        let (_, driver) = DRIVERS.iter().find(|(driver, _)| *driver == name).unwrap();
        return if role == "place" { place_orders(*driver, url) } else { close_orders(*driver, url.to_owned()) };
    }
    std::thread::scope(|scope| DRIVERS.iter().for_each(|(name, _)| _ = scope.spawn(|| ledger(name))));
}

/// A separate database with the tables of a shop.
struct Shop {
    server: Arc<Server>,
    name: String,
    url: String,
}

impl Shop {
    fn create() -> Option<Self> {
        let server = postgres_server::shared()?;
        let name = server.create_database();
        let url = server.url(&name);
        PostgresStore::install(&url).wait().unwrap();
        let shop = Self { server, name, url };
        shop.sql("create table orders(number text primary key); create table closed(number text)");
        Some(shop)
    }

    fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.name, statements)
    }
}

fn open(url: &str, handler: impl Fn(&Due<String>) -> Result<(), Retry> + Send + Sync + 'static) -> DurableTimer {
    // A process takes over from the one before without waiting for its lease.
    let store = PostgresStore::new(url).unwrap().node("owner");
    DurableTimer::builder().topic(CLOSE, handler).open(store).wait().unwrap()
}

fn place(number: &str) -> Step<'static> {
    Step::Sql(format!("insert into orders values ('{number}')"))
}

fn soon(number: &str) -> Step<'static> {
    Step::Schedule(Schedule::after(Duration::ZERO).key(number), number.to_owned())
}

fn schedules(driver: Driver) {
    let Some(shop) = Shop::create() else { return };
    let (sender, fired) = mpsc::channel();
    let timer = open(&shop.url, move |due| Ok(sender.send(due.payload().clone())?));
    driver(&shop.url, vec![place("1"), soon("1")], End::RollBack).unwrap();
    driver(&shop.url, vec![place("2"), soon("2")], End::Commit).unwrap();
    assert_eq!(fired.recv_timeout(PATIENCE).unwrap(), "2");
    assert_eq!(shop.sql("select number from orders"), "2");

    let later = |delay: Duration, if_pending| {
        Step::Schedule(Schedule::after(delay).key("3").if_pending(if_pending), "3".to_owned())
    };
    let steps = vec![
        later(HOUR, IfPending::Keep),
        later(HOUR * 2, IfPending::Keep),
        later(HOUR * 2, IfPending::Later),
        Step::Reset("3", HOUR),
        Step::Cancel("3"),
        Step::Cancel("3"),
        Step::Reset("3", HOUR),
    ];
    let answers = driver(&shop.url, steps, End::Commit).unwrap();
    let kinds: Vec<&str> = answers.iter().map(|answer| answer.split('(').next().unwrap()).collect();
    assert_eq!(kinds, ["Created", "Kept", "Moved", "Reset", "Cancelled", "Unknown", "Unknown"]);
    assert_eq!(answers[0].replace("Created", "Kept"), answers[1]);

    // A delay counts from the call and not from the begin of the transaction.
    let call = |step| {
        let called = "insert into closed select (extract(epoch from clock_timestamp()) * 1000000)::bigint";
        let work = ["select pg_sleep(0.05)", called].map(|sql| Step::Sql(sql.to_owned()));
        driver(&shop.url, work.into_iter().chain(step).collect(), End::Commit).unwrap();
        let early = "select count(*) from timer.timeout, closed where due < number::bigint + 3600000000";
        assert_eq!(shop.sql(&format!("{early}; delete from closed")), "0");
    };
    call(vec![later(HOUR, IfPending::Keep)]);
    call(vec![Step::Reset("3", HOUR)]);

    let all = Schedule::at(std::time::UNIX_EPOCH + HOUR).every(HOUR).max_lateness(HOUR * 9).key("4");
    driver(&shop.url, vec![Step::Schedule(all, "4".to_owned())], End::Commit).unwrap();
    let rules = "select payload, format, due, period, max_lateness from timer.timeout where key = '4'";
    // The time is long over, so the first run has expired and a later one is planned.
    let row = shop.sql(rules);
    assert!(row.starts_with("\\x34|2|") && row.ends_with("|3600000000|32400000000"), "{row}");

    let debounced = Schedule::debounce(HOUR * 2).cap(HOUR).key("5");
    driver(&shop.url, vec![Step::Schedule(debounced, "5".to_owned())], End::Commit).unwrap();
    let left = "select round((due - timer.now()) / 6e7) from timer.timeout where key = '5'";
    assert_eq!(shop.sql(left), "60", "it is due at its cap");

    let refused = vec![later(HOUR, IfPending::Keep), later(HOUR, IfPending::Refuse)];
    let error = driver(&shop.url, refused, End::Commit).unwrap_err();
    assert!(error.contains("the key has a pending timeout"), "{error}");
    let error = driver(&shop.url, vec![Step::ScheduleBroken], End::Commit).unwrap_err();
    assert!(error.contains("it is broken"), "{error}");
    timer.stop(PATIENCE).wait().unwrap();
    assert!(fired.try_recv().is_err(), "nothing runs after a rollback");
}

fn ends(driver: Driver) {
    let Some(shop) = Shop::create() else { return };
    let (sender, fired) = mpsc::channel();
    let url = shop.url.clone();
    let timer = open(&shop.url, move |due| {
        // The first attempt rolls back, and the second one is no longer the last one.
        let end = if due.attempt() == 1 { End::RollBack } else { End::Commit };
        let mut steps = vec![Step::Sql(format!("insert into closed values ('{}')", due.attempt()))];
        if due.attempt() == 2 {
            steps.insert(0, Step::Sql("update timer.timeout set attempt = 3".to_owned()));
            steps.push(Step::Complete(due));
        }
        steps.push(Step::Complete(due));
        let result = driver(&url, steps, end);
        sender.send((due.attempt(), result.clone())).unwrap();
        // After a rollback, an `Ok` does not end the timeout.
        result.map(drop).map_err(Retry::new)
    });
    driver(&shop.url, vec![soon("1")], End::Commit).unwrap();
    assert!(fired.recv_timeout(PATIENCE).unwrap().1.is_ok());
    let (attempt, result) = fired.recv_timeout(PATIENCE).unwrap();
    assert!(
        attempt == 2 && result.as_ref().is_err_and(|error| error.contains("is not the one that runs")),
        "{result:?}"
    );
    assert!(fired.recv_timeout(PATIENCE).unwrap().1.is_ok());
    let stop = timer.stop(PATIENCE).wait().unwrap();
    assert_eq!((stop.unfinished, timer.stats().refused, timer.stats().done), (0, 0, 1));
    assert_eq!(
        (shop.sql("select number from closed"), shop.sql("select count(*) from timer.timeout")),
        ("3".to_owned(), "0".to_owned())
    );
}

/// A handler commits the end of its attempt, and is cut off before it returns. The connection
/// breaks while its first follow-up is written.
fn follows(driver: Driver) {
    const NEXT: Topic<String> = Topic::new("order.next");
    let Some(shop) = Shop::create() else { return };
    shop.sql(
        "create sequence public.follow_ups;
         create function break_first() returns trigger language plpgsql as $$ begin
             if new.topic = 'order.next' and nextval('public.follow_ups') = 1 then
                 perform pg_terminate_backend(pg_backend_pid());
             end if;
             return new;
         end $$;
         create trigger break_first before insert on timer.timeout for each row execute function break_first()",
    );
    let (sender, ran) = mpsc::channel();
    let url = shop.url.clone();
    let own = Arc::<OnceLock<WeakDurableTimer>>::default();
    let of_key = sender.clone();
    let handle = own.clone();
    let close = move |due: &Due<String>| {
        let number = due.payload();
        let timer = handle.get().unwrap().upgrade().unwrap();
        if number.starts_with("same key") {
            return of_key.send(number.clone()).map(|()| Done::new()).map_err(Retry::new);
        }
        timer.schedule(CLOSE, Schedule::after(Duration::ZERO).key(number), &format!("same key, {number}")).wait()?;
        let mut steps = vec![Step::Complete(due)];
        if number == "cut off before the commit" {
            steps.push(Step::Sql("select pg_sleep(0.5)".to_owned()));
        }
        driver(&url, steps, End::Commit).map_err(Retry::new)?;
        while number == "cut off after the commit" && timer.stats().done == 0 {
            std::thread::yield_now();
        }
        Ok(Done::then(NEXT, Schedule::after(Duration::ZERO), number))
    };
    let timer = DurableTimer::builder()
        .topic(CLOSE, close)
        .time_limit(Duration::from_millis(100))
        .topic(NEXT, move |due: &Due<String>| sender.send(due.payload().clone()).map_err(Retry::new))
        .open(PostgresStore::new(&shop.url).unwrap())
        .wait()
        .unwrap();
    own.set(timer.downgrade()).unwrap();
    for number in ["cut off after the commit", "cut off before the commit"] {
        driver(&shop.url, vec![soon(number)], End::Commit).unwrap();
        let mut payloads = [(); 2].map(|()| ran.recv_timeout(PATIENCE).unwrap());
        payloads.sort_unstable();
        assert_eq!(payloads, [number, &format!("same key, {number}")]);
    }
    let stats = timer.stats();
    assert!(stats.timed_out >= 2 && stats.rejoins >= 1, "{stats:?}");
}

/// The variable that makes a test a child, with its role, its driver and the URL.
const CHILD: &str = "TIMER_DURABLE_IN_TRANSACTION";

fn ledger(driver: &str) {
    let Some(shop) = Shop::create() else { return };
    let start = |role: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "in_transaction::kills_lose_and_repeat_nothing";
        command.args(["--exact", test, "--nocapture"]).env(CHILD, format!("{role} {driver} {}", shop.url));
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let kill = |child: &mut Child| {
        child.kill().unwrap();
        child.wait().unwrap();
    };
    let kills = std::env::var("TIMER_LEDGER_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let mut placing = start("place");
    let mut closing = start("close");
    for n in 0..kills {
        std::thread::park_timeout(Duration::from_millis(fastrand::u64(100..700)));
        let (child, role) = if n % 2 == 0 { (&mut placing, "place") } else { (&mut closing, "close") };
        kill(child);
        *child = start(role);
    }
    let begun = Instant::now();
    while shop.sql("select count(*) >= 10 from orders") == "f" {
        assert!(begun.elapsed() < PATIENCE, "orders are placed");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    kill(&mut placing);
    while shop.sql("select count(*) from timer.timeout where ended is null") != "0" {
        assert!(begun.elapsed() < PATIENCE * 2, "{}", shop.sql("select * from timer.timeout limit 3"));
        std::thread::park_timeout(Duration::from_millis(50));
    }
    kill(&mut closing);
    let [orders, closed, distinct, unknown] = [
        "select count(*) from orders",
        "select count(*) from closed",
        "select count(distinct number) from closed",
        "select count(*) from closed where number not in (select number from orders)",
    ]
    .map(|query| shop.sql(query).parse::<u64>().unwrap());
    println!("{driver}: {orders} orders, {closed} closed, {kills} kills");
    assert_eq!((closed, distinct, unknown), (orders, orders, 0), "closed, distinct, and rolled back");
}

fn place_orders(driver: Driver, url: &str) {
    let process = std::process::id();
    for n in 0.. {
        let number = format!("{process}-{n}");
        let end = if n % 3 == 2 { End::RollBack } else { End::Commit };
        // The server may be gone after the parent.
        if driver(url, vec![place(&number), soon(&number)], end).is_err() {
            return;
        }
    }
}

fn close_orders(driver: Driver, url: String) {
    let database = url.clone();
    let _timer = open(&database, move |due| {
        let close = Step::Sql(format!("insert into closed values ('{}')", due.payload()));
        let end = if fastrand::u8(..4) == 0 { End::RollBack } else { End::Commit };
        driver(&url, vec![close, Step::Complete(due)], end).map(drop).map_err(Retry::new)
    });
    // The parent kills this process. If the parent itself is killed, the process ends here.
    std::thread::park_timeout(PATIENCE * 4);
}
