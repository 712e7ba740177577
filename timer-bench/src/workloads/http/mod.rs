//! W20, the timer of an HTTP server. hyper on a runtime with two workers serves 10,000 keep-alive
//! connections, whose clients are another process. Each request has a limit, each wait for a header
//! has one, and the handler yields once, as one does that waits for a database.
//!
//! The limits are mounted in two ways. By itself, hyper makes a sleep for each header, and each
//! request has a timeout. With `limits`, a connection has one sleep for both. Our timer is mounted
//! by [`ConnectionLimits`](timer_adapters::hyper::ConnectionLimits), and tokio's by the same source
//! with tokio's sleep.
//!
//! `cpu-ns/request` is the CPU time of the server's process with the timer, and
//! `cpu-ns/request-floor` the same with a timer that does nothing. hyper polls a connection once
//! more per request if it has any timer, so a server without one is not the floor of a timer. With
//! `limits` hyper has no timer, and the floor is a server without limits. The server with the timer
//! and the floor take turns in one process. `cpu-ns/request-timer` is the difference, and
//! `%-of-cpu-ns` its share. The same figures in instructions are counted by valgrind's callgrind,
//! in processes of their own. They exclude the kernel, and callgrind runs one thread at a time, so
//! they have no contention.

mod client;
mod server;
mod tokio_limits;

use super::Stop;
use super::instructions::callgrind;
use super::out::Out;
use crate::report::statistics::Summary;
use crate::row::short;
use crate::settings::Settings;
use server::{Mount, Timeouts};

/// The numbers of requests per connection in the two runs whose difference is counted.
const COUNTED: [usize; 2] = [1, 11];

/// The sizes of a run.
#[derive(Clone, Copy)]
struct Load {
    connections: usize,
    /// Requests of each connection, after a first one.
    requests: usize,
}

impl Load {
    fn of(settings: &Settings) -> Self {
        Self { connections: settings.number("n", 10_000, 500), requests: settings.number("requests", 20, 10) }
    }
}

/// Runs the workload, or the part of it that `part` names.
pub(super) fn run(part: &str, timeouts: Timeouts, settings: &Settings, out: &Out) -> Result<(), Stop> {
    let load = Load::of(settings);
    let mounts = settings.list("limits", &[0, 1], &[0, 1]);
    let mounts = mounts.into_iter().map(|limits| if limits == 0 { Mount::Hyper } else { Mount::Limits });
    let failed = |error: std::io::Error| Stop::Unavailable(format!("no server: {error}"));
    match part {
        "clients" => client::run(settings.number("port", 0, 0), load).map_err(failed),
        "served" => mounts.take(1).try_for_each(|mount| server::serve(timeouts, mount, load).map(drop)).map_err(failed),
        "" => {
            let turns = settings.number("turns", 3, 1);
            mounts.clone().try_for_each(|mount| time(timeouts, mount, load, turns, out)).map_err(failed)?;
            // Last, because a machine without the tools ends the workload here.
            let counts = settings.number("count", 1, 0) == 1;
            mounts.filter(|_| counts).try_for_each(|mount| count(mount, load, out))
        }
        _ => Err(Stop::Unknown),
    }
}

/// Prints the figures of one unit.
fn print(unit: &str, params: &str, [with, without]: [f64; 2], out: &Out) {
    out.figure(params, with, &format!("{unit}/request"));
    out.figure(params, without, &format!("{unit}/request-floor"));
    out.figure(params, with - without, &format!("{unit}/request-timer"));
    out.figure(params, 100.0 * (with - without) / with, &format!("%-of-{unit}"));
}

/// Measures CPU times in turns.
fn time(timeouts: Timeouts, mount: Mount, load: Load, turns: usize, out: &Out) -> std::io::Result<()> {
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..turns.max(1) {
        without.push(server::serve(Timeouts::None, mount, load)?);
        with.push(server::serve(timeouts, mount, load)?);
    }
    let medians = Summary::of(&with).zip(Summary::of(&without));
    if let Some((with, without)) = medians {
        print("cpu-ns", &params(mount, load), [with.median, without.median], out);
    }
    Ok(())
}

/// Counts instructions.
fn count(mount: Mount, load: Load, out: &Out) -> Result<(), Stop> {
    if let Some(why) = callgrind::missing() {
        return Err(Stop::Unavailable(format!("skipped: {why}")));
    }
    let executed = |peer: &str| -> Result<f64, Stop> {
        let counts = COUNTED.map(|requests| {
            let words = [
                format!("n={}", load.connections),
                format!("requests={requests}"),
                format!("limits={}", usize::from(mount == Mount::Limits)),
            ];
            callgrind::executed(peer, "W20:served", &words).map(|profile| profile.map(|profile| profile.all()))
        });
        let [Ok(Some(few)), Ok(Some(many))] = counts else {
            return Err(Stop::Unavailable("callgrind failed".to_owned()));
        };
        Ok(many.saturating_sub(few) as f64 / ((COUNTED[1] - COUNTED[0]) * load.connections) as f64)
    };
    print("instructions", &params(mount, load), [executed(out.peer())?, executed(crate::peers::FLOOR)?], out);
    Ok(())
}

fn params(mount: Mount, load: Load) -> String {
    format!("n={}{}", short(load.connections), if mount == Mount::Limits { ",limits" } else { "" })
}

pub(crate) use server::Timeouts as HttpTimeouts;
