//! Encrypted connections to a server whose certificate the test makes.
//!
//! `SSL_CERT_FILE` replaces the certificates of the system. A process must not change its own
//! variables, so the test runs itself once more for that client.

use std::path::Path;
use std::process::{Command, Output};

use timer_durable::store::Store;
use timer_durable_postgres::ConnectError;

use timer_durable_tests::postgres_server::Server;

/// The variable with the URL for a process that is a client.
const URL: &str = "TIMER_TEST_TLS_URL";

/// Runs the test named `client` in a process that trusts the certificates in `trusted`.
fn run_client(client: &str, url: &str, trusted: &Path) -> Output {
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
    let connect = |host: &str, mode: &str, root: &Path| {
        let url = server.url(&name).replace("127.0.0.1", host);
        crate::connected(&format!("{url}?sslmode={mode}&sslrootcert={}", root.display()))
    };
    let encrypted = "select count(*) from pg_stat_ssl s join pg_stat_activity a using (pid)
        where a.application_name = 'timer-durable' and not s.ssl";
    for (host, mode) in [("127.0.0.1", "verify-full"), ("127.0.0.1", "require"), ("localhost", "verify-ca")] {
        let _store = connect(host, mode, &certificate).unwrap();
        assert_eq!(server.sql("postgres", encrypted), "0");
    }
    let refused = [
        ("localhost", "verify-full", &certificate),
        ("localhost", "require", &certificate),
        ("127.0.0.1", "verify-ca", &stranger),
        ("127.0.0.1", "verify-full", &stranger),
    ];
    for (host, mode, root) in refused {
        let error = connect(host, mode, root).expect_err("the certificate or its name is wrong");
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    for root in [&*key, Path::new("/absent.pem")] {
        let error = connect("127.0.0.1", "verify-full", root).unwrap_err();
        assert!(matches!(error, ConnectError::Setting { name: "sslrootcert", .. }), "{error}");
    }
    let url = format!("{}?sslmode=verify-full", server.url(&name));
    assert!(passes(&run_client("a_client_that_trusts_the_system", &url, &certificate)));
}

#[test]
fn a_server_without_encryption_is_refused() {
    let Some(database) = super::Database::create() else { return };
    let url = format!("{}?sslmode=require", database.url());
    let error = crate::connected(&url).expect_err("the server has no TLS");
    assert!(error.to_string().contains("TLS"), "{error}");
}

#[test]
#[ignore = "the client of another test"]
fn a_client_that_trusts_the_system() {
    let Ok(url) = std::env::var(URL) else { return };
    let mut store = crate::connected(&url).unwrap();
    store.rejoin().unwrap();
    assert_eq!(store.membership().unwrap().shards, 64);
}
