//! The one owner of a file, and the path of the file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use timer_durable::{Due, DurableTimer, Retry};
use timer_durable_sqlite::{OpenError, SqliteStore};

use crate::processes::{CHILD, child};
use timer_durable_tests::folder::Folder;
use timer_durable_tests::t;

const LONG: Duration = Duration::from_secs(60);

/// The owner reads its file in every way that makes the kernel drop the locks of SQLite.
#[test]
fn a_file_of_another_process_names_it() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let folder = Path::new(&folder);
        let file = folder.join("timeouts.db");
        let _store = SqliteStore::open(&file).unwrap();
        fs::read(&file).unwrap();
        drop(fs::File::open(&file).unwrap());
        fs::copy(&file, folder.join("copy")).unwrap();
        fs::hard_link(&file, folder.join("link")).unwrap();
        fs::read(folder.join("link")).unwrap();
        fs::remove_file(folder.join("link")).unwrap();
        fs::write(folder.join("open"), "").unwrap();
        // Until the parent kills it.
        loop {
            std::thread::park();
        }
    }
    let folder = Folder::new();
    let mut owner = child("owner::a_file_of_another_process_names_it", &folder).spawn().unwrap();
    while !folder.path().join("open").exists() {
        assert!(owner.try_wait().unwrap().is_none(), "the child has ended without the file");
        std::thread::park_timeout(Duration::from_millis(5));
    }
    std::os::unix::fs::symlink(folder.file(), folder.path().join("symlink")).unwrap();
    for name in ["timeouts.db", "symlink"] {
        let error = SqliteStore::open(folder.path().join(name)).unwrap_err();
        assert!(matches!(&error, OpenError::InUse { owner: Some(id), .. } if *id == owner.id()), "{name}: {error}");
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    SqliteStore::open(folder.file()).expect("a dead process owns nothing");
}

#[test]
fn one_of_many_threads_opens_a_file() {
    let folder = Folder::new();
    let file = folder.file();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| SqliteStore::open(&file))).collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let in_use = results.iter().filter(|result| matches!(result, Err(OpenError::InUse { .. }))).count();
        assert_eq!(in_use, 7, "{results:?}");
    });
    assert!(!folder.path().join("timeouts.db-owner").exists(), "a clean end leaves the file alone");
}

#[test]
fn a_file_with_a_hard_link_is_refused() {
    let folder = Folder::new();
    let file = folder.file();
    let other = folder.path().join("other/timeouts.db");
    drop(SqliteStore::open(&file).unwrap());
    fs::create_dir(other.parent().unwrap()).unwrap();
    fs::hard_link(&file, &other).unwrap();
    for name in [&file, &other] {
        let error = SqliteStore::open(name).unwrap_err();
        assert!(matches!(&error, OpenError::OtherNames { names, .. } if names.contains("2 hard links")), "{error}");
    }
    assert_eq!(fs::read_dir(other.parent().unwrap()).unwrap().count(), 1, "nothing was left beside the link");
    fs::remove_file(&other).unwrap();
    std::os::unix::fs::symlink(&file, &other).unwrap();
    SqliteStore::open(&other).expect("a symbolic link leads to one name");
}

/// The child has a mount namespace of its own.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_alone_is_mounted_is_refused() {
    if let Some(folder) = std::env::var_os(CHILD) {
        let folder = Path::new(&folder);
        let error = SqliteStore::open(folder.join("mounted.db")).unwrap_err();
        assert!(matches!(&error, OpenError::OtherNames { names, .. } if names.contains("mount its folder")), "{error}");
        SqliteStore::open(folder.join("mounted/timeouts.db")).expect("a folder is mounted with all its files");
        return;
    }
    let unshare = |script: &str| {
        let mut unshare = std::process::Command::new("unshare");
        unshare.args(["--mount", "--map-root-user", "sh", "-c", script]);
        unshare
    };
    if !unshare("mount --bind /tmp /tmp").output().is_ok_and(|output| output.status.success()) {
        println!("skipped, because this user may not mount");
        return;
    }
    let folder = Folder::new();
    drop(SqliteStore::open(folder.file()).unwrap());
    fs::write(folder.path().join("mounted.db"), "").unwrap();
    fs::create_dir(folder.path().join("mounted")).unwrap();
    let script = "mount --bind timeouts.db mounted.db && mount --bind . mounted && exec \"$@\"";
    let child = child("owner::a_file_that_alone_is_mounted_is_refused", &folder);
    let mut mounting = unshare(script);
    mounting.arg("sh").arg(child.get_program()).args(child.get_args());
    mounting.env(CHILD, folder.path()).current_dir(folder.path());
    let output = mounting.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_file_that_is_gone_is_an_error() {
    type Change = fn(&Folder);
    let changes: [(&str, Change); 5] = [
        ("removed", |folder| fs::remove_file(folder.file()).unwrap()),
        ("replaced", |folder| {
            let other = folder.path().join("other.db");
            drop(SqliteStore::open(&other).unwrap());
            fs::rename(other, folder.file()).unwrap();
        }),
        ("removed", |folder| fs::remove_dir_all(folder.path()).unwrap()),
        ("removed", |folder| fs::remove_file(folder.path().join("timeouts.db-owner")).unwrap()),
        ("removed", |folder| fs::remove_file(folder.path().join("timeouts.db-wal")).unwrap()),
    ];
    for (word, change) in changes {
        let folder = Folder::new();
        let (sender, ran) = mpsc::channel();
        let handle = move |_: &Due<()>| sender.send(()).map_err(Retry::new);
        let timer =
            DurableTimer::builder().topic(t(), handle).open(SqliteStore::open(folder.file()).unwrap()).wait().unwrap();
        timer.new_timeout(t(), Duration::from_millis(200), &()).wait().unwrap();
        change(&folder);
        let errors = [
            timer.new_timeout(t(), LONG, &()).wait().unwrap_err(),
            timer.cancel(t::<()>(), "k").wait().unwrap_err(),
            timer.counts().wait().unwrap_err(),
            timer.dead_letters(None, None, 9).wait().unwrap_err(),
            timer.backup(folder.path().join("backup")).wait().unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains(&format!("was {word}")), "{error}");
        }
        ran.recv_timeout(Duration::from_millis(600)).expect_err("nothing begins");
        assert!(!timer.stop(LONG).wait().unwrap().released, "{word}");
    }
}

/// The child is in the folder, so that the paths may be relative ones.
#[test]
fn a_path_is_no_uri_and_its_file_is_private() {
    let names = ["file:a.db", "file:b.db?mode=memory", "c.db?vfs=none", "file::memory:", "d%20.db"];
    if std::env::var_os(CHILD).is_some() {
        for name in names {
            let timer = DurableTimer::builder()
                .topic_elsewhere(t::<()>())
                .open(SqliteStore::open(name).unwrap())
                .wait()
                .unwrap();
            timer.new_timeout(t(), LONG, &()).wait().unwrap();
            assert!(matches!(SqliteStore::open(name), Err(OpenError::InUse { .. })), "{name}");
            timer.backup(format!("{name}&copy")).wait().unwrap();
        }
        return;
    }
    let folder = Folder::new();
    let mut child = child("owner::a_path_is_no_uri_and_its_file_is_private", &folder);
    assert!(child.current_dir(folder.path()).status().unwrap().success());
    for file in names.into_iter().flat_map(|name| [name.to_owned(), format!("{name}&copy")]) {
        let path = folder.path().join(&file);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
        let timer = DurableTimer::builder().open(SqliteStore::open(path).unwrap()).wait().unwrap();
        assert_eq!(timer.counts().wait().unwrap().pending, 1, "{file}");
    }
}
