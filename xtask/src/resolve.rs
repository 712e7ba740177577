//! Whether the stores of timer-durable resolve beside the database crates that programs have.
//!
//! Only one version of a native library can be in a program (`links`), so the store in a file and
//! another crate with SQLite have to agree on a version of libsqlite3-sys. Each program here is a
//! manifest with such a crate. Resolving it needs the index of the registry, and compiles nothing.

use std::fs;
use std::process::Command;

use xshell::Shell;

use crate::run::{Failure, Result, report, root, target_dir};

/// A name, the stores with their features, and the other dependencies of the program.
const PROGRAMS: [(&str, &str, &str); 12] = [
    ("sqlx-0.9", "sqlite", "sqlx = { version = '0.9', features = ['postgres', 'macros', 'migrate', 'json', 'uuid'] }"),
    ("sqlx-0.8", "sqlite", "sqlx = { version = '0.8', features = ['postgres', 'macros', 'migrate', 'json', 'uuid'] }"),
    ("sqlx-0.8-postgres", "postgres/store", "sqlx = { version = '0.8', features = ['postgres', 'macros', 'migrate'] }"),
    ("sea-orm-1.1", "sqlite", "sea-orm = { version = '1.1', features = ['sqlx-postgres', 'macros'] }"),
    (
        "sqlx-0.9-driver",
        "sqlite postgres/sqlx",
        "sqlx = { version = '0.9', features = ['postgres', 'macros', 'migrate'] }",
    ),
    (
        "sqlx-0.8-driver",
        "sqlite postgres/sqlx-0-8",
        "sqlx = { version = '0.8', features = ['postgres', 'macros', 'migrate'] }",
    ),
    (
        "sea-orm-1.1-driver",
        "sqlite postgres/sea-orm-1",
        "sea-orm = { version = '1.1', features = ['sqlx-postgres', 'macros'] }",
    ),
    (
        "sea-orm-2-driver",
        "sqlite postgres/sea-orm",
        "sea-orm = { version = '2', features = ['sqlx-postgres', 'macros'] }",
    ),
    (
        "diesel-2-driver",
        "sqlite postgres/diesel",
        "diesel = { version = '2.3', default-features = false, features = ['sqlite', 'postgres_backend'] }",
    ),
    ("diesel-2", "sqlite", "diesel = { version = '2', features = ['sqlite'] }"),
    ("rusqlite-0.32", "sqlite", "rusqlite = '0.32'"),
    ("rusqlite-0.43", "sqlite", "rusqlite = '0.43'"),
];

/// Resolves the programs.
pub(crate) fn command(_: &Shell) -> Result {
    run_in_each("generate-lockfile")
}

/// Compiles the programs.
pub(crate) fn check(_: &Shell) -> Result {
    run_in_each("check")
}

fn run_in_each(command: &str) -> Result {
    for (name, stores, dependency) in PROGRAMS {
        let folder = target_dir().join("resolve").join(name);
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("src/lib.rs"), "")?;
        let stores: String = stores.split(' ').map(store).collect();
        let manifest = format!(
            "[package]\nname = 'program'\nversion = '0.1.0'\nedition = '2024'\n\n[workspace]\n\n[dependencies]\n\
             {stores}{dependency}\n"
        );
        fs::write(folder.join("Cargo.toml"), manifest)?;
        let mut cargo = Command::new("cargo");
        cargo.args(["--quiet", command]).current_dir(&folder);
        let output = cargo.env("CARGO_TARGET_DIR", target_dir().join("resolve/target")).output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let is_offline = text.contains("Could not resolve host") || text.contains("failed to download");
            let failure = Failure::new(format!("{name}: {text}"));
            return Err(if is_offline { Failure::skipped("connection to the registry") } else { failure });
        }
        report(&format!("{command} succeeds for {name}\n"));
    }
    Ok(())
}

/// Returns the dependency on a store with one feature, such as `postgres/sqlx`.
fn store(words: &str) -> String {
    let (name, feature) = words.split_once('/').unwrap_or((words, ""));
    let features: Vec<&str> = feature.split_terminator(',').collect();
    let name = format!("timer-durable-{name}");
    let path = root().join(&name);
    format!("{name} = {{ path = '{}', default-features = false, features = {features:?} }}\n", path.display())
}
