//! All figures of a run, round by round, kept as CSV.

use crate::row::{Row, figure};

/// The suffix of the units of figures that belong to a window of time. The end of the window is the
/// last parameter, `t=SECONDS`.
const OVER_TIME: &str = "-over-time";

/// One figure over all rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Series {
    pub(super) workload: String,
    pub(super) peer: String,
    pub(super) params: String,
    pub(super) unit: String,
    /// The figure of each round.
    pub(super) samples: Vec<f64>,
    /// The reason why a round had no figure, or an empty text.
    pub(super) why: String,
    /// The largest share of the CPU time that the host took in a round, in percent.
    pub(super) stolen: f64,
}

/// The median and the range of the rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Series {
    /// Returns the summary of the rounds. Returns `None` if no round had a figure.
    pub(super) fn summary(&self) -> Option<Summary> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let min = *sorted.first()?;
        let max = *sorted.last()?;
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Summary { median, min, max })
    }

    /// Returns `true` if the parameters include all of `wanted`, and mimalloc only if it is wanted.
    pub(super) fn has(&self, wanted: &str) -> bool {
        let contains = |params: &str, one: &str| params.split(',').any(|param| param == one);
        let all = wanted.split(',').filter(|one| !one.is_empty()).all(|one| contains(&self.params, one));
        all && contains(&self.params, "mimalloc") == contains(wanted, "mimalloc")
    }
}

/// The points of a line over time: seconds and medians.
pub(super) type Points = Vec<(f64, f64)>;

/// The figures of one run, in the order of their first occurrence.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Results(pub(super) Vec<Series>);

impl Results {
    /// Adds the figures of one process, during which the host took `stolen` percent of the CPU
    /// time.
    pub(super) fn add(&mut self, rows: Vec<Row>, stolen: f64) {
        for Row { peer, workload, params, value, unit } in rows {
            let is_same =
                |one: &Series| (&one.workload, &one.peer, &one.params, &one.unit) == (&workload, &peer, &params, &unit);
            let at = self.0.iter().position(is_same).unwrap_or(self.0.len());
            if at == self.0.len() {
                let samples = Vec::new();
                self.0.push(Series { workload, peer, params, unit, samples, why: String::new(), stolen });
            }
            let series = &mut self.0[at];
            series.stolen = series.stolen.max(stolen);
            match value {
                Ok(value) => series.samples.push(value),
                Err(why) => series.why = why,
            }
        }
    }

    /// Returns the series of a workload and unit with these parameters.
    pub(super) fn of<'a>(
        &'a self,
        workload: &'a str,
        params: &'a str,
        unit: &'a str,
    ) -> impl Iterator<Item = &'a Series> {
        self.0.iter().filter(move |one| one.workload == workload && one.unit == unit && one.has(params))
    }

    /// Returns the lines of a unit over time, each with its peer, its parameters and its points.
    pub(super) fn over_time(&self, workload: &str, unit: &str) -> Vec<(String, Points)> {
        let mut lines: Vec<(String, Points)> = Vec::new();
        for one in
            self.0.iter().filter(|one| one.workload == workload && one.unit.strip_suffix(OVER_TIME) == Some(unit))
        {
            let Some((params, time)) = one.params.rsplit_once(",t=") else { continue };
            let Some((time, summary)) = time.parse().ok().zip(one.summary()) else { continue };
            let name = format!("{} {params}", one.peer);
            match lines.iter_mut().find(|line| line.0 == name) {
                Some(line) => line.1.push((time, summary.median)),
                None => lines.push((name, vec![(time, summary.median)])),
            }
        }
        lines.iter_mut().for_each(|line| line.1.sort_by(|one, other| one.0.total_cmp(&other.0)));
        lines
    }

    /// Returns all figures as CSV. The rounds are separated by spaces.
    pub(super) fn to_csv(&self) -> String {
        let mut text = "workload,timer,params,unit,median,rounds,unavailable,stolen\n".to_owned();
        for one in &self.0 {
            let Series { workload, peer, params, unit, samples, why, stolen } = one;
            let median = one.summary().map_or(String::new(), |summary| figure(summary.median));
            let rounds: Vec<String> = samples.iter().map(|sample| figure(*sample)).collect();
            let why = why.replace('"', "'");
            text +=
                &format!("{workload},{peer},\"{params}\",{unit},{median},{},\"{why}\",{stolen:.1}\n", rounds.join(" "));
        }
        text
    }

    /// Reads the figures of [`to_csv`](Self::to_csv). Files of older runs have no stolen time.
    pub(super) fn from_csv(text: &str) -> Self {
        let series = |line: &str| {
            let mut parts = line.split('"');
            let (workload, peer) = parts.next()?.trim_end_matches(',').split_once(',')?;
            let params = parts.next()?.to_owned();
            let mut rest = parts.next()?.trim_matches(',').split(',');
            let unit = rest.next()?.to_owned();
            let samples = rest.nth(1).unwrap_or_default().split(' ').filter_map(|sample| sample.parse().ok()).collect();
            let why = parts.next().unwrap_or_default().to_owned();
            let stolen = parts.next().and_then(|text| text.trim_start_matches(',').parse().ok()).unwrap_or_default();
            Some(Series { workload: workload.to_owned(), peer: peer.to_owned(), params, unit, samples, why, stolen })
        };
        Self(text.lines().skip(1).filter_map(series).collect())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::Results;
    use crate::row::Row;

    /// Parses the lines that processes would print.
    pub(in crate::report) fn results(lines: &str) -> Results {
        let mut results = Results::default();
        results.add(lines.lines().filter_map(Row::parse).collect(), 0.0);
        results
    }

    #[test]
    fn rounds_of_the_same_figure_are_one_series() {
        let results = results("timer pair P=1 50 ns\ntimer pair P=1 70 ns\ntokio pair P=1 n/a ns is broken");
        let summary = results.0[0].summary().unwrap();
        assert_eq!((results.0.len(), summary.median, summary.min, summary.max), (2, 60.0, 50.0, 70.0));
        assert_eq!((results.0[1].summary(), results.0[1].why.as_str()), (None, "is broken"));
    }

    #[test]
    fn parameters_match_as_a_whole() {
        let results = results(
            "timer pair n=1k,threads=1 50 ns\ntimer pair n=1k,threads=1,mimalloc 40 ns\ntimer pair n=1k,threads=12 1 ns",
        );
        let found = |params| results.of("pair", params, "ns").map(|one| one.samples[0]).collect::<Vec<_>>();
        assert_eq!((found("threads=1"), found("threads=1,mimalloc")), (vec![50.0], vec![40.0]));
    }

    #[test]
    fn figures_over_time_are_lines() {
        let results = results("timer o P=1,t=0.50 7 ms-over-time\ntimer o P=1,t=0.25 5 ms-over-time\ntimer o P=1 5 ms");
        assert_eq!(results.over_time("o", "ms"), [("timer P=1".to_owned(), vec![(0.25, 5.0), (0.5, 7.0)])]);
    }

    #[test]
    fn csv_is_read_back() {
        let mut results =
            results("timer pair n=1,P=1 50 ns\ntimer pair n=1,P=1 70 ns\ntokio pair - n/a - cannot, at all");
        results.0[0].stolen = 1.5;
        assert_eq!(Results::from_csv(&results.to_csv()), results);
        let line = "\npair,timer,\"n=1,P=1\",ns,60.00,50.00 70.00,\"\",1.5\n";
        assert!(results.to_csv().contains(line));
        let older = results.to_csv().replace(",1.5\n", "\n");
        assert_eq!(Results::from_csv(&older).0[0].stolen, 0.0);
    }

    #[test]
    fn a_series_keeps_the_largest_stolen_share() {
        let mut results = Results::default();
        for stolen in [0.5, 1.5, 1.0] {
            results.add(Row::parse("timer pair - 50 ns").into_iter().collect(), stolen);
        }
        assert_eq!((results.0[0].stolen, results.0[0].samples.len()), (1.5, 3));
    }
}
