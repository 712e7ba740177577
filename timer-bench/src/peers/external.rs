//! Peers that are separate programs. They take the same words as `workload` and print the same
//! rows.

use crate::out::Stop;
use std::path::Path;
use std::process::Command;

/// Debian's jars of Netty's timer.
const JARS: [&str; 2] = ["/usr/share/java/netty-common.jar", "/usr/share/java/jctools-core.jar"];

/// Returns the command for Netty's `HashedWheelTimer` or the JDK's `ScheduledThreadPoolExecutor`.
///
/// # Errors
///
/// Fails if the JDK or the jars are missing.
pub(crate) fn java() -> Result<Command, Stop> {
    if let Some(jar) = JARS.iter().find(|jar| !Path::new(jar).exists()) {
        return Err(Stop::because(format!("no {jar} (apt-get install libnetty-java)")));
    }
    if !Command::new("javac").arg("-version").output().is_ok_and(|output| output.status.success()) {
        return Err(Stop::because("no javac (apt-get install default-jdk-headless)"));
    }
    let mut command = Command::new("java");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/Timers.java");
    command.args(["-Xms2g", "-Xmx8g", "-cp", &JARS.join(":"), source]);
    Ok(command)
}

/// Returns the command for tokio's alternative timer, which is this program, built with
/// `--cfg tokio_unstable` in another folder.
///
/// # Errors
///
/// Fails if that program is not built.
#[cfg(all(feature = "peers", not(tokio_unstable)))]
pub(crate) fn tokio_alt() -> Result<Command, Stop> {
    let this = std::env::current_exe().map_err(Stop::because)?;
    let target = this.ancestors().nth(2).unwrap_or(Path::new("."));
    built(target.join("tokio-alt/release/workload"))
}

/// Returns the command for apalis, a queue of jobs on SQLite or PostgreSQL.
///
/// # Errors
///
/// Fails if it is not built.
#[cfg(feature = "durable")]
pub(crate) fn apalis() -> Result<Command, Stop> {
    built(concat!(env!("CARGO_MANIFEST_DIR"), "/peers/apalis/target/release/apalis-peer").into())
}

#[cfg(any(feature = "peers", feature = "durable"))]
fn built(program: std::path::PathBuf) -> Result<Command, Stop> {
    if program.exists() {
        Ok(Command::new(program))
    } else {
        Err(Stop::because(format!("{} is not built; `cargo xtask bench` builds it", program.display())))
    }
}
