//! The goals of some figures, which the tables print beside the measured ones.
//!
//! The medians decide. A goal beside a peer is missed only if the medians fall short of it by more
//! than 3 % and by more than the spread of the rounds. Otherwise noise would decide a goal such as
//! "no slower than the peer".

use super::results::{Results, Series};
use super::statistics::Summary;
use crate::peers::OURS;
use crate::row::figure;

/// The relative distance from a goal beside a peer that counts as noise.
const NOISE: f64 = 0.03;

/// The verdict on a goal that is missed by no more than the noise.
const WITHIN_NOISE: &str = "within noise";

/// The line below goals that are missed by no more than the noise.
const LEGEND: &str = "within noise: missed by at most 3 %, or the ranges of the rounds meet the goal\n";

/// The bound of a figure of ours.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// The peer's figure is at least this multiple of ours.
    Times(f64, &'static str),
    /// The figure itself is at most this.
    AtMost(f64),
    /// The figure itself is at least this.
    AtLeast(f64),
}

/// A goal for the series of ours with this unit and with parameters that begin with `params`.
struct Goal {
    workload: &'static str,
    params: &'static str,
    unit: &'static str,
    bound: Bound,
}

const fn goal(workload: &'static str, params: &'static str, unit: &'static str, bound: Bound) -> Goal {
    Goal { workload, params, unit, bound }
}

const GOALS: &[Goal] = &[
    goal("E1", "callers=1", "of-the-floor", Bound::AtLeast(0.6)),
    goal("E1", "callers=64", "schedules/s", Bound::AtLeast(90_000.0)),
    goal("E1", "callers=512", "schedules/s", Bound::AtLeast(150_000.0)),
    goal("E2", "callers=64", "pairs/s", Bound::AtLeast(65_000.0)),
    goal("E3", "in-flight=512", "lives/s", Bound::AtLeast(120_000.0)),
    goal("E4", "rate=1000,", "us-p50", Bound::AtMost(400.0)),
    goal("E4", "rate=1000,", "us-p99", Bound::AtMost(1_000.0)),
    goal("E4", "rate=10000,", "us-p50", Bound::AtMost(600.0)),
    goal("E4", "rate=10000,", "us-p99", Bound::AtMost(4_000.0)),
    goal("E5", "-", "ms-first-run", Bound::AtMost(500.0)),
    goal("E5", "-", "MB-resident", Bound::AtMost(100.0)),
    goal("E6", "pending=", "rows/s", Bound::AtLeast(40_000.0)),
    goal("E7", "-", "switches/s", Bound::AtMost(0.0)),
    goal("P1", "open=4096", "inserts/s", Bound::AtLeast(100_000.0)),
    goal("P2", "nodes=1,in-flight=512", "lives/s", Bound::AtLeast(45_000.0)),
    goal("P2", "nodes=2,in-flight=512", "lives/s", Bound::AtLeast(85_000.0)),
    goal("P2", "nodes=1,in-flight=64", "lives/s", Bound::AtLeast(22_000.0)),
    goal("P2", "nodes=2,in-flight=64", "lives/s", Bound::AtLeast(35_000.0)),
    goal("P3", "nodes=1,", "lives/s", Bound::AtLeast(1_000.0)),
    goal("P4", "rate=1000,", "us-p50", Bound::AtMost(600.0)),
    goal("P4", "rate=1000,", "us-p99", Bound::AtMost(1_500.0)),
    goal("P5", "lease=3s", "ms-first-orphan", Bound::AtMost(3_500.0)),
    goal("P6", "lease=15s", "transactions/min", Bound::AtMost(20.0)),
    goal("P7", "nodes=1,", "B-wal/life", Bound::AtMost(1_200.0)),
    goal("P8", "lease=3s", "ms-first-orphan", Bound::AtMost(4_000.0)),
    goal("P9", "rate=10000,", "us-p99", Bound::AtMost(5_000.0)),
    goal("W18", "n=", "cpu-ns/insert", Bound::Times(1.3, "delay-queue")),
    goal("W18", "n=", "cpu-ns/insert+remove", Bound::Times(1.3, "delay-queue")),
    goal("W18", "n=", "cpu-ns/reset", Bound::Times(2.0, "delay-queue")),
    goal("W18", "n=", "cpu-ns/expired", Bound::Times(2.0, "delay-queue")),
    goal("W18", "n=", "wake-ups/s", Bound::Times(1.0, "delay-queue")),
    goal("W18", "n=", "switches/s", Bound::Times(1.0, "delay-queue")),
    goal("W18", "n=", "B-heap", Bound::AtMost(60.0)),
    goal("W18", "n=", "B-left-empty", Bound::AtMost(1.0)),
    goal("W19", "n=", "cpu-ns/item", Bound::Times(1.0, "heap")),
    goal("W19", "n=", "switches/item", Bound::Times(1.0, "heap")),
    goal("W20", "n=", "cpu-ns/request-timer", Bound::Times(3.0, "tokio")),
    goal("W20", "n=", "instructions/request-timer", Bound::Times(3.0, "tokio")),
];

/// Returns a line for each goal of the workload that the results can be held against.
pub fn lines(results: &Results, workload: &str) -> String {
    let goals = GOALS.iter().filter(|goal| goal.workload == workload);
    let mut lines: String = goals.flat_map(|goal| goal.of(results)).map(|line| line + "\n").collect();
    if lines.contains(WITHIN_NOISE) {
        lines += LEGEND;
    }
    lines
}

impl Goal {
    /// Returns a line for each series that the goal is about.
    fn of(&self, results: &Results) -> Vec<String> {
        let is_meant = |series: &&Series| {
            series.peer == OURS && series.unit == self.unit && series.params.starts_with(self.params)
        };
        results.of(self.workload).filter(is_meant).filter_map(|series| self.line(results, series)).collect()
    }

    fn line(&self, results: &Results, ours: &Series) -> Option<String> {
        if let Some(why) = &ours.unavailable {
            return Some(format!("goal  {} {}: not judged, a figure is missing: {why}", self.unit, ours.params));
        }
        let summary @ Summary { median, .. } = ours.summary()?;
        let verdict = |is_met| if is_met { "met" } else { "missed" };
        let (goal, measured, verdict) = match self.bound {
            Bound::AtLeast(least) => (format!("at least {}", figure(least)), figure(median), verdict(median >= least)),
            Bound::AtMost(most) => (format!("at most {}", figure(most)), figure(median), verdict(median <= most)),
            Bound::Times(least, peer) => {
                // Limits of a connection are compared with the peer's timer at its usual place in
                // hyper.
                let params = ours.params.trim_end_matches(",limits");
                let theirs = results.find(peer, &ours.workload, params, &ours.unit)?.summary()?;
                let goal = format!("{peer}'s at least {least:.1} times ours");
                (goal, format!("{:.2}", theirs.median / median), beside(theirs, summary, least))
            }
        };
        Some(format!("goal  {} {}: {goal}: {measured}, {verdict}", self.unit, ours.params))
    }
}

/// Returns the verdict on the goal that `theirs` is at least `least` times `ours`.
fn beside(theirs: Summary, ours: Summary, least: f64) -> &'static str {
    if theirs.median >= least * ours.median {
        "met"
    } else if theirs.median >= (1.0 - NOISE) * least * ours.median || theirs.max >= least * ours.min {
        WITHIN_NOISE
    } else {
        "missed"
    }
}

#[cfg(test)]
mod tests {
    use super::lines;
    use crate::report::results::tests::results;

    #[test]
    fn goals_are_met_or_missed_by_the_medians() {
        let results = results(
            "timer W18 n=1M 50 cpu-ns/insert\ndelay-queue W18 n=1M 75 cpu-ns/insert\n\
             timer W18 n=1k 50 cpu-ns/reset\ndelay-queue W18 n=1k 75 cpu-ns/reset\n\
             timer W18 n=1M 61 B-heap\ntimer W18 n=1M 5 cpu-ns/expired",
        );
        assert_eq!(
            lines(&results, "W18"),
            "goal  cpu-ns/insert n=1M: delay-queue's at least 1.3 times ours: 1.50, met\n\
             goal  cpu-ns/reset n=1k: delay-queue's at least 2.0 times ours: 1.50, missed\n\
             goal  B-heap n=1M: at most 60.00: 61.00, missed\n"
        );
        assert_eq!(lines(&results, "W1"), "");
    }

    #[test]
    fn a_goal_is_not_judged_if_a_round_has_no_figure() {
        let results = results("timer P4 rate=1000,alone=0 9 us-p99\ntimer P4 rate=1000,alone=0 n/a us-p99 2 never ran");
        let line = "goal  us-p99 rate=1000,alone=0: not judged, a figure is missing: 2 never ran\n";
        assert_eq!(lines(&results, "P4"), line);
    }

    #[test]
    fn a_goal_beside_a_peer_is_missed_beyond_the_noise_only() {
        let verdict = |ours: [u32; 3], theirs: [u32; 3]| {
            let rows =
                |peer, values: [u32; 3]| values.map(|value| format!("{peer} W19 n=1 {value} cpu-ns/item\n")).concat();
            lines(&results(&(rows("timer", ours) + &rows("heap", theirs))), "W19")
        };
        assert!(verdict([100, 100, 100], [100, 100, 100]).ends_with(" 1.00, met\n"));
        // A little short, and short by less than the spread.
        assert!(verdict([100, 100, 100], [98, 98, 98]).contains(" 0.98, within noise\n"));
        assert!(
            verdict([80, 100, 110], [70, 90, 95]).contains(" 0.90, within noise\nwithin noise: missed by at most 3 %")
        );
        assert!(verdict([99, 100, 101], [89, 90, 91]).ends_with(" 0.90, missed\n"));
    }
}
