//! P9, a run at a fixed rate for minutes, with the default autovacuum.

use crate::cluster::number;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use timer_bench::durable::row;
use timer_bench::row::Row;

/// The goal for the lag at 99 %, in microseconds.
const GOAL: f64 = 5_000.0;
/// The goal for the growth from the middle third of a run to its last third, as a factor. Without a
/// vacuum the growth is 1.67.
const MOST_GROWTH: f64 = 1.25;

/// The dead rows of the table with the most of them, and the megabytes of the database, after each
/// minute.
#[derive(Clone, Default)]
pub(crate) struct Watch(Arc<Mutex<Vec<[f64; 2]>>>);

impl Watch {
    /// Prints the figures once a minute, in a thread that ends with the process.
    pub(crate) fn start(peer: &'static str, url: &str, print: fn(Row)) -> Self {
        let watch = Self::default();
        let (seen, url) = (watch.clone(), url.to_owned());
        thread::spawn(move || {
            for minute in 1.. {
                thread::sleep(Duration::from_secs(60));
                match look(&url) {
                    Ok(figures) => {
                        let params = format!("minute={minute}");
                        print(row(peer, "P9", &params, figures[0], "dead-rows"));
                        print(row(peer, "P9", &params, figures[1], "MB-database"));
                        seen.0.lock().unwrap_or_else(PoisonError::into_inner).push(figures);
                    }
                    Err(error) => eprintln!("{error}"),
                }
            }
        });
        watch
    }

    /// Fails with the missed goals of a run that had these lags.
    pub(crate) fn judge(&self, lags: &[Row]) -> Result<(), String> {
        let minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut missed = Vec::new();
        let lag = |unit: &str| lags.iter().find(|row| row.unit == unit).and_then(|row| row.value.clone().ok());
        for (unit, most) in [("us-p99", GOAL), ("early", 0.0), ("overdue", 0.0)] {
            match lag(unit) {
                Some(value) if value <= most => {}
                Some(value) => missed.push(format!("{unit} is {value}; allowed: {most}")),
                None => missed.push(format!("{unit} is missing")),
            }
        }
        for (n, what) in ["dead rows", "MB of the database"].into_iter().enumerate() {
            let column: Vec<f64> = minutes.iter().map(|figures| figures[n]).collect();
            if !levels_off(&column) {
                missed.push(format!("the {what} do not level off: {column:?}"));
            }
        }
        if missed.is_empty() { Ok(()) } else { Err(missed.join("; ")) }
    }
}

fn look(url: &str) -> Result<[f64; 2], String> {
    let dead = "select n_dead_tup from pg_stat_user_tables where schemaname = 'timer' order by n_dead_tup desc limit 1";
    let size = "select pg_database_size(current_database()) / 1e6";
    Ok([number(url, dead)?, number(url, size)?])
}

/// Returns `true` if the last third of the values is not much larger than the middle third.
fn levels_off(values: &[f64]) -> bool {
    let third = values.len() / 3;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    third > 0 && mean(&values[values.len() - third..]) <= MOST_GROWTH * mean(&values[third..values.len() - third])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_growth_does_not_level_off() {
        let growing: Vec<f64> = (1..=10).map(f64::from).collect();
        assert!(!levels_off(&growing) && !levels_off(&[]) && !levels_off(&[1.0, 2.0]));
        assert!(levels_off(&[1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 4.1, 3.9, 4.0, 4.0]));
    }

    #[test]
    fn a_missed_goal_is_named() {
        let lags = |p99| {
            [("us-p99", p99), ("early", 0.0), ("overdue", 0.0)]
                .map(|(unit, value)| row("timer", "P9", "-", value, unit))
        };
        let watch = Watch(Arc::new(Mutex::new(vec![[5.0, 2.0]; 9])));
        assert_eq!(watch.judge(&lags(4_999.0)), Ok(()));
        assert_eq!(watch.judge(&lags(5_001.0)), Err("us-p99 is 5001; allowed: 5000".to_owned()));
        let growing = Watch(Arc::new(Mutex::new((1..10).map(|n| [f64::from(n), 2.0]).collect())));
        assert!(growing.judge(&lags(1.0)).is_err_and(|why| why.starts_with("the dead rows do not level off")));
    }
}
