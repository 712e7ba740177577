//! PostgreSQL servers, with a database of its own for each case.

use crate::postgres_server::{self, Server};
use std::path::PathBuf;
use std::process::Command;

/// A server that is given by its URL, or a server of this program, which ends with the value.
pub(crate) struct Cluster {
    /// Keeps the server running.
    _server: Option<Server>,
    /// The URL of any database of the server.
    url: String,
}

impl Cluster {
    /// Uses the server of `url`, or starts one from the installed binaries.
    pub(crate) fn open(url: Option<&str>) -> Result<Self, String> {
        if let Some(url) = url {
            return Ok(Self { _server: None, url: url.to_owned() });
        }
        let server = Server::start().ok_or("there is no server to start")?;
        let url = server.url("postgres");
        Ok(Self { _server: Some(server), url })
    }

    /// Creates a database and returns its URL.
    pub(crate) fn create(&self) -> Result<String, String> {
        let name = format!("timer_bench_{:x}", fastrand::u64(..));
        sql(&self.url, &format!("create database {name}"))?;
        Ok(sibling(&self.url, &name))
    }

    /// Removes a database of [`create`](Self::create).
    pub(crate) fn remove(&self, url: &str) -> Result<(), String> {
        sql(&self.url, &format!("drop database {} with (force)", database(url))).map(drop)
    }
}

/// Executes statements, and returns the columns of the rows between `|`.
pub(crate) fn sql(url: &str, statements: &str) -> Result<String, String> {
    let psql = postgres_server::installed().map_or(PathBuf::from("psql"), |folder| folder.join("psql"));
    let mut command = Command::new(&psql);
    command.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statements]);
    let output = command.output().map_err(|error| format!("{}: {error}", psql.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Executes a query whose answer is one number.
pub(crate) fn number(url: &str, question: &str) -> Result<f64, String> {
    let answer = sql(url, question)?;
    answer.parse().map_err(|_| format!("`{question}` gave `{answer}`"))
}

/// Returns the number of transactions that have ended in the database of `url`. The query runs
/// in another database, so it is not counted.
pub(crate) fn transactions(url: &str) -> Result<f64, String> {
    let question =
        format!("select xact_commit + xact_rollback from pg_stat_database where datname = '{}'", database(url));
    number(&sibling(url, "postgres"), &question)
}

/// Returns the name of the database in `url`.
fn database(url: &str) -> &str {
    let path = url.rsplit('/').next().unwrap_or_default();
    path.split('?').next().unwrap_or_default()
}

/// Returns the URL of another database of the server.
fn sibling(url: &str, name: &str) -> String {
    let (server, path) = url.rsplit_once('/').unwrap_or((url, ""));
    let options = path.find('?').map_or("", |begin| &path[begin..]);
    format!("{server}/{name}{options}")
}

#[cfg(test)]
mod tests {
    use super::{database, sibling};

    #[test]
    fn a_sibling_differs_by_its_name_alone() {
        let url = "postgres://u@h:1/shop?sslmode=require";
        assert_eq!(database(url), "shop");
        assert_eq!(sibling(url, "other"), "postgres://u@h:1/other?sslmode=require");
    }
}
