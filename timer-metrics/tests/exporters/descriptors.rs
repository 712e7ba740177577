//! The stop of a server in a process that has no file descriptor left.

use crate::support::command;
use prometheus_client::registry::Registry;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use timer_metrics::MetricsServer;

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
    let server = MetricsServer::serve(0, registry.clone()).unwrap();
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
