//! The one owner of a file.
//!
//! The owner of `timeouts.db` has a lock on the file `timeouts.db-owner` beside it, which names the
//! owner's process. The locks of SQLite do not suffice, because the kernel drops them as soon as
//! the process closes any descriptor of the database, for example after it has read the file. The
//! lock on the other file (`flock`) belongs to a descriptor that only this module has.
//!
//! A forked child inherits the descriptor, and keeps the lock when its parent is dead. If the lock
//! is taken and the process in the file is dead, the next owner therefore removes the file and
//! makes a new one. Each process
//!
//! 1. opens or creates the file, and waits for a second lock on it (`fcntl`), which no child
//!    inherits and which it has for a moment only,
//! 2. begins anew if the path leads to another file by now,
//! 3. takes the first lock and writes its own name into the file. If the lock is taken, it gives
//!    up, or it removes the file of a dead process and begins anew.
//!
//! Two processes may find the same dead one. The second of them to get the second lock finds in
//! step 2 that the file was removed, so it does not remove the file that the first one has made.
//! Threads of one process exclude each other by a mutex, because the second lock belongs to the
//! process.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

use super::open_error::OpenError;
#[cfg(not(unix))]
use other as system;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
#[cfg(unix)]
use unix as system;

/// The right to use a file, for as long as this value lives.
#[derive(Debug)]
pub(super) struct Owner {
    /// The descriptor with the lock.
    _lock: File,
    lock: KnownFile,
    file: KnownFile,
    /// The write-ahead log of the database, once the database is open.
    log: Option<KnownFile>,
}

/// A path, and the file to which it led when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownFile(PathBuf, system::FileId);

impl Owner {
    /// Becomes the owner of the file at an absolute path.
    pub(super) fn take(path: &Path) -> Result<Self, OpenError> {
        static TAKING: Mutex<()> = Mutex::new(());
        let _taking = TAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lock_path = OsString::from(path);
        lock_path.push("-owner");
        let lock_path = PathBuf::from(lock_path);
        let take = || {
            let file = fs::metadata(path)?;
            Ok(match system::take(&lock_path, &file)? {
                Ok(lock) => {
                    let id = system::id(&lock.metadata()?);
                    let file = KnownFile(path.to_owned(), system::id(&file));
                    Ok(Self { _lock: lock, lock: KnownFile(lock_path.clone(), id), file, log: None })
                }
                Err(owner) => Err(OpenError::InUse { path: path.to_owned(), owner }),
            })
        };
        let failed = |error: io::Error| OpenError::Io {
            path: path.to_owned(),
            why: format!("{} cannot be locked: {error}", lock_path.display()),
        };
        take().map_err(failed)?
    }

    /// Returns the absolute path of the database.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the database.
    pub(super) fn file(&self) -> &KnownFile {
        &self.file
    }

    /// Returns the files that have to stay at their paths, the database first.
    pub(super) fn files(&self) -> Vec<KnownFile> {
        [&self.file, &self.lock].into_iter().chain(&self.log).cloned().collect()
    }

    /// Looks at the write-ahead log from now on. A log that another program has removed, for
    /// example because it found none of SQLite's locks, takes all later commits with it.
    pub(super) fn watch_log(&mut self) -> io::Result<()> {
        let mut path = OsString::from(self.path());
        path.push("-wal");
        let id = system::find(Path::new(&path))?;
        self.log = Some(KnownFile(path.into(), id));
        Ok(())
    }

    /// Returns an error if the path of the database, of its log or of its lock does not lead to the
    /// file that was opened.
    pub(super) fn check(&self) -> io::Result<()> {
        [&self.file, &self.lock].into_iter().chain(&self.log).try_for_each(KnownFile::check)
    }
}

impl KnownFile {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns an error if the path does not lead to the file that was opened.
    pub(super) fn check(&self) -> io::Result<()> {
        let Self(path, id) = self;
        let change = match system::find(path) {
            Ok(found) if found == *id => return Ok(()),
            Ok(_) => "replaced by another file",
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                "removed or renamed"
            }
            Err(error) => return Err(error),
        };
        Err(io::Error::new(io::ErrorKind::NotFound, format!("{} was {change} while it was in use", path.display())))
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Others that have opened the file begin anew when they find that it was removed.
        if self.lock.check().is_ok() {
            let _removed = fs::remove_file(&self.lock.0);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{OpenError, Owner, fs, system};
    use std::io::Write;
    use std::path::Path;
    use std::process::Command;
    use std::time::SystemTime;

    /// The variable that makes the test a child, with the path of the database.
    const CHILD: &str = "TIMER_DURABLE_OWNER";

    /// The owner dies while another process has its descriptor, as after a fork.
    #[test]
    fn a_lock_of_a_dead_process_counts_for_nothing() {
        if let Some(path) = std::env::var_os(CHILD) {
            let owner = Owner::take(Path::new(&path)).unwrap();
            let heir = Command::new("sleep").arg("60").stdin(owner._lock.try_clone().unwrap()).spawn().unwrap();
            fs::write(format!("{}-heir", path.display()), heir.id().to_string()).unwrap();
            std::process::abort();
        }
        let path = std::env::temp_dir().join(format!("timer-durable-owner-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "owner::tests::a_lock_of_a_dead_process_counts_for_nothing"]).env(CHILD, &path);
        assert!(!child.status().unwrap().success());
        let owner = Owner::take(&path).unwrap();
        let own = std::process::id();
        let second = Owner::take(&path);
        assert!(matches!(&second, Err(OpenError::InUse { owner: Some(id), .. }) if *id == own), "{second:?}");
        let heir: i32 = fs::read_to_string(format!("{}-heir", path.display())).unwrap().parse().unwrap();
        let heir = rustix::process::Pid::from_raw(heir).unwrap();
        rustix::process::kill_process(heir, rustix::process::Signal::KILL).unwrap();
        drop(owner);
        for end in ["", "-heir", "-owner"] {
            let removed = fs::remove_file(format!("{}{end}", path.display()));
            assert_eq!(removed.is_ok(), end != "-owner", "the owner removes its file");
        }
    }

    /// Since version 6.13, Linux gives a write an exact time if the time of the file was read after
    /// the last write.
    #[test]
    fn a_look_at_a_file_leaves_its_times_alone() {
        let path = std::env::temp_dir().join(format!("timer-durable-look-{}", std::process::id()));
        let mut file = fs::File::create(&path).unwrap();
        let mut is_exact = || {
            file.write_all(b"1").unwrap();
            system::find(&path).unwrap();
            let looked = SystemTime::now();
            file.write_all(b"2").unwrap();
            file.metadata().unwrap().modified().unwrap() >= looked
        };
        // The clock of inexact times may tick during a trial.
        assert!((0..100).any(|_| !is_exact()), "the second write has an exact time");
        fs::remove_file(path).unwrap();
    }
}
