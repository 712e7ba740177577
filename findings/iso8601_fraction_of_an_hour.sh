#!/usr/bin/env bash
# The crate iso8601 reads PT1.5H as a duration of zero.
#
# Guess: the result is an hour and a half, or an error if fractions are supported for seconds only.
# Seen: the result is Ok with a duration of zero. `P0.5D` is an error. A timer that is configured
# with PT1.5H fires at once. The crate iso8601-duration reads both.
# Versions: iso8601 0.6.6, iso8601-duration 0.2.0. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
iso8601 = "=0.6.6"
iso8601-duration = "=0.2.0"
END
cat > "$dir/src/main.rs" << 'END'
use std::time::Duration;

fn main() {
    for text in ["PT1H30M", "PT1.5H", "PT0.5S", "P0.5D"] {
        let one = iso8601::duration(text).ok().map(Duration::from);
        let other = text.parse::<iso8601_duration::Duration>().ok().and_then(|all| all.to_std());
        println!("{text}: iso8601 {one:?}, iso8601-duration {other:?}");
    }
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
PT1H30M: iso8601 Some(5400s), iso8601-duration Some(5400s)
PT1.5H: iso8601 Some(0ns), iso8601-duration Some(5400s)
PT0.5S: iso8601 Some(500ms), iso8601-duration Some(500ms)
P0.5D: iso8601 None, iso8601-duration Some(43200s)
END
