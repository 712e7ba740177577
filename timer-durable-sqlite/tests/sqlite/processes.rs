//! Promises that need several processes or a runtime. A child is this test again, with a variable
//! that names its folder.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, Topic};
use timer_durable_sqlite::SqliteStore;

use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const PATIENCE: Duration = Duration::from_secs(60);

/// The variable that makes a test a child, with the folder of its parent.
pub(crate) const CHILD: &str = "TIMER_DURABLE_CHILD";

/// Returns a command that runs a test as a child process.
pub(crate) fn child(test: &str, folder: &Folder) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads", "1"]).env(CHILD, folder.path());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn open(file: &Path, handle: impl Fn(&Due<String>) -> Result<(), Retry> + Send + Sync + 'static) -> DurableTimer {
    let topic = Topic::new("t").attempts(3).backoff(Duration::from_millis(1), Duration::from_millis(1));
    let builder = DurableTimer::builder().topic(topic, handle);
    // One attempt at a time, because all that run in a process die with it.
    builder.max_running(1).open(SqliteStore::open(file).unwrap()).wait().unwrap()
}

/// A handler that ends its process counts its attempts, is buried after the last one, and harms no
/// other timeout.
#[test]
fn a_handler_that_ends_the_process_is_buried() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let file = Path::new(&folder).join("timeouts.db");
        let timer = open(&file, |due| if due.payload() == "deadly" { std::process::abort() } else { Ok(()) });
        // The last process leaves this loop. The handler ends the others in it.
        while timer.counts().wait().unwrap().pending > 0 {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        return;
    }
    let folder = Folder::new();
    let timer = DurableTimer::builder()
        .topic_elsewhere(t::<()>())
        .open(SqliteStore::open(folder.file()).unwrap())
        .wait()
        .unwrap();
    // Due when this process has no timer any more.
    let delay = Duration::from_secs(1);
    timer.new_timeout(t(), delay, &"deadly".to_owned()).wait().unwrap();
    timer.new_timeout(t(), delay, &"harmless".to_owned()).wait().unwrap();
    timer.stop(PATIENCE).wait().unwrap();
    drop(timer);
    let mut starts = 0;
    let name = "processes::a_handler_that_ends_the_process_is_buried";
    while !child(name, &folder).status().unwrap().success() {
        starts += 1;
        assert!(starts < 10, "it still ends its process");
    }
    assert_eq!(starts, 3, "as often as the topic has attempts");
    let timer = open(&folder.file(), |_| Ok(()));
    let letters = timer.dead_letters(None, None, 9).wait().unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!((&*letters[0].payload, &*letters[0].reason), (&b"deadly"[..], "no end after 3 attempts"));
}
