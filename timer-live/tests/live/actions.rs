//! Actions of the live page on durable timers, and their protection against other sites.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;
use timer_durable::{Due, DurableTimer, IfPending, ManualDurableDriver, MemoryStore, Retry, Schedule, Topic};
use timer_live::{LivePage, Request, Site};
use timer_metrics::{DurableMetrics, TimerMetrics};

const HOUR: Duration = Duration::from_secs(3_600);
const CLOSE: Topic<String> = Topic::new("order close").attempts(1);

fn orders() -> (DurableTimer, ManualDurableDriver, DurableMetrics) {
    let close = |due: &Due<String>| if due.payload() == "bad" { Err(Retry::new("broken")) } else { Ok(()) };
    let (timer, driver) =
        DurableTimer::builder().name("a&b").topic(CLOSE, close).build_manual(MemoryStore::new()).unwrap();
    let durable = DurableMetrics::new();
    durable.watch(&timer);
    (timer, driver, durable)
}

fn page(durable: &DurableMetrics) -> LivePage {
    LivePage::new(&TimerMetrics::new()).durable(durable)
}

fn site(durable: &DurableMetrics) -> Site {
    page(durable).actions(true).host("timers.example").site().unwrap()
}

fn from_page(method: &str, target: &str) -> Request {
    let request = Request::new(method, target).header("Host", "localhost:9184");
    request.header("Origin", "http://localhost:9184").header("Timer-Action", "page")
}

fn list(site: &Site, filter: &str) -> Value {
    let reply = site.respond_to(&from_page("GET", &format!("/timeouts.json?timer=a%26b{filter}")));
    assert_eq!(reply.status(), 200);
    serde_json::from_str(&reply.into_body()).unwrap()
}

#[test]
fn each_action_acts() {
    let (timer, mut driver, durable) = orders();
    let site = site(&durable);
    let act = |action: &str, parameters: &str| {
        let reply = site.respond_to(&from_page("POST", &format!("/actions/{action}?timer=a%26b&{parameters}")));
        (reply.status(), reply.into_body().trim_end().to_owned())
    };
    let new = |key: &str, payload: &str, delay| {
        timer
            .schedule(CLOSE, Schedule::after(delay).key(key).if_pending(IfPending::Refuse), payload)
            .wait()
            .unwrap()
            .id()
    };
    let [first, second] = ["7/1", "7/2"].map(|key| new(key, "good", HOUR));
    let dead = new("8/1", "bad", Duration::ZERO);
    driver.run_due();

    let all = list(&site, "");
    let keys = |list: &Value| list.as_array().unwrap().iter().map(|row| row["key"].clone()).collect::<Vec<_>>();
    assert_eq!((keys(&all["pending"]), keys(&all["dead"])), (vec![json!("7/1"), json!("7/2")], vec![json!("8/1")]));
    let row = &all["pending"][0];
    assert_eq!((&row["id"], &row["topic"]), (&json!(first.to_string()), &json!("order close")));
    assert_eq!((&row["state"], &row["attempt"]), (&json!("pending"), &json!(0)));
    assert_eq!((&all["dead"][0]["reason"], &all["dead"][0]["attempt"]), (&json!("broken"), &json!(1)));
    assert_eq!(keys(&list(&site, "&topic=order+close&key=7%2F2")["pending"]), ["7/2"]);
    assert_eq!(keys(&list(&site, "&topic=other&key=")["dead"]), Vec::<Value>::new());

    let ok = |text: &str| (200, text.to_owned());
    assert_eq!(act("cancel", &format!("id={first}")), ok("cancelled"));
    assert!(timer.get_by_id(CLOSE, first).wait().unwrap().is_none());
    assert_eq!(act("cancel", &format!("id={first}")).0, 404, "it has ended");
    assert_eq!(act("run", &format!("id={second}")), ok("due now"));
    assert_eq!(
        [act("run", &format!("id={second}")).0, act("cancel", &format!("id={second}")).0],
        [409; 2],
        "it has begun"
    );
    driver.run_due();
    assert_eq!((timer.stats().done, act("run", &format!("id={second}")).0), (1, 404));
    assert_eq!(act("pause", "topic=order%20close"), ok("paused"));
    assert_eq!(timer.paused_topics().wait().unwrap(), ["order close"]);
    assert_eq!(act("requeue", &format!("id={dead}")), ok("requeued, and due now"));
    assert_eq!((driver.run_due(), act("requeue", &format!("id={dead}")).0), (0, 404), "its topic is paused");
    let stats: Value = serde_json::from_str(&site.respond("GET", "/stats.json", "").into_body()).unwrap();
    let topic = &stats["durable"][0]["topics"][0];
    assert_eq!((&topic["topic"], &topic["is_paused"]), (&json!("order close"), &json!(true)));
    assert_eq!(act("resume", "topic=order+close"), ok("resumed"));
    assert_eq!(driver.run_due(), 1);

    assert_eq!(
        act("cancel", "id=x"),
        (400, "`x` is not the id of a timeout, which is 32 hexadecimal digits".to_owned())
    );
    assert_eq!(act("pause", "id=x"), (400, "the parameter `topic` is missing".to_owned()));
    assert_eq!(act("explode", "id=x"), (404, "there is no such action".to_owned()));
    timer.stop(Duration::ZERO).wait().unwrap();
    assert_eq!(act("pause", "topic=t").0, 503);
    drop((timer, driver));
    assert_eq!(act("pause", "topic=t"), (404, "there is no durable timer `a&b`".to_owned()));
}

#[test]
fn a_requeue_says_that_the_key_is_taken() {
    let (timer, mut driver, durable) = orders();
    let site = site(&durable);
    let new = |delay| timer.schedule(CLOSE, Schedule::after(delay).key("8/1"), "bad").wait().unwrap().id();
    let dead = new(Duration::ZERO);
    driver.run_due();
    let holder = new(HOUR);
    let act = |action: &str| {
        let reply = site.respond_to(&from_page("POST", &format!("/actions/{action}?timer=a%26b&id={dead}")));
        (reply.status(), reply.into_body().trim_end().to_owned())
    };
    assert_eq!(act("requeue"), (409, format!("not requeued, because the timeout {holder} has its key")));
    assert_eq!(act("requeue-without-key"), (200, "requeued, and due now".to_owned()));
    assert_eq!((driver.run_due(), act("requeue-without-key").0), (1, 200), "it has failed again");
}

#[test]
fn an_action_is_about_all_dead_letters() {
    let (timer, mut driver, durable) = orders();
    let site = site(&durable);
    let act = |action: &str| {
        let reply = site.respond_to(&from_page("POST", &format!("/actions/{action}")));
        (reply.status(), reply.into_body().trim_end().to_owned())
    };
    let ok = |text: &str| (200, text.to_owned());
    let ids = ["7/1", "7/2", "8/1"]
        .map(|key| timer.schedule(CLOSE, Schedule::after(Duration::ZERO).key(key), "bad").wait().unwrap().id());
    driver.run_due();
    timer.schedule(CLOSE, Schedule::after(HOUR).key("7/2"), "good").wait().unwrap();
    let requeued = ok("1 requeued, 1 stay dead, because their keys are taken");
    assert_eq!(act("requeue-all?timer=a%26b&topic=order+close&key=7%2F"), requeued);
    assert_eq!(driver.run_due(), 1);
    assert_eq!(act("purge-all?timer=a%26b&topic=other&key="), ok("0 purged"));
    assert_eq!(act(&format!("purge?timer=a%26b&id={}", ids[2])), ok("purged"));
    assert_eq!(act(&format!("purge?timer=a%26b&id={}", ids[2])).0, 404, "it is gone");
    assert_eq!(act("purge-all?timer=a%26b"), ok("2 purged"));
}

#[test]
fn a_site_is_read_only_unless_actions_are_allowed() {
    let (timer, _driver, durable) = orders();
    let read_only = page(&durable).site().unwrap();
    for (method, target) in [
        ("POST", "/actions/pause?timer=a%26b&topic=t"),
        ("GET", "/actions/pause"),
        ("GET", "/timeouts.json?timer=a%26b"),
    ] {
        assert_eq!(read_only.respond_to(&from_page(method, target)).status(), 404, "{method} {target}");
    }
    let has_actions = |site: &Site| {
        let stats = site.respond("GET", "/stats.json", "").into_body();
        serde_json::from_str::<Value>(&stats).unwrap()["has_actions"].clone()
    };
    assert_eq!([has_actions(&read_only), has_actions(&site(&durable))], [false, true]);

    // An action is a `POST`, and the list is not.
    let site = site(&durable);
    for (method, target, allow) in [
        ("GET", "/actions/pause?timer=a%26b&topic=t", "POST"),
        ("OPTIONS", "/actions/pause?timer=a%26b&topic=t", "POST"),
        ("POST", "/timeouts.json?timer=a%26b", "GET, HEAD"),
    ] {
        let reply = site.respond_to(&from_page(method, target));
        assert_eq!(reply.status(), 405, "{method} {target}");
        assert!(reply.headers().any(|header| header == ("Allow", allow)), "{method} {target}");
    }
    // Nothing is known about the origin of this one.
    assert_eq!(site.respond("POST", "/actions/pause", "").status(), 404);
    assert_eq!(timer.paused_topics().wait().unwrap(), [""; 0]);
}

#[test]
fn requests_of_other_sites_do_not_act() {
    let (timer, _driver, durable) = orders();
    let site = site(&durable);
    let status = |headers: &[(&str, &str)]| {
        let request = Request::new("POST", "/actions/pause?timer=a%26b&topic=t");
        site.respond_to(&headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).status()
    };
    let [local, mark] = [("Host", "localhost:9184"), ("timer-action", "1")];
    for headers in [
        // A form of another site, and a script of one.
        &[local][..],
        &[local, ("Origin", "https://evil.example")],
        &[local, mark, ("Origin", "https://evil.example")],
        &[local, mark, ("Origin", "null")],
        &[local, mark, ("Origin", "http://localhost:9184"), ("Origin", "https://evil.example")],
        // Another program on this machine.
        &[local, mark, ("Origin", "http://localhost:3000")],
        // A site whose name resolves to this machine.
        &[mark, ("Host", "evil.example"), ("Origin", "http://evil.example")],
        &[mark, local, ("Host", "evil.example")],
        &[mark],
    ] {
        assert_eq!(status(headers), 403, "{headers:?}");
    }
    assert_eq!(timer.paused_topics().wait().unwrap(), [""; 0]);
    for headers in [
        &[local, mark][..],
        &[("host", "127.0.0.1:80"), mark, ("origin", "http://127.0.0.1:80")],
        // A proxy may replace the host.
        &[local, mark, ("Origin", "https://timers.example")],
        &[("Host", "timers.example"), mark, ("Origin", "https://timers.example:8443")],
    ] {
        assert_eq!(status(headers), 200, "{headers:?}");
    }
    let foreign = Request::new("GET", "/timeouts.json?timer=a%26b").header("Host", "evil.example");
    assert_eq!(site.respond_to(&foreign).status(), 403);
}

/// A server that other machines reach answers under any name, but acts under known ones.
#[test]
fn a_server_acts_under_known_names_alone() {
    let (timer, _driver, durable) = orders();
    let server = page(&durable).actions(true).serve((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let post = |host: &str| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.local_addr().port())).unwrap();
        let target = "/actions/pause?timer=a%26b&topic=t";
        write!(stream, "POST {target} HTTP/1.1\r\nHost: {host}\r\nTimer-Action: 1\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    assert!(post("evil.example").starts_with("HTTP/1.1 403 "));
    assert_eq!(timer.paused_topics().wait().unwrap(), [""; 0]);
    let reply = post("localhost");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n") && reply.ends_with("\r\n\r\npaused\n"), "{reply}");
    assert_eq!(timer.paused_topics().wait().unwrap(), ["t"]);
}
