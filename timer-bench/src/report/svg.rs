//! Plots as SVG: for each workload a sheet of panels, a panel per case and unit, a bar per peer. Drawn by `plotters`.
//!
//! Promises: the axis is logarithmic where the longest bar is more than 20 times the shortest; colours are those of
//! `PALETTE` only, and all of them have another one for a dark page; a legend says what is what.

use super::results::{Results, Series};
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
const LABELS: i32 = 96;
const FIGURES: i32 = 70;
const BARS: i32 = PANEL_WIDTH - LABELS - FIGURES;
const BAR: i32 = 16;
const TITLE: i32 = 26;
const AXIS: i32 = 26;
const HEAD: i32 = 60;
const COLUMNS: usize = 2;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const SOFT: RGBColor = RGBColor(0x66, 0x66, 0x66);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);
const OUR: RGBColor = RGBColor(0xd9, 0x54, 0x1e);
const OTHER: RGBColor = RGBColor(0x7a, 0x93, 0xac);

/// Every colour, and what it becomes on a dark page.
const PALETTE: [(RGBColor, RGBColor); 6] = [
    (INK, RGBColor(0xe6, 0xe6, 0xe2)),
    (SOFT, RGBColor(0x9a, 0x9f, 0xa6)),
    (GRID, RGBColor(0x33, 0x37, 0x3d)),
    (PAPER, RGBColor(0x15, 0x17, 0x1a)),
    (OUR, RGBColor(0xf0, 0x7f, 0x4a)),
    (OTHER, RGBColor(0x6f, 0x8c, 0xaa)),
];

/// Beyond this ratio of longest to shortest the axis is logarithmic.
const LOGARITHMIC: f64 = 20.0;

/// A sheet cannot be drawn; none is known that cannot.
pub type Fault = DrawingAreaErrorKind<io::Error>;

type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The sheet of one workload. Cases in which no peer has more than nothing are left out.
///
/// # Errors
///
/// A sheet that cannot be drawn.
pub fn workload(results: &Results, name: &str, what: &str) -> Result<String, Fault> {
    let peers = distinct(results.of(name).map(|series| series.peer.as_str()));
    let mut panels = Vec::new();
    for unit in distinct(results.of(name).map(|series| series.unit.as_str())) {
        let of_unit = results.of(name).filter(|series| series.unit == unit);
        for params in distinct(of_unit.map(|series| series.params.as_str())) {
            let bar = |peer: &&str| {
                let series = results.find(peer, name, params, unit);
                // A peer that has this figure in other cases only was not asked for it in this one.
                let asked = series.is_some() || !results.of(name).any(|one| one.peer == *peer && one.unit == unit);
                asked.then(|| ((*peer).to_owned(), series.and_then(Series::summary)))
            };
            let bars: Vec<_> = peers.iter().filter_map(bar).collect();
            if bars.iter().filter_map(|bar| bar.1).any(|summary| summary.median.abs() > grain(unit)) {
                panels.push((format!("{unit}  {params}"), bars));
            }
        }
    }
    sheet(&format!("{name} {what}"), &panels, peers.len())
}

type Bar = (String, Option<Summary>);

fn sheet(title: &str, panels: &[(String, Vec<Bar>)], peers: usize) -> Result<String, Fault> {
    let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    let panel_height = TITLE + BAR * count(peers) + AXIS;
    let width = PANEL_WIDTH * count(COLUMNS.min(panels.len().max(1)));
    let height = HEAD + panel_height * count(panels.len().div_ceil(COLUMNS));
    let mut svg = String::new();
    {
        let size = (width.cast_unsigned(), height.cast_unsigned());
        let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        sheet.fill(&PAPER)?;
        sheet.draw_text(title, &bold(15.0), (12, 15))?;
        legend(&sheet)?;
        for (at, (title, bars)) in panels.iter().enumerate() {
            let corner = (PANEL_WIDTH * count(at % COLUMNS), HEAD + panel_height * count(at / COLUMNS));
            let part = sheet.clone().shrink(corner, (PANEL_WIDTH, panel_height));
            panel(&part, title, bars)?;
        }
        sheet.present()?;
    }
    // What is so anyway. (Quotes in a text are escaped, so nothing else is met.)
    let mut svg = svg.replace(" opacity=\"1\"", "");
    // A picture cannot ask its page; it can ask what the reader prefers.
    let head = svg.find('>').map_or(0, |at| at + 1);
    svg.insert_str(head, &dark());
    Ok(svg)
}

/// What the colours and the thin line stand for.
fn legend(sheet: &Sheet<'_>) -> Result<(), Fault> {
    sheet.draw_text("lower is better; a bar is the median over the rounds", &text(&SOFT, HPos::Left), (12, 32))?;
    let y = 48;
    let swatch =
        |x: i32, colour: &RGBColor| sheet.draw(&Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled()));
    swatch(12, &OUR)?;
    sheet.draw_text("this crate", &text(&SOFT, HPos::Left), (30, y))?;
    swatch(104, &OTHER)?;
    sheet.draw_text("another timer", &text(&SOFT, HPos::Left), (122, y))?;
    sheet.draw(&PathElement::new(vec![(216, y), (240, y)], INK))?;
    sheet.draw_text("from the least round to the greatest", &text(&SOFT, HPos::Left), (246, y))
}

fn panel(part: &Sheet<'_>, title: &str, bars: &[Bar]) -> Result<(), Fault> {
    let axis = Axis::of(bars.iter().filter_map(|bar| bar.1));
    let bottom = TITLE + BAR * i32::try_from(bars.len()).unwrap_or(i32::MAX);
    let scale = if axis.least.is_some() { " (logarithmic)" } else { "" };
    part.draw_text(&format!("{title}{scale}"), &bold(11.0), (12, 14))?;
    ChartBuilder::on(part)
        .margin_top(TITLE)
        .margin_left(LABELS)
        .margin_right(FIGURES)
        .margin_bottom(part.dim_in_pixel().1.cast_signed() - bottom - AXIS)
        .x_label_area_size(AXIS)
        .build_cartesian_2d(axis.clone(), 0.0..1.0)?
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(TRANSPARENT)
        .label_style(text(&SOFT, HPos::Center))
        .draw()?;
    let place = |value: f64| LABELS + (f64::from(BARS) * axis.share(value)).round() as i32;
    for (at, (peer, summary)) in (0..).zip(bars) {
        let (top, middle) = (TITLE + BAR * at + 2, TITLE + BAR * at + BAR / 2);
        part.draw_text(peer, &text(&INK, HPos::Right), (LABELS - 6, middle))?;
        let Some(Summary { median, min, max }) = *summary else {
            part.draw_text("n/a", &text(&SOFT, HPos::Left), (LABELS + 4, middle))?;
            continue;
        };
        let colour = if peer.starts_with(OURS) { OUR } else { OTHER };
        part.draw(&Rectangle::new([(LABELS, top), (place(median), top + BAR - 4)], colour.filled()))?;
        part.draw(&PathElement::new(vec![(place(min), middle), (place(max), middle)], INK))?;
        let end = place(max).max(place(median)) + 4;
        part.draw_text(&figure(median), &text(&INK, HPos::Left), (end, middle))?;
    }
    Ok(())
}

// `plotters` divides the size of a text by 1.24.
fn text(colour: &RGBColor, side: HPos) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", 11.0 * 1.24).into_font()).color(colour).pos(Pos::new(side, VPos::Center))
}

fn bold(size: f64) -> TextStyle<'static> {
    let font = ("sans-serif", size * 1.24).into_font().style(FontStyle::Bold);
    TextStyle::from(font).color(&INK).pos(Pos::new(HPos::Left, VPos::Center))
}

/// The rules that exchange the colours where the reader prefers a dark page.
fn dark() -> String {
    let hex = |RGBColor(red, green, blue): RGBColor| format!("#{red:02X}{green:02X}{blue:02X}");
    let rules = PALETTE.map(|(light, dark)| {
        let (light, dark) = (hex(light), hex(dark));
        format!("[fill=\"{light}\"]{{fill:{dark}}} [stroke=\"{light}\"]{{stroke:{dark}}}\n")
    });
    format!("\n<style>@media (prefers-color-scheme: dark) {{\n{}}}</style>", rules.concat())
}

/// From a figure to the length of its bar.
#[derive(Clone)]
struct Axis {
    /// Where a logarithmic axis begins; a linear one has none and begins at 0.
    least: Option<f64>,
    most: f64,
}

impl Axis {
    fn of(summaries: impl Iterator<Item = Summary> + Clone) -> Self {
        let most = summaries.clone().map(|summary| summary.max).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        // Nothing at all and what is early have no place on a logarithmic axis: their bars have no length.
        let positive = summaries.map(|summary| summary.min).filter(|min| *min > 0.0);
        let least = positive.fold(most, f64::min);
        let decade = 10_f64.powf((least / 1.5).log10().floor());
        Self { least: (most / least > LOGARITHMIC).then_some(decade), most }
    }

    /// Of the longest bar.
    fn share(&self, value: f64) -> f64 {
        let share = match self.least {
            None => value / self.most,
            Some(least) if value > least => (value / least).ln() / (self.most / least).ln(),
            Some(_) => 0.0,
        };
        share.clamp(0.0, 1.0)
    }

    /// Round figures: decades, or about four steps of 1, 2 or 5.
    fn ticks(&self) -> Vec<f64> {
        match self.least {
            Some(least) => {
                let decades = (self.most / least).log10();
                let step = (decades / 5.0).ceil().max(1.0) as i32;
                (0..=decades as i32).step_by(step as usize).map(|power| least * 10_f64.powi(power)).collect()
            }
            None => {
                let rough = self.most / 4.0;
                let power = 10_f64.powf(rough.log10().floor());
                let step = [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= rough);
                let step = step.unwrap_or(rough);
                (0..=(self.most / step) as i32).map(|count| f64::from(count) * step).collect()
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

/// The figure at a tick: `20k`, `0.5`.
fn short(tick: f64) -> String {
    let (value, suffix) = match tick {
        tick if tick >= 1e6 => (tick / 1e6, "M"),
        tick if tick >= 1e3 => (tick / 1e3, "k"),
        tick => (tick, ""),
    };
    // Not the tail of what a sum of tenths comes to.
    let text = format!("{value:.6}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{suffix}")
}

#[cfg(test)]
mod tests;
