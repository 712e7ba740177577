//! The frame of a chart: its axes, and where a pair of values lies between them.

use std::fmt::Write as _;

use super::markup::{escape, px};
use super::scale::Scale;

/// Room for the labels of the axes, in pixels.
const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const BOTTOM: f64 = 24.0;

/// How large a chart is drawn. It is scaled to the width of its column, so each is made for some width.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) class: &'static str,
    pub(super) width: f64,
    pub(super) height: f64,
    /// The most ticks of a time axis.
    pub(super) ticks: usize,
}

/// All columns of a desk's screen.
pub(super) const WIDE: Size = Size { class: "wide", width: 920.0, height: 230.0, ticks: 14 };
/// The same chart on a phone.
pub(super) const NARROW: Size = Size { class: "narrow", width: 400.0, height: 210.0, ticks: 6 };
/// Half a screen, or a phone.
pub(super) const HALF: Size = Size { class: "half", width: 430.0, height: 260.0, ticks: 6 };

/// A scale, and its ticks with their labels.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) ticks: Vec<(f64, String)>,
}

/// Axes on a sheet.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) size: Size,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// Room above for what is written there.
    pub(super) top: f64,
}

impl Frame {
    pub(super) fn x(&self, value: f64) -> f64 {
        LEFT + self.x.scale.at(value) * (self.right() - LEFT)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.floor() - self.y.scale.at(value) * (self.floor() - self.top)
    }

    /// Where the vertical axis has its zero.
    pub(super) fn floor(&self) -> f64 {
        self.size.height - BOTTOM
    }

    pub(super) fn right(&self) -> f64 {
        self.size.width - RIGHT
    }

    /// A column that shows `title` to whoever points at it, as high as the chart.
    pub(super) fn hover(&self, from: f64, to: f64, title: &str) -> String {
        let (x, top, width, height) = (px(from), px(self.top), px(to - from), px(self.floor() - self.top));
        format!(
            r#"<rect class="hover" x="{x}" y="{top}" width="{width}" height="{height}"><title>{}</title></rect>"#,
            escape(title)
        )
    }

    /// The chart with `marks` in it; `label` says what it is to whoever cannot see it.
    pub(super) fn svg(&self, label: &str, marks: &str) -> String {
        let Size { class, width, height, .. } = self.size;
        let mut svg = format!(r#"<svg class="{class}" viewBox="0 0 {} {}" role="img""#, px(width), px(height));
        // Writing to a String does not fail.
        let _ = writeln!(svg, r#" aria-label="{}">"#, escape(label));
        let (floor, right) = (self.floor(), self.right());
        for (value, label) in &self.y.ticks {
            let y = self.y(*value);
            if y < floor - 0.5 {
                let _ = write!(svg, r#"<path class="grid" d="M{} {y:.1}H{}"/>"#, px(LEFT), px(right));
            }
            let _ =
                write!(svg, r#"<text class="end" x="{}" y="{}">{}</text>"#, px(LEFT - 8.0), px(y + 4.0), escape(label));
        }
        svg.push('\n');
        svg.push_str(marks);
        let _ = write!(svg, "\n<path class=\"axis\" d=\"M{} {}H{}\"/>", px(LEFT), px(floor), px(right));
        for (value, label) in &self.x.ticks {
            let x = px(self.x(*value));
            let _ = write!(svg, r#"<path class="axis" d="M{x} {}v4"/>"#, px(floor));
            let _ = write!(svg, r#"<text class="middle" x="{x}" y="{}">{}</text>"#, px(floor + 18.0), escape(label));
        }
        svg + "\n</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        let axis =
            |to: f64| Axis { scale: Scale::Linear(to), ticks: vec![(0.0, "0".to_owned()), (to, "<1>".to_owned())] };
        Frame { size: HALF, x: axis(10.0), y: axis(4.0), top: 10.0 }
    }

    #[test]
    fn the_axes_meet_at_zero_and_end_at_the_last_tick() {
        let frame = frame();
        assert_eq!((frame.x(0.0), frame.y(0.0)), (LEFT, frame.floor()));
        assert_eq!((frame.x(10.0), frame.y(4.0)), (frame.right(), 10.0));
        assert_eq!(frame.x(99.0), frame.right(), "nothing is drawn outside");
    }

    #[test]
    fn labels_and_titles_are_escaped() {
        let frame = frame();
        let svg = frame.svg("a \"b\"", &frame.hover(1.0, 2.0, "<c>"));
        assert!(svg.contains("aria-label=\"a &quot;b&quot;\"") && svg.contains("<title>&lt;c&gt;</title>"));
        assert_eq!(svg.matches("&lt;1&gt;").count(), 2);
    }
}
