//! The cards of durable timers on the live page.

use super::{Load, fits_small_and_dark_screens, until_state};
use crate::shared::Shared;
use crate::webdriver::Page;
use serde_json::json;
use std::time::Duration;
use timer_durable::{Due, DurableTimer, IfPending, MemoryStore, Retry, Schedule, Topic};
use timer_live::LivePage;
use timer_metrics::{DurableMetrics, TimerMetrics};

/// The description of a store with a long name.
const LONG_NAME: &str = "postgres:db.example:5432/a-database-with-quite-a-long-name-to-fit";

/// Returns the expression for the text of a part of a durable timer's card.
fn part(timer: &str, selector: &str) -> String {
    format!("document.querySelector('section[data-kind=durable][data-timer={timer}] {selector}').textContent")
}

#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn durable_timers_have_cards_on_the_live_page() {
    const CLOSE: Topic<String> = Topic::new("close").attempts(1);
    let close = |due: &Due<String>| if due.payload() == "bad" { Err(Retry::new("broken")) } else { Ok(()) };
    let store = MemoryStore::new();
    let (orders, mut driver) =
        DurableTimer::builder().name("orders").topic(CLOSE, close).build_manual(store.clone()).unwrap();
    let shared = DurableTimer::builder().name("shared").open(Shared::new(LONG_NAME)).wait().unwrap();
    let durable = DurableMetrics::new();
    durable.watch(&orders);
    durable.watch(&shared);
    // A timer in memory may have the name of a durable one.
    let timer = timer_core::Timer::builder().name("orders").build().unwrap();
    let metrics = TimerMetrics::from_iter([&timer]);
    let server = LivePage::new(&metrics).durable(&durable).serve(0).unwrap();
    orders.new_timeout(CLOSE, Duration::from_secs(3_600), &"later".to_owned()).wait().unwrap();
    orders.schedule(CLOSE, Schedule::after(Duration::from_secs(1)).key("<i>17</i>"), "bad").wait().unwrap();
    store.advance_clock(Duration::from_secs(3));
    driver.run_due();
    let Some(page) = Page::open(&format!("http://{}/", server.local_addr())) else {
        eprintln!("skipped: chromedriver is not installed (apt-get install chromium chromium-driver)");
        return;
    };
    let load = Load::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            load.run(|| {
                orders.new_timeout(CLOSE, Duration::from_millis(1), &"good".to_owned()).wait().unwrap();
                driver.advance(Duration::from_millis(3));
            });
        });
        load.during(|| shows_the_cards(&page));
    });
    drop((orders, driver));
    page.until("document.querySelectorAll('section[data-kind=durable]').length === 1");
}

fn shows_the_cards(page: &Page) {
    until_state(page, "Live");
    page.until("document.querySelectorAll('section').length === 3");
    for (selector, text) in
        [("[data-field=store]", "memory"), ("[data-row=buried] td:nth-child(4)", "1"), ("[data-field=in_memory]", "1")]
    {
        page.until(&format!("{} === '{text}'", part("orders", selector)));
    }
    page.until(&format!("/^hour: [12], up to [12] per minute$/.test({})", part("orders", "[data-due=hour] .note")));
    page.until(&format!("{} === 'day: not counted'", part("shared", "[data-due=day] .note")));
    page.until(&format!("/^[12]$/.test({})", part("orders", "[data-field=pending]")));
    page.until(&format!("/[1-9]/.test({})", part("orders", "[data-row=done] td:nth-child(2)")));
    page.until(&format!("/^close · <i>17<.i>2 s late, .* ago: system 2 s$/.test({})", part("orders", ".worst dl")));
    for (span, text) in [("minute", "p99"), ("total", "max")] {
        page.value(&format!("document.querySelector('[value={span}]').click()"));
        for (name, unit) in [("lag", "attempts"), ("commit_time", "commits")] {
            let caption = part("orders", &format!("[data-lag={name}] figcaption"));
            page.until(&format!("{caption}.includes('{text}') && {caption}.includes('{unit}')"));
            let bars = format!("section[data-kind=durable][data-timer=orders] [data-lag={name}] .bar");
            page.until(&format!("document.querySelectorAll('{bars}').length > 0"));
        }
    }
    assert_eq!(
        page.value("document.querySelector('section[data-kind=durable][data-timer=orders] .node').hidden"),
        true,
        "its store belongs to one process"
    );
    assert_eq!(page.value(&part("shared", "[data-field=pending]")), "–");
    for (name, text) in [
        ("name", "<i>billing</i>"),
        ("instance", "4711"),
        ("shards", "32"),
        ("nodes", "2"),
        ("taken_over", "7"),
        ("foreign", "1,234"),
        ("reconnects", "1"),
    ] {
        assert_eq!(page.value(&part("shared", &format!("[data-node={name}] dd"))), text, "{name}");
    }
    let age = part("shared", "[data-node=lease_age_seconds] dd");
    page.until(&format!("/^[0-9.]+ (ms|s|µs)$/.test({age})"));
    fits_small_and_dark_screens(page);
    assert_eq!(page.console(), Vec::<serde_json::Value>::new());
}

/// A page that was made with actions has buttons, and a click acts on the timer.
#[test]
#[ignore = "needs Chromium: cargo xtask browser"]
fn a_click_acts_on_a_durable_timer() {
    const CLOSE: Topic<String> = Topic::new("order.close").attempts(1);
    let close = |due: &Due<String>| if due.payload() == "bad" { Err(Retry::new("<b>broken</b>")) } else { Ok(()) };
    let (timer, mut driver) =
        DurableTimer::builder().name("orders").topic(CLOSE, close).build_manual(MemoryStore::new()).unwrap();
    let durable = DurableMetrics::new();
    durable.watch(&timer);
    let hour = Duration::from_secs(3_600);
    let new = |key: &str, delay, payload: &str| {
        timer.schedule(CLOSE, Schedule::after(delay).key(key).if_pending(IfPending::Refuse), payload).wait().unwrap();
    };
    ["7/1", "7/2", "7/3"].into_iter().for_each(|key| new(key, hour, "good"));
    new("8/1", Duration::ZERO, "bad");
    driver.run_due();
    let read_only = LivePage::new(&TimerMetrics::new()).durable(&durable);
    let server = read_only.clone().actions(true).serve(0).unwrap();
    let read_only = read_only.serve(0).unwrap();
    let Some(page) = Page::open(&format!("http://{}/", read_only.local_addr())) else {
        eprintln!("skipped: chromedriver is not installed (apt-get install chromium chromium-driver)");
        return;
    };
    until_state(&page, "Live");
    let actions = "document.querySelector('section .actions')";
    let topic = "document.querySelector('section .topics [data-topic=\"order.close\"]')";
    assert_eq!(page.value(&format!("[{actions}.hidden, {topic}.querySelector('button').hidden]")), json!([true, true]));
    page.go(&format!("http://{}/", server.local_addr()));
    until_state(&page, "Live");
    page.value(&format!("({actions}.open = true, window.confirm = () => true)"));

    // Returns the expression for the item of a timeout.
    let item = |name: &str| {
        format!("[...{actions}.querySelectorAll('dl div')].find((item) => item.firstChild.textContent === '{name}')")
    };
    let click = |part: &str, action: &str, answer: &str| {
        page.until(&format!("{part}?.querySelector('[data-action={action}]:not([hidden])') != null"));
        page.value(&format!("{part}.querySelector('[data-action={action}]').click()"));
        page.until(&format!("document.querySelector('section .answer').textContent === '{answer}'"));
    };
    page.until(&format!("{}?.textContent.includes('<b>broken</b>')", item("order.close 8/1")));
    click(&item("order.close 7/1"), "cancel", "order.close 7/1: cancelled");
    assert!(timer.get(CLOSE, "7/1").wait().unwrap().is_none());
    page.until(&format!("{} === undefined", item("order.close 7/1")));
    click(topic, "pause", "order.close: paused");
    assert_eq!(timer.paused_topics().wait().unwrap(), ["order.close"]);
    page.until(&format!("{topic}.querySelector('.note').textContent === 'paused'"));
    click(topic, "resume", "order.close: resumed");
    click(&item("order.close 7/2"), "run", "order.close 7/2: due now");
    assert_eq!((driver.run_due(), timer.stats().done), (1, 1));
    click(&item("order.close 8/1"), "requeue", "order.close 8/1: requeued, and due now");
    assert_eq!(driver.run_due(), 1);

    // The second one takes the key, so the first one stays dead.
    new("8/1", hour, "good");
    let all = |action: &str, answer: &str| click(actions, action, &format!("the dead letters: {answer}"));
    all("requeue-all", "0 requeued, 1 stay dead, because their keys are taken");
    click(&item("order.close 8/1"), "requeue-without-key", "order.close 8/1: requeued, and due now");
    assert_eq!(driver.run_due(), 1);
    all("purge-all", "1 purged");
    assert_eq!(timer.counts().wait().unwrap().dead, 0);

    // The page shows why an action fails.
    timer.cancel(CLOSE, "7/3").wait().unwrap();
    click(&item("order.close 7/3"), "run", "Failed: not moved, because the timeout has ended");
    page.until(&format!("{} === undefined", item("order.close 7/3")));
    assert_eq!(page.value("document.querySelector('section .answer').classList.contains('fault')"), true);
    let cells = format!("[...{topic}.querySelectorAll('td')].slice(0, 5).map((cell) => cell.textContent)");
    page.until(&format!("JSON.stringify({cells}) === '[\"1\",\"0\",\"1\",\"3\",\"3\"]'"));
    fits_small_and_dark_screens(&page);
    page.value(&format!(
        "({actions}.querySelector('[name=topic]').value = 'other', {actions}.querySelector('form button').click())"
    ));
    page.until(&format!("{actions}.querySelectorAll('dl div').length === 0"));
    // The browser reports each reply with an error by itself.
    assert_eq!(page.console().iter().filter(|entry| entry["source"] != "network").count(), 0);
}
