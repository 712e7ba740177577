//! A chart with axes, bars or a line, and named marks. `plotters` draws it.
//!
//! Each chart is drawn once for each of `WIDTHS` and never scaled, so that text has one size at
//! every width. The style sheet shows the widest drawing that fits. Labels stay inside. All colors
//! come from `PALETTE`, and the style sheet replaces them with its own, also in dark mode. The
//! areas that show a title are on top, because `plotters` has no titles.

use std::ops::Range;
use std::{io, iter};

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// The widths of the drawings of each chart, in pixels.
pub(super) const WIDTHS: [u32; 7] = [280, 320, 375, 430, 560, 720, 920];

pub(super) const INK: RGBColor = RGBColor(0x1d, 0x1f, 0x23);
pub(super) const SOFT: RGBColor = RGBColor(0x66, 0x6b, 0x73);
pub(super) const HAIR: RGBColor = RGBColor(0xe4, 0xe4, 0xdf);
pub(super) const AXIS: RGBColor = RGBColor(0xb4, 0xb6, 0xb4);
pub(super) const MARK: RGBColor = RGBColor(0x2f, 0x66, 0x90);
pub(super) const ALARM: RGBColor = RGBColor(0xb4, 0x53, 0x1d);

/// The colors of a chart, each with the variable of the style sheet that replaces it.
pub(super) const PALETTE: [(RGBColor, &str); 6] =
    [(INK, "ink"), (SOFT, "soft"), (HAIR, "hair"), (AXIS, "axis"), (MARK, "mark"), (ALARM, "alarm")];

/// The size of all text, 12 pixels times the factor by which `plotters` divides it.
const TEXT: f64 = 12.0 * 1.24;
/// The approximate width of a digit.
const DIGIT: usize = 8;
/// The room for half of the last label of the horizontal axis, and for the axis itself.
const RIGHT: u32 = 24;
const BOTTOM: u32 = 24;
/// The room for the title of an axis.
const TITLE: u32 = 18;
/// The least room at the top, and the height of a row of names there.
const TOP: u32 = 10;
const ROW: u32 = 17;
/// The distance between a line and its name.
const GAP: i32 = 6;
/// The least distance between two ticks of a time axis.
const TICK: u32 = 66;

/// The error for a chart that cannot be drawn. No such case is known.
pub(super) type Fault = DrawingAreaErrorKind<io::Error>;

type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The title of an axis, its ends, and its ticks with their labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Axis {
    pub(super) title: &'static str,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) ticks: Vec<(f64, String)>,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (low, high): (i32, i32)) -> i32 {
        // Nothing is drawn beyond the ends. On an axis without length everything is at its
        // beginning.
        let share = (value - self.from) / (self.to - self.from);
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        low + (f64::from(high - low) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.iter().map(|tick| tick.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.from..self.to
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|tick| tick.0 == *value);
        tick.map_or_else(String::new, |tick| tick.1.clone())
    }
}

/// A count between two values of the horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) count: u64,
    /// The text shown while the pointer is on the bar.
    pub(super) title: String,
}

/// A vertical line with a name above it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mark {
    pub(super) at: f64,
    pub(super) name: String,
    pub(super) colour: RGBColor,
}

/// The contents of the area between the axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Content {
    pub(super) bars: Vec<Bar>,
    pub(super) line: Vec<(f64, f64)>,
    /// Columns without a bar that show a title, as (from, to, title).
    pub(super) columns: Vec<(f64, f64, String)>,
    pub(super) marks: Vec<Mark>,
}

/// Draws the chart at every width up to `widest`. `label` describes it for screen readers. `x`
/// returns the horizontal axis with at most the given number of ticks.
pub(super) fn chart(
    label: &str,
    widest: u32,
    height: u32,
    x: impl Fn(usize) -> Axis,
    y: &Axis,
    content: &Content,
) -> Result<Markup, Fault> {
    let mut charts = Vec::new();
    for width in WIDTHS.into_iter().rev().filter(|width| *width <= widest) {
        let ticks = usize::try_from(width / TICK).unwrap_or(2).max(2);
        charts.push(PreEscaped(drawn((width, height), &x(ticks), y, content)?));
    }
    Ok(html! { div.chart role="img" aria-label=(label) { @for chart in charts { (chart) } } })
}

fn drawn(size: (u32, u32), x: &Axis, y: &Axis, content: &Content) -> Result<String, Fault> {
    let mut svg = String::new();
    let over = {
        let sheet = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let over = draw(&sheet, x, y, content)?;
        sheet.present()?;
        over
    };
    // The areas that show a title are on top, at the end of the picture.
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    svg.truncate(end);
    // A picture within a page does not need these. (Quotes in labels are escaped, so the
    // replacement affects only tags.)
    let svg = svg.replace(" opacity=\"1\"", "").replace(" xmlns=\"http://www.w3.org/2000/svg\"", "");
    Ok(svg + &over.into_string() + "</svg>\n")
}

fn draw(sheet: &Sheet<'_>, x: &Axis, y: &Axis, content: &Content) -> Result<Markup, Fault> {
    let longest = y.ticks.iter().map(|tick| tick.1.chars().count()).max().unwrap_or(1);
    let left = u32::try_from(longest * DIGIT + 14).unwrap_or(u32::MAX).max(30);
    let rows = u32::try_from(content.marks.len()).unwrap_or(0);
    let mut chart = ChartBuilder::on(sheet)
        .margin_top(TOP + ROW * rows)
        .margin_right(RIGHT)
        .x_label_area_size(BOTTOM + TITLE)
        .y_label_area_size(left + TITLE)
        .build_cartesian_2d(x.clone(), y.clone())?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(HAIR)
        .light_line_style(TRANSPARENT)
        .axis_style(AXIS)
        .label_style(text(&SOFT))
        .axis_desc_style(text(&SOFT))
        .x_desc(x.title)
        .y_desc(y.title)
        .draw()?;
    if content.line.len() > 1 {
        let line = content.line.iter().copied();
        chart.draw_series(AreaSeries::new(line, y.from, MARK.mix(0.12)).border_style(MARK.stroke_width(2)))?;
    }
    let (_, floor) = chart.backend_coord(&(x.from, y.from));
    let (_, top) = chart.backend_coord(&(x.from, y.to));
    let place = |value: f64| chart.backend_coord(&(value, y.from)).0;
    let mut columns: Vec<(i32, i32, &str)> = Vec::new();
    for bar in content.bars.iter().filter(|bar| bar.count > 0) {
        let from = place(bar.from);
        let to = place(bar.to);
        // A value that is not zero is visible, and a pixel stays free between two bars.
        let height = chart.backend_coord(&(x.from, bar.count as f64)).1.min(floor - 1);
        sheet.draw(&Rectangle::new([(from, height), ((to - 1).max(from + 1), floor)], MARK.filled()))?;
        columns.push((from, to, &bar.title));
    }
    draw_marks(sheet, place, floor, &content.marks)?;
    columns.extend(content.columns.iter().map(|(from, to, title)| (place(*from), place(*to), title.as_str())));
    Ok(html! {
        @for (from, to, title) in columns {
            rect.hover x=(from) y=(top) width=(to - from) height=(floor - top) { title { (title) } }
        }
    })
}

/// Draws the marks. Each name has its own row, to the right of its line, or to the left where there
/// is no room. The sides and the order of the rows keep all names inside, and no line crosses a
/// name.
fn draw_marks(sheet: &Sheet<'_>, place: impl Fn(f64) -> i32, floor: i32, marks: &[Mark]) -> Result<(), Fault> {
    let width = i32::try_from(sheet.dim_in_pixel().0).unwrap_or(i32::MAX);
    let mut order: Vec<(i32, &Mark)> = marks.iter().map(|mark| (place(mark.at), mark)).collect();
    order.sort_by_key(|(at, _)| *at);
    let mut to_the_left = Vec::new();
    let mut to_the_right = Vec::new();
    // The end of the room that is left for names.
    let mut end = width;
    for (at, mark) in order.into_iter().rev() {
        let room = GAP + i32::try_from(mark.name.chars().count() * DIGIT).unwrap_or(i32::MAX);
        if at.saturating_add(room) > end && at > room {
            to_the_left.push((at, mark));
            end = at;
        } else {
            to_the_right.insert(0, (at, mark));
        }
    }
    let sides = to_the_left.into_iter().zip(iter::repeat((HPos::Right, -GAP)));
    let sides = sides.chain(to_the_right.into_iter().zip(iter::repeat((HPos::Left, GAP))));
    for (row, ((at, mark), (anchor, gap))) in (0..).zip(sides) {
        let y = row * ROW.cast_signed() + ROW.cast_signed() / 2 + 2;
        sheet.draw(&PathElement::new(vec![(at, y - 5), (at, floor)], mark.colour))?;
        sheet.draw_text(&mark.name, &text(&INK).pos(Pos::new(anchor, VPos::Center)), (at + gap, y))?;
    }
    Ok(())
}

fn text(colour: &RGBColor) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", TEXT).into_font()).color(colour)
}

/// Returns the rules by which the style sheet shows the widest drawing that fits, and sets its
/// colors.
pub(super) fn rules() -> String {
    let mut rules = String::from(".chart svg:not(:last-child) { display: none; }\n");
    for width in &WIDTHS[1..] {
        // This drawing hides the narrower ones, which come after it.
        rules += &format!(
            "@container (min-width: {width}px) {{ .chart svg[width=\"{width}\"] {{ display: block; }} \
             .chart svg[width=\"{width}\"] ~ svg {{ display: none; }} }}\n"
        );
    }
    for (RGBColor(red, green, blue), name) in PALETTE {
        let colour = format!("#{red:02X}{green:02X}{blue:02X}");
        rules += &format!(
            ".chart [fill=\"{colour}\"] {{ fill: var(--{name}); }} .chart [stroke=\"{colour}\"] {{ stroke: var(--{name}); }}\n"
        );
    }
    rules
}

#[cfg(test)]
mod tests;
