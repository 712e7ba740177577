//! A thread beside a storm that sleeps for a millisecond at a time. The excess of each sleep is the
//! scheduler's delay.

use super::super::histogram::Histogram;
use super::super::out::Out;
use super::micros;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(1);

pub(super) struct Sleeper {
    over: Arc<AtomicBool>,
    longer: Arc<Histogram>,
    thread: JoinHandle<()>,
}

impl Sleeper {
    pub(super) fn start() -> Self {
        let (over, longer) = (Arc::new(AtomicBool::new(false)), Arc::new(Histogram::default()));
        let (ended, histogram) = (over.clone(), longer.clone());
        let nap = move || {
            // ORDERING: Relaxed, because the flag guards no other data.
            while !ended.load(Ordering::Relaxed) {
                let begin = Instant::now();
                thread::sleep(NAP);
                histogram.add_alone((begin.elapsed().saturating_sub(NAP)).as_nanos() as u64);
            }
        };
        Self { over, longer, thread: thread::spawn(nap) }
    }

    /// Stops the thread and reports the quantiles of the excess.
    pub(super) fn report(self, params: &str, out: &Out) {
        // ORDERING: Relaxed, because the flag guards no other data. The join publishes the
        // histogram.
        self.over.store(true, Ordering::Relaxed);
        // The thread has no code that panics.
        let _joined: thread::Result<()> = self.thread.join();
        let longer = Histogram::sum([&*self.longer]);
        for (q, unit) in [(0.5, "us-sleeper-p50"), (0.99, "us-sleeper-p99"), (1.0, "us-sleeper-max")] {
            out.figure(params, micros(longer.quantile(q)), unit);
        }
    }
}
