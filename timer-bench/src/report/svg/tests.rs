use super::{Axis, PALETTE, dark, in_words, short, workload};
use crate::report::results::tests::results;
use crate::report::statistics::Summary;

fn axis(values: &[f64]) -> Axis {
    Axis::of(values.iter().map(|value| Summary { median: *value, min: *value, max: *value, rounds: 1 }))
}

#[test]
fn text_is_escaped() {
    let results = results("Mutex<&> W1 P=1 5 ns/a");
    let svg = workload(&results, "W1", "<script>").unwrap();
    assert!(svg.contains("Mutex&lt;&amp;&gt;") && !svg.contains("<script>"));
}

#[test]
fn a_linear_axis_begins_at_zero() {
    let axis = axis(&[10.0, 100.0]);
    assert_eq!((axis.share(0.0), axis.share(50.0), axis.share(100.0)), (0.0, 0.5, 1.0));
    assert_eq!(axis.ticks(), [0.0, 50.0, 100.0]);
}

#[test]
fn a_logarithmic_axis_shows_short_bars_too() {
    let axis = axis(&[0.0, 3.0, 3_000.0]);
    assert_eq!(axis.ticks(), [1.0, 10.0, 100.0, 1_000.0]);
    assert_eq!((axis.share(0.0), axis.share(5_000.0)), (0.0, 1.0));
    assert!(axis.share(3.0) > 0.1);
}

#[test]
fn zero_and_negative_figures_give_a_finite_axis() {
    for values in [&[][..], &[0.0], &[-5.0, 0.0], &[1e-9, 1e9]] {
        let axis = axis(values);
        assert!(values.iter().all(|value| (0.0..=1.0).contains(&axis.share(*value))));
        assert!(axis.ticks().iter().all(|tick| tick.is_finite()) && axis.ticks().len() < 12);
    }
}

#[test]
fn axes_end_at_round_numbers() {
    for (most, end) in [(87.0, 100.0), (100.0, 100.0), (101.0, 150.0), (0.123, 0.15), (7.0, 8.0), (1_999.0, 2_000.0)] {
        let axis = axis(&[most, most / 2.0]);
        assert!((axis.most / end - 1.0).abs() < 1e-9, "{most} ends at {}", axis.most);
        assert_eq!(axis.ticks().last().map(|tick| short(*tick)), Some(short(axis.most)));
    }
    assert_eq!((axis(&[3.0, 1_234.0]).most, axis(&[3.0, 1_000.0]).most), (2_000.0, 1_000.0));
}

#[test]
fn axes_have_their_unit_in_words() {
    for (unit, words) in [
        ("ns/schedule", "ns per schedule"),
        ("cpu-ns/pair-floor", "CPU ns per pair floor"),
        ("us-p99.9", "us, p99.9"),
        ("cpu-us-max", "CPU us, max"),
        ("handed-back", "handed back"),
        ("of-the-floor", "times the floor"),
    ] {
        assert_eq!(in_words(unit), words);
    }
    let svg = workload(&results("timer W1 P=1 5 ns/a\ntokio W1 P=1 500 ns/a"), "W1", "x").unwrap();
    assert!(svg.contains("\nns per a, logarithmic\n"));
}

#[test]
fn ticks_have_short_labels() {
    assert_eq!([0.0, 0.5, 20.0, 1_500.0, 2e6].map(short), ["0", "0.5", "20", "1.5k", "2M"]);
}

#[test]
fn every_peer_has_a_bar_or_says_not_available() {
    let results = results("timer W1 P=1 5 ns/a\ntokio W1 P=1 9 ns/a\nheap W1 - n/a - cannot\ntimer W1 P=1 0 ms-drain");
    let svg = workload(&results, "W1", "x").unwrap();
    // One of each color is in the legend, and one is in the style.
    assert_eq!(svg.matches("fill=\"#D9541E\"").count(), 3);
    assert_eq!(svg.matches("fill=\"#7A93AC\"").count(), 3);
    assert_eq!(svg.matches("\nn/a\n").count(), 1);
    assert!(!svg.contains("ms-drain"));
}

#[test]
fn figures_over_time_are_lines() {
    let svg = workload(
        &results("timer W1 P=1,t=0.50 5 us-a-over-time\ntimer W1 P=1,t=1.00 900 us-a-over-time\nheap W1 P=1,t=0.50 7 us-a-over-time"),
        "W1",
        "x",
    )
    .unwrap();
    assert!(svg.contains("us-a over time  P=1") && svg.contains("us, a, logarithmic, by seconds"));
    assert_eq!(svg.matches("<polyline").count() - 1, 2, "one is in the legend");
}

#[test]
fn every_color_has_a_counterpart_in_dark_mode() {
    let svg =
        workload(&results("timer W1 P=1 5 ns/a\ntokio W1 P=1 9 ns/a\nheap W1 - n/a - cannot"), "W1", "x").unwrap();
    let rules = dark();
    assert!(svg.contains(&rules));
    let drawn = svg.split_once("</style>").unwrap().1;
    for attribute in ["fill=\"#", "stroke=\"#"] {
        for color in drawn.split(attribute).skip(1).map(|rest| &rest[..6]) {
            assert!(rules.contains(&format!("[{attribute}{color}\"]")), "{color}");
        }
    }
    assert!(PALETTE.iter().all(|(light, dark)| light != dark));
}

/// `bench-report --redraw v0.2` updates the plots.
#[test]
fn the_kept_plots_show_the_kept_figures() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("results/v0.2");
    let results = crate::report::results::Results::load(&folder).unwrap();
    for (name, what) in crate::workloads::ALL.iter().filter(|(name, _)| results.of(name).next().is_some()) {
        let kept = std::fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
        assert!(kept == workload(&results, name, what).unwrap(), "{name}.svg");
    }
}
