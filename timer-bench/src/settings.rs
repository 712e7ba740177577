//! The settings of a workload, from the command line or from its defaults.

use std::collections::BTreeMap;
use std::time::Duration;

/// The settings with their meanings. Each workload uses some of them.
pub const NAMES: &[(&str, &str)] = &[
    ("n", "timers, pairs, resets, calls or items in all; growth: pending ones, a list"),
    ("threads", "calling threads or workers, a list"),
    ("count", "growth: operations of each kind"),
    ("standing", "other timers that are pending"),
    ("live", "reset: connections of each thread"),
    ("lead-ms", "time from the first call to the first deadline"),
    ("ms", "time for which is measured"),
    ("tick-us", "lateness: the tick of ours, a list"),
    ("cancel", "overload: percentage of the timeouts that are cancelled at once"),
    ("stall-ms", "overload: time for which a task blocks the timer"),
    ("rate", "durable: timeouts that come due each second"),
    ("delay-ms", "durable: delays whose lateness is measured, a list"),
    ("case", "held: 1 for a late round, 2 for a cascade; ttl: numbers of clusters; a list"),
];

/// The values of the settings that were given.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    is_quick: bool,
    given: BTreeMap<String, Vec<usize>>,
}

impl Settings {
    /// Parses operands and settings, such as `tokio schedule --n 1000 --threads 1,2`. With
    /// `--quick`, counts and times are a tenth of their defaults. Returns the operands.
    ///
    /// # Errors
    ///
    /// Fails if a setting is unknown or if its value is not a list of whole numbers.
    pub fn parse<W: Into<std::ffi::OsString>>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<(Vec<String>, Self), lexopt::Error> {
        let mut parser = lexopt::Parser::from_args(words);
        let mut operands = Vec::new();
        let mut settings = Self::default();
        while let Some(argument) = parser.next()? {
            match argument {
                lexopt::Arg::Value(word) => operands.push(word.to_string_lossy().into_owned()),
                lexopt::Arg::Long("quick") => settings.is_quick = true,
                lexopt::Arg::Long(name) if NAMES.iter().any(|(known, _)| *known == name) => {
                    let name = name.to_owned();
                    let text = parser.value()?.to_string_lossy().into_owned();
                    let values: Result<_, _> = text.split(',').map(str::parse).collect();
                    let values = values.map_err(|_| format!("`--{name} {text}`: whole numbers are needed"))?;
                    settings.given.insert(name, values);
                }
                other => return Err(other.unexpected()),
            }
        }
        Ok((operands, settings))
    }

    /// Returns the list `name`.
    pub fn list(&self, name: &str, default: &[usize]) -> Vec<usize> {
        self.given.get(name).map_or_else(|| default.to_vec(), Clone::clone)
    }

    /// Returns the list of sizes `n`. A quick run has only the first two of the default.
    pub fn sizes(&self, default: &[usize]) -> Vec<usize> {
        self.list("n", if self.is_quick { &default[..default.len().min(2)] } else { default })
    }

    /// Returns the number `name`, which a quick run does not reduce.
    pub fn choice(&self, name: &str, default: usize) -> usize {
        self.list(name, &[default]).first().copied().unwrap_or(default)
    }

    /// Returns the number `name`.
    pub fn number(&self, name: &str, default: usize) -> usize {
        self.choice(name, if self.is_quick { default / 10 } else { default })
    }

    /// Returns the time `name` in milliseconds.
    pub fn millis(&self, name: &str, default: usize) -> Duration {
        Duration::from_millis(self.number(name, default) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn a_given_value_wins_over_a_default() {
        let (operands, settings) = Settings::parse(["a", "--threads", "1,2", "b", "--quick", "--ms=70"]).unwrap();
        assert_eq!((operands, settings.list("threads", &[4])), (vec!["a".to_owned(), "b".to_owned()], vec![1, 2]));
        assert_eq!(
            [settings.number("n", 1_000), settings.choice("n", 1_000), settings.number("ms", 9)],
            [100, 1_000, 70]
        );
        assert_eq!((settings.sizes(&[10, 100, 1_000]), settings.sizes(&[])), (vec![10, 100], vec![]));
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (words, named) in [(vec!["--N", "1"], "'--N'"), (vec!["--n", "many"], "--n many"), (vec!["--n"], "'--n'")] {
            assert!(Settings::parse(words).unwrap_err().to_string().contains(named), "{named}");
        }
    }
}
