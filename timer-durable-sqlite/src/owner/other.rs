//! The files of an owner on other systems, of which Windows locks a file by opening it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Nothing, because an open file can be neither removed nor renamed.
pub(super) type FileId = (u64, u64);

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
