//! The charts over the seconds of the log, for sessions opened and timeouts pending. Both have the
//! same horizontal axis.

use maud::Markup;

use super::chart::{Axis, Bar, Content, Fault, chart};
use super::run::Run;
use super::scale::{counts, time_step, times};
use crate::sessions::units::{grouped, span};

/// The greatest number of bars.
const BARS: u64 = 60;
/// The greatest numbers of points of a line, and of columns that show a title.
const POINTS: usize = 240;
const COLUMNS: usize = 60;
const WIDTH: u32 = 920;
const HEIGHT: u32 = 230;

/// Returns the seconds that one bar of [`opened`] covers.
pub(super) fn step(run: &Run<'_>) -> u64 {
    time_step(run.log.span(), BARS - 1)
}

/// Returns the chart of sessions opened.
pub(super) fn opened(run: &Run<'_>) -> Result<Markup, Fault> {
    let content = Content { bars: openings(run, step(run)), ..Content::default() };
    let most = content.bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    over_time("Sessions opened over the time of the log", "sessions opened", run, most, &content)
}

fn openings(run: &Run<'_>, step: u64) -> Vec<Bar> {
    let mut counts = vec![0; usize::try_from(run.log.span() / step).unwrap_or(0) + 1];
    for session in &run.outcome.sessions {
        if let Some(count) = usize::try_from(session.first / step).ok().and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    let bar = |(from, count): (u64, u64)| Bar {
        from: from as f64,
        to: (from + step) as f64,
        count,
        title: format!("{} to {}: {} opened", span(from), span(from + step), grouped(count)),
    };
    (0..).step_by(usize::try_from(step).unwrap_or(usize::MAX)).zip(counts).map(bar).collect()
}

/// Returns the chart of timeouts pending.
pub(super) fn pending(run: &Run<'_>) -> Result<Markup, Fault> {
    let all = run.pending;
    let most = all.iter().map(|(_, pending)| *pending).max().unwrap_or(0);
    let place = |(second, pending): &(u64, u64)| (*second as f64, *pending as f64);
    // The highest of a few points is drawn, so that no peak is lost. The last point is the end.
    let peaks = all.chunks(all.len().div_ceil(POINTS).max(1)).filter_map(|few| few.iter().max_by_key(|one| one.1));
    let mut line: Vec<(f64, f64)> = peaks.map(place).collect();
    line.extend(all.last().map(place));
    let mut columns = Vec::new();
    for points in all.chunks(all.len().div_ceil(COLUMNS).max(1)) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let next = all.iter().find(|point| point.0 > last.0).unwrap_or(last);
        let title = format!("{}: {} pending", span(first.0), grouped(first.1));
        columns.push((first.0 as f64, next.0 as f64, title));
    }
    let content = Content { line, columns, ..Content::default() };
    over_time("Timeouts pending over the time of the log", "timeouts pending", run, most, &content)
}

fn over_time(label: &str, title: &'static str, run: &Run<'_>, most: u64, content: &Content) -> Result<Markup, Fault> {
    let end = (run.log.span() + run.options.idle).max(1);
    let x = |most_ticks: usize| Axis {
        title: "time of the log",
        from: 0.0,
        to: end as f64,
        ticks: times(end, most_ticks).into_iter().map(|(second, label)| (second as f64, label)).collect(),
    };
    chart(label, WIDTH, HEIGHT, x, &of_counts(title, most, 6), content)
}

/// Returns an axis from 0 to `most` or a little more.
pub(super) fn of_counts(title: &'static str, most: u64, ticks: usize) -> Axis {
    let ticks: Vec<(f64, String)> = counts(most, ticks).into_iter().map(|n| (n as f64, grouped(n))).collect();
    Axis { title, from: 0.0, to: ticks.last().map_or(1.0, |tick| tick.0), ticks }
}
