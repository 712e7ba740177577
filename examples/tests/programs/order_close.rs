use std::fs;
use std::process::Command;

use super::{command_line, number, success};

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
fn command_line_is_checked() {
    command_line(
        PROGRAM,
        &[
            (&["--orders", "0"], "--orders: '0' given; allowed: a whole number in 1..=100000"),
            (&["--store", "mysql://localhost/shop"], "allowed: sqlite:FILE or postgres://URL"),
            (&["--speed", "x"], "--speed: 'x' given"),
        ],
    );
}
