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

use super::open_error::OpenError;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

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
pub(super) struct KnownFile(PathBuf, FileId);

/// The device and the inode of a file. No other file has them while the file is open.
type FileId = (u64, u64);

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

#[cfg(unix)]
mod system {
    use super::FileId;
    use rustix::fs::{FlockOperation, fcntl_lock, flock};
    use rustix::io::Errno;
    use std::fs::{self, File, Metadata, OpenOptions};
    use std::io::{self, Read, Write};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    use std::path::Path;

    /// The largest number of files of dead processes that a process removes.
    const MAX_TRIALS: usize = 16;

    pub(super) fn id(file: &Metadata) -> FileId {
        (file.dev(), file.ino())
    }

    /// Returns the file to which a path leads.
    ///
    /// Does not ask Linux for times. After the time of a file was read, Linux gives the next write
    /// an exact time, and a sync of the log would have to write this time as well.
    #[cfg(target_os = "linux")]
    pub(super) fn find(path: &Path) -> io::Result<FileId> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
            Ok(found) => Ok((makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino)),
            // Linux before 4.11 does not have this call.
            Err(Errno::NOSYS) => Ok(id(&fs::metadata(path)?)),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn find(path: &Path) -> io::Result<FileId> {
        Ok(id(&fs::metadata(path)?))
    }

    /// Takes the lock of a database. If another process has it, returns the id of that process as
    /// an error, where it is known.
    pub(super) fn take(path: &Path, database: &Metadata) -> io::Result<Result<File, Option<u32>>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(database.mode() & 0o666);
        for _ in 0..MAX_TRIALS {
            let mut lock = options.open(path)?;
            fcntl_lock(&lock, FlockOperation::LockExclusive)?;
            if fs::metadata(path).map(|found| id(&found)).ok() != Some(id(&lock.metadata()?)) {
                continue;
            }
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    lock.set_len(0)?;
                    lock.write_all(name().as_bytes())?;
                    fcntl_lock(&lock, FlockOperation::Unlock)?;
                    return Ok(Ok(lock));
                }
                Err(Errno::WOULDBLOCK) => {}
                Err(error) => return Err(error.into()),
            }
            let mut owner = String::new();
            lock.read_to_string(&mut owner)?;
            if !is_dead(&owner) {
                return Ok(Err(owner.lines().next().and_then(|id| id.parse().ok())));
            }
            fs::remove_file(path)?;
        }
        Ok(Err(None))
    }

    /// Returns the name of this process, made of its id, its start time, and the machine with its
    /// namespace of process ids, each on a line.
    fn name() -> String {
        let id = std::process::id();
        format!("{id}\n{}\n{}\n", start(id).unwrap_or_default(), machine().unwrap_or_default())
    }

    /// Returns `true` if the process was on this machine and is dead. Returns `false` if that is
    /// not known.
    fn is_dead(name: &str) -> bool {
        let mut lines = name.lines();
        let (Some(id), Some(began), Some(its_machine)) = (lines.next(), lines.next(), lines.next()) else {
            return false;
        };
        let (Ok(id), Ok(machine)) = (id.parse::<u32>(), machine()) else { return false };
        its_machine == machine
            && match start(id) {
                Ok(start) => start != began,
                // A process of another user may be hidden.
                Err(_) => {
                    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
                    id.map(rustix::process::test_kill_process) == Some(Err(Errno::SRCH))
                }
            }
    }

    /// Returns the start time of a process. A dead one that its parent has not waited for has none.
    fn start(id: u32) -> io::Result<String> {
        let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
        // Behind the name of the program, which may have spaces, are the state (field 3), the
        // number of threads (20) and the start time (22).
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        match fields.get(19) {
            Some(_) if fields[0] == "Z" && fields[17] == "1" => Ok(String::new()),
            Some(start) => Ok((*start).to_owned()),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn machine() -> io::Result<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(format!("{} {}", boot.trim(), fs::read_link("/proc/self/ns/pid")?.display()))
    }
}

#[cfg(not(unix))]
mod system {
    use super::FileId;
    use std::fs::{self, File, Metadata, OpenOptions};
    use std::io::{self, Write};
    use std::path::Path;

    /// An open file can be neither removed nor renamed.
    pub(super) fn id(_: &Metadata) -> FileId {
        (0, 0)
    }

    pub(super) fn find(path: &Path) -> io::Result<FileId> {
        Ok(id(&fs::metadata(path)?))
    }

    /// Opens the lock file of a database, which no other process can then open to write.
    pub(super) fn take(path: &Path, _: &Metadata) -> io::Result<Result<File, Option<u32>>> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 1);
        match options.open(path) {
            Ok(mut lock) => {
                writeln!(lock, "{}", std::process::id())?;
                Ok(Ok(lock))
            }
            // The error of Windows for a file that another process has open.
            Err(error) if error.raw_os_error() == Some(32) => {
                let owner = fs::read_to_string(path).ok();
                Ok(Err(owner.and_then(|owner| owner.lines().next()?.parse().ok())))
            }
            Err(error) => Err(error),
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
