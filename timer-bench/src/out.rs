//! The surroundings of a workload: its settings, the program it runs in, and the printing of its
//! figures.

use crate::row::Row;
use crate::settings::Settings;
use std::io::{Write, stdout};
use std::time::Duration;

/// The reason why a workload did not finish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The peer cannot do it, for this reason.
    Unavailable(String),
    /// A promise was not kept.
    Failed(String),
}

impl Stop {
    /// Returns the reason `error` on one line.
    pub fn because(error: impl ToString) -> Self {
        Self::Unavailable(error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// The allocator of the running program.
#[derive(Debug, Clone, Copy)]
pub enum Heap {
    /// The allocator of the system.
    System,
    /// mimalloc.
    Mimalloc,
    /// An allocator that counts its bytes. Counting distorts times.
    Counting(fn() -> usize),
}

/// One workload on one peer. Figures are printed line by line, so a crash loses no earlier figure.
pub struct Run {
    /// The name of the timer.
    pub peer: String,
    /// The name of the workload.
    pub workload: String,
    /// The settings.
    pub settings: Settings,
    /// The allocator.
    pub heap: Heap,
}

impl Run {
    /// Prints a figure.
    pub fn figure(&self, params: &str, value: f64, unit: &str) {
        self.print(params, Ok(value), unit);
    }

    /// Prints the reason why a figure is not available.
    pub fn unavailable(&self, params: &str, unit: &str, why: &str) {
        self.print(params, Err(why.to_owned()), unit);
    }

    /// Prints a figure, or that the system does not report it.
    pub fn known(&self, params: &str, value: Option<f64>, unit: &str) {
        self.print(params, value.ok_or_else(|| "known on Linux only".to_owned()), unit);
    }

    /// Prints `time` divided by `count` in nanoseconds.
    pub fn each(&self, params: &str, time: Duration, count: usize, unit: &str) {
        self.figure(params, time.as_nanos() as f64 / count.max(1) as f64, unit);
    }

    fn print(&self, params: &str, value: Result<f64, String>, unit: &str) {
        let params = match self.heap {
            Heap::Mimalloc => format!("{params},mimalloc"),
            Heap::System | Heap::Counting(_) => params.to_owned(),
        };
        let peer = self.peer.clone();
        let workload = self.workload.clone();
        let unit = unit.to_owned();
        let mut out = stdout().lock();
        // An error means that the reader is gone, so the output is lost.
        let _: std::io::Result<()> =
            writeln!(out, "{}", Row { peer, workload, params, value, unit }).and_then(|()| out.flush());
    }
}

/// Returns a time in milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns a time in microseconds.
pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Returns the smallest sample that at least the share `q` of all samples does not exceed, or 0
/// without samples. `sorted` is in ascending order.
pub fn quantile<T: Copy + Default>(sorted: &[T], q: f64) -> T {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn a_quantile_is_the_sample_of_its_rank() {
        let sorted: Vec<u32> = (1..=1_000).collect();
        assert_eq!([0.0, 0.5, 0.99, 0.999, 1.0].map(|q| quantile(&sorted, q)), [1, 500, 990, 999, 1_000]);
        assert_eq!((quantile(&[7], 0.5), quantile::<u32>(&[], 0.5)), (7, 0));
    }
}
