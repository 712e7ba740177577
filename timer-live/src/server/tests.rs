use super::{Limits, Server, reachable};
use crate::live_page::LivePage;
use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};
use timer_metrics::TimerMetrics;
use timer_metrics::prometheus_client::collector::Collector;
use timer_metrics::prometheus_client::encoding::DescriptorEncoder;
use timer_metrics::prometheus_client::registry::Registry;

const LONG: Duration = Duration::from_secs(600);
const PATIENT: Limits = Limits { request: LONG, reply: LONG, goodbye: LONG, clients: 32, quiet: LONG };

fn listen(registry: Registry, limits: Limits) -> Server {
    let site = LivePage::new(&TimerMetrics::new()).registry(registry).site().unwrap();
    Server::start_with(0.into(), site, limits).unwrap()
}

fn connect(addr: SocketAddr) -> TcpStream {
    TcpStream::connect(addr).unwrap()
}

fn ask(mut stream: &TcpStream, path: &str) {
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
}

/// Reads until the server hangs up in any way.
fn rest(mut stream: &TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn silent_clients_are_cut_off_and_slow_ones_get_408() {
    let soon = Limits { request: Duration::from_millis(20), ..PATIENT };
    let server = listen(Registry::default(), soon);
    let silent = connect(server.local_addr());
    assert_eq!(rest(&silent), "");
    // If this thread is held up before it writes, the server cuts it off like a silent client, so
    // the test tries again.
    let is_told = || {
        let mut stops = connect(server.local_addr());
        stops.write_all(b"GET /metrics HT").is_ok() && rest(&stops).starts_with("HTTP/1.1 408 ")
    };
    assert!((0..5).any(|_| is_told()));
}

#[test]
fn a_surplus_client_replaces_the_oldest() {
    let server = listen(Registry::default(), Limits { clients: 2, ..PATIENT });
    let (oldest, second, third) =
        (connect(server.local_addr()), connect(server.local_addr()), connect(server.local_addr()));
    assert_eq!(rest(&oldest), "");
    for stream in [&third, &second] {
        ask(stream, "/metrics");
        assert!(rest(stream).starts_with("HTTP/1.1 200 "));
    }
}

#[test]
fn a_slow_client_is_served_within_its_time() {
    let server = listen(Registry::default(), PATIENT);
    let mut slow = connect(server.local_addr());
    for byte in b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" {
        slow.write_all(&[*byte]).unwrap();
    }
    assert!(rest(&slow).starts_with("HTTP/1.1 200 "));
}

/// A collector that reports each scrape and then waits until it may answer.
struct Blocked {
    asked: Sender<()>,
    answer: Mutex<Receiver<()>>,
}

impl fmt::Debug for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Blocked")
    }
}

impl Collector for Blocked {
    fn encode(&self, _: DescriptorEncoder<'_>) -> fmt::Result {
        let _ = self.asked.send(());
        let _ = self.answer.lock().unwrap().recv();
        Ok(())
    }
}

#[test]
fn stuck_collectors_hold_a_bounded_number_of_threads() {
    let (asked, is_asked) = channel();
    let (may_answer, answer) = channel();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Blocked { asked, answer: Mutex::new(answer) }));
    let server = listen(registry, Limits { clients: 2, ..PATIENT });

    let waits = connect(server.local_addr());
    ask(&waits, "/metrics");
    is_asked.recv().unwrap();
    // The oldest client is in the collectors and cannot be cut off, so the next one is.
    let silent = connect(server.local_addr());
    let waits_too = connect(server.local_addr());
    assert_eq!(rest(&silent), "");
    ask(&waits_too, "/metrics");
    // The second scrape is in the collectors or waits for the first one.
    may_answer.send(()).unwrap();
    assert!(rest(&waits).starts_with("HTTP/1.1 200 "));
    is_asked.recv().unwrap();
    may_answer.send(()).unwrap();
    assert!(rest(&waits_too).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_surplus_client_is_cut_off_while_all_collect() {
    let (asked, is_asked) = channel();
    let (may_answer, answer) = channel();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Blocked { asked, answer: Mutex::new(answer) }));
    let server = listen(registry, Limits { clients: 1, ..PATIENT });

    let waits = connect(server.local_addr());
    ask(&waits, "/metrics");
    is_asked.recv().unwrap();
    assert_eq!(rest(&connect(server.local_addr())), "");
    may_answer.send(()).unwrap();
    assert!(rest(&waits).starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_listener_is_reached_at_its_address() {
    for (listens, reached) in [
        ("0.0.0.0:9184", "127.0.0.1:9184"),
        ("192.0.2.1:9184", "192.0.2.1:9184"),
        ("[::]:9184", "[::1]:9184"),
        ("[2001:db8::1]:9184", "[2001:db8::1]:9184"),
        ("[fe80::1%2]:9184", "[fe80::1%2]:9184"),
    ] {
        assert_eq!(reachable(listens.parse().unwrap()).to_string(), reached);
    }
}

/// On the real clock, as the kernel ends the wait for a client.
#[test]
fn history_ages_without_requests() {
    let timer = timer_core::Timer::new();
    let site = LivePage::new(&TimerMetrics::from_iter([&timer])).site().unwrap();
    site.only_sample_at(Instant::now().checked_sub(Duration::from_secs(90)).unwrap());
    assert_eq!(site.kept(), 1);
    let limits = Limits { quiet: Duration::from_millis(5), ..PATIENT };
    let _server = Server::start_with(0.into(), site.clone(), limits);
    let until = Instant::now() + Duration::from_secs(60);
    while site.kept() > 0 {
        assert!(Instant::now() < until, "kept until the next request");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
