//! Several processes that run `timeouts` on one database.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::account::Account;
use timer_durable_tests::postgres_server::{Server, send};

/// The commands to one process that may wait for an answer at a time. A few are enough for batches
/// of several, and leave most of the CPU to other tests.
const MAX_UNANSWERED: i64 = 16;

/// The lease of the nodes in seconds, unless the test sets another one.
pub(crate) const LEASE: u64 = 1;

/// A running process.
pub(crate) struct Node {
    number: usize,
    child: Child,
    input: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
    unanswered: Arc<AtomicI64>,
}

impl Node {
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line unless too many wait for an answer. Returns `false` if it was not sent.
    fn send(&mut self, line: &str) -> bool {
        // ORDERING: Relaxed, the number only limits how far the test runs ahead.
        if self.unanswered.load(Ordering::Relaxed) >= MAX_UNANSWERED {
            return false;
        }
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        self.tell(line)
    }

    /// Sends a line that has no answer.
    pub(crate) fn tell(&mut self, line: &str) -> bool {
        self.input.as_mut().is_some_and(|input| input.write_all(format!("{line}\n").as_bytes()).is_ok())
    }

    fn wait(mut self) -> bool {
        self.input = None;
        let is_success = self.child.wait().expect("a child").success();
        self.reader.take().expect("a reader").join().expect("the reader");
        is_success
    }
}

/// The nodes of a test, their account, and a stream of random commands.
pub(crate) struct Cluster {
    url: String,
    /// The names of the nodes begin with it.
    name: String,
    /// The lease in seconds.
    lease: u64,
    /// The time in milliseconds that handlers take on the nodes that start from now on.
    pub(crate) handler: u64,
    account: Arc<Mutex<Account>>,
    pub(crate) random: Rng,
    pub(crate) nodes: Vec<Node>,
    started: usize,
    /// The numbers of processes that have lost something by a fault.
    faulty: Vec<usize>,
    next_key: u64,
    recent: Vec<String>,
}

impl Cluster {
    pub(crate) fn new(url: String, size: usize) -> Self {
        Self::with_lease(url, size, LEASE)
    }

    pub(crate) fn with_lease(url: String, size: usize, lease: u64) -> Self {
        let seed = std::env::var("TIMER_LEDGER_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        println!("seed {seed}");
        let mut cluster = Self {
            url,
            name: format!("{seed:x}-"),
            lease,
            handler: 0,
            account: Arc::default(),
            random: Rng::with_seed(seed),
            nodes: Vec::new(),
            started: 0,
            faulty: Vec::new(),
            next_key: 0,
            recent: Vec::new(),
        };
        (0..size).for_each(|_| cluster.start(&[]));
        cluster
    }

    pub(crate) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().expect("another thread of the test has failed")
    }

    /// Starts one more process.
    pub(crate) fn start(&mut self, environment: &[(&str, String)]) {
        let number = self.started;
        self.started += 1;
        let mut command = Command::new(env!("CARGO_BIN_EXE_timeouts"));
        command.args(["--store", &self.url, "--ttl", &self.lease.to_string()]);
        command.args(["--node", &format!("{}{number}", self.name)]);
        command.args(["--handler-ms", &self.handler.to_string()]);
        command.envs(environment.iter().map(|(name, value)| (*name, value)));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("timeouts starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let account = self.account.clone();
        let unanswered = Arc::new(AtomicI64::new(0));
        let answered = unanswered.clone();
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if account.lock().expect("the test has failed").hears(number, &line) {
                    answered.fetch_sub(1, Ordering::Relaxed);
                }
            }
        });
        let input = child.stdin.take();
        self.nodes.push(Node { number, child, input, reader: Some(reader), unanswered });
    }

    /// Sends random commands to random nodes for `time`.
    pub(crate) fn load(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            if !self.send_one() {
                std::thread::park_timeout(Duration::from_millis(1));
            }
        }
    }

    fn send_one(&mut self) -> bool {
        let node = self.random.usize(..self.nodes.len());
        let choice = self.random.u8(..);
        if choice < 150 || self.recent.len() < 20 {
            let delay = if self.random.bool() { self.random.u64(0..100) } else { self.random.u64(0..3_000) };
            self.next_key += 1;
            let key = format!("k{}", self.next_key);
            self.account().asks_schedule(&key);
            self.recent.push(key.clone());
            if self.recent.len() > 400 {
                self.recent.drain(..200);
            }
            return self.nodes[node].send(&format!("schedule {key} {delay}"));
        }
        let index = self.random.usize(..self.recent.len());
        let key = self.recent.swap_remove(index);
        if choice < 205 {
            self.account().asks_cancel(&key);
            return self.nodes[node].send(&format!("cancel {key}"));
        }
        let delay = self.random.u64(0..600);
        self.nodes[node].send(&format!("reset {key} {delay}"))
    }

    /// Kills a node.
    pub(crate) fn kill(&mut self, index: usize) {
        let node = self.nodes.swap_remove(index);
        self.faulty.push(node.number);
        send("-KILL", node.id());
        node.wait();
    }

    /// Returns the name of a node.
    pub(crate) fn name(&self, index: usize) -> String {
        format!("{}{}", self.name, self.nodes[index].number)
    }

    /// Returns the index of the node with this name, unless it has ended.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        (0..self.nodes.len()).find(|index| self.name(*index) == name)
    }

    /// Freezes a node while `load` runs on the others.
    pub(crate) fn freeze(&mut self, index: usize, load: impl FnOnce(&mut Self)) {
        let node = self.nodes.swap_remove(index);
        self.faulty.push(node.number);
        send("-STOP", node.id());
        load(self);
        send("-CONT", node.id());
        self.nodes.push(node);
    }

    /// Notes a fault that affects all nodes.
    pub(crate) fn all_suffer(&mut self) {
        self.faulty.extend(self.nodes.iter().map(|node| node.number));
    }

    /// Waits until all nodes have joined. A node that cannot reach the server at its start ends.
    pub(crate) fn wait_until_joined(&self, server: &Server, database: &str) {
        let has_schema = || server.sql(database, "select to_regclass('timer.node') is not null") == "t";
        let joined = || server.sql(database, "select count(*) from timer.node where alive");
        let begun = Instant::now();
        while !has_schema() || joined() != self.nodes.len().to_string() {
            assert!(begun.elapsed() < Duration::from_secs(60), "not all nodes have joined");
            std::thread::park_timeout(Duration::from_millis(50));
        }
    }

    /// Asks a node to stop, unless it has ended at its start because the server did not answer.
    pub(crate) fn quit(&mut self, index: usize) {
        let mut node = self.nodes.swap_remove(index);
        if node.child.try_wait().expect("a child").is_some_and(|status| status.code() == Some(1)) {
            return;
        }
        node.tell("quit");
        assert!(node.wait(), "a node that stops exits with 0");
    }

    /// Waits until nothing is pending, stops all nodes, and returns the faults.
    pub(crate) fn settle(mut self, server: &Server, database: &str) -> Vec<String> {
        let begun = Instant::now();
        let pending = || -> u64 {
            let count = "select count(*) from timer.timeout where ended is null";
            server.sql(database, count).parse().expect("a number")
        };
        while (pending() > 0 || self.account().missing() > 0) && begun.elapsed() < Duration::from_secs(40) {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let rest = pending();
        while !self.nodes.is_empty() {
            self.quit(0);
        }
        // A node that has joined again, for example on a machine that stood still for a lease, does
        // not know which of its last results were written.
        let again = server.sql(database, "select name from timer.node group by name having count(*) > 1");
        println!("joined again: {:?}", again.lines().collect::<Vec<_>>());
        let numbers = again.lines().filter_map(|name| name.strip_prefix(&self.name)?.parse().ok());
        self.faulty.extend(numbers.collect::<Vec<usize>>());
        let healthy: Vec<usize> = (0..self.started).filter(|number| !self.faulty.contains(number)).collect();
        let mut faults = self.account().close(&healthy);
        if rest > 0 {
            faults.push(format!("{rest} timeouts are pending after {:?}", begun.elapsed()));
        }
        println!("{}", self.account().totals());
        faults
    }
}
