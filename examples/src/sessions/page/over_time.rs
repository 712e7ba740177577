//! Charts over the seconds of the log: sessions opened, timeouts pending. Both have the same horizontal axis.

use super::Run;
use super::frame::{Axis, Frame, Size};
use super::marks::{Bar, area, bars};
use super::scale::{Scale, counts, time_step, times};
use crate::sessions::units::{grouped, span};

/// The most bars.
const BARS: u64 = 60;
/// The most columns that one can point at.
const COLUMNS: usize = 120;

/// Bars of sessions opened, and the seconds that one bar stands for.
pub(super) fn opened(run: &Run<'_>, size: Size) -> (String, u64) {
    let step = time_step(run.log.span(), BARS - 1);
    let bars_of = openings(run, step);
    let most = bars_of.iter().map(|bar| bar.count).max().unwrap_or(0);
    let frame = frame(run, size, most);
    (frame.svg("Sessions opened over the time of the log", &bars(&frame, &bars_of)), step)
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

/// A line of timeouts pending.
pub(super) fn pending(run: &Run<'_>, size: Size) -> String {
    let most = run.pending.iter().map(|(_, pending)| *pending).max().unwrap_or(0);
    let frame = frame(run, size, most);
    let mut marks = area(&frame, run.pending);
    for points in run.pending.chunks(run.pending.len().div_ceil(COLUMNS).max(1)) {
        let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
        let next = run.pending.iter().find(|point| point.0 > last.0).unwrap_or(last);
        let title = format!("{}: {} pending", span(first.0), grouped(first.1));
        marks += &frame.hover(frame.x(first.0 as f64), frame.x(next.0 as f64), &title);
    }
    frame.svg("Timeouts pending over the time of the log", &marks)
}

fn frame(run: &Run<'_>, size: Size, most: u64) -> Frame {
    let end = (run.log.span() + run.options.idle).max(1);
    let ticks = counts(most, 6);
    let top = ticks.last().copied().unwrap_or(1) as f64;
    let x_ticks = times(end, size.ticks).into_iter().map(|(second, label)| (second as f64, label)).collect();
    Frame {
        size,
        x: Axis { scale: Scale::Linear(end as f64), ticks: x_ticks },
        y: Axis { scale: Scale::Linear(top), ticks: ticks.into_iter().map(|n| (n as f64, grouped(n))).collect() },
        top: 10.0,
    }
}
