//! Comparison with the floor. Both are measured in one process in alternating turns, so that
//! disturbances of the machine affect both.

use super::out::Out;
use crate::report::statistics::Summary;
use std::time::Duration;

/// The number of turns of each.
pub(super) const TURNS: usize = 5;

/// The costs of both in each turn, in nanoseconds per operation.
#[derive(Default)]
pub(super) struct FloorComparison {
    turns: Vec<(f64, f64)>,
}

impl FloorComparison {
    /// Adds one turn of each, with the time for `count` operations.
    pub(super) fn add(&mut self, timer: Duration, floor: Duration, count: usize) {
        let each = |time: Duration| time.as_nanos() as f64 / count.max(1) as f64;
        self.turns.push((each(timer), each(floor)));
    }

    /// Reports `UNIT-floor`, the cost of the floor, and `of-the-floor`, the ratio of the timer to
    /// the floor. Both are medians over the turns.
    pub(super) fn report(&self, params: &str, unit: &str, out: &Out) {
        let floors: Vec<f64> = self.turns.iter().map(|(_, floor)| *floor).collect();
        let ratios = self.turns.iter().filter(|(_, floor)| *floor > 0.0).map(|(timer, floor)| timer / floor);
        let ratios: Vec<f64> = ratios.collect();
        for (values, unit) in [(floors, format!("{unit}-floor").as_str()), (ratios, "of-the-floor")] {
            if let Some(Summary { median, .. }) = Summary::of(&values) {
                out.figure(params, median, unit);
            }
        }
    }
}
