//! The rounds of a long storm in order. They go through all combinations.

use crate::counts::Counts;
use crate::drive::Drive;
use crate::executors::Executor;
use crate::overload::{Overload, Stall};
use crate::round::{End, Round, wheel};
use crate::support::SECOND;
use crate::support::random::{Draw, part};
use crate::{busy_stop, wakes};
use std::fmt;
use timer_core::WheelKind;

/// The number of kinds: storms of every executor and drive, wake-ups of a worker or a driven loop
/// with and without lost tasks, stops beside busy shards, and overloads.
const KINDS: usize = Executor::ALL.len() * Drive::ALL.len() + 4 + 2;
/// The number of rounds that contain every combination with both wheels and all ends.
pub(crate) const TURN: usize = KINDS * 2 * End::ALL.len();
/// Threads, percentages of cancels, and stalls of the overloads, one for each round of a turn.
const OVERLOADS: [(u64, u64, Stall); 2 * End::ALL.len()] = [
    (4, 0, Stall::None),
    (8, 0, Stall::Process),
    (64, 30, Stall::None),
    (64, 30, Stall::Task),
    (200, 0, Stall::None),
    (200, 90, Stall::None),
    (200, 30, Stall::Process),
    (8, 0, Stall::Task),
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Scenario {
    Storm(Round),
    WakeUps { seed: u64, amount: usize, wheel: WheelKind, driven: bool, loses: bool },
    BusyStops { seed: u64, amount: usize, wheel: WheelKind },
    Overload(Overload),
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
            5 => {
                let (threads, cancels, stall) = OVERLOADS[variant % OVERLOADS.len()];
                // Only Unix has a signal that stops a process.
                let stall = if stall == Stall::Process && cfg!(not(unix)) { Stall::Task } else { stall };
                Scenario::Overload(Overload { seed, threads, cancels, stall, wheel, time: SECOND })
            }
            1..5 => Scenario::WakeUps { seed, amount: 50, wheel, driven: kind % 2 == 0, loses: kind > 2 },
            _ => {
                let executor = Executor::ALL[(kind - 6) % Executor::ALL.len()];
                let drive = Drive::ALL[(kind - 6) / Executor::ALL.len()];
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
            Scenario::Overload(overload) => overload.run().0,
        }
    }

    /// Returns the row of the table that counts the scenario.
    pub(crate) fn row(&self) -> String {
        let (label, wheel) = match self {
            Scenario::Storm(round) => (format!("{:?}", round.executor), round.wheel),
            Scenario::WakeUps { wheel, .. } => ("wake-ups".to_owned(), *wheel),
            Scenario::BusyStops { wheel, .. } => ("busy stops".to_owned(), *wheel),
            Scenario::Overload(overload) => ("overload".to_owned(), overload.wheel),
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
            Scenario::Overload(Overload { threads, cancels, stall, .. }) => {
                write!(f, ", {threads} threads, {cancels} % cancelled, {stall:?}")
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_rounds_of_all_kinds() {
    let names: std::collections::BTreeSet<String> = (0..TURN).map(|n| Scenario::nth(7, n).to_string()).collect();
    // Wake-ups and busy stops have no end to choose, so their rounds have one name for each wheel.
    let storms = 2 * Executor::ALL.len() * Drive::ALL.len() * End::ALL.len();
    assert_eq!(names.len(), storms + 2 * (4 + 1) + OVERLOADS.len(), "{names:#?}");
    let round = |seed, n| format!("{:?}", Scenario::nth(seed, n));
    assert_eq!(round(7, 1_234), round(7, 1_234));
    assert_ne!(round(7, 1_234), round(8, 1_234));
}
