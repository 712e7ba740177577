//! A lag as a histogram on a logarithmic axis, with its quantiles.

use std::fmt::Write as _;
use std::time::Duration;

use timer_core::LagSnapshot;

use super::frame::{Axis, Frame, HALF};
use super::marks::{Bar, bars};
use super::markup::{percent, px};
use super::scale::{Scale, counts, decades};
use crate::sessions::units::{fine, grouped};

/// Bars for each power of ten.
const PER_DECADE: u32 = 10;
/// Nothing finer is shown: a microsecond, in nanoseconds.
const LEAST: u64 = 1_000;
/// Where the names of the quantiles are written, one below the other.
const LINE: f64 = 17.0;
/// How wide a name and its value are, about.
const NAME: f64 = 96.0;

/// The histogram; `name` says of what.
pub(super) fn lag(name: &str, lag: &LagSnapshot) -> String {
    let (from, to) = ends(lag);
    let bars_of = buckets(lag, from, to);
    let most = bars_of.iter().map(|bar| bar.count).max().unwrap_or(0);
    let ticks = counts(most, 5);
    let top = ticks.last().copied().unwrap_or(1) as f64;
    let x_ticks = decades(from, to).into_iter().map(|(nanos, label)| (nanos as f64, label)).collect();
    let frame = Frame {
        size: HALF,
        x: Axis { scale: Scale::Log(from as f64, to as f64), ticks: x_ticks },
        y: Axis { scale: Scale::Linear(top), ticks: ticks.into_iter().map(|n| (n as f64, grouped(n))).collect() },
        top: LINE * 3.0 + 8.0,
    };
    let mut marks = bars(&frame, &bars_of);
    if lag.count() > 0 {
        marks += &quantile_lines(&frame, &quantiles(lag));
    }
    frame.svg(&format!("Histogram of the {name}"), &marks)
}

fn quantiles(lag: &LagSnapshot) -> [(&'static str, Duration); 3] {
    [("p50", lag.quantile(0.5)), ("p99", lag.quantile(0.99)), ("max", lag.max())]
}

/// The lines of the quantiles. Their names stand all at one side, each above the lines that it would meet there.
fn quantile_lines(frame: &Frame, quantiles: &[(&str, Duration); 3]) -> String {
    let places = quantiles.map(|(_, value)| frame.x(nanos(value) as f64));
    let to_the_left = places[2] + NAME > frame.size.width && places[0] > NAME;
    let mut marks = String::new();
    for (at, (name, value)) in quantiles.iter().enumerate() {
        let x = places[at];
        let row = if to_the_left { quantiles.len() - 1 - at } else { at };
        let y = LINE * (row as f64 + 0.7);
        let (class, text_x) = match to_the_left {
            true => ("end", x - 6.0),
            false if x + NAME > frame.size.width => ("end", frame.size.width),
            false => ("start", x + 6.0),
        };
        // Writing to a String does not fail.
        let _ = write!(marks, r#"<path class="quantile" d="M{} {}V{}"/>"#, px(x), px(y - 9.0), px(frame.floor()));
        let _ = writeln!(
            marks,
            r#"<text class="{class} over" x="{}" y="{}">{name} <tspan class="value">{}</tspan></text>"#,
            px(text_x),
            px(y),
            fine(*value)
        );
    }
    marks
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The powers of ten between which all lags lie; what is below the least is shown there. Two of them at least.
fn ends(lag: &LagSnapshot) -> (u64, u64) {
    let below = |value: u64| 10_u64.pow(value.max(LEAST).ilog10());
    let from = below(nanos(lag.quantile(0.0)));
    let max = nanos(lag.max());
    let to = if below(max) >= max { below(max) } else { below(max).saturating_mul(10) };
    (from, to.max(from.saturating_mul(100)))
}

/// The bars from `from` to `to`; the first has what is below, too.
fn buckets(lag: &LagSnapshot, from: u64, to: u64) -> Vec<Bar> {
    let mut below = 0;
    let edge = |at: u32| from as f64 * 10_f64.powf(f64::from(at) / f64::from(PER_DECADE));
    let decades = (to / from).max(1).ilog10();
    let mut bars = Vec::new();
    for at in 0..decades * PER_DECADE {
        let (from, to) = (edge(at), edge(at + 1));
        let upper = Duration::from_nanos(to.round() as u64);
        let up_to = lag.count_up_to(upper).max(below);
        let count = up_to - below;
        below = up_to;
        let lower = if at == 0 { "0".to_owned() } else { fine(Duration::from_nanos(from.round() as u64)) };
        let title = format!("{lower} to {}: {}, {}", fine(upper), grouped(count), percent(count, lag.count()));
        bars.push(Bar { from, to, count, title });
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;
    use timer_core::Timer;

    /// Virtual time is late by as much as a deadline lies in the past.
    fn late_by(lags: &[Duration]) -> LagSnapshot {
        let (timer, mut driver) = Timer::builder().build_manual().unwrap();
        driver.advance(Duration::from_secs(10));
        for lag in lags {
            timer.new_timeout_at(driver.now() - *lag, |_| {}).unwrap();
        }
        driver.advance(Duration::ZERO);
        timer.stats().timeout_lag
    }

    #[test]
    fn every_lag_is_in_one_bar() {
        let lags = [0, 999, 1_000, 12_000, 500_000_000, 999_000_000].map(Duration::from_nanos);
        let lag = late_by(&lags);
        let (from, to) = ends(&lag);
        assert_eq!((from, to), (1_000, 1_000_000_000));
        let bars = buckets(&lag, from, to);
        assert_eq!(bars.len(), 60);
        assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), lag.count());
        assert_eq!((bars[0].count, bars[10].count), (3, 1));
        assert!(bars[0].title.starts_with("0 to 1.26 µs: 3, 50.0 %"), "{}", bars[0].title);
        assert!(bars.windows(2).all(|pair| (pair[0].to - pair[1].from).abs() < 1e-3));
    }

    #[test]
    fn nothing_measured_and_nothing_late_have_an_axis_all_the_same() {
        for lag in [LagSnapshot::default(), late_by(&[Duration::ZERO])] {
            assert_eq!(ends(&lag), (1_000, 100_000));
            let svg = super::lag("x", &lag);
            assert!(svg.contains("10 µs") && !svg.contains("NaN"));
            assert_eq!(svg.contains("p99"), lag.count() > 0);
        }
    }
}
