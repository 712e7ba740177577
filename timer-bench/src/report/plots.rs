//! Plots as SVG: bars for lines of the table, and lines over time for the overload.

use super::results::{Points, Results, Series};
use super::summary::LINES;
use crate::peer::{FLOOR, OURS};
use crate::row::figure;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;

const WIDTH: i32 = 820;
const LABELS: i32 = 110;
const BARS: i32 = 600;
const BAR: i32 = 16;
const TITLE: i32 = 30;

pub(super) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
pub(super) const OUR: RGBColor = RGBColor(0xd9, 0x54, 0x1e);
pub(super) const OTHER: RGBColor = RGBColor(0x7a, 0x93, 0xac);

/// The error for a plot that cannot be drawn. No such case is known.
pub(super) type Fault = DrawingAreaErrorKind<io::Error>;

pub(super) type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

pub(super) fn text(size: f64, side: HPos) -> TextStyle<'static> {
    // `plotters` divides the size of a text by 1.24.
    TextStyle::from(("sans-serif", size * 1.24).into_font()).color(&INK).pos(Pos::new(side, VPos::Center))
}

pub(super) fn sheet(height: i32, draw: impl FnOnce(&Sheet<'_>) -> Result<(), Fault>) -> Result<String, Fault> {
    let mut svg = String::new();
    {
        let size = (WIDTH.cast_unsigned(), height.cast_unsigned());
        let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        sheet.fill(&PAPER)?;
        draw(&sheet)?;
        sheet.present()?;
    }
    // An opacity of 1 is the default.
    Ok(svg.replace(" opacity=\"1\"", ""))
}

/// Draws the bars of all lines of the table with this plot, each to its own linear scale.
pub(super) fn bars(results: &Results, plot: &str) -> Result<String, Fault> {
    let panels = LINES.iter().filter(|line| line.plot == plot).map(|line| {
        let series = results.of(line.workload, line.params, line.unit);
        let bars =
            series.filter(|one| one.peer != FLOOR).filter_map(|one: &Series| Some((one.peer.as_str(), one.summary()?)));
        (line.title, bars.collect::<Vec<_>>())
    });
    let panels: Vec<_> = panels.filter(|(_, bars)| !bars.is_empty()).collect();
    let height = panels.iter().map(|(_, bars)| TITLE + BAR * bars.len() as i32).sum::<i32>() + TITLE / 2;
    sheet(height, |sheet| {
        let mut y = 0;
        for (title, bars) in panels {
            sheet.draw_text(title, &text(12.0, HPos::Left), (12, y + TITLE - 12))?;
            y += TITLE;
            let most = bars.iter().map(|(_, summary)| summary.max).fold(f64::MIN_POSITIVE, f64::max);
            let place = |value: f64| LABELS + (f64::from(BARS) * (value / most).max(0.0)).round() as i32;
            for (peer, summary) in bars {
                let middle = y + BAR / 2;
                let color = if peer.starts_with(OURS) { OUR } else { OTHER };
                sheet.draw_text(peer, &text(11.0, HPos::Right), (LABELS - 6, middle))?;
                sheet.draw(&Rectangle::new([(LABELS, y + 2), (place(summary.median), y + BAR - 2)], color.filled()))?;
                sheet.draw(&PathElement::new(vec![(place(summary.min), middle), (place(summary.max), middle)], INK))?;
                sheet.draw_text(&figure(summary.median), &text(11.0, HPos::Left), (place(summary.max) + 4, middle))?;
                y += BAR;
            }
        }
        Ok(())
    })
}

/// Draws the worst lag and the pending timeouts of ours in an overload with a stall.
pub(super) fn overload(results: &Results) -> Result<String, Fault> {
    let line = |unit| {
        let lines = results.over_time("overload", unit);
        let with_stall = lines.into_iter().find(|(name, _)| name.starts_with("timer ") && !name.contains("stall=0ms"));
        with_stall.map_or_else(Default::default, |(_, points)| points)
    };
    let panels: [(&str, Points); 2] = [("worst lag, ms", line("ms-lag")), ("pending timeouts", line("pending"))];
    sheet(420, |sheet| {
        let halves = sheet
            .titled("64 threads cancel nothing, a task blocks for 1 s", text(13.0, HPos::Center))?
            .split_evenly((2, 1));
        for (half, (title, points)) in halves.iter().zip(panels) {
            let last = points.last().map_or(1.0, |point| point.0);
            let most = points.iter().map(|point| point.1).fold(1.0, f64::max);
            let mut chart = ChartBuilder::on(half)
                .margin(8)
                .x_label_area_size(32)
                .y_label_area_size(80)
                .build_cartesian_2d(0.0..last, 0.0..most * 1.05)?;
            chart.configure_mesh().max_light_lines(1).x_desc("s").y_desc(title).draw()?;
            chart.draw_series([PathElement::new(points, OUR.stroke_width(2))])?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::{bars, overload};
    use crate::report::results::tests::results;

    #[test]
    fn every_timer_has_a_bar() {
        let results = results("timer schedule threads=1 5 ns/call\nA<b> schedule threads=1 9 ns/call");
        let svg = bars(&results, "timers").unwrap();
        assert_eq!([svg.matches("#D9541E").count(), svg.matches("#7A93AC").count()], [1, 1]);
        assert!(svg.contains("A&lt;b&gt;") && svg.contains("9.00"));
    }

    #[test]
    fn the_overload_is_a_line() {
        let lines = "timer overload stall=1000ms,t=0.25 5 ms-lag-over-time\ntimer overload stall=1000ms,t=0.50 9 ms-lag-over-time";
        assert!(overload(&results(lines)).unwrap().matches("#D9541E").count() >= 1);
        assert!(overload(&results("")).is_ok());
    }
}
