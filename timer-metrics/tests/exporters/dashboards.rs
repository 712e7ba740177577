//! The dashboard and the alerts use only series that a scrape has, and their tools can load them.

use crate::support::exposition::{Format, parse};
use crate::support::known;
use crate::support::promtool::promtool;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;
use timer_core::Timer;
use timer_metrics::{TimerMetrics, Watch};

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

fn file(path: &str) -> String {
    std::fs::read_to_string(format!("{FOLDER}/{path}")).unwrap()
}

fn dashboard() -> Value {
    serde_json::from_str(&file("grafana/dashboard.json")).unwrap()
}

/// Collects all strings under the key `name` at any depth.
fn strings<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(object) => {
            found.extend(object.get(name).and_then(Value::as_str));
            object.values().for_each(|value| strings(value, name, found));
        }
        Value::Array(array) => array.iter().for_each(|value| strings(value, name, found)),
        _ => {}
    }
}

/// Returns the names of all samples in a scrape.
fn scraped() -> BTreeSet<String> {
    let (timer, _driver) = known(Timer::builder().max_pending_timeouts(10));
    let metrics = TimerMetrics::new();
    metrics.watch_with(&timer, Watch::new().longest_delay(Duration::from_secs(1)));
    let mut registry = Registry::default();
    let mut text = String::new();
    metrics.register(&mut registry);
    encode(&mut text, &registry).unwrap();
    parse(&text, Format::OpenMetrics).unwrap().names().into_iter().map(str::to_owned).collect()
}

/// Returns the words of a text that look like metric names.
fn named(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    words.filter(|word| word.starts_with("timer_")).collect()
}

#[test]
fn dashboard_and_alerts_use_only_existing_series() {
    let scraped = scraped();
    for path in ["grafana/dashboard.json", "prometheus/alerts.yml", "prometheus/alerts_test.yml"] {
        let text = file(path);
        let named = named(&text);
        assert!(named.len() >= 8, "{path} names {named:?} only");
        let unknown: Vec<_> = named.iter().filter(|name| !scraped.contains(**name)).collect();
        // Comments also use the name of a histogram as a whole.
        let unknown: Vec<_> = unknown.iter().filter(|name| !scraped.contains(&format!("{name}_bucket"))).collect();
        assert!(unknown.is_empty(), "{path}: {unknown:?}");
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    let text = file("grafana/dashboard.json");
    let shown = named(&text);
    let sums = |name: &str| name.ends_with("_seconds_sum") || name.ends_with("_seconds_count");
    let missing: Vec<_> = scraped().into_iter().filter(|name| !sums(name)).collect();
    let missing: Vec<_> = missing.iter().filter(|name| !shown.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_docs_list_exactly_the_series_and_the_alerts() {
    let docs = file("src/lib.rs");
    let stem =
        |name: &str| ["_bucket", "_sum", "_count"].iter().fold(name.to_owned(), |name, end| name.replace(end, ""));
    let mut existing: BTreeSet<String> = scraped().iter().map(|name| stem(name)).collect();
    let alerts = file("prometheus/alerts.yml");
    existing.extend(alerts.split("- alert: ").skip(1).filter_map(|alert| alert.lines().next()).map(str::to_owned));
    assert!(existing.len() > 20, "{existing:?}");
    let rows = docs.lines().filter_map(|line| line.strip_prefix("//! | `")?.split_once("` | "));
    let listed = rows.map(|(name, _)| name).filter(|name| name.starts_with("timer_") || name.starts_with("Timer"));
    let listed: BTreeSet<String> = listed.map(str::to_owned).collect();
    assert_eq!(listed, existing);
}

#[test]
fn the_dashboard_can_be_imported() {
    let dashboard = dashboard();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: Vec<_> = variables.iter().map(|variable| ["name", "type"].map(|key| &variable[key])).collect();
    assert_eq!(variables, [["datasource", "datasource"], ["job", "query"], ["instance", "query"], ["timer", "query"]]);
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut areas: Vec<[u64; 4]> = Vec::new();
    for panel in panels {
        let area = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        let [x, y, w, h] = area;
        assert!(x + w <= 24, "{}", panel["title"]);
        let apart = |[x2, y2, w2, h2]: &[u64; 4]| x + w <= *x2 || x2 + w2 <= x || y + h <= *y2 || y2 + h2 <= y;
        assert!(areas.iter().all(apart), "{} lies on another", panel["title"]);
        areas.push(area);
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}");
            assert!(!panel["targets"].as_array().unwrap().is_empty());
        }
    }
}

/// A sum over replicas would hide the late one. Heatmaps can only show a sum, so there is a row of
/// them per instance.
#[test]
fn the_dashboard_does_not_sum_over_replicas() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut repeated = false;
    let mut heatmaps = 0;
    for panel in panels {
        if panel["type"] == "row" {
            repeated = panel["repeat"] == "instance";
            continue;
        }
        let heatmap = panel["type"] == "heatmap";
        assert_eq!(heatmap, repeated, "{}", panel["title"]);
        heatmaps += u8::from(heatmap);
        let mut queries = Vec::new();
        strings(panel, "expr", &mut queries);
        for query in queries {
            assert!(query.contains("{job=~\"$job\",instance=~\"$instance\",timer=~\"$timer\"}"), "{query}");
            assert_eq!(query.contains(" by "), heatmap, "{query}");
        }
        let mut legends = Vec::new();
        strings(panel, "legendFormat", &mut legends);
        assert!(legends.iter().all(|legend| heatmap || legend.contains("{{timer}} {{instance}}")), "{legends:?}");
    }
    assert_eq!(heatmaps, 3);
}

#[test]
fn promtool_parses_every_query_of_the_dashboard() {
    let dashboard = dashboard();
    let mut queries = Vec::new();
    strings(&dashboard, "expr", &mut queries);
    assert!(queries.len() >= 20);
    let mut rules = "groups:\n- name: queries\n  rules:\n".to_owned();
    for (number, query) in queries.iter().enumerate() {
        let query = query.replace("$__rate_interval", "5m");
        let query = ["$job", "$instance", "$timer"].iter().fold(query, |query, name| query.replace(name, ".*"));
        writeln!(rules, "  - record: query_{number}\n    expr: {}", Value::from(query)).unwrap();
    }
    let path = format!("{}/queries.yml", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, rules).unwrap();
    promtool(&["check", "rules", &path], "");
}

#[test]
fn promtool_accepts_the_alerts_and_their_tests() {
    promtool(&["check", "rules", &format!("{FOLDER}/prometheus/alerts.yml")], "");
    promtool(&["test", "rules", &format!("{FOLDER}/prometheus/alerts_test.yml")], "");
}

/// Checks the completeness of each alert, even where `promtool` is not installed.
#[test]
fn every_alert_has_severity_summary_and_description() {
    let text = file("prometheus/alerts.yml");
    let alerts: Vec<&str> = text.split("- alert: ").skip(1).collect();
    let names: Vec<&str> = alerts.iter().map(|alert| alert.lines().next().unwrap()).collect();
    let expected = [
        "TimerLate",
        "TimerTasksStartLate",
        "TimerNearlyFull",
        "TimerRejecting",
        "TimerExecutorRejecting",
        "TimerTaskPanics",
        "TimerWorkerStuck",
    ];
    assert_eq!(names, expected);
    let tests = file("prometheus/alerts_test.yml");
    for (name, alert) in names.iter().zip(alerts) {
        for key in ["expr:", "severity:", "summary:", "description:"] {
            assert_eq!(alert.matches(key).count(), 1, "{name}: {key}");
        }
        assert!(alert.contains("$labels.timer") && tests.contains(name), "{name}");
    }
}
