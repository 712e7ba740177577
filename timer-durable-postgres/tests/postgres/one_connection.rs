//! A server that accepts one connection at a time.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::thread;

use timer_durable_postgres::ConnectError;

use super::Database;

/// Forwards the first connection to a server, and closes all others.
fn proxy(server: u16) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut client, mut server) =
            (listener.accept().unwrap().0, TcpStream::connect(("127.0.0.1", server)).unwrap());
        let mut requests = client.try_clone().unwrap();
        let mut questions = server.try_clone().unwrap();
        thread::spawn(move || io::copy(&mut requests, &mut questions));
        thread::spawn(move || io::copy(&mut server, &mut client));
        listener.incoming().for_each(drop);
    });
    port
}

#[test]
fn a_server_of_one_connection_is_refused() {
    let Some(database) = Database::create() else { return };
    drop(database.join());
    let role = format!("single_{}", database.name);
    database.sql(&format!(
        "create role {role} login password 'right' connection limit 1;
         grant usage on schema timer to {role};
         grant select, insert, update, delete on all tables in schema timer to {role};
         grant usage, select on all sequences in schema timer to {role}"
    ));
    let port = database.server.port();
    for (user, port) in [("timer", proxy(port)), (&format!("{role}:right"), port)] {
        let url = format!("postgres://{user}@127.0.0.1:{port}/{}", database.name);
        let error = crate::connected(&url).expect_err("the store needs two connections");
        assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("a second connection was refused; the store needs two"), "{error}");
    }
}
