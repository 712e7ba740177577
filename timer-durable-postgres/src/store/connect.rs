//! Connecting to a server with its checks.

use super::connect_error::ConnectError;
use super::connection::{Access, PostgresConnection};
use super::query_error::QueryError;
use super::{pooler, schema};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;

/// The version of the schema.
const VERSION: i32 = 1;

/// The oldest supported version of the server.
const OLDEST_SERVER: i32 = 140_000;

/// Returns the hosts, ports, database and schema, without the password.
pub(super) fn describe(config: &Config, schema: &str) -> String {
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432);
        match host {
            tokio_postgres::config::Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            tokio_postgres::config::Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let schema = if schema == "timer" { String::new() } else { format!(".{schema}") };
    format!("postgres:{}/{database}{schema}", hosts.join(","))
}

/// A connection that was checked.
pub(super) struct Connected {
    pub(super) connection: PostgresConnection,
    /// Whether it leads to a pooler in transaction mode.
    pub(super) pooled: bool,
}

/// Connects and checks that the server can hold timeouts. Installs the schema into an empty
/// database.
pub(super) fn connect(access: &Access, limit: Duration) -> Result<Connected, ConnectError> {
    let (mut connection, server) = open(access, limit)?;
    check_server(&mut connection, &server)?;
    if !schema::prepare(&mut connection).map_err(|error| explain(&server, &error))? {
        return Err(ConnectError::NotInstalled { server });
    }
    check_schema(&mut connection, &server)?;
    let pooled = pooler::is_pooled(&mut connection, access, limit).map_err(|error| explain(&server, &error))?;
    if pooled {
        tracing::info!(server, "a pooler in transaction mode; statements are planned each time, and nothing listens");
    } else {
        // The connection may wait for its timer.
        let set = connection.batch_execute("set idle_session_timeout = 0");
        set.map_err(|error| explain(&server, &error))?;
    }
    Ok(Connected { connection, pooled })
}

/// Connects to a database that has the schema. Changes nothing.
pub(super) fn connect_to_read(access: &Access, limit: Duration) -> Result<PostgresConnection, ConnectError> {
    let (mut connection, server) = open(access, limit)?;
    check_installed(&mut connection, &server)?;
    check_version(&mut connection, &server)?;
    Ok(connection)
}

/// Connects and installs the schema unless the database has it.
pub(super) fn connect_and_install(access: &Access, limit: Duration) -> Result<(), ConnectError> {
    let (mut connection, server) = open(access, limit)?;
    check_server(&mut connection, &server)?;
    schema::install(&mut connection).map_err(|error| explain(&server, &error))
}

/// Connects and adds the missing parts to the schema.
pub(super) fn connect_and_upgrade(access: &Access, limit: Duration) -> Result<(), ConnectError> {
    let (mut connection, server) = open(access, limit)?;
    check_server(&mut connection, &server)?;
    check_installed(&mut connection, &server)?;
    check_schema(&mut connection, &server)?;
    schema::upgrade(&mut connection).map_err(|error| explain(&server, &error))
}

/// Connects without any check. Returns the description of the server with the connection.
fn open(access: &Access, limit: Duration) -> Result<(PostgresConnection, String), ConnectError> {
    let server = describe(&access.config, &access.schema);
    match PostgresConnection::open(access, limit) {
        Ok(connection) => Ok((connection, server)),
        Err(error) => Err(explain_connect(server, &error)),
    }
}

fn check_installed(connection: &mut PostgresConnection, server: &str) -> Result<(), ConnectError> {
    match schema::is_installed(connection).map_err(|error| explain(server, &error))? {
        true => Ok(()),
        false => Err(ConnectError::NotInstalled { server: server.to_owned() }),
    }
}

fn check_server(connection: &mut PostgresConnection, server: &str) -> Result<(), ConnectError> {
    // The first question, before anything is set.
    let facts = "select pg_catalog.current_setting('server_version_num')::int,
        pg_catalog.current_setting('server_version'),
        pg_catalog.pg_is_in_recovery() or pg_catalog.current_setting('default_transaction_read_only')::boolean,
        pg_catalog.current_setting('fsync')::boolean and pg_catalog.current_setting('full_page_writes')::boolean
            and pg_catalog.current_setting('synchronous_commit') operator(pg_catalog.<>) 'off'";
    let rows = connection.query_typed(facts, &[], &[]).map_err(|error| explain(server, &error))?;
    let row = rows.first().ok_or_else(|| explain(server, &QueryError::NoRow))?;
    if row.get::<_, i32>(0) < OLDEST_SERVER {
        return Err(ConnectError::ServerVersion { server: server.to_owned(), found: row.get(1) });
    }
    if row.get(2) {
        return Err(ConnectError::ReadOnly { server: server.to_owned() });
    }
    if !row.get::<_, bool>(3) {
        tracing::warn!(
            server,
            "timeouts can be lost when the server's machine stops, because fsync, full_page_writes or synchronous_commit is off"
        );
    }
    Ok(())
}

fn check_version(connection: &mut PostgresConnection, server: &str) -> Result<(), ConnectError> {
    let version = connection.ask("select max(version) from timer.meta");
    let found = version.and_then(|row| row.try_get(0).map_err(QueryError::from));
    let found: i32 = found.map_err(|error| explain(server, &error))?;
    if found != VERSION {
        return Err(ConnectError::SchemaVersion { server: server.to_owned(), found, expected: VERSION });
    }
    Ok(())
}

/// Checks the version of the schema and the rights of the user.
fn check_schema(connection: &mut PostgresConnection, server: &str) -> Result<(), ConnectError> {
    check_version(connection, server)?;
    // A statement for each right that the store needs. None of them changes a row.
    let rights = "
        insert into timer.timeout(id, due, shard, format, topic, payload) select gen_random_uuid(), 0, 0, 0, '', '' where false;
        update timer.timeout set due = due where false;
        delete from timer.timeout where false;
        insert into timer.node(id, lease_until) select 0, 0 where false;
        update timer.node set alive = alive where false;
        delete from timer.node where false;
        update timer.shard set owner = owner where false;
        select last_value from timer.instance;
        select timer.now();";
    connection.run_all(rights).map_err(|error| explain(server, &error))?;
    // Only a call of `nextval` would show whether it is allowed, and each call uses up a number.
    let usage = connection.ask("select has_sequence_privilege('timer.instance', 'usage, update')");
    if !usage.map_err(|error| explain(server, &error))?.get::<_, bool>(0) {
        let why = "permission denied for sequence instance, which needs the right usage or update".to_owned();
        return Err(ConnectError::MissingRights { server: server.to_owned(), why });
    }
    Ok(())
}

fn explain_connect(server: String, error: &QueryError) -> ConnectError {
    let why = error.to_string();
    match error.code() {
        Some(_) => ConnectError::Refused { server, why },
        None => ConnectError::Unreachable { server, why },
    }
}

fn explain(server: &str, error: &QueryError) -> ConnectError {
    let server = server.to_owned();
    let why = error.to_string();
    match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => ConnectError::MissingRights { server, why },
        Some(_) => ConnectError::Failed { server, why },
        None if matches!(error, QueryError::SecondConnection(_)) => ConnectError::Refused { server, why },
        None => ConnectError::Unreachable { server, why },
    }
}
