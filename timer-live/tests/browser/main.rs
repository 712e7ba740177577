//! The live page in a real browser.
//!
//! `cargo xtask browser` runs these tests, and skips them if Chromium or `chromedriver` is missing.
//! The server and the driver listen on free ports of the loopback address.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test panics on an unexpected error")]
#![forbid(unsafe_code)]

#[cfg(feature = "durable")]
mod durable;
#[cfg(feature = "durable")]
#[path = "../../../timer-metrics/tests/exporters/support/shared.rs"]
mod shared;
mod webdriver;

use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use timer_core::Timer;
use timer_core::executor::{ExecuteError, Task, TaskExecutor};
use timer_live::{ListenAddr, LivePage};
use timer_metrics::TimerMetrics;
use webdriver::Page;

/// An executor that keeps its tasks in a queue and runs none.
#[derive(Default)]
struct Stuck(std::sync::Mutex<Vec<Task>>);

impl TaskExecutor for Stuck {
    fn execute(&self, task: Task) -> Result<(), ExecuteError> {
        self.0.lock().unwrap().push(task);
        Ok(())
    }
}

/// A load on a timer while a test looks at the page.
#[derive(Default)]
struct Load {
    is_over: AtomicBool,
}

impl Load {
    /// Calls `step` until [`during`](Self::during) returns on another thread.
    fn run(&self, mut step: impl FnMut()) {
        // ORDERING: Relaxed, because the flag guards no other data.
        while !self.is_over.load(Ordering::Relaxed) {
            step();
            thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Calls `body`, and ends the load even if it panics.
    fn during<R>(&self, body: impl FnOnce() -> R) -> R {
        let result = catch_unwind(AssertUnwindSafe(body));
        // ORDERING: Relaxed, as above.
        self.is_over.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Returns the expression for the text of a field in the card of a timer.
fn field(timer: &str, selector: &str) -> String {
    format!("document.querySelector('section[data-timer=\"{timer}\"] {selector}').textContent")
}

/// Waits until the state of the page has this text.
fn until_state(page: &Page, text: &str) {
    page.until(&format!("document.getElementById('state').textContent === '{text}'"));
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn the_live_page_works_in_a_browser() {
    let busy = Timer::builder().name("busy").max_pending_timeouts(10_000).build().unwrap();
    let stuck = Timer::builder().name("<b>stuck</b>").executor(Stuck::default()).build().unwrap();
    for _ in 0..3 {
        stuck.new_timeout(Duration::ZERO, |_| {}).unwrap();
    }
    let metrics = TimerMetrics::from_iter([&busy, &stuck]);
    let serve = |addr| LivePage::new(&metrics).label("region", "eu-west").serve(addr).unwrap();
    let server = serve(ListenAddr::from(0));
    let addr = server.local_addr();
    let Some(page) = Page::open(&format!("http://{addr}/")) else {
        eprintln!("skipped: chromedriver is not installed (apt-get install chromium chromium-driver)");
        return;
    };
    let load = Load::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            load.run(|| {
                for milli in 1..50 {
                    let timeout = busy.new_timeout(Duration::from_millis(milli), |_| {}).unwrap();
                    if milli % 2 == 0 {
                        timeout.cancel();
                    }
                }
            });
        });
        load.during(|| {
            shows_the_timers(&page, &addr.to_string());
            fits_small_and_dark_screens(&page);
            pauses_while_hidden(&page);
            assert_eq!(page.console(), Vec::<serde_json::Value>::new());
        });
    });

    drop(stuck);
    page.until("document.querySelectorAll('section').length === 1");
    tells_of_its_own_error(&page);
    drop(server);
    until_state(&page, "Server gone");
    page.until("document.getElementById('alarm').innerText.includes('the server does not answer')");
    page.until("document.body.classList.contains('stale')");
    let _server = serve(addr.into());
    until_state(&page, "Live");
    page.until("document.getElementById('alarm').hidden && !document.body.classList.contains('stale')");
}

fn shows_the_timers(page: &Page, origin: &str) {
    until_state(page, "Live");
    page.until("document.querySelectorAll('section').length === 2");
    assert_eq!(page.value("document.querySelectorAll('section b').length"), 4, "labels are text, not markup");
    assert_eq!(page.value("document.getElementById('labels').innerText"), "region: eu-west");
    assert_eq!(page.value(&field("<b>stuck</b>", "[data-field=queued]")), "3");
    page.until(&format!("{}.includes('bound of 10,000')", field("busy", "[data-field=bound]")));
    // Counts, both rates and both histograms follow the load.
    let total = field("busy", "[data-row=scheduled] td:nth-child(4)");
    let before = page.value(&total);
    page.until(&format!("{total} !== {before}"));
    for column in [2, 3] {
        page.until(&format!("/[1-9]/.test({})", field("busy", &format!("[data-row=expired] td:nth-child({column})"))));
    }
    // Timeouts are due in the next second.
    page.until(&format!("/^minute: [1-9]/.test({})", field("busy", "[data-due=minute] .note")));
    page.until("document.querySelectorAll('[data-due] .line[d*=H96]').length === 2");
    for lag in ["timeout_lag", "start_lag"] {
        for (span, text) in [("minute", "p99"), ("total", "max")] {
            page.value(&format!("document.querySelector('[value={span}]').click()"));
            let figure = format!("section[data-timer=busy] [data-lag={lag}]");
            page.until(&format!("document.querySelectorAll('{figure} .bar').length > 0"));
            page.until(&format!("document.querySelector('{figure} figcaption').textContent.includes('{text}')"));
        }
    }
    let elsewhere = "performance.getEntriesByType('resource').map((entry) => entry.name)";
    let loaded = page.value(elsewhere);
    let loaded = loaded.as_array().unwrap();
    let own = format!("http://{origin}/stats.json");
    assert!(!loaded.is_empty() && loaded.iter().all(|name| *name == own.as_str()), "{loaded:?}");
}

fn fits_small_and_dark_screens(page: &Page) {
    let screen = json!({ "width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": false });
    page.devtools("Emulation.setDeviceMetricsOverride", &screen);
    page.until("innerWidth === 400 && document.documentElement.scrollWidth <= 400");
    // Nothing sticks out of its card.
    let wide = "[...document.querySelectorAll('section *')].filter((part) => \
                part.getBoundingClientRect().right > part.closest('section').getBoundingClientRect().right).length";
    page.until(&format!("({wide}) === 0"));
    page.devtools("Emulation.clearDeviceMetricsOverride", &json!({}));

    // The ground is darker than the text in dark mode, and lighter in light mode.
    let brightness = |color: &str| {
        format!(
            "getComputedStyle(document.body).{color}.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + +part, 0)"
        )
    };
    for (scheme, relation) in [("dark", "<"), ("light", ">")] {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        page.devtools("Emulation.setEmulatedMedia", &features);
        page.until(&format!("{} {relation} {}", brightness("backgroundColor"), brightness("color")));
    }
}

/// Checks that an exception in the page's script does not read as a fault of the server.
fn tells_of_its_own_error(page: &Page) {
    page.value("(window.working = showAll, showAll = () => { throw new Error('on purpose'); }, true)");
    until_state(page, "Page error");
    let alarm = page.value("document.getElementById('alarm').innerText").as_str().unwrap().to_owned();
    assert!(alarm.contains("its script fails (Error: on purpose)") && !alarm.contains("the server"), "{alarm}");
    page.value("(showAll = window.working, true)");
    until_state(page, "Live");
    page.until("document.getElementById('alarm').hidden");
}

/// Checks that a hidden page asks for nothing. A headless browser cannot hide a window, so the
/// document's `hidden` is replaced.
fn pauses_while_hidden(page: &Page) {
    let hide = |is_hidden: bool| {
        let define = format!("Object.defineProperty(document, 'hidden', {{ configurable: true, value: {is_hidden} }})");
        page.value(&format!("{define} && document.dispatchEvent(new Event('visibilitychange'))"));
    };
    let requests = || page.value("performance.getEntriesByType('resource').length").as_u64().unwrap();
    hide(true);
    until_state(page, "Paused");
    let before = requests();
    thread::park_timeout(Duration::from_millis(2_500));
    assert!(requests() <= before + 1, "only a request that was under way may end");
    hide(false);
    until_state(page, "Live");
}
