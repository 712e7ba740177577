#!/usr/bin/env bash
# Two model checkers never let a timed wait of a condition variable time out.
#
# Guess: `Condvar::wait_timeout` has two outcomes, notified and timed out, and a checker explores
# both, because nobody knows how long the other thread takes.
# Seen: in loom, in shuttle's 10,000 random runs and in its complete search, each wait ends by the
# notification. The code after a timeout is never checked, and the tests pass.
# Versions: loom 0.7.3, shuttle 0.8.1. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
loom = "=0.7.3"
shuttle = "=0.8.1"
END
cat > "$dir/src/main.rs" << 'END'
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

static SEEN: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());

macro_rules! model {
    ($checker:ident) => {{
        use $checker::sync::{Arc, Condvar, Mutex};
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let other = shared.clone();
        let thread = $checker::thread::spawn(move || {
            *other.0.lock().unwrap() = true;
            other.1.notify_one();
        });
        let guard = shared.0.lock().unwrap();
        let outcome = if *guard {
            "no wait"
        } else {
            let limit = Duration::from_nanos(1);
            let (_guard, result) = shared.1.wait_timeout(guard, limit).unwrap();
            if result.timed_out() { "timed out" } else { "notified" }
        };
        SEEN.lock().unwrap().insert(outcome);
        thread.join().unwrap();
    }};
}

fn report(checker: &str) {
    println!("{checker}: {:?}", std::mem::take(&mut *SEEN.lock().unwrap()));
}

fn main() {
    loom::model(|| model!(loom));
    report("loom");
    shuttle::check_random(|| model!(shuttle), 10_000);
    report("shuttle, random");
    shuttle::check_dfs(|| model!(shuttle), None);
    report("shuttle, complete");
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out" 2> "$dir/err" || cat "$dir/err"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
loom: {"no wait", "notified"}
shuttle, random: {"no wait", "notified"}
shuttle, complete: {"no wait", "notified"}
END
