use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use super::{command_line, number, run_command, success};
use timer_durable_tests::postgres_server::Server;

const PROGRAM: &str = env!("CARGO_BIN_EXE_order_close");

#[test]
fn orders_survive_a_crash() {
    let folder = std::env::temp_dir().join(format!("order-close-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let store = format!("sqlite:{}", folder.join("orders.db").display());
    let options = ["--store", &store, "--orders", "300", "--speed", "900"];
    let crash = Command::new(PROGRAM).args(options).args(["--crash-after", "900"]).output().unwrap();
    assert!(!crash.status.success());
    let output = success(PROGRAM, &options);
    assert!(output.contains(" orders have ended before, "), "{output}");
    assert_eq!(number(&output, "paid in time") + number(&output, "closed unpaid"), 300);
    let output = success(PROGRAM, &options);
    assert!(output.contains("300 orders have ended before, 0 timeouts are pending"), "{output}");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_live_page_shows_the_orders() {
    let folder = std::env::temp_dir().join(format!("order-close-page-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let store = format!("sqlite:{}", folder.join("orders.db").display());
    let mut shop = Command::new(PROGRAM);
    let shop = shop.args(["--store", &store, "--orders", "50", "--speed", "600", "--metrics", "0", "--actions"]);
    let mut shop = shop.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(shop.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim().strip_prefix("live page http://").unwrap().split('/').next().unwrap();
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(addr).unwrap();
        write!(stream, "{request} HTTP/1.1\r\nHost: localhost\r\nTimer-Action: 1\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    let reply = ask("GET /stats.json");
    assert!(reply.contains("\"timer\":\"orders\"") && reply.contains(&format!("\"store\":\"{store}\"")), "{reply}");
    let reply = ask("POST /actions/pause?timer=orders&topic=order.pay");
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    shop.kill().unwrap();
    shop.wait().unwrap();
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn programs_share_orders_and_one_finishes_them() {
    let Some(server) = Server::start_for_tests() else { return };
    let url = server.url(&server.create_database());
    let options = ["--store", &url, "--orders", "300", "--speed", "900", "--ttl", "1"];
    let mut first = Command::new(PROGRAM);
    let first = first.args(options).args(["--node", "a", "--crash-after", "1500"]);
    let mut crash = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let output = success(PROGRAM, &[&options[..], &["--node", "b"]].concat());
    assert!(!crash.wait().unwrap().success());
    assert_eq!(number(&output, "paid in time") + number(&output, "closed unpaid"), 300);
}

#[test]
fn another_language_writes_an_order_with_its_timeout() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/order.py");
    let has_client = Command::new("python3").args(["-c", "import psycopg"]).stderr(Stdio::null()).status();
    if !has_client.is_ok_and(|status| status.success()) {
        println!("skipped: {script} needs python3 with psycopg (pip install 'psycopg[binary]')");
        return;
    }
    let Some(server) = Server::start_for_tests() else { return };
    let database = server.create_database();
    let url = server.url(&database);
    let options = ["--store", &url, "--orders", "1", "--speed", "1800", "--ttl", "1"];
    success(PROGRAM, &options);
    let written = run_command(Command::new("python3").args([script, &url, "17", "0"]));
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    // The next start runs the timeout before it ends.
    success(PROGRAM, &options);
    assert_eq!(server.sql(&database, "select state from orders where number = 17"), "closed");
}

#[test]
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--orders", "0"], "--orders: '0' given; allowed: a whole number in 1..=100000"),
            (&["--store", "mysql://localhost/shop"], "allowed: sqlite:FILE, postgres://URL"),
            (&["--speed", "x"], "--speed: 'x' given"),
        ],
    );
}
