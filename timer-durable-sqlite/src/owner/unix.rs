//! The files of an owner on Unix: their ids, the two locks, and the name of the process.

use rustix::fs::{FlockOperation, fcntl_lock, flock};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The largest number of files of dead processes that a process removes.
const MAX_TRIALS: usize = 16;

/// The device and the inode of a file. No other file has them while the file is open.
pub(super) type FileId = (u64, u64);

pub(super) fn id(file: &Metadata) -> FileId {
    (file.dev(), file.ino())
}

/// Returns the file to which a path leads.
///
/// Does not ask Linux for times. After the time of a file was read, Linux gives the next write an
/// exact time, and a sync of the log would have to write this time as well.
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
