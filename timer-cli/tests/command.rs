//! The command on a file, beside its owner and alone, and on a server.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry, Schedule, Topic};
use timer_durable_postgres::PostgresStore;
use timer_durable_sqlite::SqliteStore;

const CLOSE: Topic<String> = Topic::new("close");
const DAY: Duration = Duration::from_secs(86_400);

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("timer-cli-{}", timer_durable::TimeoutId::new()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("timeouts.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn timer(file: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_timer")).arg("--store").arg(file).args(args).output().unwrap()
}

/// Runs the command and returns its lines. It has to succeed.
fn lines(file: &Path, args: &[&str]) -> Vec<String> {
    let output = timer(file, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn error(file: &Path, args: &[&str]) -> String {
    let output = timer(file, args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Opens a timer whose due timeouts become dead letters.
fn open(file: &Path) -> DurableTimer {
    let bury = |_: &Due<String>| -> Result<(), Retry> { Err(Retry::dead("no \u{1b}[31mshop")) };
    DurableTimer::builder().topic(CLOSE, bury).open(SqliteStore::open(file).unwrap()).wait().unwrap()
}

#[test]
fn a_file_is_shown_beside_its_owner_and_changed_without_it() {
    let folder = Folder::new();
    let file = folder.file();
    let owner = open(&file);
    for key in ["7/a", "7/b\u{1b}[2J", "8/c", "8/d"] {
        owner.schedule(CLOSE, Schedule::after(DAY).key(key), "pay\nload").wait().unwrap();
    }
    let shown = lines(&file, &["list", "--topic", "close", "--prefix", "7/"]);
    assert_eq!(shown.len(), 3, "{shown:?}");
    let place = |line: &str, text: &str| line.find(text).unwrap_or_else(|| panic!("{text} in {line}"));
    assert_eq!(place(&shown[0], "KEY"), place(&shown[1], "7/a"), "columns are aligned");
    assert!(shown[2].contains("7/b\\u{1b}[2J") && shown[2].contains("in 23h 59m"), "{}", shown[2]);
    let id = shown[1].split(' ').next().unwrap();
    let json = lines(&file, &["--json", "show", id]).remove(0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["id"], &json["key"], &json["payload"]["text"]), (&id.into(), &"7/a".into(), &"pay\nload".into()));
    assert_eq!(lines(&file, &["counts"]), ["4 pending or running, 0 dead"]);
    let refused = error(&file, &["cancel", "close", "7/a"]);
    assert!(refused.contains(&format!("in use by process {}", std::process::id())), "{refused}");
    owner.stop(DAY).wait().unwrap();
    drop(owner);

    assert_eq!(lines(&file, &["cancel", "--topic", "close", "--prefix", "7/"]), ["2 cancelled, 0 running or locked"]);
    assert!(lines(&file, &["cancel", "close", "8/c"])[0].starts_with("cancelled: "));
    assert!(error(&file, &["cancel", "close", "8/c"]).contains("no such timeout is pending"));
    assert!(lines(&file, &["run", "close", "8/d"])[0].starts_with("due now: "));
    assert_eq!(lines(&file, &["pause", "close"]), ["paused: close"]);
    let owner = open(&file);
    assert_eq!(owner.paused_topics().wait().unwrap(), ["close"]);
    drop(owner);
    assert_eq!(lines(&file, &["resume", "close"]), ["resumed: close"]);
    assert_eq!(open(&file).paused_topics().wait().unwrap(), [""; 0]);
}

#[test]
fn dead_letters_are_listed_requeued_and_purged() {
    let folder = Folder::new();
    let file = folder.file();
    let owner = open(&file);
    for key in ["a", "b", "c"] {
        owner.schedule(CLOSE, Schedule::after(Duration::ZERO).key(key), "").wait().unwrap();
    }
    while owner.stats().buried < 3 {
        std::thread::yield_now();
    }
    owner.stop(DAY).wait().unwrap();
    drop(owner);
    let shown = lines(&file, &["dead"]);
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert!(shown[1].contains("no \\u{1b}[31mshop"), "{}", shown[1]);
    let id = shown[1].split(' ').next().unwrap();
    for target in [&[id][..], &["close", "a"]] {
        let letter = lines(&file, &[&["show"], target].concat()).join("|");
        assert!(
            letter.contains("|state   dead letter; `timer requeue ") && letter.contains("|reason  no \\u{1b}"),
            "{letter}"
        );
    }
    assert!(error(&file, &["show", "close", "d"]).contains("no such timeout is pending, running or dead"));
    assert_eq!(lines(&file, &["requeue", id]), [format!("requeued: {id}")]);
    assert!(error(&file, &["purge", id]).contains("there is no such dead letter"));
    assert_eq!(lines(&file, &["dead", "--prefix", "b", "--older-than", "0s"]).len(), 2);
    for others in [["--topic", "other"], ["--prefix", "x"], ["--older-than", "1day"]] {
        assert_eq!(lines(&file, &[&["purge", "all"], &others[..]].concat()), ["0 purged"]);
    }
    assert_eq!(lines(&file, &["purge", "all"])[2..], ["2 purged"]);
    assert_eq!(lines(&file, &["requeue", "all"]), ["0 requeued"]);
    assert_eq!(lines(&file, &["pause", "no.such.topic"]), ["paused: no.such.topic, which has no timeouts now"]);
    assert_eq!(lines(&file, &["resume", "close"]), ["close was not paused"]);
    for args in [["list"], ["counts"], ["upgrade"]] {
        assert!(error(&folder.0, &args).contains("is a folder; allowed: a file"), "{args:?}");
    }
    assert_eq!(lines(&file, &["counts", "--json"]), ["{\"dead\":0,\"pending\":1}"]);
    assert!(error(&folder.0.join("none.db"), &["counts"]).contains("none.db"));
}

#[test]
fn a_requeue_says_that_the_key_is_taken() {
    let folder = Folder::new();
    let file = folder.file();
    let owner = open(&file);
    let new = |delay| owner.schedule(CLOSE, Schedule::after(delay).key("a"), "").wait().unwrap().id();
    let mut dead = [0, 1, 2].map(|n| {
        let id = new(Duration::ZERO);
        while owner.stats().buried <= n {
            std::thread::yield_now();
        }
        id.to_string()
    });
    dead.sort();
    let [first, second, third] = &dead;
    owner.stop(DAY).wait().unwrap();
    drop(owner);
    let output = timer(&file, &["requeue", "all"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("requeued: {first}\n1 requeued\n"));
    let refused = String::from_utf8(output.stderr).unwrap();
    assert!(refused.contains("2 stay dead, because other timeouts have their keys"), "{refused}");
    let refused = error(&file, &["requeue", second]);
    assert!(refused.contains(&format!("the timeout {first} has the key of the dead letter")), "{refused}");
    assert_eq!(lines(&file, &["requeue", second, "--without-key"]), [format!("requeued: {second}")]);
    assert_eq!(lines(&file, &["requeue", "all", "--without-key"])[0], format!("requeued: {third}"));
    assert_eq!(lines(&file, &["list", "--topic", "close", "--prefix", "a"]).len(), 2, "one has the key");
    assert_eq!(lines(&file, &["counts"]), ["3 pending or running, 0 dead"]);
    let misplaced = error(&file, &["purge", second, "--without-key"]);
    assert!(misplaced.contains("--without-key goes with requeue"), "{misplaced}");
}

#[test]
fn no_command_installs_the_schema() {
    let Some(server) = timer_durable_tests::postgres_server::shared() else { return };
    let name = server.create_database();
    let id = timer_durable::TimeoutId::new().to_string();
    let url = server.url(&name);
    for args in [&["list"][..], &["dead"], &["counts"], &["show", &id], &["cancel", &id], &["pause", "close"]] {
        let refused = error(Path::new(&url), args);
        assert!(refused.contains("has no schema of the store"), "{args:?}: {refused}");
    }
    assert_eq!(server.sql(&name, "select count(*) from pg_namespace where nspname = 'timer'"), "0");
    PostgresStore::install(&url).wait().unwrap();
    assert_eq!(lines(Path::new(&url), &["counts"]), ["0 pending or running, 0 dead"]);
    assert_eq!(lines(Path::new(&url), &["list"]).len(), 1);
    assert_eq!(lines(Path::new(&url), &["pause", "close"]), ["paused: close, which has no timeouts now"]);
}

#[test]
fn an_upgrade_changes_what_differs() {
    let folder = Folder::new();
    let file = folder.0.join("timeouts.db");
    assert!(error(&file, &["upgrade"]).contains("timeouts.db"), "it makes no file");
    drop(timer_durable_sqlite::SqliteStore::open(&file).unwrap());
    assert_eq!(lines(&file, &["upgrade"]), [""; 0]);
    let Some(server) = timer_durable_tests::postgres_server::shared() else { return };
    let name = server.create_database();
    let url = server.url(&name);
    assert!(error(Path::new(&url), &["upgrade"]).contains("has no schema of the store"));
    PostgresStore::install(&url).wait().unwrap();
    server.sql(&name, "create or replace function timer.now() returns bigint language sql as 'select 7::bigint'");
    assert_eq!(lines(Path::new(&url), &["upgrade"]), [""; 0]);
    assert_ne!(server.sql(&name, "select timer.now()"), "7");
}
