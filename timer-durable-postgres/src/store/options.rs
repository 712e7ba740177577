//! The settings of a store: the URL, the encryption, the password and the name of the schema.

use super::connect;
use super::connect_error::ConnectError;
use super::connection::{self, Access, Dial};
use super::query_error::{self, QueryError};
use super::verification::Verification;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Config, Socket};

/// A function that returns the password for a new connection.
type Provider = Arc<dyn Fn() -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// The settings of a [`PostgresStore`](crate::PostgresStore), for which a URL is not enough.
///
/// # Examples
///
/// A password that changes, and a separate schema, because two services share the database:
///
/// ```no_run
/// use timer_durable_postgres::{PostgresOptions, PostgresStore};
///
/// let options = PostgresOptions::from_url("postgres://shop@db.example/shop?sslmode=verify-full")?
///     .password(|| Ok(std::fs::read_to_string("/run/secrets/database")?))
///     .schema("billing");
/// let store = PostgresStore::new(options)?;
/// # Ok::<(), timer_durable_postgres::ConnectError>(())
/// ```
///
/// Settings of [`tokio_postgres`], and a connector for encrypted connections:
///
/// ```no_run
/// use timer_durable_postgres::{PostgresOptions, PostgresStore, tokio_postgres};
///
/// # fn connect(connector: tokio_postgres::NoTls) -> Result<(), timer_durable_postgres::ConnectError> {
/// let mut config = tokio_postgres::Config::new();
/// config.host("db.example").user("shop").dbname("shop");
/// let store = PostgresStore::new(PostgresOptions::from(config).tls(connector))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    config: Config,
    verification: Verification,
    root_certificate: Option<PathBuf>,
    /// Connects with the connector of the user.
    dial: Option<Dial>,
    password: Option<Provider>,
    schema: String,
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = connect::describe(&self.config, &self.schema);
        f.debug_struct("PostgresOptions").field("server", &server).finish_non_exhaustive()
    }
}

impl From<Config> for PostgresOptions {
    fn from(mut config: Config) -> Self {
        if config.get_application_name().is_none() {
            config.application_name("timer-durable");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(3));
        }
        // The listening connection sends nothing. Without probes it would take hours to notice that
        // a firewall has dropped it.
        if config.get_keepalives_interval().is_none() {
            config.keepalives_idle(config.get_keepalives_idle().min(Duration::from_secs(10)));
            config.keepalives_interval(Duration::from_secs(5)).keepalives_retries(3);
        }
        Self {
            config,
            verification: Verification::Full,
            root_certificate: None,
            dial: None,
            password: None,
            schema: "timer".to_owned(),
        }
    }
}

impl TryFrom<&str> for PostgresOptions {
    type Error = ConnectError;

    fn try_from(url: &str) -> Result<Self, ConnectError> {
        Self::from_url(url)
    }
}

impl TryFrom<&String> for PostgresOptions {
    type Error = ConnectError;

    fn try_from(url: &String) -> Result<Self, ConnectError> {
        Self::from_url(url)
    }
}

impl PostgresOptions {
    /// Reads the settings of a URL.
    ///
    /// It has the parameters of [`tokio_postgres::Config`], and these:
    ///
    /// | parameter | values |
    /// |---|---|
    /// | `sslmode` | `disable` and `prefer` (the default) do not encrypt. `require` and `verify-full` check the certificate and its name, `verify-ca` the certificate alone |
    /// | `sslrootcert` | a PEM file with the certificates to trust, instead of those of the system |
    /// | `passfile` | a file in the format of `.pgpass`, read for each connection |
    ///
    /// # Errors
    ///
    /// [`ConnectError::Url`] if the URL cannot be read, and [`ConnectError::Setting`] if a value is
    /// not allowed.
    pub fn from_url(url: &str) -> Result<Self, ConnectError> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Ok(Self::from(parse(url)?));
        };
        // The text behind an unescaped `@` would be taken for the host, and be shown.
        let user = rest.split(['/', '?']).next().unwrap_or_default();
        if rest.matches('@').count() != user.matches('@').count() || user.matches('@').count() > 1 {
            let why = "the user or the password has a character that must be escaped, such as %40 for @".to_owned();
            return Err(ConnectError::Url { why });
        }
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut others = Vec::new();
        let mut own = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some((name @ ("sslmode" | "sslrootcert" | "passfile"), value)) => own.push((name, decode(value)?)),
                _ => others.push(pair),
            }
        }
        let mut options = Self::from(parse(&format!("{scheme}://{address}?{}", others.join("&")))?);
        for (name, value) in own {
            match name {
                "sslmode" => options.set_mode(value)?,
                "sslrootcert" => options.root_certificate = Some(PathBuf::from(value)),
                _ => options = options.with_password_file(PathBuf::from(value)),
            }
        }
        Ok(options)
    }

    fn set_mode(&mut self, mode: String) -> Result<(), ConnectError> {
        let (mode, verification) = match &*mode {
            "disable" => (SslMode::Disable, Verification::Full),
            "prefer" => (SslMode::Prefer, Verification::Full),
            "require" | "verify-full" => (SslMode::Require, Verification::Full),
            "verify-ca" => (SslMode::Require, Verification::Authority),
            _ => {
                let allowed = "disable, prefer, require, verify-ca, verify-full";
                return Err(ConnectError::Setting { name: "sslmode", given: mode, allowed });
            }
        };
        self.config.ssl_mode(mode);
        self.verification = verification;
        Ok(())
    }

    fn with_password_file(self, path: PathBuf) -> Self {
        let config = self.config.clone();
        let read = move || {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            check_rights(&path).map_err(named)?;
            let text = std::fs::read_to_string(&path).map_err(named)?;
            find_password(&text, &config)
                .ok_or_else(|| format!("{} has no password for the server", path.display()).into())
        };
        self.password(read)
    }

    /// Makes encrypted connections with a connector of another crate, such as `MakeTlsConnector`
    /// of `postgres-native-tls`. It decides which certificates it trusts.
    #[must_use]
    pub fn tls<T>(mut self, connector: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        self.dial = Some(connection::dial_with(connector));
        self
    }

    /// Asks a function for the password of each new connection, for passwords that change. It
    /// blocks the thread of the timer.
    #[must_use]
    pub fn password(
        mut self,
        password: impl Fn() -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Self {
        self.password = Some(Arc::new(password));
        self
    }

    /// Names the schema of the store, `timer` by default. Several services can share a
    /// database if each has its own schema. In SQL, the functions then have its name, such as
    /// `billing.schedule`.
    ///
    /// A name has at most 63 characters, which are lower-case letters, digits and `_`, and does not
    /// begin with a digit or `pg_`.
    #[must_use]
    pub fn schema(mut self, name: impl Into<String>) -> Self {
        self.schema = name.into();
        self
    }

    pub(super) fn access(self) -> Result<Access, ConnectError> {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let schema = &self.schema;
        let is_reserved = schema.starts_with("pg_") || schema.starts_with(|c: char| c.is_ascii_digit());
        if schema.is_empty() || schema.len() > 63 || is_reserved || !schema.chars().all(is_allowed) {
            let allowed = "at most 63 lower-case letters, digits and `_`, without a digit or `pg_` at the beginning";
            return Err(ConnectError::Setting { name: "schema", given: self.schema, allowed });
        }
        let dial = match self.dial {
            Some(dial) => dial,
            None => connection::dial(&self.config, self.verification, self.root_certificate.as_deref())?,
        };
        let dial = self.password.map_or(dial.clone(), |password| with_password(dial, password));
        Ok(Access { config: self.config, dial, schema: self.schema.into() })
    }
}

/// Returns a function that asks for the password before it connects.
fn with_password(dial: Dial, password: Provider) -> Dial {
    Arc::new(move |mut config| {
        let dial = dial.clone();
        let password = password.clone();
        Box::pin(async move {
            let password = password().map_err(|error| QueryError::Io(io::Error::other(error)))?;
            config.password(password);
            dial(config).await
        })
    })
}

fn parse(url: &str) -> Result<Config, ConnectError> {
    url.parse().map_err(|error| ConnectError::Url { why: query_error::reason(&error) })
}

/// Returns the text of a value in a URL.
fn decode(value: &str) -> Result<String, ConnectError> {
    let mut parts = value.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.ok_or_else(invalid)?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

fn invalid() -> ConnectError {
    ConnectError::Url { why: "a value has a wrong escape".to_owned() }
}

/// Returns an error if other users may read the file.
fn check_rights(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let why = format!("the file has mode {mode:o}; allowed is 600, because it has passwords");
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
    }
    std::fs::metadata(path).map(drop)
}

/// Returns the password of the first line for one of the hosts. A line has host, port, database,
/// user and password, separated by colons.
fn find_password(text: &str, config: &Config) -> Option<String> {
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let ports = config.get_ports();
    let servers = config.get_hosts().iter().enumerate().map(|(n, host)| {
        let port = ports.get(n).or(ports.first()).copied().unwrap_or(5432).to_string();
        match host {
            Host::Tcp(name) => (name.clone(), port),
            #[cfg(unix)]
            Host::Unix(_) => ("localhost".to_owned(), port),
        }
    });
    let lines = || text.lines().filter(|line| !line.starts_with('#')).map(fields);
    let matches = |field: &str, value: &str| field == "*" || field == value;
    servers.into_iter().find_map(|(host, port)| {
        let mut lines = lines().filter(|line| line.len() == 5);
        lines.find_map(|mut line| {
            let wanted = [&*host, &port, database, user];
            let is_right = line.iter().zip(wanted).all(|(field, value)| matches(field, value));
            is_right.then(|| line.remove(4))
        })
    })
}

/// Returns the fields of a line, in which a backslash escapes a colon or a backslash.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, fields.last_mut()) {
            (':', _) => fields.push(String::new()),
            ('\\', Some(field)) => field.extend(chars.next()),
            (c, Some(field)) => field.push(c),
            (_, None) => {}
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_is_silent_is_probed() {
        let idle = |url| PostgresOptions::from_url(url).unwrap().config.get_keepalives_idle();
        assert_eq!(idle("postgres://u@h/d"), Duration::from_secs(10));
        assert_eq!(idle("postgres://u@h/d?keepalives_idle=5"), Duration::from_secs(5));
        assert_eq!(idle("postgres://u@h/d?keepalives_idle=60&keepalives_interval=9"), Duration::from_secs(60));
    }

    #[test]
    fn the_first_line_for_the_server_has_the_password() {
        let config = PostgresOptions::from_url("postgres://shop@a,b:6000/orders").unwrap().config;
        let find = |text| find_password(text, &config);
        assert_eq!(find("a:5432:other:shop:1\n#a:*:*:*:2\na:*:orders:shop:3\\:\\\\4\n").as_deref(), Some("3:\\4"));
        assert_eq!(find("b:6000:*:*:5\n").as_deref(), Some("5"));
        assert_eq!(find("a:6001:*:*:6\na:*:*:shop\n"), None);
    }
}
