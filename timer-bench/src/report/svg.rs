//! Plots as SVG, drawn by `plotters`. Each workload has a sheet of panels, with a panel per case
//! and unit and a bar per peer. Figures over time have panels with a line per peer.
//!
//! An axis begins at zero or, if the longest bar is more than 20 times the shortest, at a power of
//! ten on a logarithmic scale. It ends at a round number and has the unit below. All colors come
//! from `PALETTE` and have a counterpart for dark mode. The legend is above the panels.

mod over_time;

use super::results::{Line, Results, Series};
use super::statistics::Summary;
use super::table::distinct;
use super::unit::grain;
use crate::peers::OURS;
use crate::row::figure;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;
use std::ops::Range;

const PANEL_WIDTH: i32 = 440;
const LABEL_WIDTH: i32 = 96;
const FIGURE_WIDTH: i32 = 70;
const BAR_WIDTH: i32 = PANEL_WIDTH - LABEL_WIDTH - FIGURE_WIDTH;
const BAR_HEIGHT: i32 = 16;
const TITLE_HEIGHT: i32 = 26;
const TICK_HEIGHT: i32 = 26;
const AXIS_HEIGHT: i32 = 46;
const HEAD_HEIGHT: i32 = 60;
const COLUMNS: usize = 2;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const SOFT: RGBColor = RGBColor(0x66, 0x66, 0x66);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
const OUR: RGBColor = RGBColor(0xd9, 0x54, 0x1e);
const OTHER: RGBColor = RGBColor(0x7a, 0x93, 0xac);

/// Each color with its counterpart in dark mode.
const PALETTE: [(RGBColor, RGBColor); 6] = [
    (INK, RGBColor(0xe6, 0xe6, 0xe2)),
    (SOFT, RGBColor(0x9a, 0x9f, 0xa6)),
    (GRID, RGBColor(0x33, 0x37, 0x3d)),
    (PAPER, RGBColor(0x15, 0x17, 0x1a)),
    (OUR, RGBColor(0xf0, 0x7f, 0x4a)),
    (OTHER, RGBColor(0x6f, 0x8c, 0xaa)),
];

/// The ratio of the longest bar to the shortest above which the axis is logarithmic.
const LOGARITHMIC: f64 = 20.0;

/// The error for a sheet that cannot be drawn. No such case is known.
pub type Fault = DrawingAreaErrorKind<io::Error>;

type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the sheet of one workload. Cases in which all figures are negligible are left out.
///
/// # Errors
///
/// Fails if the sheet cannot be drawn.
pub fn workload(results: &Results, name: &str, what: &str) -> Result<String, Fault> {
    let peers = distinct(results.of(name).map(|series| series.peer.as_str()));
    let mut panels = Vec::new();
    for unit in distinct(results.of(name).map(|series| series.unit.as_str())) {
        let of_unit = results.of(name).filter(|series| series.unit == unit);
        for params in distinct(of_unit.map(|series| series.params.as_str())) {
            let bar = |peer: &&str| {
                let series = results.find(peer, name, params, unit);
                // A peer that has this figure only in other cases was not measured in this one.
                let asked = series.is_some() || !results.of(name).any(|one| one.peer == *peer && one.unit == unit);
                asked.then(|| ((*peer).to_owned(), series.and_then(Series::summary)))
            };
            let bars: Vec<_> = peers.iter().filter_map(bar).collect();
            if bars.iter().filter_map(|bar| bar.1).any(|summary| summary.median.abs() > grain(unit)) {
                panels.push(Panel { params, unit, bars });
            }
        }
    }
    sheet(&format!("{name} {what}"), &panels, &results.over_time(name), peers.len())
}

/// The bars of one case and unit.
struct Panel<'a> {
    params: &'a str,
    unit: &'a str,
    bars: Vec<(String, Option<Summary>)>,
}

/// The parameters, the unit and the lines of a panel over time.
type OverTime<'a> = (&'a str, &'a str, Vec<Line<'a>>);

fn sheet(title: &str, panels: &[Panel<'_>], over_time: &[OverTime<'_>], peers: usize) -> Result<String, Fault> {
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let least_height = if over_time.is_empty() { 0 } else { over_time::MIN_HEIGHT };
    let panel_height = (TITLE_HEIGHT + BAR_HEIGHT * count(peers) + AXIS_HEIGHT).max(least_height);
    let all = panels.len() + over_time.len();
    let width = PANEL_WIDTH * count(COLUMNS.min(all.max(1)));
    let height = HEAD_HEIGHT + panel_height * count(all.div_ceil(COLUMNS));
    let mut svg = String::new();
    {
        let size = (width.cast_unsigned(), height.cast_unsigned());
        let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        sheet.fill(&PAPER)?;
        sheet.draw_text(title, &bold(15.0), (12, 15))?;
        legend(&sheet)?;
        let part = |at: usize| {
            let corner = (PANEL_WIDTH * count(at % COLUMNS), HEAD_HEIGHT + panel_height * count(at / COLUMNS));
            sheet.clone().shrink(corner, (PANEL_WIDTH, panel_height))
        };
        for (at, panel) in panels.iter().enumerate() {
            draw(&part(at), panel)?;
        }
        for (at, (params, unit, lines)) in over_time.iter().enumerate() {
            over_time::draw(&part(panels.len() + at), params, unit, lines)?;
        }
        sheet.present()?;
    }
    // An opacity of 1 is the default. Quotes in a text are escaped, so the replacement affects only
    // attributes.
    let mut svg = svg.replace(" opacity=\"1\"", "");
    // A picture cannot read the colors of its page, but it can read the preference of the reader.
    let head = svg.find('>').map_or(0, |at| at + 1);
    svg.insert_str(head, &dark());
    Ok(svg)
}

/// Draws the legend of the colors and of the thin line.
fn legend(sheet: &Sheet<'_>) -> Result<(), Fault> {
    sheet.draw_text("lower is better; a bar is the median over the rounds", &text(&SOFT, HPos::Left), (12, 32))?;
    let y = 48;
    let swatch = |x: i32, color: &RGBColor| sheet.draw(&Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
    swatch(12, &OUR)?;
    sheet.draw_text("this crate", &text(&SOFT, HPos::Left), (30, y))?;
    swatch(104, &OTHER)?;
    sheet.draw_text("another timer", &text(&SOFT, HPos::Left), (122, y))?;
    sheet.draw(&PathElement::new(vec![(216, y), (240, y)], INK))?;
    sheet.draw_text("from the least round to the greatest", &text(&SOFT, HPos::Left), (246, y))
}

fn draw(part: &Sheet<'_>, panel: &Panel<'_>) -> Result<(), Fault> {
    let Panel { params, unit, bars } = panel;
    let axis = Axis::of(bars.iter().filter_map(|bar| bar.1));
    let bottom = TITLE_HEIGHT + BAR_HEIGHT * i32::try_from(bars.len()).unwrap_or(i32::MAX);
    part.draw_text(&format!("{unit}  {params}"), &bold(11.0), (12, 14))?;
    let scale = if axis.least.is_some() { ", logarithmic" } else { "" };
    let caption = format!("{}{scale}", in_words(unit));
    part.draw_text(&caption, &text(&SOFT, HPos::Center), (LABEL_WIDTH + BAR_WIDTH / 2, bottom + AXIS_HEIGHT - 10))?;
    ChartBuilder::on(part)
        .margin_top(TITLE_HEIGHT)
        .margin_left(LABEL_WIDTH)
        .margin_right(FIGURE_WIDTH)
        .margin_bottom(part.dim_in_pixel().1.cast_signed() - bottom - TICK_HEIGHT)
        .x_label_area_size(TICK_HEIGHT)
        .build_cartesian_2d(axis.clone(), 0.0..1.0)?
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(TRANSPARENT)
        .label_style(text(&SOFT, HPos::Center))
        .draw()?;
    let place = |value: f64| LABEL_WIDTH + (f64::from(BAR_WIDTH) * axis.share(value)).round() as i32;
    for (at, (peer, summary)) in (0..).zip(bars) {
        let (top, middle) = (TITLE_HEIGHT + BAR_HEIGHT * at + 2, TITLE_HEIGHT + BAR_HEIGHT * at + BAR_HEIGHT / 2);
        part.draw_text(peer, &text(&INK, HPos::Right), (LABEL_WIDTH - 6, middle))?;
        let Some(Summary { median, min, max, .. }) = *summary else {
            part.draw_text("n/a", &text(&SOFT, HPos::Left), (LABEL_WIDTH + 4, middle))?;
            continue;
        };
        let color = if peer.starts_with(OURS) { OUR } else { OTHER };
        part.draw(&Rectangle::new([(LABEL_WIDTH, top), (place(median), top + BAR_HEIGHT - 4)], color.filled()))?;
        part.draw(&PathElement::new(vec![(place(min), middle), (place(max), middle)], INK))?;
        let end = place(max).max(place(median)) + 4;
        part.draw_text(&figure(median), &text(&INK, HPos::Left), (end, middle))?;
    }
    Ok(())
}

/// Returns a unit in words, such as "CPU ns per pair" for `cpu-ns/pair`.
fn in_words(unit: &str) -> String {
    if unit == "of-the-floor" {
        return "times the floor".to_owned();
    }
    let (prefix, rest) = unit.strip_prefix("cpu-").map_or(("", unit), |rest| ("CPU ", rest));
    let rest = rest.replace('/', " per ");
    match rest.split_once('-') {
        Some((size, what)) if ["ns", "us", "ms", "s", "B", "MiB"].contains(&size) => {
            format!("{prefix}{size}, {}", what.replace('-', " "))
        }
        _ => format!("{prefix}{}", rest.replace('-', " ")),
    }
}

/// Returns the style of normal text. `plotters` divides the size of a text by 1.24.
fn text(color: &RGBColor, side: HPos) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", 11.0 * 1.24).into_font()).color(color).pos(Pos::new(side, VPos::Center))
}

fn bold(size: f64) -> TextStyle<'static> {
    let font = ("sans-serif", size * 1.24).into_font().style(FontStyle::Bold);
    TextStyle::from(font).color(&INK).pos(Pos::new(HPos::Left, VPos::Center))
}

/// Returns the rules that replace the colors in dark mode.
fn dark() -> String {
    let hex = |RGBColor(red, green, blue): RGBColor| format!("#{red:02X}{green:02X}{blue:02X}");
    let rules = PALETTE.map(|(light, dark)| {
        let (light, dark) = (hex(light), hex(dark));
        format!("[fill=\"{light}\"]{{fill:{dark}}} [stroke=\"{light}\"]{{stroke:{dark}}}\n")
    });
    format!("\n<style>@media (prefers-color-scheme: dark) {{\n{}}}</style>", rules.concat())
}

/// The scale of a panel, from a figure to the length of its bar.
#[derive(Clone)]
struct Axis {
    /// The beginning of a logarithmic axis. A linear axis has none and begins at 0.
    least: Option<f64>,
    /// The end of the axis, a round number.
    most: f64,
}

impl Axis {
    fn of(summaries: impl Iterator<Item = Summary> + Clone) -> Self {
        let most = summaries.clone().map(|summary| summary.max).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        // Zero and negative figures have no place on a logarithmic axis, so their bars have no
        // length.
        let positive = summaries.map(|summary| summary.min).filter(|min| *min > 0.0);
        let least = positive.fold(most, f64::min);
        let decade = 10_f64.powf((least / 1.5).log10().floor());
        if most / least > LOGARITHMIC {
            return Self { least: Some(decade), most: round_up(most) };
        }
        let step = step(most);
        Self { least: None, most: (most / step).ceil() * step }
    }

    /// Returns the position of a figure as a share of the axis.
    fn share(&self, value: f64) -> f64 {
        let share = match self.least {
            None => value / self.most,
            Some(least) if value > least => (value / least).ln() / (self.most / least).ln(),
            Some(_) => 0.0,
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns the ticks, which are powers of ten, or about four steps of 1, 2 or 5.
    fn ticks(&self) -> Vec<f64> {
        match self.least {
            Some(least) => {
                let decades = (self.most / least).log10();
                let step = (decades / 5.0).ceil().max(1.0) as i32;
                // A little more, because of rounding.
                let powers = 0..=(decades + 1e-9) as i32;
                powers.step_by(step as usize).map(|power| least * 10_f64.powi(power)).collect()
            }
            None => {
                let step = step(self.most);
                (0..=(self.most / step).round() as i32).map(|count| f64::from(count) * step).collect()
            }
        }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        low + (f64::from(high - low) * self.share(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks() }
    }

    fn range(&self) -> Range<f64> {
        self.least.unwrap_or(0.0)..self.most
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, tick: &f64) -> String {
        short(*tick)
    }
}

/// Returns the least number of 1, 2 or 5 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    // A little less, because a power of ten may come out slightly below itself.
    let round =
        [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|round| *round >= value * (1.0 - 1e-9));
    round.unwrap_or(value)
}

/// Returns the step of a linear axis that ends at `most` or a little more.
fn step(most: f64) -> f64 {
    round_up(most / 4.0)
}

/// Formats the figure at a tick, such as `20k` or `0.5`.
fn short(tick: f64) -> String {
    let (value, suffix) = match tick {
        tick if tick >= 1e6 => (tick / 1e6, "M"),
        tick if tick >= 1e3 => (tick / 1e3, "k"),
        tick => (tick, ""),
    };
    // A sum of tenths is not exact, so the digits are limited.
    let text = format!("{value:.6}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests;
