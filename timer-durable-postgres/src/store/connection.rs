//! A connection that blocks, with a limit for each call.
//!
//! The limit also covers a server that hangs and a network that drops packets, for which the server
//! has no setting. A connection whose call was given up is not used again.

use super::connect_error::ConnectError;
use super::query_error::QueryError;
use super::verification::Verification;
use std::borrow::Cow;
use std::fmt;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Config, Error, NoTls, Row, Socket, Statement};

/// The parameters of a statement.
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Reads the messages of a connection. The connection makes progress only while this is polled.
pub(super) type Messages = Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> + Send>;

/// A function that connects with the given settings, and encrypts if they ask for it.
pub(super) type Dial = Arc<dyn Fn(Config) -> DialFuture + Send + Sync>;
type DialFuture = std::pin::Pin<Box<dyn Future<Output = Result<Dialed, QueryError>> + Send>>;

/// A connection that was made.
pub(super) struct Dialed {
    pub(super) client: Client,
    pub(super) messages: Messages,
    /// Whether the database can store any text.
    is_unicode: bool,
    /// Whether the server can limit the time of a transaction, as from version 17 on.
    limits_transactions: bool,
}

/// Everything that a connection of a store needs.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) config: Config,
    pub(super) dial: Dial,
    /// The name of the schema.
    pub(super) schema: Arc<str>,
}

/// Returns a function that makes connections as the settings ask for.
pub(super) fn dial(config: &Config, verification: Verification, roots: Option<&Path>) -> Result<Dial, ConnectError> {
    if config.get_ssl_mode() == SslMode::Require { encrypted(verification, roots) } else { Ok(dial_with(NoTls)) }
}

#[cfg(feature = "tls")]
fn encrypted(verification: Verification, roots: Option<&Path>) -> Result<Dial, ConnectError> {
    super::tls::connector(verification, roots).map(dial_with)
}

#[cfg(not(feature = "tls"))]
fn encrypted(_: Verification, _: Option<&Path>) -> Result<Dial, ConnectError> {
    let why = "an encrypted connection needs the feature `tls` of timer-durable-postgres or a connector".to_owned();
    Err(ConnectError::Url { why })
}

/// Returns a function that makes connections with a connector.
pub(super) fn dial_with<T>(connector: T) -> Dial
where
    T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
    T::Stream: Send + 'static,
    T::TlsConnect: Send,
    <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
{
    Arc::new(move |config| {
        let connector = connector.clone();
        Box::pin(async move {
            let (client, mut connection) = config.connect(connector).await?;
            let is_unicode = connection.parameter("server_encoding") == Some("UTF8");
            let version = connection.parameter("server_version").unwrap_or_default();
            let major = version.split(|c: char| !c.is_ascii_digit()).next();
            let limits_transactions = major.and_then(|major| major.parse().ok()).is_some_and(|major: u32| major >= 17);
            let messages: Messages = Box::new(move |context| connection.poll_message(context));
            Ok(Dialed { client, messages, is_unicode, limits_transactions })
        })
    })
}

/// Returns SQL about the schema `timer` as SQL about another one. The script has the name of the
/// schema in these three places only.
pub(super) fn in_schema<'a>(sql: &'a str, schema: &str) -> Cow<'a, str> {
    if schema == "timer" {
        return Cow::Borrowed(sql);
    }
    let named = sql.replace("timer.", &format!("\"{schema}\".")).replace("'timer'", &format!("'{schema}'"));
    Cow::Owned(named.replace("if not exists timer;", &format!("if not exists \"{schema}\";")))
}

/// The settings of each statement of the store that has its own transaction, before the session is
/// known to keep settings. With this path, no function, operator or type of another schema can take
/// the place of one of the system, whatever the path of the role is.
pub(super) const SAFE_PATH: &str = "set local search_path = pg_catalog, pg_temp";

/// The time for which a connection sends no notifications after one has failed.
const QUIET: Duration = Duration::from_secs(60);

/// A connection to PostgreSQL whose calls block.
///
/// A call whose answer has not arrived within the store's limit fails.
pub(super) struct PostgresConnection {
    client: Client,
    limit: Duration,
    driver: Driver,
    /// The settings of each statement of the store, or `None` if the session has them.
    settings: Option<String>,
    is_in_transaction: bool,
    /// Statements send no notifications before this time, because the server's queue is full.
    quiet_until: Option<Instant>,
    schema: Arc<str>,
    is_unicode: bool,
    limits_transactions: bool,
}

impl fmt::Debug for PostgresConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresConnection").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl PostgresConnection {
    pub(super) fn open(access: &Access, limit: Duration) -> Result<Self, QueryError> {
        let driver = Driver::new().map_err(QueryError::Io)?;
        let Dialed { client, mut messages, is_unicode, limits_transactions } =
            driver.wait(limit, (access.dial)(access.config.clone()))?;
        driver.runtime().spawn(async move { while let Some(Ok(_)) = poll_fn(&mut messages).await {} });
        let settings = Some(SAFE_PATH.to_owned());
        Ok(Self {
            client,
            limit,
            driver,
            settings,
            is_in_transaction: false,
            quiet_until: None,
            schema: access.schema.clone(),
            is_unicode,
            limits_transactions,
        })
    }

    /// Returns the statement that lifts the server's limit of a transaction, or an empty text if
    /// the server has no such limit. The limit would end the session. A value other than 0 has no
    /// effect on the transaction in progress.
    pub(super) fn lift_limit(&self, set: &str) -> String {
        if self.limits_transactions { format!("{set} transaction_timeout = 0;") } else { String::new() }
    }

    /// Returns a text of this crate or of a handler as the database can store it. PostgreSQL
    /// refuses a statement for one character that its encoding lacks, and for a NUL.
    pub(super) fn storable(&self, text: &str) -> String {
        let escaped = |c: char| if c.is_ascii() { c.to_string() } else { c.escape_unicode().to_string() };
        let text = text.replace('\0', "\u{fffd}");
        if self.is_unicode { text } else { text.chars().map(escaped).collect() }
    }

    pub(super) fn schema(&self) -> &str {
        &self.schema
    }

    /// Sets the settings of each statement, or `None` if the session has them.
    pub(super) fn set_settings(&mut self, settings: Option<String>) {
        self.settings = settings;
    }

    /// Sets the longest time that a call may take.
    pub(super) fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    pub(super) fn query(&mut self, statement: &Statement, params: Params<'_>) -> Result<Vec<Row>, QueryError> {
        self.hinting(|connection| connection.wait(connection.client.query(statement, params)))
    }

    /// Executes statements that are separated by semicolons and have no parameters.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the server refuses a statement or does not answer.
    pub(super) fn batch_execute(&mut self, statements: &str) -> Result<(), QueryError> {
        self.wait(self.client.batch_execute(statements))
    }

    pub(super) fn prepare(&mut self, sql: &str, types: &[Type]) -> Result<Statement, QueryError> {
        self.wait(self.client.prepare_typed(&in_schema(sql, &self.schema), types))
    }

    /// Executes a statement whose parameters have the given types, without a name for it, in one
    /// round trip. Poolers in transaction mode that do not know names need this.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the server refuses the statement or does not answer.
    pub(super) fn query_typed(&self, sql: &str, types: &[Type], params: Params<'_>) -> Result<Vec<Row>, QueryError> {
        let params: Vec<_> = params.iter().copied().zip(types.iter().cloned()).collect();
        self.wait(self.client.query_typed(sql, &params))
    }

    /// Executes a statement of the store, with its settings and in one round trip.
    pub(super) fn run(&mut self, sql: &str, types: &[Type], params: Params<'_>) -> Result<Vec<Row>, QueryError> {
        self.hinting(|connection| connection.run_once(sql, types, params))
    }

    fn run_once(&self, sql: &str, types: &[Type], params: Params<'_>) -> Result<Vec<Row>, QueryError> {
        let sql = in_schema(sql, &self.schema);
        let Some(settings) = self.settings.as_ref().filter(|_| !self.is_in_transaction) else {
            return self.query_typed(&sql, types, params);
        };
        let quiet = if self.quiet_until.is_some() { "set local timer_durable.notify = off" } else { "" };
        let begin = format!("begin isolation level read committed; {settings}; {quiet}");
        let params: Vec<_> = params.iter().copied().zip(types.iter().cloned()).collect();
        self.wait(async {
            // The three messages leave together. The server rolls back if one of them fails.
            let (begun, rows, ended) = tokio::join!(
                self.client.batch_execute(&begin),
                self.client.query_typed(&sql, &params),
                self.client.batch_execute("commit")
            );
            begun?;
            let rows = rows?;
            ended.map(|()| rows)
        })
    }

    /// Executes statements of the store without parameters as one transaction.
    pub(super) fn run_all(&mut self, statements: &str) -> Result<(), QueryError> {
        let schema = self.schema.clone();
        let statements = in_schema(statements, &schema);
        match self.settings.as_ref().filter(|_| !self.is_in_transaction) {
            // Statements of one message are one transaction.
            Some(settings) => self.batch_execute(&format!("{settings}; {statements}")),
            None => self.batch_execute(&statements),
        }
    }

    /// Executes a query of the store and returns its first row.
    pub(super) fn ask(&mut self, sql: &str) -> Result<Row, QueryError> {
        self.run(sql, &[], &[])?.into_iter().next().ok_or(QueryError::NoRow)
    }

    /// Begins a transaction with its own settings.
    pub(super) fn begin(&mut self, settings: &str) -> Result<(), QueryError> {
        self.is_in_transaction = true;
        let lift = self.lift_limit("set local");
        self.batch_execute(&format!("begin isolation level read committed; {SAFE_PATH}; {lift} {settings}"))
    }

    /// Ends a transaction. After an error it may be open.
    pub(super) fn end(&mut self, statements: &str) -> Result<(), QueryError> {
        self.batch_execute(statements)?;
        self.is_in_transaction = false;
        Ok(())
    }

    /// Executes a statement that may send a notification. If the server's queue of notifications is
    /// full, the server undoes the statement, and it is executed again without the notification.
    fn hinting<R>(&mut self, call: impl Fn(&Self) -> Result<R, QueryError>) -> Result<R, QueryError> {
        if self.is_in_transaction {
            // A setting would be undone with it.
            return call(self);
        }
        if self.quiet_until.is_some_and(|until| until <= Instant::now()) {
            self.set_quiet(None)?;
        }
        let result = call(self);
        if self.quiet_until.is_some() || !is_too_much(&result) {
            return result;
        }
        self.set_quiet(Some(Instant::now() + QUIET))?;
        let result = call(self);
        if is_too_much(&result) {
            // Another limit was exceeded.
            self.set_quiet(None)?;
        } else {
            tracing::warn!("the server's queue of notifications is full; nodes look once a second");
        }
        result
    }

    fn set_quiet(&mut self, until: Option<Instant>) -> Result<(), QueryError> {
        if self.settings.is_none() {
            let setting = "timer_durable.notify";
            self.batch_execute(&until.map_or(format!("reset {setting}"), |_| format!("set {setting} = off")))?;
        }
        self.quiet_until = until;
        Ok(())
    }

    fn wait<R: Send>(&self, call: impl Future<Output = Result<R, Error>> + Send) -> Result<R, QueryError> {
        self.driver.wait(self.limit, call)
    }
}

fn is_too_much<R>(result: &Result<R, QueryError>) -> bool {
    matches!(result, Err(error) if error.code() == Some(&SqlState::PROGRAM_LIMIT_EXCEEDED))
}

/// The runtime of a connection, which may be used and dropped on a thread of another runtime.
struct Driver(
    /// `None` while the value is dropped.
    Option<Runtime>,
);

impl Driver {
    fn new() -> std::io::Result<Self> {
        Ok(Self(Some(Builder::new_current_thread().enable_all().build()?)))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().unwrap_or_else(|| unreachable!("only `drop` takes the runtime"))
    }

    fn wait<R: Send, E: Into<QueryError>>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<R, E>> + Send,
    ) -> Result<R, QueryError> {
        let limited = async {
            let mut call = pin!(call);
            if let Ok(result) = tokio::time::timeout(limit, &mut call).await {
                return result.map_err(Into::into);
            }
            // If the process stood still, the limit is over and the answer may be in the socket.
            // The task that reads the socket runs during the yield.
            tokio::task::yield_now().await;
            match poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
                Poll::Ready(result) => result.map_err(Into::into),
                Poll::Pending => Err(QueryError::TimedOut(limit)),
            }
        };
        let runtime = self.runtime();
        if Handle::try_current().is_err() {
            return runtime.block_on(limited);
        }
        // A thread of another runtime, as in `#[tokio::main]`, must not enter a second one.
        std::thread::scope(|scope| match scope.spawn(|| runtime.block_on(limited)).join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A plain drop would panic on a thread of another runtime, and wait for a name that is
        // being resolved.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_answer_that_waits_in_the_socket_is_not_given_up() {
        let limit = Duration::from_millis(100);
        let driver = Driver::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut server = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (client, _) = listener.accept().unwrap();
        client.set_nonblocking(true).unwrap();
        let (answer, call) = tokio::sync::oneshot::channel();
        driver.runtime().spawn(async move {
            let client = tokio::net::TcpStream::from_std(client).unwrap();
            client.readable().await.unwrap();
            answer.send(7).unwrap();
        });
        driver.runtime().spawn(async move {
            // The answer arrives while the process stands still.
            std::thread::park_timeout(limit * 2);
            server.write_all(&[7]).unwrap();
        });
        let result = driver.wait(limit, async { Ok::<_, QueryError>(call.await.unwrap()) });
        assert_eq!(result.unwrap(), 7);
    }
}
