//! Connecting to a server with its checks, and installing the schema.

use super::connection::{Access, PostgresConnection, in_schema};
use super::pooler;
use super::query_error::QueryError;
use std::fmt;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

/// The version of the schema.
const VERSION: i32 = 1;

/// The oldest supported version of the server.
const OLDEST_SERVER: i32 = 140_000;

/// The schema, as a script for `psql`.
pub(super) const SCHEMA: &str = include_str!("schema.sql");

/// A server or a database that cannot be used as a store.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The URL cannot be parsed.
    Url {
        /// The reason.
        why: String,
    },
    /// No server answers.
    Unreachable {
        /// The hosts and ports that were tried.
        server: String,
        /// The reason.
        why: String,
    },
    /// The server refuses the user, the password or the database.
    Refused {
        /// The server.
        server: String,
        /// The server's reason.
        why: String,
    },
    /// The server is too old.
    ServerVersion {
        /// The server.
        server: String,
        /// The version of the server.
        found: String,
    },
    /// The server is a replica, or the database is read-only.
    ReadOnly {
        /// The server.
        server: String,
    },
    /// The database has tables of other programs and no schema `timer`.
    NotInstalled {
        /// The server.
        server: String,
    },
    /// This program does not know the version of the schema.
    SchemaVersion {
        /// The server.
        server: String,
        /// The version of the schema.
        found: i32,
        /// The version that this program uses.
        expected: i32,
    },
    /// The user lacks a right.
    MissingRights {
        /// The server.
        server: String,
        /// The server's reason.
        why: String,
    },
    /// A setting has a value that is not allowed.
    Setting {
        /// The setting.
        name: &'static str,
        /// The value.
        given: String,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A statement has failed.
    Failed {
        /// The server.
        server: String,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url { why } => {
                write!(f, "the URL of the store cannot be read: {why}; allowed is postgres://USER@HOST:PORT/DATABASE")
            }
            Self::Unreachable { server, why } => write!(f, "{server} cannot be reached: {why}"),
            Self::Refused { server, why } => write!(f, "{server} refuses the connection: {why}"),
            Self::ServerVersion { server, found } => {
                write!(f, "{server} has version {found}; PostgreSQL 14 or newer is needed")
            }
            Self::ReadOnly { server } => write!(f, "{server} is a replica or read-only; name the primary server"),
            Self::NotInstalled { server } => write!(
                f,
                "{server} has tables of other programs and no schema of the store; \
                 call PostgresStore::install or execute the script that PostgresStore::schema returns"
            ),
            Self::SchemaVersion { server, found, expected } => {
                write!(f, "{server} has version {found} of the schema; this program uses {expected}")
            }
            Self::MissingRights { server, why } => {
                write!(f, "{server} denies a right to the user: {why}; the book lists the rights that are needed")
            }
            Self::Setting { name, given, allowed } => {
                write!(f, "{name}: {given} was given; allowed is {allowed}")
            }
            Self::Failed { server, why } => write!(f, "{server} cannot be used: {why}"),
        }
    }
}

impl std::error::Error for ConnectError {}

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
    let server = describe(&access.config, &access.schema);
    let mut connection =
        PostgresConnection::open(access, limit).map_err(|error| explain_connect(server.clone(), &error))?;
    check_server(&mut connection, &server)?;
    if !prepare_schema(&mut connection).map_err(|error| explain(&server, &error))? {
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

/// Installs the schema if the database is empty. Returns `false` if the database has no schema.
fn prepare_schema(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    if is_installed(connection)? {
        return Ok(true);
    }
    if is_empty(connection)? {
        install(connection)?;
        return Ok(true);
    }
    // Another node may have installed it between the two queries.
    is_installed(connection)
}

/// Connects and installs the schema unless the database has it.
pub(super) fn connect_and_install(access: &Access, limit: Duration) -> Result<(), ConnectError> {
    let server = describe(&access.config, &access.schema);
    let mut connection =
        PostgresConnection::open(access, limit).map_err(|error| explain_connect(server.clone(), &error))?;
    check_server(&mut connection, &server)?;
    install(&mut connection).map_err(|error| explain(&server, &error))
}

/// Connects and replaces the functions by those of this program.
pub(super) fn connect_and_upgrade(access: &Access, limit: Duration) -> Result<(), ConnectError> {
    let server = describe(&access.config, &access.schema);
    let mut connection =
        PostgresConnection::open(access, limit).map_err(|error| explain_connect(server.clone(), &error))?;
    check_server(&mut connection, &server)?;
    if !is_installed(&mut connection).map_err(|error| explain(&server, &error))? {
        return Err(ConnectError::NotInstalled { server });
    }
    check_schema(&mut connection, &server)?;
    let upgraded =
        alone(
            &mut connection,
            |connection| {
                if has_functions(connection)? { Ok(()) } else { connection.run_all(&functions()) }
            },
        );
    upgraded.map_err(|error| explain(&server, &error))
}

/// Returns the part of the schema behind the tables, which replaces the functions.
fn functions() -> String {
    let from = SCHEMA.find("create function").unwrap_or(SCHEMA.len());
    SCHEMA[from..].replace("create function", "create or replace function")
}

/// Returns `true` if the database has the functions of this program. A function may change without
/// a new version of the schema. Equal functions are left alone, because a user who does not own
/// them cannot replace them.
fn has_functions(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let script = in_schema(SCHEMA, connection.schema());
    let bodies: Vec<String> = script.split("$$").skip(1).step_by(2).map(str::to_owned).collect();
    let missing = "select exists (
        select from unnest($1) body
        where not exists (select from pg_proc where pronamespace = 'timer'::regnamespace and prosrc = body)
    )";
    let rows = connection.run(missing, &[Type::TEXT_ARRAY], &[&bodies])?;
    Ok(!rows.first().ok_or(QueryError::NoRow)?.get::<_, bool>(0))
}

/// Installs the schema unless the database has it.
pub(super) fn install(connection: &mut PostgresConnection) -> Result<(), QueryError> {
    alone(connection, |connection| {
        // The setting at the head of the script is for `psql`.
        let tables = &SCHEMA[SCHEMA.find("create schema").unwrap_or(0)..];
        if is_installed(connection)? { Ok(()) } else { connection.run_all(tables) }
    })
}

/// Changes the schema in a transaction. If several nodes start at once, one of them changes it and
/// the others wait.
fn alone(
    connection: &mut PostgresConnection,
    change: impl FnOnce(&mut PostgresConnection) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    connection.begin("select pg_advisory_xact_lock(6874019)")?;
    let result = change(connection);
    let end = if result.is_ok() { "commit" } else { "rollback" };
    result.and(connection.end(end))
}

/// Returns `true` if the database has the schema. It reads the catalog, because `to_regclass` may
/// answer from a cache of the session, which does not see what another node has just
/// installed.
fn is_installed(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let table = "select exists (
        select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'timer' and c.relname = 'meta'
    )";
    Ok(connection.ask(table)?.get(0))
}

fn is_empty(connection: &mut PostgresConnection) -> Result<bool, QueryError> {
    let tables = "select not exists (
        select from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not like 'pg\\_%' and n.nspname <> 'information_schema'
    )";
    Ok(connection.ask(tables)?.get(0))
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

/// Checks the version of the schema and the rights of the user.
fn check_schema(connection: &mut PostgresConnection, server: &str) -> Result<(), ConnectError> {
    let version = connection.ask("select max(version) from timer.meta");
    let found = version.and_then(|row| row.try_get(0).map_err(QueryError::from));
    let found: i32 = found.map_err(|error| explain(server, &error))?;
    if found != VERSION {
        return Err(ConnectError::SchemaVersion { server: server.to_owned(), found, expected: VERSION });
    }
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
    let (server, why) = (server.to_owned(), error.to_string());
    match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => ConnectError::MissingRights { server, why },
        Some(_) => ConnectError::Failed { server, why },
        None => ConnectError::Unreachable { server, why },
    }
}
