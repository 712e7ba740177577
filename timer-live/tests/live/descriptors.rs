//! The stop of a server in a process that has no file descriptor left.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use timer_live::LivePage;
use timer_metrics::TimerMetrics;
use timer_metrics::prometheus_client::registry::Registry;

/// Runs this test again in a child process with a limit of 64 descriptors, where it uses them all
/// up.
#[test]
fn drop_without_descriptors_frees_the_port() {
    let Some(child) = command("descriptors::drop_without_descriptors_frees_the_port", "ulimit -n 64") else {
        return drop_without_descriptors();
    };
    let output = { child }.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn drop_without_descriptors() {
    let registry = Arc::new(Registry::default());
    let server = LivePage::new(&TimerMetrics::new()).registry(registry.clone()).serve(0).unwrap();
    let addr = server.local_addr();
    let mut client = TcpStream::connect(addr).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
    drop(client);

    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    assert!(!files.is_empty() && files.len() < 64, "{} descriptors were free", files.len());
    drop(server);
    assert_eq!(Arc::strong_count(&registry), 1, "all threads have ended");
    drop(files);
    let refused = TcpStream::connect(addr).map(drop).map_err(|error| error.kind());
    assert_eq!(refused, Err(ErrorKind::ConnectionRefused));
}

/// Returns a command that runs the test `name` of this program again, in a shell after `setup`.
/// Returns `None` in the process that such a command has started.
fn command(name: &str, setup: &str) -> Option<Command> {
    const MARK: &str = "TIMER_LIVE_CHILD";
    if std::env::var_os(MARK).is_some() {
        return None;
    }
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{setup} && exec \"$0\" --exact {name}")]);
    command.arg(std::env::current_exe().unwrap()).env(MARK, "1");
    Some(command)
}
