//! Plots as SVG, written by hand: for each workload a sheet of panels, a panel per case and unit, a bar per peer. The axis
//! is logarithmic where the longest bar is more than 20 times the shortest. The thin line is the spread over the rounds.

use super::results::{Results, Series};
use super::statistics::Summary;
use super::table::distinct;
use super::unit::grain;
use crate::peers::OURS;
use crate::row::figure;

const PANEL_WIDTH: f64 = 440.0;
const LABELS: f64 = 96.0;
const FIGURES: f64 = 70.0;
const BARS: f64 = PANEL_WIDTH - LABELS - FIGURES;
const BAR: f64 = 16.0;
const TITLE: f64 = 26.0;
const AXIS: f64 = 26.0;
const HEAD: f64 = 40.0;
const COLUMNS: usize = 2;

/// Beyond this ratio of longest to shortest the axis is logarithmic.
const LOGARITHMIC: f64 = 20.0;

/// The sheet of one workload. Cases in which nobody has more than nothing are left out.
pub fn workload(results: &Results, name: &str, what: &str) -> String {
    let peers = distinct(results.of(name).map(|series| series.peer.as_str()));
    let mut panels = Vec::new();
    for unit in distinct(results.of(name).map(|series| series.unit.as_str())) {
        let of_unit = results.of(name).filter(|series| series.unit == unit);
        for params in distinct(of_unit.map(|series| series.params.as_str())) {
            let bar = |peer: &&str| {
                let series = results.find(peer, name, params, unit);
                // Who has this figure in other cases only was not asked for it in this one.
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

fn sheet(title: &str, panels: &[(String, Vec<Bar>)], peers: usize) -> String {
    let panel_height = TITLE + BAR * peers as f64 + AXIS;
    let width = PANEL_WIDTH * COLUMNS.min(panels.len().max(1)) as f64;
    let height = HEAD + panel_height * panels.len().div_ceil(COLUMNS) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"20\" font-size=\"15\" font-weight=\"bold\">{}</text>\n\
         <text x=\"12\" y=\"35\" fill=\"#666666\">lower is better</text>\n",
        escaped(title)
    );
    for (at, (title, bars)) in panels.iter().enumerate() {
        let x = PANEL_WIDTH * (at % COLUMNS) as f64;
        let y = HEAD + panel_height * (at / COLUMNS) as f64;
        svg += &format!("<g transform=\"translate({x:.0} {y:.0})\">\n{}</g>\n", panel(title, bars));
    }
    svg + "</svg>\n"
}

fn panel(title: &str, bars: &[Bar]) -> String {
    let axis = Axis::of(bars.iter().filter_map(|bar| bar.1));
    let bottom = TITLE + BAR * bars.len() as f64;
    let mut svg = format!("<text x=\"12\" y=\"18\" font-weight=\"bold\">{}</text>\n", escaped(title));
    for tick in axis.ticks() {
        let x = LABELS + axis.length(tick);
        svg += &format!("<path d=\"M{x:.1} {TITLE}V{bottom}\" stroke=\"#dddddd\"/>\n");
        let y = bottom + 12.0;
        svg +=
            &format!("<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\" fill=\"#666666\">{}</text>\n", short(tick));
    }
    for (at, (peer, summary)) in bars.iter().enumerate() {
        let y = TITLE + BAR * at as f64;
        let text = y + BAR - 4.5;
        svg += &format!("<text x=\"{:.0}\" y=\"{text}\" text-anchor=\"end\">{}</text>\n", LABELS - 6.0, escaped(peer));
        let Some(Summary { median, min, max }) = *summary else {
            svg += &format!("<text x=\"{:.0}\" y=\"{text}\" fill=\"#999999\">n/a</text>\n", LABELS + 4.0);
            continue;
        };
        let colour = if peer.starts_with(OURS) { "#d9541e" } else { "#7a93ac" };
        let (top, length) = (y + 2.0, axis.length(median));
        let height = BAR - 4.0;
        svg += &format!(
            "<rect x=\"{LABELS}\" y=\"{top}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{colour}\"/>\n"
        );
        let (from, to, middle) = (LABELS + axis.length(min), LABELS + axis.length(max), y + BAR / 2.0);
        svg += &format!("<path d=\"M{from:.1} {middle}H{to:.1}\" stroke=\"#222222\"/>\n");
        svg += &format!("<text x=\"{:.1}\" y=\"{text}\">{}</text>\n", to.max(LABELS + length) + 4.0, figure(median));
    }
    svg
}

/// From a figure to the length of its bar.
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

    fn length(&self, value: f64) -> f64 {
        let share = match self.least {
            None => value / self.most,
            Some(least) if value > least => (value / least).ln() / (self.most / least).ln(),
            Some(_) => 0.0,
        };
        BARS * share.clamp(0.0, 1.0)
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

/// `text` as XML wants it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&apos;",
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{Axis, BARS, escaped, short, workload};
    use crate::report::results::tests::results;
    use crate::report::statistics::Summary;

    fn axis(values: &[f64]) -> Axis {
        Axis::of(values.iter().map(|value| Summary { median: *value, min: *value, max: *value }))
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;");
        let results = results("Mutex<&> W1 P=1 5 ns/a");
        let svg = workload(&results, "W1", "<script>");
        assert!(svg.contains("Mutex&lt;&amp;&gt;") && !svg.contains("<script>"));
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let axis = axis(&[10.0, 100.0]);
        assert_eq!((axis.length(0.0), axis.length(50.0), axis.length(100.0)), (0.0, BARS / 2.0, BARS));
        assert_eq!(axis.ticks(), [0.0, 50.0, 100.0]);
    }

    #[test]
    fn a_logarithmic_axis_shows_short_bars_too() {
        let axis = axis(&[0.0, 3.0, 3_000.0]);
        assert_eq!(axis.ticks(), [1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!((axis.length(0.0), axis.length(3_000.0)), (0.0, BARS));
        assert!(axis.length(3.0) > BARS * 0.1);
    }

    #[test]
    fn nothing_and_early_give_no_axis_that_breaks() {
        for values in [&[][..], &[0.0], &[-5.0, 0.0], &[1e-9, 1e9]] {
            let axis = axis(values);
            assert!(values.iter().all(|value| (0.0..=BARS).contains(&axis.length(*value))));
            assert!(axis.ticks().iter().all(|tick| tick.is_finite()) && axis.ticks().len() < 12);
        }
    }

    #[test]
    fn ticks_are_written_short() {
        assert_eq!([0.0, 0.5, 20.0, 1_500.0, 2e6].map(short), ["0", "0.5", "20", "1.5k", "2M"]);
    }

    #[test]
    fn every_peer_has_its_bar_or_says_why_not() {
        let results =
            results("timer W1 P=1 5 ns/a\ntokio W1 P=1 9 ns/a\nheap W1 - n/a - cannot\ntimer W1 P=1 0 ms-drain");
        let svg = workload(&results, "W1", "x");
        assert_eq!(svg.matches("fill=\"#d9541e\"").count(), 1);
        assert_eq!(svg.matches("fill=\"#7a93ac\"").count(), 1);
        assert_eq!(svg.matches(">n/a<").count(), 1);
        assert!(!svg.contains("ms-drain"));
    }
}
