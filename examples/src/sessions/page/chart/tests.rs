use super::*;

fn axis(to: f64, label: &str) -> Axis {
    Axis { title: "title of an axis", from: 0.0, to, ticks: vec![(0.0, "0".to_owned()), (to, label.to_owned())] }
}

fn bar(from: f64, to: f64, count: u64) -> Bar {
    Bar { from, to, count, title: "<t>".to_owned() }
}

fn of(content: &Content) -> String {
    chart("a \"b\"", 920, 200, |_| axis(10.0, "100 ms"), &axis(1e6, "1,000,000"), content).unwrap().into_string()
}

/// Returns the numbers of the attribute `name` in each tag of a kind.
fn numbers(svg: &str, tag: &str, name: &str) -> Vec<i32> {
    let start = format!("<{tag} ");
    let tags = svg.split(start.as_str()).skip(1);
    let value = |tag: &str| tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?.parse().ok();
    tags.filter_map(|tag| value(&format!(" {tag}"))).collect()
}

#[test]
fn a_chart_is_drawn_for_each_width_and_never_scaled() {
    let html = of(&Content::default());
    // The widest is first, because the style sheet hides the drawings after the one that fits.
    let widths: Vec<i32> = WIDTHS.iter().rev().map(|width| width.cast_signed()).collect();
    assert_eq!(numbers(&html, "svg", "width"), widths);
    let narrow = chart("x", 430, 200, |_| axis(1.0, "1"), &axis(1.0, "1"), &Content::default()).unwrap();
    assert_eq!(numbers(&narrow.into_string(), "svg", "width"), [430, 375, 320, 280]);
    for width in &WIDTHS[1..] {
        assert!(rules().contains(&format!("@container (min-width: {width}px)")));
    }
}

#[test]
fn one_of_a_million_is_a_pixel_and_zero_is_nothing() {
    let rects = |count| of(&Content { bars: vec![bar(0.0, 1.0, count)], ..Content::default() });
    assert!(numbers(&rects(0), "rect", "height").is_empty());
    let one = numbers(&rects(1), "rect", "height");
    assert_eq!((one.len(), one[0]), (2 * WIDTHS.len(), 1));
}

#[test]
fn both_axes_have_a_title_at_every_width() {
    let html = of(&Content::default());
    assert_eq!(html.matches("title of an axis").count(), 2 * WIDTHS.len());
    assert_eq!(html.matches("rotate(270,").count(), WIDTHS.len());
}

#[test]
fn titles_and_labels_are_escaped() {
    let html = of(&Content { bars: vec![bar(0.0, 1.0, 1)], ..Content::default() });
    assert!(html.contains("aria-label=\"a &quot;b&quot;\"") && html.contains("<title>&lt;t&gt;</title>"));
}

/// Returns a generous estimate of half the width of a label of 12 px text.
fn reach(text: &str) -> i32 {
    i32::try_from(text.chars().count()).unwrap() * 4
}

#[test]
fn every_label_stays_inside_at_every_width() {
    for place in [0.0, 0.1, 4.9, 5.0, 9.9, 10.0] {
        let mark = |at: f64, name: &str| Mark { at, name: name.to_owned(), colour: ALARM };
        let marks = vec![mark(place, "p99.9 123.4 ms"), mark(10.0 - place, "max"), mark(99.0, "beyond")];
        for svg in of(&Content { marks, ..Content::default() }).split("<svg ").skip(1) {
            let width = numbers(&format!("<svg {svg}"), "svg", "width")[0];
            for text in svg.split("<text ").skip(1) {
                let text = format!("<text {text}");
                let x = numbers(&text, "text", "x")[0];
                let words = text.split_once('>').unwrap().1.split('<').next().unwrap().trim();
                let row = numbers(&text, "text", "y")[0];
                if text.contains("rotate(270,") {
                    // The title of the vertical axis is written upwards.
                    assert!(row >= reach(words) && row + reach(words) <= 200 && x >= 0, "`{words}` at {x}, {row}");
                    continue;
                }
                assert!(row <= 200, "`{words}` at {row}");
                let (left, right) = if text.contains("\"start\"") {
                    (x, x + 2 * reach(words))
                } else if text.contains("\"end\"") {
                    (x - 2 * reach(words), x)
                } else {
                    (x - reach(words), x + reach(words))
                };
                assert!(left >= 0 && right <= width, "`{words}` from {left} to {right} of {width}");
                let meets = |line: &str| {
                    let (x, top) = line.split_once(',').unwrap();
                    (left..right).contains(&x.parse().unwrap()) && row > top.parse().unwrap()
                };
                // The lines of marks have this color.
                let lines = svg.split("stroke=\"#B4531D\"").skip(1);
                let mut lines = lines.map(|line| line.split("points=\"").nth(1).unwrap().split(' ').next().unwrap());
                assert!(!text.contains("#1D1F23") || !lines.any(meets), "a line goes through `{words}`");
            }
        }
    }
}

#[test]
fn a_dark_page_replaces_every_color() {
    let mark = Mark { at: 1.0, name: "m".to_owned(), colour: ALARM };
    let line = vec![(0.0, 0.0), (10.0, 5.0)];
    let html = of(&Content { bars: vec![bar(0.0, 1.0, 9)], line, marks: vec![mark], ..Content::default() });
    let rules = rules();
    for attribute in ["fill=\"#", "stroke=\"#"] {
        for colour in html.split(attribute).skip(1).map(|rest| &rest[..6]) {
            assert!(rules.contains(&format!("[{attribute}{colour}\"]")), "{colour}");
        }
    }
    let style = include_str!("../style.css");
    for (_, name) in PALETTE {
        assert_eq!(style.matches(&format!("  --{name}: #")).count(), 2, "{name} in light and dark");
    }
}
