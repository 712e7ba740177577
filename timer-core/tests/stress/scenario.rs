//! The rounds of a long storm in order. They go through all combinations.

use crate::counts::Counts;
use crate::drive::Drive;
use crate::executors::Executor;
use crate::round::{End, Round, wheel};
use crate::support::random::{Draw, part};
use crate::{busy_stop, wakes};
use std::fmt;
use timer_core::WheelKind;

/// The number of kinds: storms of every executor and drive, wake-ups of a worker or a driven loop
/// with and without lost tasks, and stops beside busy shards.
const KINDS: usize = Executor::ALL.len() * Drive::ALL.len() + 4 + 1;
/// The number of rounds that contain every combination with both wheels and all ends.
pub(crate) const TURN: usize = KINDS * 2 * End::ALL.len();

#[derive(Clone, Copy, Debug)]
pub(crate) enum Scenario {
    Storm(Round),
    WakeUps { seed: u64, amount: usize, wheel: WheelKind, driven: bool, loses: bool },
    BusyStops { seed: u64, amount: usize, wheel: WheelKind },
}

impl Scenario {
    /// Returns round `n` of a seed.
    pub(crate) fn nth(master: u64, n: usize) -> Self {
        let mut random = part(master, n);
        let (kind, variant) = (n % KINDS, n / KINDS);
        let (wheel, end) = (wheel(!variant.is_multiple_of(2), &mut random), End::ALL[variant / 2 % End::ALL.len()]);
        let seed = random.u64(..);
        match kind {
            0 => Scenario::BusyStops { seed, amount: 16, wheel },
            1..5 => Scenario::WakeUps { seed, amount: 50, wheel, driven: kind % 2 == 0, loses: kind > 2 },
            _ => {
                let executor = Executor::ALL[(kind - 5) % Executor::ALL.len()];
                let drive = Drive::ALL[(kind - 5) / Executor::ALL.len()];
                let amount = random.pick(&[300, 1_000, 3_000]);
                Scenario::Storm(Round { seed, amount, executor, wheel, end, drive })
            }
        }
    }

    pub(crate) fn run(&self) -> Counts {
        match *self {
            Scenario::Storm(round) => round.run(),
            Scenario::WakeUps { seed, amount, wheel, driven, loses } => {
                wakes::wake_ups(seed, amount, wheel, driven, loses)
            }
            Scenario::BusyStops { seed, amount, wheel } => busy_stop::stops(seed, amount, wheel),
        }
    }

    /// Returns the row of the table that counts the scenario.
    pub(crate) fn row(&self) -> String {
        let (label, wheel) = match self {
            Scenario::Storm(round) => (format!("{:?}", round.executor), round.wheel),
            Scenario::WakeUps { wheel, .. } => ("wake-ups".to_owned(), *wheel),
            Scenario::BusyStops { wheel, .. } => ("busy stops".to_owned(), *wheel),
        };
        let wheel = if wheel == WheelKind::Hierarchical { "hierarchical" } else { "hashed" };
        format!("{label}, {wheel}")
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.row())?;
        match self {
            Scenario::Storm(round) => write!(f, ", {:?}, {:?}", round.drive, round.end),
            Scenario::WakeUps { driven, loses, .. } => write!(f, ", driven {driven}, loses {loses}"),
            Scenario::BusyStops { .. } => Ok(()),
        }
    }
}

#[test]
fn a_seed_gives_the_same_rounds_of_all_kinds() {
    let names: std::collections::BTreeSet<String> = (0..TURN).map(|n| Scenario::nth(7, n).to_string()).collect();
    // Wake-ups and busy stops have no end to choose, so they come once for each wheel.
    assert_eq!(names.len(), 2 * (Executor::ALL.len() * Drive::ALL.len() * End::ALL.len() + 4 + 1), "{names:#?}");
    let round = |seed, n| format!("{:?}", Scenario::nth(seed, n));
    assert_eq!(round(7, 1_234), round(7, 1_234));
    assert_ne!(round(7, 1_234), round(8, 1_234));
}
