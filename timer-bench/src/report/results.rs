//! All figures of a run, round by round, kept as JSON for this program and as CSV for others.

use super::machine::Machine;
use super::statistics::Summary;
use super::unit::ratio;
use crate::peers::OURS;
use crate::row::{Row, figure};
use crate::settings::Size;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// The suffix of the units of figures that belong to a window of time. The end of the window is the
/// last parameter, `t=SECONDS`.
const OVER_TIME: &str = "-over-time";

/// A line of a plot over time: its peer, and its points as seconds and medians.
pub type Line<'a> = (&'a str, Vec<(f64, f64)>);

/// The results of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// The machine and the date.
    pub machine: Machine,
    /// Set for small sizes.
    pub quick: bool,
    /// All figures in the order of their first occurrence.
    pub series: Vec<Series>,
}

/// One figure over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The name of the timer.
    pub peer: String,
    /// A name from [`workloads::ALL`](crate::workloads::ALL).
    pub workload: String,
    /// The parameters, as in [`Row`].
    pub params: String,
    /// The unit, as in [`Row`].
    pub unit: String,
    /// One sample for each round.
    pub samples: Vec<f64>,
    /// The reason why samples are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

impl Series {
    /// Returns the median and the spread, or `None` without samples.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(&self.samples)
    }

    /// Returns `true` if the figure belongs to a window of time. It is a point of a plot, and the
    /// tables leave it out.
    pub fn is_over_time(&self) -> bool {
        self.unit.ends_with(OVER_TIME)
    }

    fn is(&self, peer: &str, workload: &str, params: &str, unit: &str) -> bool {
        self.peer == peer && self.workload == workload && self.params == params && self.unit == unit
    }
}

impl Results {
    /// Creates results without figures.
    pub fn new(machine: Machine, size: Size) -> Self {
        Self { machine, quick: size == Size::Quick, series: Vec::new() }
    }

    /// Returns the sizes of the run.
    pub fn size(&self) -> Size {
        if self.quick { Size::Quick } else { Size::Full }
    }

    /// Adds the rows of one process.
    pub fn add(&mut self, rows: Vec<Row>) {
        for row in rows {
            let known = self.series.iter().position(|old| old.is(&row.peer, &row.workload, &row.params, &row.unit));
            let at = known.unwrap_or_else(|| {
                let Row { peer, workload, params, unit, .. } = row;
                self.series.push(Series { peer, workload, params, unit, samples: Vec::new(), unavailable: None });
                self.series.len() - 1
            });
            match row.value {
                Ok(value) => self.series[at].samples.push(value),
                Err(reason) => self.series[at].unavailable = Some(reason),
            }
        }
    }

    /// Returns the series of one figure.
    pub fn find(&self, peer: &str, workload: &str, params: &str, unit: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.is(peer, workload, params, unit))
    }

    /// Returns the series of one workload, without those over time.
    pub fn of<'a>(&'a self, workload: &'a str) -> impl Iterator<Item = &'a Series> + Clone {
        self.series.iter().filter(move |series| series.workload == workload && !series.is_over_time())
    }

    /// Returns the plots over time of one workload, by the parameters and the unit.
    pub fn over_time(&self, workload: &str) -> Vec<(&str, &str, Vec<Line<'_>>)> {
        let mut plots: Vec<(&str, &str, Vec<Line<'_>>)> = Vec::new();
        for series in self.series.iter().filter(|series| series.workload == workload && series.is_over_time()) {
            let place = series.params.rsplit_once(",t=").and_then(|(params, t)| Some((params, t.parse().ok()?)));
            let Some(((params, t), summary)) = place.zip(series.summary()) else { continue };
            let unit = series.unit.trim_end_matches(OVER_TIME);
            let known = plots.iter().position(|plot| (plot.0, plot.1) == (params, unit));
            let at = known.unwrap_or_else(|| {
                plots.push((params, unit, Vec::new()));
                plots.len() - 1
            });
            let lines = &mut plots[at].2;
            let known = lines.iter().position(|line| line.0 == series.peer);
            let line = known.unwrap_or_else(|| {
                lines.push((&series.peer, Vec::new()));
                lines.len() - 1
            });
            lines[line].1.push((t, summary.median));
        }
        plots
    }

    /// Returns the ratio of a figure to ours.
    pub fn ratio(&self, series: &Series) -> Option<f64> {
        let ours = self.find(OURS, &series.workload, &series.params, &series.unit)?;
        ratio(series.summary()?.median, ours.summary()?.median, &series.unit)
    }

    /// Returns all results as JSON.
    ///
    /// # Errors
    ///
    /// No case is known in which this fails.
    pub fn to_json(&self) -> io::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Loads the results saved in `folder`.
    ///
    /// # Errors
    ///
    /// Fails if there is no such file or if its content is invalid.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(folder.join("results.json"))?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Returns the results as CSV with one line for each figure.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("workload,params,unit,peer,median,min,max,rounds,ratio,unavailable\n");
        for series in &self.series {
            let numbers = match series.summary() {
                Some(Summary { median, min, max, .. }) => [median, min, max].map(figure),
                None => Default::default(),
            };
            let ratio = self.ratio(series).map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
            let reason = series.unavailable.as_deref().unwrap_or_default();
            let rounds = series.samples.len().to_string();
            let [median, min, max] = &numbers;
            let names = [&series.workload, &series.params, &series.unit, &series.peer];
            let cells = names.map(String::as_str).into_iter().chain([median, min, max, &rounds, &ratio, reason]);
            text += &cells.map(quoted).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
        text
    }
}

/// Quotes a cell for CSV if necessary.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Machine, Results, quoted};
    use crate::row::Row;
    use crate::settings::Size;

    /// Parses the lines that processes would print.
    pub(in crate::report) fn results(lines: &str) -> Results {
        let mut results = Results::new(Machine::default(), Size::Full);
        results.add(lines.lines().filter_map(Row::parse).collect());
        results
    }

    #[test]
    fn rounds_of_the_same_figure_are_one_series() {
        let results =
            results("timer W1 P=1 50 ns/a\ntokio W1 P=1 180 ns/a\ntimer W1 P=1 70 ns/a\ntokio W1 P=1 n/a ns/b why");
        assert_eq!(results.series.len(), 3);
        assert_eq!(results.series[0].samples, [50.0, 70.0]);
        assert_eq!(results.ratio(&results.series[1]), Some(3.0));
        assert_eq!(results.series[2].unavailable.as_deref(), Some("why"));
    }

    #[test]
    fn figures_over_time_are_lines_of_a_plot() {
        let results = results(
            "timer W1 P=1,t=0.25 5 us-lag-over-time\ntimer W1 P=1,t=0.50 7 us-lag-over-time\n\
             timer W1 P=1,t=0.50 9 us-lag-over-time\nheap W1 P=1,t=0.25 1 us-lag-over-time\ntimer W1 P=1 5 us-lag",
        );
        let lines = vec![("timer", vec![(0.25, 5.0), (0.5, 8.0)]), ("heap", vec![(0.25, 1.0)])];
        assert_eq!(results.over_time("W1"), [("P=1", "us-lag", lines)]);
        assert_eq!(results.of("W1").count(), 1, "the tables leave them out");
    }

    #[test]
    fn saved_results_are_loaded_unchanged() {
        let results = results("timer W1 P=1 50.25 ns/a\ntokio W1 - n/a - cannot do it");
        let json = results.to_json().unwrap();
        assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
    }

    #[test]
    fn csv_has_a_line_for_each_figure() {
        let results = results("timer W1 n=1,P=1 50 ns/a\ntokio W1 n=1,P=1 150 ns/a\nheap W9 - n/a - \"no\"");
        let lines: Vec<_> = results.to_csv().lines().skip(1).map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "W1,\"n=1,P=1\",ns/a,timer,50.00,50.00,50.00,1,1.00,",
                "W1,\"n=1,P=1\",ns/a,tokio,150.0,150.0,150.0,1,3.00,",
                "W9,-,-,heap,,,,0,,\"\"\"no\"\"\"",
            ]
        );
        assert_eq!(quoted("plain"), "plain");
    }
}
