#!/usr/bin/env bash
# The iterator of the crate cron goes back in time in the hour that summer time repeats.
#
# Guess: `after(..)` yields ascending instants, so a scheduler sleeps until the next one and then
# takes the next.
# Seen: on the last Sunday of October in Berlin, `*/30 1-3` yields 02:00 of both passes before 02:30
# of both. The third difference is minus half an hour, so a scheduler that sleeps for the
# difference, as a duration of std, fails or does not sleep.
# Versions: cron 0.17.0, chrono-tz 0.10.4. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
chrono = "=0.4.42"
chrono-tz = "=0.10.4"
cron = "=0.17.0"
END
cat > "$dir/src/main.rs" << 'END'
use std::str::FromStr;

use chrono::TimeZone;
use chrono_tz::Europe::Berlin;

fn main() {
    let schedule = cron::Schedule::from_str("0 */30 1-3 * * *").unwrap();
    let midnight = Berlin.with_ymd_and_hms(2026, 10, 25, 0, 0, 0).unwrap();
    let instants: Vec<_> = schedule.after(&midnight).take(8).collect();
    for instant in &instants {
        println!("{} is {}", instant.format("%H:%M %:z"), instant.to_utc().format("%H:%M"));
    }
    let steps = instants.windows(2).map(|pair| (pair[1] - pair[0]).num_minutes());
    println!("steps in minutes: {:?}", steps.collect::<Vec<_>>());
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
01:00 +02:00 is 23:00
01:30 +02:00 is 23:30
02:00 +02:00 is 00:00
02:00 +01:00 is 01:00
02:30 +02:00 is 00:30
02:30 +01:00 is 01:30
03:00 +01:00 is 02:00
03:30 +01:00 is 02:30
steps in minutes: [30, 30, 60, -30, 60, 30, 30]
END
