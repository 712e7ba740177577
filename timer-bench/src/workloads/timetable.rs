//! The timetable of N timeouts with random delays is read, by one thread while nothing else runs.
//!
//! The delays are up to a minute, an hour or a day. In the case `moved`, half of those that are due
//! within a day were moved to later. `cpu-us` is the CPU time of a reading, and `ppm-off` is the
//! greatest error of a bound in millionths of all timeouts.

use crate::out::{Run, Stop, micros};
use crate::process::cpu;
use crate::random::{SplitMix64, seconds};
use crate::row::short;
use std::time::Duration;
use timer_core::{Timeout, Timer, WheelKind};

const READINGS: u32 = 50;
const DAY: u64 = 86_400;

pub(crate) fn run(run: &Run, wheel: WheelKind) -> Result<(), Stop> {
    let n = run.settings.number("n", 1_000_000);
    for (case, longest, moves) in
        [("minute", 60, false), ("hour", 3_600, false), ("day", DAY, false), ("moved", DAY, true)]
    {
        let timer = Timer::builder().wheel(wheel).build().map_err(Stop::because)?;
        let mut random = SplitMix64::delays(0);
        // The timeouts of a minute must not become due.
        let mut delay = |longest| random.duration(&seconds(10, 10 + longest));
        let items: Vec<_> = (0..n).map(|_| (delay(longest), |_: &Timeout| {})).collect();
        let timeouts = timer.new_timeouts(items).into_iter().collect::<Result<Vec<_>, _>>().map_err(Stop::because)?;
        for timeout in timeouts.iter().filter(|_| moves).step_by(2) {
            timeout.reset(timeout.deadline().saturating_duration_since(timer.now()) + delay(longest));
        }
        let before = cpu();
        let timetables: Vec<_> = (0..READINGS).map(|_| timer.timetable()).collect();
        let params = format!("case={case},n={}", short(n));
        run.figure(&params, micros((cpu() - before) / READINGS), "cpu-us");
        let timetable = &timetables[0];
        let off = [10, 60, 600, 3_600, DAY].map(Duration::from_secs).map(|bound| {
            let due = timeouts.iter().filter(|timeout| timeout.deadline() <= timetable.taken_at() + bound).count();
            timetable.due_within(bound).abs_diff(due as u64)
        });
        run.figure(&params, off.into_iter().max().unwrap_or(0) as f64 * 1e6 / n as f64, "ppm-off");
        drop(timer.stop());
    }
    Ok(())
}
