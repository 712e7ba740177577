//! Tests that move timeouts of all kinds to a server of a newer version.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use timer_durable::store::Store;
use timer_durable::transaction::{Insert, Operation, Outcome, Target};
use timer_durable::{Due, DurableTimer, Retry, TimeoutId, Topic};
use timer_durable_postgres::PostgresStore;
use timer_durable_tests::postgres_server::Server;

use super::{LEASE, Node};

/// The number of timeouts of each kind.
const EACH: u32 = 1_000;

const PATIENCE: Duration = Duration::from_secs(120);

const TOPICS: [&str; 11] =
    ["pending", "later", "keyed", "running", "queued", "retried", "periodic", "dead", "paused", "cancelled", "foreign"];

/// All rows of the store, except for the numbers that a sequence has drawn.
const CONTENT: &str = "select md5(string_agg(row, '' order by row)) from (
    select t::text as row from timer.timeout t union all select 'node' || n from timer.node n
    union all select 'shard' || s from timer.shard s union all select 'meta' || m from timer.meta m
    union all select 'paused' || p from timer.paused p) rows";

/// The topic, the number and the attempt of each start of a handler.
type Ledger = Vec<(String, u32, u32)>;

/// A node that makes timeouts and is then killed.
struct Old<'a> {
    server: &'a Server,
    database: String,
    node: Node,
    begun: Ledger,
    /// The ids of the timeouts that were cancelled.
    cancelled: Vec<String>,
}

impl<'a> Old<'a> {
    fn join(server: &'a Server) -> Self {
        let database = server.create_database();
        let node = super::join(&server.url(&database), |store| store.lease(5 * LEASE));
        server.sql(&database, "select timer.pause('paused')");
        Self { server, database, node, begun: Vec::new(), cancelled: Vec::new() }
    }

    fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.database, statements)
    }

    /// Schedules the timeouts with the numbers of one half.
    fn fill(&mut self, half: u32) {
        let series = format!("from generate_series({}, {}) n", half * EACH / 2 + 1, (half + 1) * EACH / 2);
        let schedule = |topic: &str, more: &str| {
            self.sql(&format!("select count(timer.schedule('{topic}', n::text, {more})) {series}"));
        };
        schedule("pending", "random() * interval '5 s'");
        schedule("later", "'365 days', traceparent => 'a'");
        schedule("keyed", "'365 days', n::text");
        schedule("queued", "'0', n::text");
        schedule("periodic", "'0', period => '1 hour'");
        ["running", "retried", "dead", "paused"].iter().for_each(|topic| schedule(topic, "'0'"));
        let server = self.server;
        let database = self.database.clone();
        let foreign = "select count(*) from timer.timeout where foreign_xid is not null";
        self.node.keep_up_until(|_| server.sql(&database, foreign) == "0");
        self.begin("running", half);
        self.begin("queued", half);
        let now = self.node.0.now();
        let retry = |id| Operation::Retry { id, attempt: 1, due: now + 3_000_000, forgive: false };
        self.end("retried", half, retry);
        let done = |id| Operation::Done { id, attempt: 1, next: Some(now + 2_000_000), then: Vec::new() };
        self.end("periodic", half, done);
        let bury = |id| Operation::Bury { id, attempt: 1, reason: "broken".to_owned(), next: None };
        self.end("dead", half, bury);
        let ids: Vec<TimeoutId> = (0..EACH / 2).map(|_| TimeoutId::new()).collect();
        let insert = |id: &TimeoutId| Operation::Insert(Insert::new(*id, now, "cancelled"));
        self.node.write(ids.iter().map(insert)).unwrap();
        self.node.write(ids.iter().map(|id| Operation::Cancel(Target::Id(*id)))).unwrap();
        self.cancelled.extend(ids.iter().map(ToString::to_string));
        // The calls are queued, and nobody has collected the last timeouts.
        let call = format!("(n + {EACH})::text, '0', n::text, 'replace'");
        self.sql(&format!("select count(timer.schedule('queued', {call})) {series}"));
        self.sql(&format!("select count(timer.schedule('foreign', n::text, '0')) {series}"));
    }

    /// Begins an attempt of each timeout of a topic in one half.
    fn begin(&mut self, topic: &str, half: u32) -> Vec<TimeoutId> {
        let number = "convert_from(payload, 'UTF8')::int";
        let rows = format!("from timer.timeout where topic = '{topic}' and ({number} - 1) / {} = {half}", EACH / 2);
        let ids = self.sql(&format!("select id {rows}"));
        let ids: Vec<TimeoutId> = ids.lines().map(|id| id.parse().unwrap()).collect();
        for outcome in self.node.write(ids.iter().map(|id| Operation::Begin(*id))).unwrap() {
            let Outcome::Begun(attempt) = outcome else { panic!("{topic}: {outcome:?}") };
            let number = String::from_utf8(attempt.payload).unwrap().parse().unwrap();
            self.begun.push((topic.to_owned(), number, attempt.attempt));
        }
        ids
    }

    fn end(&mut self, topic: &str, half: u32, end: impl Fn(TimeoutId) -> Operation) {
        let ids = self.begin(topic, half);
        let outcomes = self.node.write(ids.iter().map(|id| end(*id))).unwrap();
        assert!(outcomes.iter().zip(&ids).all(|(outcome, id)| *outcome == Outcome::Changed(*id)), "{outcomes:?}");
    }

    /// Ends the connection of the node, whose lease goes on.
    fn kill(self) -> Left {
        let content = self.sql(CONTENT);
        Left { database: self.database, content, begun: self.begun, cancelled: self.cancelled }
    }
}

/// The database that a node leaves behind.
struct Left {
    database: String,
    /// The result of [`CONTENT`].
    content: String,
    begun: Ledger,
    cancelled: Vec<String>,
}

impl Left {
    /// Waits until a server has the content, and asserts that each timeout ends there as it should.
    fn goes_on(self, server: &Server) {
        let sql = |statements: &str| server.sql(&self.database, statements);
        wait_until(|| sql(CONTENT) == self.content);
        let ledger = Arc::new(Mutex::new(self.begun));
        let timers = [(); 2].map(|()| open(&server.url(&self.database), &ledger));
        let one_answer = |call: &str, series: &str| sql(&format!("select string_agg(distinct {call}, ',') {series}"));
        let odd = format!("from generate_series(1, {EACH}, 2) n");
        assert_eq!(one_answer("timer.reset('keyed', n::text, '0')", &odd), "reset");
        assert_eq!(one_answer("timer.cancel('keyed', (n + 1)::text)", &odd), "cancelled");
        let dead = "from timer.dead where reason = 'broken' and convert_from(payload, 'UTF8')::int % 2 = 1";
        assert_eq!(one_answer("timer.requeue(id)", dead), "requeued");
        let ids = format!("from unnest('{{{}}}'::uuid[]) id", self.cancelled.join(","));
        sql(&format!("select count(timer.schedule('cancelled', ''::text, '0', id => id)) {ids}"));

        let mut expected = Ledger::new();
        let mut expect = |topic: &str, attempt: u32, numbers: &mut dyn Iterator<Item = u32>| {
            expected.extend(numbers.map(|number| (topic.to_owned(), number, attempt)));
        };
        ["running", "queued", "retried", "periodic", "dead"].iter().for_each(|topic| expect(topic, 1, &mut (1..=EACH)));
        ["pending", "foreign"].iter().for_each(|topic| expect(topic, 1, &mut (1..=EACH)));
        ["running", "retried", "periodic"].iter().for_each(|topic| expect(topic, 2, &mut (1..=EACH)));
        expect("queued", 1, &mut (EACH + 1..=2 * EACH));
        expect("keyed", 1, &mut (1..=EACH).step_by(2));
        expect("dead", 2, &mut (1..=EACH).step_by(2));
        has_begun(&ledger, &mut expected);
        sql("select timer.resume('paused')");
        expected.extend((1..=EACH).map(|number| ("paused".to_owned(), number, 1)));
        has_begun(&ledger, &mut expected);

        for timer in timers {
            assert_eq!(timer.stop(PATIENCE).wait().unwrap().unfinished, 0);
        }
        has_begun(&ledger, &mut expected);
        let rest = sql("select topic, state, count(*) from timer.pending group by 1, 2 order by 1");
        assert_eq!(rest, format!("later|pending|{EACH}\nperiodic|pending|{EACH}"));
        assert_eq!(sql("select count(*) from timer.dead"), (EACH / 2).to_string());
    }
}

/// Opens a timer whose handlers write into the ledger.
fn open(url: &str, ledger: &Arc<Mutex<Ledger>>) -> DurableTimer {
    let builder = TOPICS.iter().fold(DurableTimer::builder(), |builder, topic| {
        let ledger = ledger.clone();
        builder.topic(Topic::new(topic), move |due: &Due<String>| -> Result<(), Retry> {
            let number = due.payload().parse().unwrap_or_default();
            ledger.lock().unwrap().push((due.topic().to_owned(), number, due.attempt()));
            Ok(())
        })
    });
    // A lease that is over on a busy machine would repeat attempts.
    builder.open(PostgresStore::new(url).unwrap().lease(LEASE * 60)).wait().unwrap()
}

/// Waits until as many attempts have begun as are expected, and asserts that they are the same.
fn has_begun(ledger: &Mutex<Ledger>, expected: &mut Ledger) {
    wait_until(|| ledger.lock().unwrap().len() >= expected.len());
    let mut begun = ledger.lock().unwrap().clone();
    begun.sort_unstable();
    expected.sort_unstable();
    let difference = begun.iter().zip(&*expected).find(|(begun, expected)| begun != expected);
    assert_eq!((difference, begun.len()), (None, expected.len()), "begun, expected");
}

fn wait_until(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "nothing happens any more");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// Starts a server, and one of a newer version.
fn servers() -> Option<(Server, Server)> {
    let server = Server::start_for_tests()?;
    Some((server, Server::start_newer().expect("TIMER_POSTGRES_NEWER_BIN has a newer version")))
}

#[test]
#[ignore = "needs two versions of PostgreSQL: cargo xtask ci --step postgres-upgrade"]
fn pg_upgrade_keeps_timeouts_of_all_kinds() {
    let Some((mut server, mut newer)) = servers() else { return };
    let mut old = Old::join(&server);
    old.fill(0);
    old.fill(1);
    let left = old.kill();
    newer.upgrade_from(&mut server);
    left.goes_on(&newer);
}

#[test]
#[ignore = "needs two versions of PostgreSQL: cargo xtask ci --step postgres-upgrade"]
fn a_dump_keeps_timeouts_of_all_kinds() {
    let Some((server, newer)) = servers() else { return };
    let mut old = Old::join(&server);
    old.fill(0);
    old.fill(1);
    let left = old.kill();
    newer.execute("pg_dump", &["-f", "dump.sql", &server.url(&left.database)]);
    newer.sql("postgres", &format!("create database {}", left.database));
    newer.execute("psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "dump.sql", &newer.url(&left.database)]);
    left.goes_on(&newer);
}

/// The second half changes while the first one is copied.
#[test]
#[ignore = "needs two versions of PostgreSQL: cargo xtask ci --step postgres-upgrade"]
fn logical_replication_keeps_timeouts_of_all_kinds() {
    let Some((mut server, newer)) = servers() else { return };
    server.configure("wal_level = logical");
    let mut old = Old::join(&server);
    let name = old.database.clone();
    old.fill(0);
    newer.execute("pg_dump", &["--schema-only", "--schema=timer", "-f", "schema.sql", &server.url(&name)]);
    newer.sql("postgres", &format!("create database {name}"));
    newer.execute("psql", &["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", "schema.sql", &newer.url(&name)]);
    server.sql(&name, "create publication p for all tables");
    newer.sql(&name, &format!("create subscription s connection '{}' publication p", server.url(&name)));
    old.fill(1);
    let left = old.kill();
    wait_until(|| newer.sql(&name, CONTENT) == left.content);
    newer.sql(&name, "alter subscription s disable");
    newer.sql(&name, "drop subscription s");
    left.goes_on(&newer);
}

/// The copies of `meta` and `shard` fail, because the new database has rows of its own in them. The
/// new database is on the newer server if there is one.
#[test]
fn running_timeouts_go_on_behind_a_logical_replication() {
    let Some(mut server) = Server::start_for_tests() else { return };
    server.configure("wal_level = logical");
    let newer = Server::start_newer();
    let target = newer.as_ref().unwrap_or(&server);
    let old = server.create_database();
    let new = target.create_database();
    let mut node = Node(crate::connected(&server.url(&old)).unwrap());
    // Each start raises the epochs.
    (0..5).for_each(|_| node.0.rejoin().unwrap());
    let running = [(); 3].map(|()| node.insert());
    running.iter().for_each(|id| assert_eq!(node.attempt(*id).attempt, 1));
    drop(node);
    PostgresStore::install(&target.url(&new)).wait().unwrap();
    server.sql(&old, "create publication p for all tables");
    server.sql(&old, "select pg_create_logical_replication_slot('s', 'pgoutput')");
    let source = format!("host=127.0.0.1 port={} user=timer dbname={old}", server.port());
    target.sql(&new, &format!("create subscription s connection '{source}' publication p with (create_slot = false)"));
    wait_until(|| target.sql(&new, "select count(*) from timer.timeout") == "3");
    target.sql(&new, "alter subscription s disable");
    assert_eq!(target.sql(&new, "select distinct state from timer.pending"), "pending");
    let mut node = Node(crate::connected(&target.url(&new)).unwrap().lease(LEASE));
    node.0.rejoin().unwrap();
    node.keep_up_until(|node| node.shards() == 64);
    let mut pending = node.pending();
    pending.sort();
    assert_eq!(pending, running);
    running.iter().for_each(|id| assert_eq!(node.attempt(*id).attempt, 2));
}
