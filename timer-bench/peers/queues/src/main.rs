//! Queues of jobs as peers of the bench: `queue-peers PEER WORKLOAD FILE|URL [--SETTING NUMBER]..`.
#![forbid(unsafe_code)]

mod apalis;
mod graphile;
mod job;
mod river;

use std::process::ExitCode;
use timer_bench::durable::cases;
use timer_bench::out::{Heap, Run};
use timer_bench::settings::Settings;

fn main() -> ExitCode {
    let parsed = Settings::parse(std::env::args_os().skip(1));
    let Ok(([peer, workload, store], settings)) = parsed.as_ref().map(|(words, settings)| (words.as_slice(), settings))
    else {
        eprintln!("usage: queue-peers PEER WORKLOAD FILE|URL [--SETTING NUMBER]..");
        return ExitCode::from(2);
    };
    let this = Run { peer: peer.clone(), workload: workload.clone(), settings: settings.clone(), heap: Heap::System };
    let measured = match peer.as_str() {
        "river" => cases::run::<river::River>(&this, store),
        "graphile-worker" => cases::run::<graphile::Graphile>(&this, store),
        _ => cases::run::<apalis::Apalis>(&this, store),
    };
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{peer} {workload}: {why:?}");
            ExitCode::FAILURE
        }
    }
}
