//! The floor of durable timeouts: one thread that writes 4 KB and syncs them, again and again.

use rustix::fs::fdatasync;
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// The size of a write.
const PAGE: usize = 4096;
/// The number of pages of the file, which are written in turn. The file has its full size from the
/// beginning, so a sync writes no metadata.
const FILE_PAGES: usize = 2048;

/// The figures of the floor.
#[derive(Debug, Clone, Copy)]
pub struct Floor {
    /// Syncs per second.
    pub rate: f64,
    /// The median of a write with its sync.
    pub median: Duration,
}

/// Measures the floor in the folder of `file`.
///
/// # Errors
///
/// Fails if the folder cannot be written.
pub fn measure(file: &Path, span: Duration) -> io::Result<Floor> {
    let path = file.with_extension("floor");
    let floor = write(&path, span);
    fs::remove_file(&path)?;
    floor
}

fn write(path: &Path, span: Duration) -> io::Result<Floor> {
    let mut file = File::create(path)?;
    file.write_all(&vec![0; PAGE * FILE_PAGES])?;
    file.sync_all()?;
    let page = [1; PAGE];
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < span {
        if times.len().is_multiple_of(FILE_PAGES) {
            file.seek(SeekFrom::Start(0))?;
        }
        let before = Instant::now();
        file.write_all(&page)?;
        fdatasync(&file)?;
        times.push(before.elapsed());
    }
    let rate = times.len() as f64 / begin.elapsed().as_secs_f64();
    times.sort_unstable();
    Ok(Floor { rate, median: times.get(times.len() / 2).copied().unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::measure;
    use std::time::Duration;

    #[test]
    fn the_floor_leaves_no_file_behind() {
        let file = std::env::temp_dir().join(format!("timer-bench-{}.db", std::process::id()));
        let floor = measure(&file, Duration::from_millis(5)).unwrap();
        assert!(floor.rate > 0.0 && !floor.median.is_zero());
        assert!(!file.with_extension("floor").exists());
    }
}
