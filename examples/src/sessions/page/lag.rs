//! The histogram of a lag on a logarithmic axis, with its quantiles.

use std::time::Duration;

use maud::Markup;
use timer_core::LagSnapshot;

use super::chart::{ALARM, Axis, Bar, Content, Fault, Mark, SOFT, chart};
use super::over_time::of_counts;
use super::scale::decades;
use super::tables::percent;
use crate::sessions::units::{fine, grouped, whole};

/// The number of bars for each power of ten.
const PER_DECADE: u32 = 10;
/// The lower end of the axis at the finest, in nanoseconds.
const LEAST: u64 = 1_000;
const WIDTH: u32 = 720;
const HEIGHT: u32 = 280;

/// Returns the histogram of the lag of `counted`, with the timer's tick as a line.
pub(super) fn lag(counted: &'static str, lag: &LagSnapshot, tick: Duration) -> Result<Markup, Fault> {
    let (from, to) = ends(lag, tick);
    let bars = buckets(lag, from, to);
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    let mut marks = vec![Mark { at: log(nanos(tick)), name: format!("tick {}", whole(tick)), colour: SOFT }];
    if lag.count() > 0 {
        marks.extend(quantiles(lag).map(|(name, value)| Mark {
            at: log(nanos(value)),
            name: format!("{name} {}", fine(value)),
            colour: ALARM,
        }));
    }
    let ticks: Vec<_> = decades(from, to).into_iter().map(|(nanos, label)| (log(nanos), label)).collect();
    // In narrow charts every other power of ten has a label.
    let x = |most: usize| Axis {
        title: "lag, logarithmic",
        from: log(from),
        to: log(to),
        ticks: ticks.iter().step_by(ticks.len().div_ceil(most.max(1)).max(1)).cloned().collect(),
    };
    let content = Content { bars, marks, ..Content::default() };
    chart(&format!("Histogram of the lag of {counted}"), WIDTH, HEIGHT, x, &of_counts(counted, most, 5), &content)
}

fn quantiles(lag: &LagSnapshot) -> [(&'static str, Duration); 3] {
    [("p50", lag.quantile(0.5)), ("p99", lag.quantile(0.99)), ("max", lag.max())]
}

/// Returns the position of a value on the axis.
fn log(nanos: u64) -> f64 {
    (nanos.max(1) as f64).log10()
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the powers of ten that enclose all lags and the tick, at least two apart. Shorter lags
/// are shown at the lower end.
fn ends(lag: &LagSnapshot, tick: Duration) -> (u64, u64) {
    let below = |value: u64| 10_u64.pow(value.max(LEAST).ilog10());
    let from = below(nanos(lag.quantile(0.0).min(tick)));
    let max = nanos(lag.max().max(tick));
    let to = if below(max) >= max { below(max) } else { below(max).saturating_mul(10) };
    (from, to.max(from.saturating_mul(100)))
}

/// Returns the bars from `from` to `to`. The first bar includes the lags below it.
fn buckets(lag: &LagSnapshot, from: u64, to: u64) -> Vec<Bar> {
    let mut below = 0;
    let edge = |at: u32| from as f64 * 10_f64.powf(f64::from(at) / f64::from(PER_DECADE));
    let decades = (to / from).max(1).ilog10();
    let mut bars = Vec::new();
    for at in 0..decades * PER_DECADE {
        let from = edge(at);
        let to = edge(at + 1);
        let upper = Duration::from_nanos(to.round() as u64);
        let up_to = lag.count_up_to(upper).max(below);
        let count = up_to - below;
        below = up_to;
        let lower = if at == 0 { "0".to_owned() } else { fine(Duration::from_nanos(from.round() as u64)) };
        let title = format!("{lower} to {}: {}, {}", fine(upper), grouped(count), percent(count, lag.count()));
        bars.push(Bar { from: from.log10(), to: to.log10(), count, title });
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;
    use timer_core::Timer;

    /// Returns the lag of tasks whose deadlines lie in the past of virtual time by `lags`.
    fn late_by(lags: &[Duration]) -> LagSnapshot {
        let (timer, mut driver) = Timer::builder().build_manual().unwrap();
        driver.advance(Duration::from_secs(10));
        for lag in lags {
            timer.new_timeout_at(driver.now() - *lag, |_| {}).unwrap();
        }
        driver.advance(Duration::ZERO);
        timer.stats().start_lag
    }

    #[test]
    fn every_lag_is_in_one_bar() {
        let lags = [0, 999, 1_000, 12_000, 500_000_000, 999_000_000].map(Duration::from_nanos);
        let lag = late_by(&lags);
        let (from, to) = ends(&lag, Duration::from_millis(1));
        assert_eq!((from, to), (1_000, 1_000_000_000));
        let bars = buckets(&lag, from, to);
        assert_eq!(bars.len(), 60);
        assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), lag.count());
        assert_eq!((bars[0].count, bars[10].count), (3, 1));
        assert!(bars[0].title.starts_with("0 to 1.26 µs: 3, 50.0 %"), "{}", bars[0].title);
        assert!(bars.windows(2).all(|pair| (pair[0].to - pair[1].from).abs() < 1e-3));
    }

    #[test]
    fn the_axis_includes_all_lags_and_the_tick() {
        for lag in [LagSnapshot::default(), late_by(&[Duration::ZERO])] {
            assert_eq!(ends(&lag, Duration::from_micros(1)), (1_000, 100_000));
            assert_eq!(ends(&lag, Duration::from_millis(1)), (1_000, 1_000_000));
            let svg = super::lag("x", &lag, Duration::from_millis(1)).unwrap().into_string();
            assert!(svg.contains("10 µs") && svg.contains("tick 1 ms") && !svg.contains("NaN"));
            assert_eq!(svg.contains("p99"), lag.count() > 0);
        }
        assert_eq!(ends(&late_by(&[Duration::from_secs(9)]), Duration::from_micros(20)), (10_000, 10_000_000_000));
    }
}
