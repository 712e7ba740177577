//! A real Prometheus scrapes a timer, and its answers are compared with the timer's own counts.
//!
//! `cargo xtask metrics-e2e` runs these tests, which need the programs `prometheus` and `promtool`.
//! All servers listen on a free port of the loopback address, and all files are in the target
//! folder.

use serde_json::Value;
use std::fs::{self, File};
use std::net::TcpListener;
use std::process::{Child, Command};
use std::thread::park_timeout;
use std::time::Duration;
use timer_core::{LagSnapshot, Timer};
use timer_live::LivePage;
use timer_metrics::{LAG_BUCKETS, TimerMetrics};

const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/end_to_end");
const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../timer-metrics/prometheus/alerts.yml");

/// The number of attempts to see an expected value, and the pause between them. Together they take
/// a minute.
const TRIES: u32 = 240;
const PAUSE: Duration = Duration::from_millis(250);

/// The numbers of timeouts that run within 5 s, that wait, that are cancelled while they wait, and
/// that exceed the bound.
const RUN: u32 = 3_000;
const WAIT: u32 = 500;
const CANCELLED: u32 = 200;
const REFUSED: u32 = 7;

/// A Prometheus process that ends when this is dropped.
struct Prometheus {
    child: Child,
    url: String,
    /// The folder of its settings, data and log.
    folder: String,
}

impl Prometheus {
    /// Starts a Prometheus that scrapes `target` and itself once a second and loads the alert
    /// rules. Each one needs its own `name`. `options` are further ones of the command line.
    fn start(name: &str, target: &str, options: &[&str]) -> Self {
        // A port that is free at the moment.
        let own = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let folder = format!("{FOLDER}/{name}");
        _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let settings = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: ['{ALERTS}']\nscrape_configs:\n  \
             - {{ job_name: timer, static_configs: [{{ targets: ['{target}'] }}] }}\n  \
             - {{ job_name: own, static_configs: [{{ targets: ['{own}'] }}] }}\n"
        );
        fs::write(format!("{folder}/prometheus.yml"), settings).unwrap();
        let log = File::create(format!("{folder}/prometheus.log")).unwrap();
        let mut command = Command::new("prometheus");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn"]);
        command.arg(format!("--web.listen-address={own}")).args(options).current_dir(&folder);
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Self { child, url: format!("http://{own}"), folder }
    }

    /// Returns the current series of a query, each as the label `le`, which only buckets have, and
    /// the value.
    fn series(&self, query: &str) -> Vec<(String, f64)> {
        let mut command = Command::new("promtool");
        let output = command.args(["query", "instant", "--format", "json", &self.url, query]).output().unwrap();
        // Until Prometheus is ready, the output is empty.
        let Ok(Value::Array(found)) = serde_json::from_slice(&output.stdout) else { return Vec::new() };
        let pair = |series: &Value| {
            let le = series["metric"]["le"].as_str().unwrap_or_default().to_owned();
            (le, series["value"][1].as_str().unwrap().parse().unwrap())
        };
        found.iter().map(pair).collect()
    }

    /// Waits until a query has a single series with a value that `wanted` accepts.
    fn until(&mut self, query: &str, wanted: impl Fn(f64) -> bool) -> f64 {
        for _ in 0..TRIES {
            if let [(_, value)] = self.series(query)[..] {
                if wanted(value) {
                    return value;
                }
            }
            assert!(self.child.try_wait().unwrap().is_none(), "prometheus has ended: {}", self.log());
            park_timeout(PAUSE);
        }
        panic!("waited in vain for {query}: {:?}\n{}", self.series(query), self.log());
    }

    /// Checks that Prometheus and the timer have the same histogram, bucket by bucket.
    fn has_buckets(&self, query: &str, lag: &LagSnapshot) {
        let buckets = self.series(query);
        assert_eq!(buckets.len(), LAG_BUCKETS.len() + 1, "{buckets:?}");
        for (le, count) in buckets {
            let bound = if le == "+Inf" { Duration::MAX } else { Duration::from_secs_f64(le.parse().unwrap()) };
            assert_eq!(count, lag.count_up_to(bound) as f64, "{query} {le}");
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(format!("{}/prometheus.log", self.folder)).unwrap()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The process may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
#[ignore = "needs Prometheus: cargo xtask metrics-e2e"]
fn promtool_returns_the_counts_of_the_timer() {
    let timer = Timer::builder().name("e2e").max_pending_timeouts((RUN + WAIT) as usize).build().unwrap();
    let server = LivePage::new(&TimerMetrics::from_iter([&timer])).serve(0).unwrap();
    let hour = Duration::from_secs(3_600);
    let far: Vec<_> = (0..WAIT).map(|_| timer.new_timeout(hour, |_| ()).unwrap()).collect();
    let mut prometheus = Prometheus::start("e2e", &server.local_addr().to_string(), &[]);
    prometheus.until("timer_pending_timeouts{timer='e2e'}", |pending| pending == f64::from(WAIT));

    // Prometheus scrapes while they run.
    for number in 0..RUN {
        timer.new_timeout(Duration::from_secs(5) * number / RUN, |_| ()).unwrap();
    }
    let fits = (0..REFUSED).filter(|_| timer.new_timeout(hour, |_| ()).is_ok()).count();
    assert!(far[..CANCELLED as usize].iter().all(|timeout| timeout.cancel()));
    let some = |expired| expired > 0.0 && expired < f64::from(RUN);
    let some = prometheus.until("timer_timeouts_expired_total{timer='e2e'}", some);
    println!("scraped during the runs: {some} of {RUN}");

    // Prometheus scrapes after all have run.
    prometheus.until("timer_timeouts_expired_total{timer='e2e'}", |expired| expired == f64::from(RUN));
    let stats = timer.stats();
    assert_eq!(
        (stats.pending, stats.rejected),
        (u64::from(WAIT - CANCELLED) + fits as u64, u64::from(REFUSED) - fits as u64)
    );
    for (name, own) in [
        ("timer_pending_timeouts", stats.pending),
        ("timer_max_pending_timeouts", u64::from(RUN + WAIT)),
        ("timer_timeouts_scheduled_total", stats.scheduled),
        ("timer_timeouts_expired_total", stats.expired),
        ("timer_timeouts_cancelled_total", stats.cancelled),
        ("timer_timeouts_rejected_total", stats.rejected),
        ("timer_timeout_lag_seconds_count", stats.timeout_lag.count()),
        ("timer_start_lag_seconds_count", stats.start_lag.count()),
    ] {
        let theirs = prometheus.until(&format!("{name}{{timer='e2e'}}"), |value| value == own as f64);
        println!("{name:<36} {theirs:>8} {own:>8}");
    }
    prometheus.has_buckets("timer_timeout_lag_seconds_bucket{timer='e2e'}", &stats.timeout_lag);
    prometheus.has_buckets("timer_start_lag_seconds_bucket{timer='e2e'}", &stats.start_lag);

    // Prometheus evaluates the rules without a failure.
    prometheus.until("sum(prometheus_rule_evaluations_total)", |times| times > 0.0);
    prometheus.until("sum(prometheus_rule_evaluation_failures_total)", |times| times == 0.0);
}

/// A Prometheus with native histograms asks for protobuf, and gets finer buckets.
#[cfg(feature = "protobuf")]
#[test]
#[ignore = "needs Prometheus: cargo xtask metrics-e2e"]
fn promtool_returns_native_histograms() {
    let (timer, mut driver) = Timer::builder().name("native").build_manual().unwrap();
    driver.advance(Duration::from_secs(3_600));
    for step in 1..=100 {
        timer.new_timeout_at(driver.now() - step * Duration::from_millis(1), |_| ()).unwrap();
    }
    driver.advance(Duration::ZERO);
    let server = LivePage::new(&TimerMetrics::from_iter([&timer])).serve(0).unwrap();
    let target = server.local_addr().to_string();
    let mut prometheus = Prometheus::start("native", &target, &["--enable-feature=native-histograms"]);
    prometheus.until("timer_timeouts_expired_total{timer='native'}", |expired| expired == 100.0);
    let lag = "timer_timeout_lag_seconds{timer='native'}";
    prometheus.until(&format!("histogram_count({lag})"), |count| count == 100.0);
    prometheus.until(&format!("histogram_sum({lag})"), |sum| (sum - 5.05).abs() < 1e-6);
    for (q, exact) in [(0.5, 0.050), (0.9, 0.090), (0.99, 0.099)] {
        let found = prometheus.until(&format!("histogram_quantile({q}, {lag})"), |value| value > 0.0);
        println!("quantile {q}: {found} for {exact}");
        assert!((found / exact - 1.0).abs() < 0.05, "{found} for {exact}");
    }
}
