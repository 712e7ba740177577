//! Ten years of virtual time with a million timeouts. Each must run exactly at its deadline, on
//! both wheels, whether time hops from expiry to expiry or jumps over months.
//!
//! The full size needs a release build. `cargo xtask stress --ten-years` uses another seed in each
//! run.

mod model;
mod world;

use crate::support::random::{Draw, Rng};
use crate::support::settings;
use model::Kind;
use std::time::Instant;
use timer_core::WheelKind;
use world::Run;

const TIMEOUTS: usize = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

const MICRO: u64 = 1_000;
const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
const YEAR: u64 = 365 * DAY;

/// The number of timeouts that are moved again and again.
const IDLE: usize = 256;
/// The number of rounds between two long jumps. A round has 16 such moves, some hops and a short
/// jump.
const ROUNDS: usize = if cfg!(debug_assertions) { 4 } else { 16 };
/// The last time to schedule. Deadlines are exact for 18 years, so all timeouts run at exact ones.
const LAST_CALL: u64 = 7 * YEAR;

const WHEELS: [WheelKind; 2] = [WheelKind::Hierarchical, WheelKind::Hashed { ticks_per_wheel: 1 << 14 }];

#[test]
fn a_million_timeouts_are_exact_to_the_nanosecond() {
    let seed = settings::seed();
    for wheel in WHEELS {
        let begun = Instant::now();
        let run = ten_years(wheel, seed);
        let (model, Run { jumps, hops, empty_hops, .. }) = (run.world.model(), &run);
        println!(
            "{wheel:?}: {} timeouts, {} runs, {} cancelled, {} resets; {jumps} jumps, {hops} hops, of which {empty_hops} for \
             nothing; {:.1} s",
            model.len(),
            model.runs,
            model.cancelled,
            model.resets,
            begun.elapsed().as_secs_f64(),
        );
        assert!(model.len() >= TIMEOUTS && model.cancelled as usize > TIMEOUTS / 20 && model.resets > 300);
    }
}

fn ten_years(wheel: WheelKind, seed: u64) -> Run {
    let mut random = Rng::with_seed(seed);
    let edges = edges().filter(|edge| *edge < 10 * YEAR);
    let mut run = Run::new(wheel, edges.clone().flat_map(beside));
    for at in edges.flat_map(beside) {
        run.schedule(at, Kind::Once);
    }
    for n in 0..TIMEOUTS / 2_000 {
        let period = log_uniform(&mut random, 6 * HOUR, YEAR);
        run.schedule(
            log_uniform(&mut random, MICRO, YEAR),
            if n % 2 == 0 { Kind::Rate(period) } else { Kind::Delay(period) },
        );
    }
    let mut idle = [(); IDLE].map(|()| run.schedule(30 * SECOND, Kind::Once));
    let batch = TIMEOUTS / 800;
    schedule(&run, &mut random, TIMEOUTS / 2);
    while run.now() < 10 * YEAR {
        // The last call schedules all timeouts that are left.
        let left = TIMEOUTS.saturating_sub(run.world.model().len());
        schedule(&run, &mut random, if run.now() < LAST_CALL { batch.min(left) } else { left });
        for _ in 0..batch {
            let some = random.usize(..run.world.model().len());
            let later = run.world.model().from(run.now() + log_uniform(&mut random, MICRO, YEAR));
            run.world.cancel(if random.one_in(8) { some } else { later.unwrap_or(some) });
        }
        for _ in 0..ROUNDS {
            // A message came from a peer, so its timeout is moved.
            for _ in 0..16 {
                let idle = &mut idle[random.usize(..IDLE)];
                let delay = log_uniform(&mut random, 30 * SECOND, 30 * DAY);
                if !run.world.reset(*idle, run.now(), delay) {
                    *idle = run.schedule(delay, Kind::Once);
                }
            }
            let hops = if run.now() < DAY { batch } else { 32 };
            for _ in 0..random.usize(..hops) {
                run.hop();
            }
            run.jump(log_uniform(&mut random, MICRO, HOUR));
        }
        if run.now() > HOUR {
            run.jump(log_uniform(&mut random, SECOND, 90 * DAY));
        }
    }
    let periodic = run.world.model().periodic();
    periodic.into_iter().for_each(|id| run.world.cancel(id));
    run.run_dry();
    run
}

fn schedule(run: &Run, random: &mut Rng, amount: usize) {
    for _ in 0..amount {
        let kind = if random.one_in(16) { Kind::Link(log_uniform(random, MICRO, 100 * DAY)) } else { Kind::Once };
        run.schedule(log_uniform(random, MICRO, 10 * YEAR), kind);
    }
}

/// Draws from `least` up to about `most`, every magnitude with the same probability.
fn log_uniform(random: &mut Rng, least: u64, most: u64) -> u64 {
    let magnitudes = (most as f64 / least as f64).log2();
    let exponent = magnitudes * random.f64();
    // The low digits are drawn separately, so that every nanosecond is possible.
    ((least as f64 * exponent.exp2()) as u64 + random.u64(..1_000)).min(most)
}

/// Returns uptimes at which a counter or a calendar ends: 30, 31, 32, 53 and 63 bits in several
/// units (2^30 ms are 12.4 days, 2^32 ms are 49.7), leap days and years, and each level of a wheel.
fn edges() -> impl Iterator<Item = u64> + Clone {
    let counters = [1, MICRO, MILLI, SECOND].into_iter().flat_map(|unit| {
        let bits = [30, 31, 32, 53, 63].into_iter().filter(move |bits| (unit << bits) >> bits == unit);
        bits.map(move |bits| unit << bits)
    });
    let days = [59, 60, 365, 366, 1_460, 1_461, 3_652, 3_653].into_iter().map(|days| days * DAY);
    let levels = (30..=62).map(|bits| 1 << bits);
    counters.chain(days).chain(levels)
}

fn beside(edge: u64) -> impl Iterator<Item = u64> + Clone {
    [edge - MILLI, edge - 1, edge, edge + 1, edge + MILLI].into_iter()
}

#[test]
fn timeouts_are_exact_at_every_edge_of_292_years() {
    for wheel in WHEELS {
        let mut afar = Run::new(wheel, []);
        for edge in edges() {
            beside(edge).for_each(|at| _ = afar.schedule(at, Kind::Once));
            // The uptime starts just before the edge, where the wheel is near the end of its
            // levels.
            let mut near = Run::new(wheel, []);
            near.jump(edge - SECOND);
            let now = near.now();
            beside(edge).for_each(|at| _ = near.schedule(at - now, Kind::Link(at % SECOND)));
            near.run_dry();
        }
        afar.run_dry();
    }
}
