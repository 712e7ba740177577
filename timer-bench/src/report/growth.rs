//! The plots of `bench-report --growth`, lines over the number of pending timers or rows. Both axes
//! are logarithmic.

use super::plots::{Fault, INK, OTHER, OUR, Sheet, sheet, text};
use super::results::{Points, Results};
use crate::peer::{FLOOR, OURS};
use crate::row::short;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const HEIGHT: i32 = 300;
const LABELS: u32 = 104;
const THIRD: RGBColor = RGBColor(0x3f, 0x7f, 0x4f);
const GREY: RGBColor = RGBColor(0x99, 0x99, 0x99);

/// The least distance between two labels of lines, in pixels.
const LABEL_HEIGHT: i32 = 13;

/// A line with its label at the right end.
type Line = (&'static str, RGBColor, Points);

/// Draws the operations of timers, a panel for each.
pub(super) fn timers(results: &Results) -> Result<String, Fault> {
    let panels = [
        ("schedule and cancel", "cpu-ns/pair"),
        ("cancel in random order", "cpu-ns/cancel"),
        ("reset to earlier, in random order", "cpu-ns/earlier"),
        ("expiry, 1,000 in each millisecond", "cpu-ns/expiry"),
    ];
    let panels = panels.map(|(title, unit)| {
        let line = |peer: &str, unit| over_size(results, "growth", peer, unit);
        let lines: [Line; 4] = [
            (OURS, OUR, line(OURS, unit)),
            ("tokio", OTHER, line("tokio", unit)),
            ("BTreeMap", THIRD, line("btree", unit)),
            ("a cache miss", GREY, line(FLOOR, "ns/load")),
        ];
        (title, "CPU ns", lines.to_vec())
    });
    draw(&panels, "pending timeouts")
}

/// Draws the figures of durable timeouts.
pub(super) fn durable(results: &Results) -> Result<String, Fault> {
    let stores = |unit: &str| -> Vec<Line> {
        let line = |workload| over_size(results, workload, OURS, unit);
        vec![("SQLite", OUR, line("growth-sqlite")), ("PostgreSQL", OTHER, line("growth-postgres"))]
    };
    let mut pages = stores("ms-page");
    let far = stores("ms-page-far").into_iter().zip([("SQLite, far", THIRD), ("PostgreSQL, far", INK)]);
    pages.extend(far.map(|((.., points), (label, color))| (label, color, points)));
    let panels = [
        ("lives, 512 in flight", "lives per second", stores("lives/s")),
        ("a page of 100 rows, the next or a far one", "ms", pages),
    ];
    draw(&panels, "rows in the store")
}

/// Returns the medians of a unit by the size in the parameters.
fn over_size(results: &Results, workload: &str, peer: &str, unit: &str) -> Points {
    let series = results.of(workload, "", unit).filter(|one| one.peer == peer);
    let point = |one: &super::results::Series| Some((size(one.params.split_once('=')?.1)?, one.summary()?.median));
    let mut points: Points = series.filter_map(point).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    points
}

/// Parses a number such as `10k`.
fn size(text: &str) -> Option<f64> {
    let unit = match text.chars().last()? {
        'k' => 1e3,
        'M' => 1e6,
        _ => return text.parse().ok(),
    };
    Some(text[..text.len() - 1].parse::<f64>().ok()? * unit)
}

/// Draws two panels in each row.
fn draw(panels: &[(&str, &str, Vec<Line>)], x_title: &str) -> Result<String, Fault> {
    let rows = panels.len().div_ceil(2);
    sheet(HEIGHT * rows as i32, |sheet| {
        let areas = sheet.split_evenly((rows, 2));
        for (area, (title, y_title, lines)) in areas.iter().zip(panels) {
            panel(sheet, area, title, [x_title, y_title], lines)?;
        }
        Ok(())
    })
}

fn panel(sheet: &Sheet<'_>, area: &Sheet<'_>, title: &str, axes: [&str; 2], lines: &[Line]) -> Result<(), Fault> {
    let points = || lines.iter().flat_map(|(.., points)| points);
    let range = |values: &mut dyn Iterator<Item = f64>| {
        let (least, most) = values.fold((f64::MAX, 0.0), |(least, most), value| (value.min(least), value.max(most)));
        if most > 0.0 { least..most.max(least * 1.1) } else { 1.0..10.0 }
    };
    let x = range(&mut points().map(|point| point.0));
    let y = range(&mut points().map(|point| point.1));
    // Whole decades, because the axis has labels only there.
    let decades = 10_f64.powf(y.start.log10().floor())..10_f64.powf(y.end.log10().ceil());
    let mut chart = ChartBuilder::on(area)
        .caption(title, text(13.0, HPos::Left))
        .margin(8)
        .margin_right(LABELS)
        .x_label_area_size(36)
        .y_label_area_size(52)
        .build_cartesian_2d(x.log_scale(), decades.log_scale())?;
    let [x_title, y_title] = axes;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_labels(6)
        .y_labels(5)
        .x_desc(x_title)
        .y_desc(y_title)
        .x_label_formatter(&|x| short(x.round() as usize))
        .y_label_formatter(&|y| if *y < 1.0 { y.to_string() } else { short(y.round() as usize) })
        .draw()?;
    let mut labels = Vec::new();
    for (label, color, points) in lines {
        chart.draw_series([PathElement::new(points.clone(), color.stroke_width(2))])?;
        chart.draw_series(points.iter().map(|point| Circle::new(*point, 2, color.filled())))?;
        if let Some(last) = points.last() {
            labels.push((chart.backend_coord(last), *label, *color));
        }
    }
    labels.sort_by_key(|((_, y), ..)| *y);
    let mut lowest = i32::MIN;
    for ((x, y), label, color) in labels {
        let y = y.max(lowest);
        lowest = y + LABEL_HEIGHT;
        sheet.draw_text(label, &text(11.0, HPos::Left).color(&color), (x + 6, y))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{durable, size, timers};
    use crate::report::results::tests::results;

    #[test]
    fn every_line_has_a_label() {
        let svg = timers(&results(
            "timer growth n=1k 50 cpu-ns/pair\ntimer growth n=1M 70 cpu-ns/pair\ntokio growth n=1k 71 cpu-ns/pair\n\
             btree growth n=10k 70 cpu-ns/pair\nfloor growth n=1k 2 ns/load",
        ))
        .unwrap();
        assert!(["BTreeMap", "tokio", "a cache miss", "10k"].iter().all(|label| svg.contains(label)), "{svg}");
        let svg = durable(&results("timer growth-sqlite rows=10k 0.5 ms-page-far")).unwrap();
        assert!(svg.contains("SQLite, far") && !svg.contains("PostgreSQL"), "a line without points has no label");
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!([size("500"), size("10k"), size("1M"), size("k")], [Some(500.0), Some(1e4), Some(1e6), None]);
    }
}
