//! A figure beside that of the floor: both are measured by turns, in one process, so that what the machine does meanwhile
//! happens to both.

use super::out::Out;
use crate::report::statistics::Summary;
use std::time::Duration;

/// How many turns each of the two has.
pub(super) const TURNS: usize = 5;

/// What both cost, turn by turn, in nanoseconds for each operation.
#[derive(Default)]
pub(super) struct Beside {
    turns: Vec<(f64, f64)>,
}

impl Beside {
    /// One turn of each: so many operations took so much.
    pub(super) fn add(&mut self, timer: Duration, floor: Duration, count: usize) {
        let each = |time: Duration| time.as_nanos() as f64 / count.max(1) as f64;
        self.turns.push((each(timer), each(floor)));
    }

    /// `UNIT-floor`, what the floor costs, and `of-the-floor`, how many times that the timer costs: medians over the turns.
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
