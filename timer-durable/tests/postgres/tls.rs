//! Encrypted connections to a server whose certificate the test makes.
//!
//! The client trusts the certificates of the system, which `SSL_CERT_FILE` replaces. A process must
//! not change its own variables, so the test runs itself once more for each client.

use std::process::{Command, Output};

use timer_durable::store::Store;
use timer_durable::{ConnectError, PostgresStore};

use super::postgres_server::Server;

/// The variable with the URL for a process that is a client.
const URL: &str = "TIMER_TEST_TLS_URL";

/// Runs the test named `client` in a process that trusts the certificates in `trusted`.
fn run_client(client: &str, url: &str, trusted: &std::path::Path) -> Output {
    let name = format!("tls::{client}");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &name, "--ignored"])
        .env(URL, url)
        .env("SSL_CERT_FILE", trusted)
        .env_remove("SSL_CERT_DIR");
    command.output().unwrap()
}

fn passes(output: &Output) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    eprintln!("{text}");
    output.status.success() && text.contains("1 passed")
}

#[test]
fn an_encrypted_server_is_used() {
    let Some(mut server) = Server::start_for_tests() else { return };
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let certificate = server.write_file("server.crt", &made.cert.pem());
    let key = server.write_file("server.key", &made.signing_key.serialize_pem());
    let stranger = server.write_file("other.crt", &other.cert.pem());
    server.configure(&format!(
        "ssl = on\nssl_cert_file = '{}'\nssl_key_file = '{}'",
        certificate.display(),
        key.display()
    ));
    let name = server.create_database();
    let url = format!("{}?sslmode=require", server.url(&name));
    assert!(passes(&run_client("a_client_that_trusts_the_server", &url, &certificate)));
    assert!(passes(&run_client("a_client_that_trusts_another_server", &url, &stranger)));
    let by_name = url.replace("127.0.0.1", "localhost");
    assert!(passes(&run_client("a_client_that_trusts_another_server", &by_name, &certificate)), "the name differs");
}

#[test]
fn a_server_without_encryption_is_refused() {
    let Some(database) = super::Database::create() else { return };
    let url = format!("{}?sslmode=require", database.url());
    let error = PostgresStore::connect(&url).expect_err("the server has no TLS");
    assert!(error.to_string().contains("TLS"), "{error}");
}

#[test]
#[ignore = "the client of another test"]
fn a_client_that_trusts_the_server() {
    let Ok(url) = std::env::var(URL) else { return };
    let mut store = PostgresStore::connect(&url).unwrap();
    store.rejoin().unwrap();
    assert_eq!(store.membership().unwrap().shards, 64);
}

#[test]
#[ignore = "the client of another test"]
fn a_client_that_trusts_another_server() {
    let Ok(url) = std::env::var(URL) else { return };
    let error = PostgresStore::connect(&url).expect_err("the certificate is a stranger's");
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
}
