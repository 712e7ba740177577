//! What stands in a frame: bars, and a line with its area.

use std::fmt::Write as _;

use super::frame::Frame;
use super::markup::px;

/// A count between two values of the horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) count: u64,
    /// For whoever points at it.
    pub(super) title: String,
}

/// Bars side by side, a pixel between them. What is not zero is seen.
pub(super) fn bars(frame: &Frame, bars: &[Bar]) -> String {
    let (mut shapes, mut hovers) = (String::new(), String::new());
    for bar in bars {
        let (from, to) = (frame.x(bar.from), frame.x(bar.to));
        if bar.count > 0 {
            let top = frame.y(bar.count as f64).min(frame.floor() - 1.0);
            // Writing to a String does not fail.
            let _ = write!(
                shapes,
                "M{} {}V{}H{}V{}",
                px(from + 0.5),
                px(frame.floor()),
                px(top),
                px(to - 0.5),
                px(frame.floor())
            );
            hovers.push_str(&frame.hover(from, to, &bar.title));
        }
    }
    format!("<path class=\"fill\" d=\"{shapes}\"/>\n{hovers}")
}

/// A line through the points, and the area under it.
pub(super) fn area(frame: &Frame, points: &[(u64, u64)]) -> String {
    let mut line = String::new();
    for (x, y) in points {
        let _ = write!(
            line,
            "{}{} {}",
            if line.is_empty() { 'M' } else { 'L' },
            px(frame.x(*x as f64)),
            px(frame.y(*y as f64))
        );
    }
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return String::new();
    };
    let (from, to, floor) = (px(frame.x(first.0 as f64)), px(frame.x(last.0 as f64)), px(frame.floor()));
    format!("<path class=\"area\" d=\"{line}L{to} {floor}L{from} {floor}Z\"/><path class=\"line\" d=\"{line}\"/>\n")
}

#[cfg(test)]
mod tests {
    use super::super::frame::{Axis, HALF};
    use super::super::scale::Scale;
    use super::*;

    fn frame() -> Frame {
        let axis = |to: f64| Axis { scale: Scale::Linear(to), ticks: Vec::new() };
        Frame { size: HALF, x: axis(10.0), y: axis(1_000_000.0), top: 10.0 }
    }

    #[test]
    fn one_of_a_million_is_a_pixel_and_none_is_nothing() {
        let bar = |count| Bar { from: 0.0, to: 1.0, count, title: "t".to_owned() };
        let drawn = bars(&frame(), &[bar(1)]);
        assert!(drawn.contains(&format!("V{}H", px(frame().floor() - 1.0))), "{drawn}");
        assert!(bars(&frame(), &[bar(0)]).starts_with("<path class=\"fill\" d=\"\"/>"));
    }

    #[test]
    fn an_area_begins_and_ends_on_the_floor() {
        let floor = px(frame().floor());
        let drawn = area(&frame(), &[(0, 0), (10, 1_000_000)]);
        assert!(drawn.contains(&format!("d=\"M44 {floor}L416 10L416 {floor}L44 {floor}Z\"")), "{drawn}");
        assert_eq!(area(&frame(), &[]), "");
    }
}
