#!/usr/bin/env bash
# A ticker of crossbeam-channel loses its phase when it is polled.
#
# Guess: a ticker of 100 ms ticks at multiples of 100 ms from its creation, as Go's does. A program
# that looks every 30 ms sees a tick at most 30 ms late and gets about 29 of them in 3 s.
# Seen: `try_recv` sets the next tick to one period from the call, so each late look delays all
# later ticks. The program gets 24 or 25 ticks, and their instants are about 500 ms behind after
# 2.5 s. A ticker that a thread waits for in `recv` keeps its phase.
# Versions: crossbeam-channel 0.5.17. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
crossbeam-channel = "=0.5.17"
END
cat > "$dir/src/main.rs" << 'END'
use std::thread::sleep;
use std::time::{Duration, Instant};

use crossbeam_channel::tick;

const PERIOD: Duration = Duration::from_millis(100);

/// Returns the time by which the last tick is behind its place, after 24 of them.
fn behind(mut next: impl FnMut() -> Instant, begin: Instant) -> Duration {
    let last = (0..24).map(|_| next()).last().unwrap();
    (last - begin).saturating_sub(24 * PERIOD)
}

fn main() {
    let ticker = tick(PERIOD);
    let waited = behind(|| ticker.recv().unwrap(), Instant::now());

    let ticker = tick(PERIOD);
    let poll = || loop {
        if let Ok(at) = ticker.try_recv() {
            return at;
        }
        sleep(Duration::from_millis(30));
    };
    let polled = behind(poll, Instant::now());
    eprintln!("behind after 24 ticks: {waited:?} with recv, {polled:?} with try_recv");
    println!("with recv, more than half a period behind: {}", waited > PERIOD / 2);
    println!("with try_recv, more than three periods behind: {}", polled > 3 * PERIOD);
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
with recv, more than half a period behind: false
with try_recv, more than three periods behind: true
END
