#!/usr/bin/env bash
# The crate cron joins day and weekday by "and", and its weekday 1 is Sunday.
#
# Guess: `13 * 5` means each 13th and each Friday, as in every crontab, and weekday 5 is Friday.
# Seen: it means each 13th that is also the fifth day of a week that begins on Sunday, a Thursday.
# The crate croner agrees with a crontab. A line that is moved from one to the other runs on other
# days.
# Versions: cron 0.17.0, croner 4.0.3. Date: 2026-11.
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
cron = "=0.17.0"
croner = "=4.0.3"
END
cat > "$dir/src/main.rs" << 'END'
use std::str::FromStr;

use chrono::{TimeZone, Utc};

fn main() {
    let start = Utc.with_ymd_and_hms(2026, 11, 1, 12, 0, 0).unwrap();
    let line = "0 0 0 13 * 5";
    let days = |all: &mut dyn Iterator<Item = chrono::DateTime<Utc>>| {
        all.take(4).map(|at| at.format("%a %F").to_string()).collect::<Vec<_>>()
    };
    let schedule = cron::Schedule::from_str(line).unwrap();
    println!("cron {:?}", days(&mut schedule.after(&start)));
    let schedule = croner::Cron::from_str("0 0 13 * 5").unwrap();
    let forward = croner::Direction::Forward;
    println!("croner {:?}", days(&mut schedule.iter_from(start, forward)));
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
cron ["Thu 2027-05-13", "Thu 2028-01-13", "Thu 2028-04-13", "Thu 2028-07-13"]
croner ["Fri 2026-11-06", "Fri 2026-11-13", "Fri 2026-11-20", "Fri 2026-11-27"]
END
