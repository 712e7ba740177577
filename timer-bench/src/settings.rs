//! The size of a workload. It comes from the command line, from a quick set or from the workload's
//! defaults.

use std::collections::BTreeMap;

/// The names that may be set, with their meanings. Each workload uses some of them.
pub const NAMES: &[(&str, &str)] = &[
    ("n", "timers, pairs or resets in all; for W11, W12 and case 2 of W21 a list"),
    ("threads", "calling threads, a list"),
    ("standing", "other timers that are pending, a list"),
    ("lead-ms", "how long before the first due instant scheduling starts"),
    ("ms", "how long is measured, or waited for what does not come, in milliseconds"),
    ("tick-us", "the tick, in microseconds, a list (ours only)"),
    ("live", "W9: how many connections each thread has, a list"),
    ("cpus", "W13: on how many CPUs the two threads run, a list; W15: how many CPUs there are for all threads"),
    ("cancel", "W15: percentage of the timeouts that are cancelled at once"),
    ("stall-ms", "W15: time for which one task blocks the timer, in milliseconds"),
    ("freeze-ms", "W15: time for which the process is stopped by SIGSTOP, in milliseconds"),
    ("window-ms", "W15: length of the windows of the plot over time, in milliseconds, or 0 for no plot"),
    ("pause-us", "W15: how long a thread pauses after every 100 pairs, in microseconds"),
    ("nice", "W15: 1 for callers beside holders of nice 19"),
    ("case", "W21: which of its five cases, a list"),
    ("requests", "W20: how many requests each connection makes"),
    ("turns", "W20: how often the server is measured with either timer"),
    ("count", "W20: 1 to count instructions, 0 not to"),
    ("limits", "W20: 1 for one sleep per connection, 0 for the timer of hyper"),
    ("port", "W20:clients: the port of the server"),
    ("rate", "E4, P4 and P9: timeouts per second"),
    ("alone", "E4, P4 and P9: 1 if all timeouts are scheduled before the first one is due"),
    ("nodes", "P2, P3 and P7: nodes that share the database"),
    ("goal", "P9: 1 to fail if its goal is missed"),
    ("floor-ms", "E1 to E4 and E7: how long the floor is measured, in milliseconds"),
    ("stop-ms", "W15: how long the stop is waited for, in milliseconds"),
];

/// The two sets of sizes of a workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Size {
    /// Sizes for meaningful figures.
    #[default]
    Full,
    /// Small sizes for rough figures.
    Quick,
}

/// The settings of a workload.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    size: Size,
    given: BTreeMap<String, Vec<usize>>,
}

impl Settings {
    /// Reads `--quick` and `NAME=NUMBER[,NUMBER..]`.
    ///
    /// # Errors
    ///
    /// Fails with the wrong word and the reason.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut settings = Self::default();
        for word in words {
            if word == "--quick" {
                settings.size = Size::Quick;
                continue;
            }
            let (name, values) = word.split_once('=').ok_or_else(|| format!("`{word}` is no NAME=NUMBER"))?;
            if !NAMES.iter().any(|(known, _)| *known == name) {
                let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                return Err(format!("no setting `{name}`; there are {}", names.join(", ")));
            }
            let values: Result<Vec<usize>, _> = values.split(',').map(str::parse).collect();
            let values = values.map_err(|_| format!("`{word}`: whole numbers are needed"))?;
            settings.given.insert(name.to_owned(), values);
        }
        Ok(settings)
    }

    /// Returns the list `name`.
    pub fn list(&self, name: &str, full: &[usize], quick: &[usize]) -> Vec<usize> {
        match (self.given.get(name), self.size) {
            (Some(values), _) => values.clone(),
            (None, Size::Quick) => quick.to_vec(),
            (None, Size::Full) => full.to_vec(),
        }
    }

    /// Returns the number `name`.
    pub fn number(&self, name: &str, full: usize, quick: usize) -> usize {
        let values = self.list(name, &[full], &[quick]);
        values.first().copied().unwrap_or(full)
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn given_wins_over_quick_and_quick_over_default() {
        let settings = Settings::parse(["--quick", "threads=1,2"]).unwrap();
        assert_eq!(settings.list("threads", &[1, 2, 4], &[1]), [1, 2]);
        assert_eq!(settings.number("n", 1_000, 10), 10);
        assert_eq!(Settings::default().number("n", 1_000, 10), 1_000);
    }

    #[test]
    fn errors_name_unknown_settings() {
        let error = |word| Settings::parse([word]).unwrap_err();
        assert!(error("N=1").contains("`N`") && error("N=1").contains("threads"));
        assert!(error("n=many").contains("n=many"));
        assert!(error("n").contains("`n`"));
    }
}
