//! The server on raw sockets: replies to good clients, and isolation of bad ones.

use crate::support::exposition::{Format, parse};
use crate::support::known;
use crate::support::promtool::check_metrics;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use timer_core::Timer;
use timer_live::{ListenAddr, LivePage, Server};
use timer_metrics::TimerMetrics;
use timer_metrics::prometheus_client::collector::Collector;
use timer_metrics::prometheus_client::encoding::DescriptorEncoder;
use timer_metrics::prometheus_client::metrics::MetricType;
use timer_metrics::prometheus_client::registry::Registry;

/// The reply of the server to one request.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
        headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Sends raw bytes and reads until the server hangs up.
fn raw(addr: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.write_all(request).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

pub(crate) fn ask(addr: SocketAddr, method: &str, target: &str, accept: &str) -> Reply {
    let accept = if accept.is_empty() { String::new() } else { format!("Accept: {accept}\r\n") };
    let text = raw(addr, format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n").as_bytes());
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let reply = Reply { status, head: head.to_owned(), body: body.to_owned() };
    let length: usize = reply.header("content-length").unwrap().parse().unwrap();
    assert!(method == "HEAD" || length == reply.body.len());
    reply
}

/// Serves a registry, with a page without timers.
fn serve(registry: Registry) -> Server {
    LivePage::new(&TimerMetrics::new()).registry(registry).serve(0).unwrap()
}

fn metrics(addr: SocketAddr) -> Reply {
    ask(addr, "GET", "/metrics", "")
}

#[test]
fn the_format_follows_the_accept_header() {
    let (timer, _driver) = known(Timer::builder().name("a # \"b\""));
    let server = LivePage::new(&TimerMetrics::from_iter([&timer])).serve(0).unwrap();
    let openmetrics =
        ask(server.local_addr(), "GET", "/metrics", "application/openmetrics-text;version=1.0.0,*/*;q=0.1");
    assert_eq!(openmetrics.status, 200);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(openmetrics.header("content-type"), Some(content_type));
    assert_eq!(openmetrics.header("vary"), Some("Accept"));
    let plain = metrics(server.local_addr());
    assert_eq!(plain.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    let openmetrics = parse(&openmetrics.body, Format::OpenMetrics).unwrap();
    check_metrics(&plain.body);
    let plain = parse(&plain.body, Format::Plain).unwrap();
    // Both formats have the same samples.
    let samples = |scrape: &crate::support::exposition::Scrape| format!("{:?}", scrape.samples().collect::<Vec<_>>());
    assert_eq!(samples(&openmetrics), samples(&plain));
    assert_eq!(plain.value("timer_timeouts_scheduled_total", "a # \"b\""), 10.0);
}

#[test]
fn other_paths_are_404_and_other_methods_405() {
    let server = serve(Registry::default());
    let addr = server.local_addr();
    for target in ["/metric", "/metrics/", "/metrics/x", "/METRICS", "*", "/%6Detrics", "http://localhost/x"] {
        assert_eq!(ask(addr, "GET", target, "").status, 404, "{target}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get", "BREW"] {
        let reply = ask(addr, method, "/metrics", "");
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")), "{method}");
    }
    let [of_all, of_path] = ["*", "/metrics"].map(|target| ask(addr, "OPTIONS", target, ""));
    assert_eq!((of_all.status, &of_all.head, &of_all.body), (of_path.status, &of_path.head, &of_path.body));
    for target in ["/metrics?a=b", "http://127.0.0.1:1/metrics"] {
        assert_eq!(ask(addr, "GET", target, "").status, 200, "{target}");
    }
    let head = ask(addr, "HEAD", "/metrics", "application/openmetrics-text");
    assert_eq!((head.status, head.header("content-length"), head.body.as_str()), (200, Some("6"), ""));
    assert_eq!(ask(addr, "HEAD", "/", "").body, "");
}

/// A page of another site can make the browser resolve its own name to the loopback address.
#[test]
fn on_loopback_other_names_are_refused() {
    let page = LivePage::new(&TimerMetrics::new()).host("metrics.example");
    let on_loopback = page.clone().serve(0).unwrap();
    let reachable = page.serve((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let status = |server: &Server, target: &str, host: &str| {
        let addr = (Ipv4Addr::LOCALHOST, server.local_addr().port()).into();
        let reply = raw(addr, format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        reply.split(' ').nth(1).unwrap().to_owned()
    };
    for path in ["/metrics", "/", "/stats.json"] {
        for host in ["localhost", "127.0.0.1:9184", "[::1]:9184", "metrics.example"] {
            assert_eq!(status(&on_loopback, path, host), "200", "{path} {host}");
        }
        assert_eq!(status(&on_loopback, path, "rebind.example"), "403", "{path}");
        assert_eq!(status(&on_loopback, &format!("http://rebind.example{path}"), "localhost"), "403", "{path}");
        assert_eq!(status(&on_loopback, path, "localhost\r\nHost: rebind.example"), "403", "{path}");
        assert_eq!(status(&reachable, path, "rebind.example"), "200", "{path}");
    }
}

#[test]
fn a_client_that_is_still_sending_reads_its_reply() {
    let server = serve(Registry::default());
    let body = "x".repeat(30_000);
    let request = format!("POST /metrics HTTP/1.1\r\nContent-Length: 30000\r\n\r\n{body}");
    assert!(raw(server.local_addr(), request.as_bytes()).starts_with("HTTP/1.1 405 "));
}

/// A collector whose text no pair of socket buffers can hold.
#[derive(Debug)]
struct Long;

const LENGTH: usize = 32 << 20;

impl Collector for Long {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metric = encoder.encode_descriptor("long", &"x".repeat(LENGTH), None, MetricType::Gauge)?;
        metric.encode_gauge(&1_u64)
    }
}

/// Connects clients that hold a connection in four ways: silent, in the middle of a head, with a
/// body that never comes, and without reading a reply that no buffer can hold.
fn slow_clients(addr: SocketAddr) -> Vec<TcpStream> {
    let requests: [&[u8]; 4] = [
        b"",
        b"GET /metrics HTTP/1.1\r\nHos",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 100000\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n\r\n",
    ];
    let clients = requests.map(|request| {
        let mut stream = TcpStream::connect(addr).unwrap();
        stream.write_all(request).unwrap();
        stream
    });
    // The reply to the last client has begun.
    (&clients[3]).read_exact(&mut [0]).unwrap();
    clients.into()
}

#[test]
fn drop_joins_its_threads_and_frees_the_port() {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Long));
    let registry = std::sync::Arc::new(registry);
    // An address that no other test uses, where the system has one, so that none takes the freed
    // port.
    let own = (Ipv4Addr::new(127, 0, 0, 77), 0);
    let own = if TcpListener::bind(own).is_ok() { own.into() } else { ListenAddr::from(0) };
    let server = LivePage::new(&TimerMetrics::new()).registry(registry.clone()).serve(own).unwrap();
    let addr = server.local_addr();
    let slow = slow_clients(addr);
    drop(server);
    // Every thread holds the registry, so a count of one means that all have ended.
    assert_eq!(std::sync::Arc::strong_count(&registry), 1);
    for mut client in slow {
        // A client that was cut off sees the end or an error.
        let _ = client.read_to_end(&mut Vec::new());
    }
    let refused = TcpStream::connect(addr).map(drop).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
    drop(TcpListener::bind(addr).unwrap());
}

#[test]
fn listens_on_loopback_by_default() {
    // The servers are also dropped, and each has to wake its own thread.
    let ip = |addr: ListenAddr| LivePage::new(&TimerMetrics::new()).serve(addr).unwrap().local_addr().ip();
    assert_eq!(ip(0.into()), Ipv4Addr::LOCALHOST);
    assert_eq!(ip((Ipv4Addr::UNSPECIFIED, 0).into()), Ipv4Addr::UNSPECIFIED);
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        assert_eq!(ip((Ipv6Addr::LOCALHOST, 0).into()), Ipv6Addr::LOCALHOST);
        assert_eq!(ip((Ipv6Addr::UNSPECIFIED, 0).into()), Ipv6Addr::UNSPECIFIED);
    }
    for bad in ["", "localhost", "localhost:1", "65536", "1.2.3.4", ":1", "-1"] {
        let error = bad.parse::<ListenAddr>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{bad}` is not an address")), "{error}");
    }
}

/// A collector that panics, perhaps with a payload that panics when it is dropped.
#[derive(Debug)]
struct Broken {
    has_broken_payload: bool,
}

struct BrokenPayload;

impl Drop for BrokenPayload {
    fn drop(&mut self) {
        panic!("on purpose, again");
    }
}

impl Collector for Broken {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encoder.encode_descriptor("half", "Half.", None, MetricType::Gauge)?;
        if self.has_broken_payload {
            std::panic::panic_any(BrokenPayload);
        }
        panic!("on purpose");
    }
}

#[test]
fn a_panicking_collector_gives_500_and_no_partial_text() {
    for has_broken_payload in [false, true] {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(Broken { has_broken_payload }));
        let server = serve(registry);
        for _ in 0..2 {
            let reply = metrics(server.local_addr());
            assert_eq!((reply.status, reply.body.as_str()), (500, "500 Internal Server Error\n"));
        }
    }
}

/// A collector that drops its own server during a scrape. A task that has captured the server may
/// do the same, if the scrape drops the last handle of its timer.
#[derive(Debug)]
struct DropsServer(Mutex<Receiver<Server>>, Sender<()>);

impl Collector for DropsServer {
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        drop(self.0.lock().unwrap().recv());
        let _ = self.1.send(());
        Ok(())
    }
}

#[test]
fn a_scrape_may_drop_its_own_server() {
    let (give, server) = channel();
    let (sender, dropped) = channel();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(DropsServer(Mutex::new(server), sender)));
    let server = serve(registry);
    let mut client = TcpStream::connect(server.local_addr()).unwrap();
    give.send(server).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    dropped.recv_timeout(Duration::from_secs(60)).expect("the thread of the client waits for itself");
}
