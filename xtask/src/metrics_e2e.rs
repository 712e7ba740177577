//! `cargo xtask metrics-e2e`: a real Prometheus scrapes `sessions` while it replays, and what it answers to PromQL is compared
//! with what `sessions` itself reports. And `promtool` judges the alert rules.
//!
//! Needs the programs `prometheus` and `promtool` (Debian's package `prometheus`); without them it says so and passes. All
//! that listens does so on the loopback address and on a free port; all files are below the target folder.

mod answer;
mod prometheus;
mod summary;
mod target;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use self::prometheus::Prometheus;
use self::summary::Summary;
use self::target::Target;
use crate::args::Args;
use crate::cargo::{Failure, root, target_dir};

/// Where the rules are, and how the names of their tests end.
const RULES: &str = "timer-metrics/prometheus";
const RULE_TESTS: &str = "_test.yml";

/// What a lag's own figures may be off: quantiles are known to 1 %, and printed with three digits.
const TOLERANCE: f64 = 0.02;

pub(crate) fn command(args: Args) -> Result<(), Failure> {
    args.done()?;
    if installed("promtool") {
        check_rules()?;
    }
    if installed("prometheus") { scrape() } else { Ok(()) }
}

/// Can `program` be started? If not, says what to do.
fn installed(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = version.is_ok_and(|status| status.success());
    if !found {
        println!("skipped: no `{program}` here; it comes with the package `prometheus` (apt-get install prometheus)");
    }
    found
}

fn check_rules() -> Result<(), Failure> {
    let folder = root().join(RULES);
    let entries = std::fs::read_dir(&folder).map_err(|error| Failure::new(format!("{RULES}: {error}")))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yml"));
    files.sort();
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let verb = if name.ends_with(RULE_TESTS) { "test" } else { "check" };
        eprintln!("$ promtool {verb} rules {RULES}/{name}");
        let status = Command::new("promtool").args([verb, "rules"]).arg(file).status();
        if !status.is_ok_and(|status| status.success()) {
            return Err(Failure::new(format!("`promtool {verb} rules {RULES}/{name}` failed")));
        }
    }
    if files.is_empty() { Err(Failure::new(format!("no rules in {RULES}"))) } else { Ok(()) }
}

fn scrape() -> Result<(), Failure> {
    let mut target = Target::start()?;
    let rules = root().join(RULES).join("alerts.yml");
    let rules = Some(rules.as_path()).filter(|path| path.is_file());
    let mut prometheus = Prometheus::start(&target_dir().join("metrics-e2e"), &target.addr, rules.map(Path::new))?;

    // While it replays.
    prometheus.until("count_over_time(timer_pending_timeouts{timer=\"sessions\"}[5m])", |scrapes| scrapes >= 2.0)?;
    let pending = prometheus.value("timer_pending_timeouts{timer=\"sessions\"}")?;
    println!("two scrapes; {pending} timeouts are pending");

    // At the end.
    let own = Summary::parse(&target.summary()?)?;
    prometheus.until("timer_timeouts_expired_total{timer=\"sessions\"}", |expired| expired == own.expired)?;
    prometheus.rules_are_healthy()?;
    compare(&mut prometheus, &own)
}

/// Prints both sides, and fails if they differ.
fn compare(prometheus: &mut Prometheus, own: &Summary) -> Result<(), Failure> {
    let mut faults = Vec::new();
    let mut row = |name: &str, theirs: String, ours: String, same: bool| {
        println!("{name:<36}{theirs:>14}{ours:>14}{}", if same { "" } else { "   differs" });
        if !same {
            faults.push(format!("{name}: Prometheus has {theirs}, sessions {ours}"));
        }
    };
    row("", "Prometheus".to_owned(), "sessions".to_owned(), true);
    for (name, ours) in [
        ("timer_pending_timeouts", own.pending),
        ("timer_timeouts_scheduled_total", own.scheduled),
        ("timer_timeouts_expired_total", own.expired),
        ("timer_timeouts_cancelled_total", own.cancelled),
        ("timer_timeouts_rejected_total", own.rejected),
        ("timer_timeout_lag_seconds_count", own.expired),
    ] {
        let theirs = prometheus.value(&format!("{name}{{timer=\"sessions\"}}"))?;
        row(name, theirs.to_string(), ours.to_string(), theirs == ours);
    }
    let buckets = prometheus.query("timer_timeout_lag_seconds_bucket{timer=\"sessions\"}")?;
    let bounds: Vec<f64> = buckets.iter().filter_map(|sample| sample.label("le")?.parse().ok()).collect();
    let p99 = prometheus.value("histogram_quantile(0.99, timer_timeout_lag_seconds_bucket{timer=\"sessions\"})")?;
    let millis = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    row("99 % of timeouts within (by buckets)", millis(p99), millis(own.p99), same_bucket(p99, own.p99, bounds));

    let most = prometheus.value("max_over_time(timer_pending_timeouts{timer=\"sessions\"}[10m])")?;
    println!("at most {most} were pending when Prometheus looked");
    if most < 1.0 || most > own.scheduled {
        faults.push(format!("{most} of {} timeouts were pending", own.scheduled));
    }
    if !faults.is_empty() {
        return Err(Failure::new(faults.join("; ")));
    }
    println!("metrics-e2e: Prometheus and sessions agree");
    Ok(())
}

/// All that a histogram can say of a quantile is in which bucket it lies. Prometheus interpolates there, and answers with the
/// last finite bound for whatever is above it.
fn same_bucket(theirs: f64, ours: f64, mut bounds: Vec<f64>) -> bool {
    bounds.retain(|bound| bound.is_finite());
    bounds.sort_by(f64::total_cmp);
    let at = bounds.partition_point(|bound| *bound < theirs);
    let lower = if at == 0 { 0.0 } else { bounds[at - 1] };
    let last = bounds.last().is_none_or(|last| theirs >= *last);
    let upper = if last { f64::INFINITY } else { bounds[at] };
    lower * (1.0 - TOLERANCE) <= ours && ours <= upper * (1.0 + TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::same_bucket;

    #[test]
    fn quantiles_agree_when_they_lie_in_one_bucket() {
        let bounds = || vec![f64::INFINITY, 1.0, 0.1, 10.0];
        for (theirs, ours, same) in [
            (0.5, 0.9, true),
            (0.5, 1.1, false),
            (0.5, 0.09, false),
            (0.5, 1.01, true),
            (0.5, 0.0985, true),
            (0.05, 0.0, true),
            (10.0, 4_000.0, true),
            (10.0, 0.5, false),
        ] {
            assert_eq!(same_bucket(theirs, ours, bounds()), same, "{theirs} and {ours}");
        }
    }
}
