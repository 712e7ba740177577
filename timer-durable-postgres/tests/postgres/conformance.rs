//! The conformance suite of stores.

use timer_durable::conformance;

use super::{Database, LEASE, postgres_server};

#[test]
fn the_store_passes_the_suite() {
    let Some(server) = postgres_server::shared() else { return };
    conformance::run(|| {
        let name = server.create_database();
        crate::connected(&server.url(&name)).expect("the store connects")
    });
}

#[test]
fn the_store_passes_the_suite_of_shared_stores() {
    let Some(server) = postgres_server::shared() else { return };
    conformance::run_shared(|| {
        let url = server.url(&server.create_database());
        [(); 2].map(|()| crate::connected(&url).expect("the store connects").lease(LEASE))
    });
}

#[test]
fn twenty_nodes_install_the_schema_once() {
    let Some(database) = Database::create() else { return };
    let url = database.url();
    let nodes: Vec<_> = (0..20)
        .map(|_| {
            let url = url.clone();
            std::thread::spawn(move || crate::connected(&url).map(drop))
        })
        .collect();
    for node in nodes {
        node.join().expect("no panic").expect("the schema is there");
    }
    assert_eq!(database.sql("select count(*) from timer.shard"), "64");
}
