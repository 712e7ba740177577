//! The drivers that are built every day. The package `drivers` has the others.

use std::path::{Path, PathBuf};
use std::process::Command;

use timer_durable_postgres::tokio_postgres;

use crate::in_transaction::{Driver, End, Step};
use crate::take_steps;

pub(crate) const DRIVERS: &[(&str, Driver)] = &[
    ("tokio-postgres", with_tokio_postgres),
    #[cfg(feature = "sqlx")]
    ("sqlx", with_sqlx),
];

fn block_on<R>(call: impl Future<Output = R>) -> R {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(call)
}

fn with_tokio_postgres(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
    let take = async {
        let (mut client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let tx = client.transaction().await?;
        let answers = take_steps!(steps, &tx, |sql| tx.batch_execute(&sql).await?, .await);
        if end == End::Commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        Ok(answers)
    };
    block_on(take).map_err(|error: tokio_postgres::Error| format!("{error:?}"))
}

#[cfg(feature = "sqlx")]
fn with_sqlx(url: &str, steps: Vec<Step<'_>>, end: End) -> Result<Vec<String>, String> {
    use sqlx::{AssertSqlSafe, Connection, PgConnection};
    let take = async {
        let mut connection = PgConnection::connect(url).await?;
        let mut tx = connection.begin().await?;
        let answers =
            take_steps!(steps, &mut *tx, |sql| sqlx::query(AssertSqlSafe(sql)).execute(&mut *tx).await?, .await);
        if end == End::Commit {
            tx.commit().await?
        } else {
            tx.rollback().await?
        }
        Ok(answers)
    };
    block_on(take).map_err(|error: sqlx::Error| format!("{error:?}"))
}

/// Returns the libraries in the folder of this test, the newest one first.
fn libraries() -> Vec<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let files = std::fs::read_dir(test.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    let is_library = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with("libtimer_durable-") && name.ends_with(".rlib")
    };
    let mut libraries: Vec<PathBuf> = files.filter(is_library).collect();
    libraries.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().modified().unwrap()));
    libraries
}

/// Compiles a call with a connection of this type, and returns the errors of the compiler.
fn compile(library: &Path, connection: &str) -> String {
    let folder = std::env::temp_dir().join(format!("timer-driver-{:x}", fastrand::u64(..)));
    std::fs::create_dir(&folder).unwrap();
    let source = folder.join("driver.rs");
    let function = format!(
        "pub fn schedule(tx: &mut {connection}, topic: timer_durable::Topic<String>) {{
             let _call = topic.schedule_in(tx, timer_durable::Schedule::after(std::time::Duration::ZERO), \"\");
         }}"
    );
    std::fs::write(&source, function).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"]).arg(&folder);
    rustc.arg("-L").arg(format!("dependency={}", library.parent().unwrap().display()));
    rustc.arg("--extern").arg(format!("timer_durable={}", library.display()));
    let errors = rustc.arg(source).output().unwrap().stderr;
    std::fs::remove_dir_all(folder).unwrap();
    String::from_utf8(errors).unwrap()
}

#[test]
fn a_driver_without_its_feature_is_named_by_the_compiler() {
    let libraries = libraries();
    let has_driver = |path: &&PathBuf| compile(path, "timer_durable_postgres::tokio_postgres::Client").is_empty();
    let Some(library) = libraries.iter().find(has_driver) else {
        eprintln!("no library was built by this compiler with a driver; the test is skipped");
        return;
    };
    let errors = compile(library, "String");
    let message = "`&mut String` is no transaction of a PostgreSQL driver whose feature of timer-durable is enabled";
    assert!(errors.contains(message), "{errors}");
}
