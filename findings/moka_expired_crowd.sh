#!/usr/bin/env bash
# One `get` of a moka cache pays for all entries that have expired since the last call.
#
# Guess: a thread of the cache removes expired entries and tells the eviction listener within a
# second, and a `get` is cheap at any time, because its share of the maintenance is bounded.
# Seen: nothing happens without a call, so the listener hears nothing while the cache is idle. The
# next `get` of any key removes all 20,000 entries and takes more than a thousand times as long as
# the following one. With an eviction listener, a call stops after 100 ms and leaves the rest to
# later calls.
# Versions: moka 0.12.16. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
moka = { version = "=0.12.16", features = ["sync"] }
END
cat > "$dir/src/main.rs" << 'END'
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use moka::sync::Cache;

fn time<T>(call: impl FnOnce() -> T) -> Duration {
    let begin = Instant::now();
    call();
    begin.elapsed()
}

fn main() {
    let told = Arc::new(AtomicUsize::new(0));
    let listener = told.clone();
    let cache = Cache::builder()
        .time_to_live(Duration::from_millis(100))
        .eviction_listener(move |_, _, _| _ = listener.fetch_add(1, Ordering::Relaxed))
        .build();
    cache.insert(0, 0);
    sleep(Duration::from_secs(3));
    println!("told while idle: {}", told.load(Ordering::Relaxed));
    cache.get(&-1);
    println!("told after a get: {}", told.load(Ordering::Relaxed));

    let cache = Cache::builder().time_to_live(Duration::from_secs(8)).build();
    (0..20_000).for_each(|key| cache.insert(key, key));
    cache.run_pending_tasks();
    sleep(Duration::from_secs(9));
    let first = time(|| cache.get(&-1));
    let later = (0..5).map(|_| time(|| cache.get(&-1))).min().unwrap();
    eprintln!("first get {first:?}, a later one {later:?}");
    println!("the first is 1,000 times as slow: {}", first > 1_000 * later);
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
told while idle: 0
told after a get: 1
the first is 1,000 times as slow: true
END
