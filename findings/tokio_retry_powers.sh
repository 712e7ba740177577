#!/usr/bin/env bash
# tokio-retry's ExponentialBackoff::from_millis(100) waits 100 ms, 10 s, 1,000 s and 28 hours.
#
# Guess: it doubles, that is 100, 200, 400 and 800 ms, as the crate retry does under the same
# name.
# Seen: the argument is the base of the powers and not the first wait. With 500, the second wait
# is more than four minutes. from_millis(2).factor(100) doubles from 200 ms.
# Versions: tokio-retry 0.3.0, retry 2.2.0. Date: 2026-11. Source: the documentation of the
# constructor.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
tokio-retry = "=0.3.0"
retry = "=2.2.0"
END
cat > "$dir/src/main.rs" << 'END'
use tokio_retry::strategy::ExponentialBackoff;

fn main() {
    let retry = retry::delay::Exponential::from_millis(100).take(4);
    println!("retry {:?}", retry.collect::<Vec<_>>());
    for (base, factor) in [(100, 1), (500, 1), (2, 100)] {
        let waits = ExponentialBackoff::from_millis(base).factor(factor).take(4);
        println!("tokio-retry {base}, factor {factor}: {:?}", waits.collect::<Vec<_>>());
    }
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
retry [100ms, 200ms, 400ms, 800ms]
tokio-retry 100, factor 1: [100ms, 10s, 1000s, 100000s]
tokio-retry 500, factor 1: [500ms, 250s, 125000s, 62500000s]
tokio-retry 2, factor 100: [200ms, 400ms, 800ms, 1.6s]
END
