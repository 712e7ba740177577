//! The service as its users see it. It is killed while an order is open, and closes it later. Asked
//! to end, it stops its timer.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test panics on an unexpected error")]

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A process of the service, which is killed in the end.
struct Service {
    process: Child,
    address: String,
    output: BufReader<ChildStdout>,
}

impl Service {
    fn start(program: &str, store: &str, seconds_to_pay: &str) -> Self {
        let mut command = Command::new(program);
        command.args([store, seconds_to_pay, "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").and_then(|line| line.strip_suffix("/orders"));
        Self { process, address: address.unwrap_or_else(|| panic!("no address in '{line}'")).to_owned(), output }
    }

    /// Asks the service to end and returns its last lines.
    fn end(mut self, signal: Signal) -> String {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
        let mut lines = String::new();
        self.output.read_to_string(&mut lines).unwrap();
        assert!(self.process.wait().unwrap().success());
        lines
    }

    /// Sends a request and returns the status and the body of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: shop\r\nconnection: close\r\n");
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer.split_once("\r\n\r\n").unwrap().1.trim().to_owned())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.process.kill();
        self.process.wait().unwrap();
    }
}

fn check(program: &str, store: &str) {
    let service = Service::start(program, store, "600");
    assert_eq!(service.ask("POST", "/orders", "a lamp"), (200, "1".to_owned()));
    let (status, order) = service.ask("GET", "/orders/1", "");
    assert!(status == 200 && order.starts_with("a lamp: open, closes in 59"), "{status} {order}");
    assert_eq!(service.ask("POST", "/orders/1/payment", ""), (200, "paid".to_owned()));
    assert_eq!(service.ask("GET", "/orders/1", ""), (200, "a lamp: paid".to_owned()));
    assert_eq!(service.ask("POST", "/orders/1/payment", "").0, 409);
    assert_eq!(service.ask("GET", "/orders/2", "").0, 404);
    drop(service);

    let service = Service::start(program, store, "1");
    assert_eq!(service.ask("POST", "/orders", "a table"), (200, "2".to_owned()));
    drop(service);
    let service = Service::start(program, store, "600");
    let begun = Instant::now();
    while service.ask("GET", "/orders/2", "").1 != "a table: closed" {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", service.ask("GET", "/orders/2", ""));
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(service.ask("GET", "/orders/1", ""), (200, "a lamp: paid".to_owned()));

    assert_eq!(service.ask("POST", "/orders", "a chair"), (200, "3".to_owned()));
    assert!(service.end(Signal::TERM).ends_with("stopped, 0 handlers were cut off\n"));
    let service = Service::start(program, store, "600");
    assert!(service.ask("GET", "/orders/3", "").1.starts_with("a chair: open"));
    assert!(service.end(Signal::INT).ends_with("stopped, 0 handlers were cut off\n"));
}

#[test]
fn the_readme_shows_lines_of_the_service() {
    let readme = include_str!("../../../README.md");
    let shown = readme.split("```rust,ignore\n").nth(1).unwrap().split("```").next().unwrap();
    for line in shown.lines() {
        let code = line.split(" //").next().unwrap().trim_end_matches(';');
        assert!(include_str!("../src/main.rs").contains(code), "{line}");
    }
}

#[test]
fn orders_in_postgres_outlive_the_service() {
    let Some(server) = timer_durable_tests::postgres_server::shared() else { return };
    // The role of the tests has the name of the timer's schema, which would be its first schema.
    let database = server.create_database();
    server.sql(&database, "create role shop superuser login password 'x'");
    check(env!("CARGO_BIN_EXE_order-service"), &server.url(&database).replace("timer@", "shop:x@"));
}

#[test]
fn orders_in_a_file_outlive_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    check(env!("CARGO_BIN_EXE_order-service-sqlite"), file.to_str().unwrap());
}
