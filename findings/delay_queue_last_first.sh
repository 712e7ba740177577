#!/usr/bin/env bash
# Items of tokio-util's DelayQueue with one deadline come out last first, or not, by the delay.
#
# Guess: equal deadlines come out in the order of insertion, or in no order that can be told.
# Seen: ten items that are due in 20 ms come out exactly in reverse. Items that are due in 200 ms or
# 2 s come out in order, and items that are due in 20 s in reverse again. A slot of the wheel is a
# stack. Each move from a level of the wheel to the one below turns the order around, and the delay
# decides how many moves there are.
# Versions: tokio-util 0.7.20, tokio 1.54.1. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
futures = "=0.3.31"
tokio = { version = "=1.54.1", features = ["rt", "test-util", "time"] }
tokio-util = { version = "=0.7.20", features = ["time"] }
END
cat > "$dir/src/main.rs" << 'END'
use std::time::Duration;

use futures::StreamExt;
use tokio::time::Instant;
use tokio_util::time::DelayQueue;

async fn order(delay: u64) -> Vec<u32> {
    let mut queue = DelayQueue::new();
    let deadline = Instant::now() + Duration::from_millis(delay);
    for item in 0..10 {
        queue.insert_at(item, deadline);
    }
    queue.map(|due| due.into_inner()).collect().await
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    for delay in [20, 200, 2_000, 20_000] {
        println!("{delay} ms: {:?}", runtime.block_on(order(delay)));
    }
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
20 ms: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
200 ms: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
2000 ms: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
20000 ms: [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
END
