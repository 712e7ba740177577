#!/usr/bin/env bash
# A message in turmoil arrives earlier than the smallest latency allows.
#
# Guess: with a latency of exactly 25 ms (smallest and largest), a receiver gets each message 25 ms
# after it was sent, or up to one step later.
# Seen: with steps of 10 ms, messages arrive 22 to 29 ms after they were sent. With a latency of
# 10 ms they arrive after 2 to 9 ms. Hosts send at any time within a step, but the network counts in
# whole steps. The default step of 1 ms hides it, because tokio's timers have whole milliseconds.
# Versions: turmoil 0.7.2, tokio 1.53.1. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
tokio = { version = "=1.53.1", features = ["time"] }
turmoil = "=0.7.2"
END
cat > "$dir/src/main.rs" << 'END'
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use turmoil::net::UdpSocket;

fn run(latency: u64) -> Vec<u128> {
    let latency = Duration::from_millis(latency);
    let mut sim = turmoil::Builder::new()
        .tick_duration(Duration::from_millis(10))
        .min_message_latency(latency)
        .max_message_latency(latency)
        .rng_seed(1)
        .build();
    let took = Rc::new(RefCell::new(Vec::new()));
    let seen = took.clone();
    sim.client("receiver", async move {
        let socket = UdpSocket::bind("0.0.0.0:9").await?;
        let mut sent = [0; 16];
        for _ in 0..5 {
            socket.recv_from(&mut sent).await?;
            let sent = u128::from_be_bytes(sent);
            seen.borrow_mut().push(turmoil::elapsed().as_millis() - sent);
        }
        Ok(())
    });
    sim.client("sender", async {
        let socket = UdpSocket::bind("0.0.0.0:9").await?;
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(137)).await;
            let now = turmoil::elapsed().as_millis();
            socket.send_to(&now.to_be_bytes(), ("receiver", 9)).await?;
        }
        Ok(())
    });
    sim.run().unwrap();
    drop(sim);
    Rc::into_inner(took).unwrap().into_inner()
}

fn main() {
    for latency in [25, 10] {
        println!("latency {latency} ms, received after {:?}", run(latency));
    }
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
latency 25 ms, received after [23, 26, 29, 22, 25]
latency 10 ms, received after [3, 6, 9, 2, 5]
END
