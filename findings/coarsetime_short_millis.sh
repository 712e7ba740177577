#!/usr/bin/env bash
# Milliseconds of coarsetime are 2.3 % short.
#
# Guess: the crate reads a coarse clock, but its durations have fractions of 2^-32 s, so 999 ms are
# 999 ms to a nanosecond, and ten times 100 ms are a second.
# Seen: below a second, a millisecond is 1/1024 s. 999 ms are 975.6 ms, and a second is 24 ms more.
# Whole seconds are exact. A timeout of 900 ms that is compared with `elapsed` ends 21 ms early.
# Versions: coarsetime 0.1.38. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
coarsetime = "=0.1.38"
END
cat > "$dir/src/main.rs" << 'END'
use coarsetime::Duration;

fn main() {
    for millis in [1, 999, 1_000, 1_500] {
        let duration = Duration::from_millis(millis);
        println!("{millis} ms: {:?}, {} ms", std::time::Duration::from(duration), duration.as_millis());
    }
    println!("ten times 100 ms is a second: {}", Duration::from_millis(100) * 10 == Duration::from_secs(1));
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
1 ms: 976.562µs, 0 ms
999 ms: 975.585937ms, 975 ms
1000 ms: 1s, 1000 ms
1500 ms: 1.48828125s, 1488 ms
ten times 100 ms is a second: false
END
