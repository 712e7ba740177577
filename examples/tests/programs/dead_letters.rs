use std::path::Path;
use std::process::Command;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, SqliteStore, Topic};

use super::{command_line, run_command};

const PROGRAM: &str = env!("CARGO_BIN_EXE_dead_letters");

const CLOSE: Topic<String> = Topic::new("close");

/// Writes this number of dead letters into a file.
fn bury(file: &Path, letters: u64) {
    let buries = |due: &Due<String>| -> Result<(), Retry> { Err(Retry::dead(format!("no shop {}", due.payload()))) };
    let timer = DurableTimer::builder().topic(CLOSE, buries).open(SqliteStore::open(file).unwrap()).unwrap();
    for letter in 0..letters {
        timer.new_timeout(CLOSE, Duration::ZERO, &letter.to_string()).unwrap();
    }
    while timer.stats().buried < letters {
        std::thread::yield_now();
    }
    timer.stop(Duration::from_secs(60)).unwrap();
}

/// Runs the program and returns its lines.
fn lines(store: &str, options: &[&str]) -> Vec<String> {
    let output = run_command(Command::new(PROGRAM).args(["--store", store]).args(options));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{options:?}: {error}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn letters_are_listed_requeued_and_purged() {
    let folder = std::env::temp_dir().join(format!("dead-letters-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("timeouts.db");
    let store = format!("sqlite:{}", file.display());
    bury(&file, 3);
    assert_eq!(lines(&store, &["--do", "count"]), ["3 dead letters"]);
    let listed = lines(&store, &[]);
    assert_eq!(listed.len(), 3, "{listed:?}");
    assert!(listed.iter().any(|line| line.ends_with(" close - attempt 1: no shop 2")), "{listed:?}");
    let id = listed[0].split(' ').next().unwrap();
    assert_eq!(lines(&store, &["--do", "requeue", "--id", id]), [format!("requeued {id}")]);
    assert_eq!(lines(&store, &["--do", "purge"]).len(), 2, "the others");
    assert_eq!(lines(&store, &["--do", "count"]), ["0 dead letters"]);

    let (sender, ran) = std::sync::mpsc::channel();
    let timer = DurableTimer::builder()
        .topic(CLOSE, move |due: &Due<String>| Ok(sender.send((due.id().to_string(), due.attempt()))?))
        .open(SqliteStore::open(&file).unwrap())
        .unwrap();
    assert_eq!(ran.recv_timeout(Duration::from_secs(60)).unwrap(), (id.to_owned(), 2), "it runs at the next start");
    drop(timer);

    let again = run_command(Command::new(PROGRAM).args(["--store", &store, "--do", "purge", "--id", id]));
    let error = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && error.contains("allowed: the id of a dead letter"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--do", "list"], "--store is missing; allowed: sqlite:FILE"),
            (&["--store", "mysql://localhost/shop"], "allowed: sqlite:FILE, postgres://URL"),
            (&["--store", "sqlite:a.db", "--do", "eat"], "list"),
            (&["--store", "sqlite:a.db", "--id", "17"], "allowed: 32 hexadecimal digits, a UUID, or all"),
        ],
    );
}
