//! A child process that runs `timeouts`, and the threads that talk to it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::account::Account;

/// The commands that may wait for an answer at a time.
const MAX_UNANSWERED: usize = 64;

/// The options of a child.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) store: PathBuf,
    /// Whether the store is a redb file instead of an SQLite file.
    pub(crate) is_redb: bool,
    /// How long each handler takes.
    pub(crate) handler: Duration,
    /// The variables of the shim. Empty if the child runs without it.
    pub(crate) shim: Vec<(&'static str, String)>,
    /// The largest file that the child may write, in units of 512 bytes.
    pub(crate) file_limit: Option<u32>,
}

impl Options {
    pub(crate) fn command(&self) -> Command {
        let program = env!("CARGO_BIN_EXE_timeouts");
        let mut command = if let Some(limit) = self.file_limit {
            // A write beyond the limit has to fail instead of killing the process.
            let mut shell = Command::new("sh");
            shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\""), program]);
            shell
        } else {
            Command::new(program)
        };
        let kind = if self.is_redb { "redb" } else { "sqlite" };
        command.arg("--store").arg(format!("{kind}:{}", self.store.display()));
        command.arg("--handler-ms").arg(self.handler.as_millis().to_string());
        if !self.shim.is_empty() {
            let library = crate::shim::library().expect("the caller has asked for the library before");
            command.env("LD_PRELOAD", library).envs(self.shim.iter().map(|(name, value)| (*name, value)));
        }
        command
    }
}

/// The account of a store, and the commands that the current child has not answered.
#[derive(Default)]
pub(crate) struct Ledger {
    account: Mutex<Account>,
    calls: Mutex<Calls>,
    answered: Condvar,
}

#[derive(Default)]
struct Calls {
    unanswered: usize,
    is_over: bool,
}

const POISONED: &str = "another thread of the test has failed";

impl Ledger {
    pub(crate) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().expect(POISONED)
    }

    /// Waits until fewer than [`MAX_UNANSWERED`] commands are unanswered. Returns `false` if the
    /// child is dead or does not answer for ten seconds.
    fn wait_for_room(&self) -> bool {
        let is_full = |calls: &mut Calls| !calls.is_over && calls.unanswered >= MAX_UNANSWERED;
        let waited = self.answered.wait_timeout_while(self.calls(), Duration::from_secs(10), is_full);
        let (mut calls, wait) = waited.expect(POISONED);
        calls.unanswered += 1;
        !calls.is_over && !wait.timed_out()
    }

    fn note_answer(&self) {
        let mut calls = self.calls();
        calls.unanswered = calls.unanswered.saturating_sub(1);
        self.answered.notify_all();
    }

    /// Notes that the output of the child has ended. Its input may still be open for a moment.
    fn note_end(&self) {
        self.calls().is_over = true;
        self.answered.notify_all();
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().expect(POISONED)
    }
}

/// A running child. Its output goes into the account of the ledger.
pub(crate) struct Running {
    child: Child,
    input: Option<ChildStdin>,
    reader: Option<JoinHandle<()>>,
    ledger: Arc<Ledger>,
    handler: Duration,
}

impl Running {
    pub(crate) fn start(options: &Options, ledger: &Arc<Ledger>) -> Self {
        let mut command = options.command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("timeouts starts");
        *ledger.calls() = Calls::default();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let heard = ledger.clone();
        let reader = std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if heard.account().hears(&line) {
                    heard.note_answer();
                }
            }
            heard.note_end();
        });
        let input = child.stdin.take();
        Self { child, input, reader: Some(reader), ledger: ledger.clone(), handler: options.handler }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line. Returns `false` if the child is dead or hangs.
    pub(crate) fn send(&mut self, line: &str) -> bool {
        let Some(input) = self.input.as_mut().filter(|_| self.ledger.wait_for_room()) else { return false };
        input.write_all(format!("{line}\n").as_bytes()).is_ok()
    }

    /// Sends a line that has no answer.
    pub(crate) fn tell(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            _ = input.write_all(format!("{line}\n").as_bytes());
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Kills the child and waits until its last line is read.
    pub(crate) fn kill(mut self) {
        let killed = Instant::now();
        _ = self.child.kill();
        self.finish(killed);
    }

    /// Waits for the end of a child that ends by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        self.input = None;
        let status = self.child.wait().expect("a child");
        // A kill by the shim is no later than this.
        self.finish(Instant::now());
        status
    }

    fn finish(&mut self, killed: Instant) {
        self.input = None;
        _ = self.child.wait();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader");
        }
        self.ledger.account().child_died(killed, self.handler);
    }
}

/// Sends a signal by the command of every Unix.
pub(crate) fn signal(process: u32, name: &str) {
    let status = Command::new("kill").args([format!("-{name}"), process.to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill -{name} {process}");
}
