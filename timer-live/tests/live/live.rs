//! The live page and its figures, without a browser. `tests/browser` shows the page in one.

use crate::http::ask;
use crate::support::{IN_TIME, LATE, MILLI, known};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use timer_core::Timer;
use timer_live::LivePage;
use timer_metrics::prometheus_client::metrics::counter::Counter;
use timer_metrics::prometheus_client::registry::Registry;
use timer_metrics::{LAG_BUCKETS, TimerMetrics, Watch};

/// Returns a page without timers.
fn empty() -> LivePage {
    LivePage::new(&TimerMetrics::new())
}

fn stats(addr: SocketAddr) -> Value {
    let reply = ask(addr, "GET", "/stats.json", "");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    serde_json::from_str(&reply.body).unwrap()
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let server = empty().serve(0).unwrap();
    let page = ask(server.local_addr(), "GET", "/", "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("connect-src 'self'"), "{policy}");
    // The only addresses are names of the SVG namespace.
    let rest = page.body.replace("http://www.w3.org/2000/svg", "");
    for part in ["http:", "https:", "//www", " src=", "@import", "url(", "<link rel=\"stylesheet", "import("] {
        assert!(!rest.contains(part), "{part}");
    }
    assert_eq!(page.body.matches("<script>").count(), 1);
    assert!(page.body.contains("width=device-width") && page.body.contains("prefers-color-scheme: dark"));
    assert!(page.body.len() < 40_000, "{} bytes", page.body.len());
}

#[test]
fn page_and_figures_answer_get_and_head_only() {
    let server = empty().serve(0).unwrap();
    for target in ["/", "/?a=b", "/stats.json", "/healthz", "http://localhost/"] {
        assert_eq!(ask(server.local_addr(), "GET", target, "").status, 200, "{target}");
        let head = ask(server.local_addr(), "HEAD", target, "");
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{target}");
        let post = ask(server.local_addr(), "POST", target, "");
        assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")), "{target}");
    }
    for target in ["/index.html", "/stats", "/stats.json/", "//"] {
        assert_eq!(ask(server.local_addr(), "GET", target, "").status, 404, "{target}");
    }
}

#[test]
fn a_site_answers_as_its_server_does() {
    let (timer, _driver) = known(Timer::builder());
    let page = LivePage::new(&TimerMetrics::from_iter([&timer]));
    let site = page.clone().site().unwrap();
    let server = page.clone().serve(0).unwrap();
    for (method, path) in
        [("GET", "/"), ("HEAD", "/"), ("POST", "/"), ("GET", "/metrics"), ("GET", "/healthz"), ("GET", "/x")]
    {
        let own = site.respond(method, path, "");
        let served = ask(server.local_addr(), method, path, "");
        assert_eq!(own.status(), served.status, "{method} {path}");
        for (name, value) in own.headers() {
            assert_eq!(served.header(&name.to_ascii_lowercase()), Some(value), "{method} {path}");
        }
        assert_eq!(own.into_body(), served.body, "{method} {path}");
    }
    let stats: Value = serde_json::from_str(&site.respond("GET", "/stats.json", "").into_body()).unwrap();
    assert_eq!(stats["timers"][0]["scheduled"], 10);
    assert!(page.label("timer", "x").site().is_err());
}

#[test]
fn figures_of_a_timer_are_exact() {
    let (timer, _driver) = known(Timer::builder().name("<b>\"&").max_pending_timeouts(9));
    let metrics = TimerMetrics::new();
    metrics.watch_with(&timer, Watch::new().longest_delay(Duration::from_millis(1_500)));
    let server = LivePage::new(&metrics).serve(0).unwrap();
    let stats = stats(server.local_addr());
    assert_eq!(stats["pid"], std::process::id());
    assert!(stats["program"].as_str().unwrap().starts_with("live"));
    assert_eq!(stats["labels"], json!({}));
    let bounds: Vec<f64> = LAG_BUCKETS.iter().map(Duration::as_secs_f64).collect();
    assert_eq!(stats["lag_bounds_seconds"], json!(bounds));
    let timers = stats["timers"].as_array().unwrap();
    assert_eq!(timers.len(), 1);
    for (name, value) in [
        ("timer", json!("<b>\"&")),
        ("pending", json!(2)),
        ("max_pending", json!(9)),
        ("longest_delay_seconds", json!(1.5)),
        ("tasks_queued", json!(0)),
        ("tasks_running", json!(0)),
        ("scheduled", json!(10)),
        ("expired", json!(5)),
        ("cancelled", json!(3)),
        ("rejected", json!(1)),
        ("runs", json!(8)),
        ("task_panics", json!(1)),
        ("executor_rejections", json!(0)),
        ("shards", json!(1)),
    ] {
        assert_eq!(timers[0][name], value, "{name}");
    }
    let worst = timers[0]["worst"].as_array().unwrap();
    assert!(worst.len() == 1 && worst[0]["task"].as_str().unwrap().contains("support::known"), "{worst:?}");
    assert_eq!((&worst[0]["behind"], &worst[0]["lateness_seconds"]["system"]), (&json!(null), &json!(20.0)));
    let timetable = &timers[0]["timetable"];
    // The periodic task is due in 10 ms, and the other timeout in an hour less 30 ms.
    let only = |step: usize, steps: usize| json!((0..steps).map(|nth| u64::from(nth == step)).collect::<Vec<_>>());
    assert_eq!((&timetable["due"], &timetable["minute"]), (&json!(0), &only(0, 60)));
    let sum = |name: &str| timetable[name].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum::<u64>();
    assert_eq!((&timetable["hour"][59], sum("hour"), &timetable["day"][3], sum("day")), (&json!(1), 2, &json!(1), 2));
    for name in ["timeout_lag", "start_lag"] {
        let lag = &timers[0][name];
        assert_eq!((&lag["count"], &lag["max_seconds"]), (&json!(IN_TIME as usize + LATE.len()), &json!(20.0)));
        let counts: Vec<u64> = lag["counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).collect();
        let mut expected = vec![0; LAG_BUCKETS.len() + 1];
        expected[0] = IN_TIME;
        for late in LATE {
            expected[LAG_BUCKETS.iter().filter(|bound| **bound < late).count()] += 1;
        }
        assert_eq!(counts, expected, "{name}");
    }
}

/// On the real clock: rates need samples that are a second apart.
#[test]
fn rates_appear_after_a_second() {
    let (timer, mut driver) = Timer::builder().build_manual().unwrap();
    let server = LivePage::new(&TimerMetrics::from_iter([&timer])).serve(0).unwrap();
    for _ in 0..100 {
        timer.new_timeout(MILLI, |_| {}).unwrap();
    }
    driver.advance(MILLI);
    let timer = std::iter::repeat_with(|| stats(server.local_addr())["timers"][0].take());
    let timer = timer.inspect(|_| std::thread::park_timeout(100 * MILLI)).find(|timer| !timer["last_minute"].is_null());
    let timer = timer.unwrap();
    let window = &timer["last_minute"];
    let seconds = window["seconds"].as_f64().unwrap();
    assert!(seconds >= 0.9, "{seconds}");
    assert!((window["scheduled"].as_f64().unwrap() * seconds - 100.0).abs() < 1e-6, "{window}");
    assert_eq!(timer["timeout_lag"]["last_minute"][0], 100);
}

#[test]
fn prefix_and_labels_are_in_the_scrape_and_figures() {
    let (timer, _driver) = known(Timer::builder().name("rpc"));
    let page = LivePage::new(&TimerMetrics::from_iter([&timer]));
    let server = page.prefix("shop").label("region", "eu \"west\"").label("zone", "").serve(0).unwrap();
    let text = ask(server.local_addr(), "GET", "/metrics", "").body;
    let sample = "shop_timer_timeouts_scheduled_total{region=\"eu \\\"west\\\"\",zone=\"\",timer=\"rpc\"} 10\n";
    assert!(text.contains(sample), "{text}");
    assert!(text.lines().all(|line| line.starts_with('#') || line.starts_with("shop_timer_")), "{text}");
    assert_eq!(stats(server.local_addr())["labels"], json!({ "region": "eu \"west\"", "zone": "" }));
}

#[test]
fn names_that_the_format_forbids_are_refused() {
    let serve = |page: LivePage| page.serve(0).map(drop).map_err(|error| error.to_string());
    for prefix in ["", "1a", "a-b", "a b", "ä"] {
        let error = serve(empty().prefix(prefix)).unwrap_err();
        assert!(error.starts_with(&format!("the prefix `{prefix}` is not allowed: use ")), "{error}");
    }
    for name in ["", "1a", "a:b", "__a", "timer", "topic", "cause", "le"] {
        let error = serve(empty().label(name, "x")).unwrap_err();
        assert!(error.starts_with(&format!("the label name `{name}` is not allowed: use ")), "{error}");
    }
    let error = serve(empty().label("a", "x").label("a", "y")).unwrap_err();
    assert_eq!(error, "the label name `a` is given twice: each name is allowed once");
    assert_eq!(serve(empty().prefix("a:b_1").label("_a1", "x")), Ok(()));
}

#[test]
fn a_registry_of_the_program_is_served_beside_the_page() {
    let mut registry = Registry::with_prefix("shop");
    registry.register("orders", "Orders.", Counter::<u64>::default());
    let site = empty().label("region", "eu-west").registry(registry).site().unwrap();
    let text = site.respond("GET", "/metrics", "").into_body();
    assert!(text.contains("shop_orders_total 0\n") && !text.contains("region"), "{text}");
    let stats: Value = serde_json::from_str(&site.respond("GET", "/stats.json", "").into_body()).unwrap();
    assert_eq!(stats["labels"], json!({ "region": "eu-west" }));
}
