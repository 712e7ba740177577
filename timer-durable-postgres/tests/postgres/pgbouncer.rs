//! The store behind PgBouncer in transaction mode, beside the pooler of the tests.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use timer_durable::conformance;
use timer_durable_postgres::PostgresStore;
use timer_durable_tests::postgres_server::{self, Server};

use super::{Database, LEASE, locks, pooled};

/// The program of the package `pgbouncer` of Debian.
const PROGRAM: &str = "/usr/sbin/pgbouncer";

/// A PgBouncer that runs until it is dropped.
struct PgBouncer {
    process: Child,
    port: u16,
}

impl PgBouncer {
    /// Starts it with up to three sessions for each database of the server.
    fn start(server: &Server) -> Self {
        let program = std::env::var("TIMER_PGBOUNCER").unwrap_or_else(|_| PROGRAM.to_owned());
        assert!(Path::new(&program).is_file(), "{program} is missing (apt-get install pgbouncer)");
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=timer\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 3\nmax_client_conn = 500\nlogfile = pgbouncer.log\n",
            server.port()
        );
        let file = server.write_file("pgbouncer.ini", &settings);
        let process = server.command(&program).arg(file).stderr(Stdio::null()).spawn().unwrap();
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "PgBouncer does not listen");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        Self { process, port }
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://timer@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[test]
#[ignore = "needs PgBouncer: cargo xtask ci --step pgbouncer"]
fn the_store_works_behind_pgbouncer() {
    let Some(server) = postgres_server::shared() else { return };
    let pooler = PgBouncer::start(&server);
    let connect = |name: &str| {
        let store = crate::connected(&pooler.url(name)).expect("the store connects");
        assert!(pooled::is_pooled(&store), "{store:?}");
        store
    };
    conformance::run(|| connect(&server.create_database()));
    conformance::run_shared(|| {
        let name = server.create_database();
        PostgresStore::install(&server.url(&name)).wait().unwrap();
        [(); 2].map(|()| connect(&name).lease(LEASE))
    });
    let database = Database { name: server.create_database(), server };
    PostgresStore::install(&database.url()).wait().unwrap();
    pooled::share_sessions(&database, &pooler.url(&database.name), || {});
    for end in ["rollback", "commit"] {
        locks::lock_a_row(&database, &pooler.url(&database.name), end);
    }
}
