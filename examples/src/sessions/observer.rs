//! The observers of the program itself, namely progress on a terminal, pending timeouts for the
//! page and metrics over HTTP.
//!
//! The server listens before the replay begins. Its address is printed once the timer can be seen
//! there. The observer keeps the timer and the server alive.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use timer_core::Timer;
use timer_live::{LivePage, Server};
use timer_metrics::TimerMetrics;

use super::args::{Clock, Options};
use super::log::Log;
use super::samples::Samples;
use super::terminal::say;
use super::watch::Watch;

pub(super) struct Observer {
    pub(super) bar: ProgressBar,
    pub(super) samples: Samples,
    timer: Option<Timer>,
    metrics: TimerMetrics,
    longest_delay: Duration,
    server: Option<Server>,
}

impl Observer {
    /// Fails if the server cannot listen on the address for metrics.
    pub(super) fn new(log: &Log, options: &Options) -> io::Result<Self> {
        let metrics = TimerMetrics::new();
        let server = options.metrics.map(|addr| LivePage::new(&metrics).serve(addr)).transpose()?;
        let speed = match options.clock {
            Clock::Virtual => 1,
            Clock::Real { speed } => speed.max(1),
        };
        Ok(Self {
            bar: progress_bar(log, options),
            samples: Samples::new(log.span() + options.idle),
            timer: None,
            metrics,
            longest_delay: Duration::from_secs(options.idle) / speed,
            server,
        })
    }
}

impl Watch for Observer {
    fn built(&mut self, timer: &Timer) {
        self.timer = Some(timer.clone());
        if let Some(server) = &self.server {
            self.metrics.watch_with(timer, timer_metrics::Watch::new().longest_delay(self.longest_delay));
            let addr = server.local_addr();
            say(format_args!("metrics: http://{addr}/metrics\nlive page: http://{addr}/"));
        }
    }

    fn reached(&mut self, second: u64) {
        self.bar.set_position(second);
        if let Some(timer) = &self.timer {
            self.samples.at(second, || timer.pending_timeouts() as u64);
        }
    }
}

fn progress_bar(log: &Log, options: &Options) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(log.span() + options.idle);
    let style = ProgressStyle::with_template("{wide_bar} {percent:>3} % of the log, {elapsed} gone, {eta} to go");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
