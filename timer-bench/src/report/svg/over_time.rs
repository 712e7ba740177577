//! Panels with a line per peer over time, in seconds.

use super::{
    AXIS_HEIGHT, Axis, Fault, GRID, INK, LABEL_WIDTH, OTHER, OUR, SOFT, Sheet, TICK_HEIGHT, TITLE_HEIGHT, bold,
    in_words, text,
};
use crate::peers::OURS;
use crate::report::results::Line;
use crate::report::statistics::Summary;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

/// The least height of a panel.
pub(super) const MIN_HEIGHT: i32 = 200;

/// The room for the names at the ends of the lines.
const NAME_WIDTH: i32 = 96;

pub(super) fn draw(part: &Sheet<'_>, params: &str, unit: &str, lines: &[Line<'_>]) -> Result<(), Fault> {
    let (width, height) = part.dim_in_pixel();
    let (right, bottom) = (width.cast_signed() - NAME_WIDTH, height.cast_signed() - AXIS_HEIGHT);
    let points = || lines.iter().flat_map(|line| &line.1);
    let last = points().map(|point| point.0).fold(0.1, f64::max);
    let axis = Axis::of(points().map(|point| Summary { median: point.1, min: point.1, max: point.1, rounds: 1 }));
    part.draw_text(&format!("{unit} over time  {params}"), &bold(11.0), (12, 14))?;
    let scale = if axis.least.is_some() { ", logarithmic" } else { "" };
    let caption = format!("{}{scale}, by seconds", in_words(unit));
    part.draw_text(
        &caption,
        &text(&SOFT, HPos::Center),
        (i32::midpoint(LABEL_WIDTH, right), bottom + AXIS_HEIGHT - 10),
    )?;
    let mut chart = ChartBuilder::on(part)
        .margin_top(TITLE_HEIGHT)
        .margin_right(NAME_WIDTH)
        .margin_bottom(AXIS_HEIGHT - TICK_HEIGHT)
        .x_label_area_size(TICK_HEIGHT)
        .y_label_area_size(LABEL_WIDTH)
        .build_cartesian_2d(0.0..last, axis)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(TRANSPARENT)
        .x_labels(6)
        .x_label_style(text(&SOFT, HPos::Center))
        .y_label_style(text(&SOFT, HPos::Right))
        .draw()?;
    for (peer, points) in lines {
        let color = if peer.starts_with(OURS) { OUR } else { OTHER };
        // The defaults of this crate have the thicker line.
        let stroke = if *peer == OURS { 2 } else { 1 };
        chart.draw_series([PathElement::new(points.clone(), color.stroke_width(stroke))])?;
        if let Some(end) = points.last() {
            let (x, y) = chart.backend_coord(end);
            let (left, top) = part.get_base_pixel();
            part.draw_text(peer, &text(&INK, HPos::Left), (x - left + 6, y - top))?;
        }
    }
    Ok(())
}
