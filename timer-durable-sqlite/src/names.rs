//! The names of a file. SQLite and the store keep their log and their lock beside the name by which
//! a file is opened, so two names of a file would have two owners.

use super::OpenError;
use std::io;
use std::path::Path;

/// Checks that a file has no other name than `path`, which leads to it without a symbolic link.
pub(super) fn check(path: &Path) -> Result<(), OpenError> {
    let io = |error: io::Error| OpenError::Io { path: path.to_owned(), why: error.to_string() };
    let other = |names: &str| OpenError::OtherNames { path: path.to_owned(), names: names.to_owned() };
    // The file is not opened, because the kernel would drop SQLite's locks when it is closed.
    let links = links(path).map_err(io)?;
    if links > 1 {
        return Err(other(&format!("it has {links} hard links; remove the others")));
    }
    if is_mount_point(path).map_err(io)? {
        return Err(other("it is a mount point; mount its folder instead"));
    }
    Ok(())
}

#[cfg(unix)]
fn links(path: &Path) -> io::Result<u64> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&std::fs::metadata(path)?))
}

#[cfg(not(unix))]
fn links(_: &Path) -> io::Result<u64> {
    Ok(1)
}

/// Returns `true` if the file alone is mounted, as into a container. Returns `false` on Linux
/// before 5.8, which does not report this.
#[cfg(target_os = "linux")]
fn is_mount_point(path: &Path) -> io::Result<bool> {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    match statx(CWD, path, AtFlags::empty(), StatxFlags::empty()) {
        Ok(found) => Ok((found.stx_attributes & found.stx_attributes_mask).contains(StatxAttributes::MOUNT_ROOT)),
        Err(rustix::io::Errno::NOSYS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn is_mount_point(_: &Path) -> io::Result<bool> {
    Ok(false)
}
