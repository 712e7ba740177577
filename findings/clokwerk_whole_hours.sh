#!/usr/bin/env bash
# clokwerk's every(1.hour()) runs at whole hours of the clock, and every(45.minutes()) first after
# ten.
#
# Guess: an interval counts from the call, so the first run of every(1.hour()) is an hour later.
# Seen: a job that is added at 10:20:30 runs at 11:00. With 45 minutes it runs at 10:30, because 45
# minutes are counted from midnight. A process that restarts each half hour still runs such jobs,
# and all processes run them at the same moment.
# Versions: clokwerk 0.4.0. Date: 2026-11.
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
clokwerk = "=0.4.0"
END
cat > "$dir/src/main.rs" << 'END'
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc;

use chrono::{DateTime, TimeZone, Utc};
use clokwerk::timeprovider::TimeProvider;
use clokwerk::{Interval, Scheduler};

/// A clock that the program sets.
struct Clock;

static NOW: AtomicI64 = AtomicI64::new(0);

impl TimeProvider for Clock {
    fn now<Tz: TimeZone + Sync + Send>(zone: &Tz) -> DateTime<Tz> {
        Utc.timestamp_opt(NOW.load(Ordering::Relaxed), 0).unwrap().with_timezone(zone)
    }
}

fn main() {
    let start = Utc.with_ymd_and_hms(2026, 11, 2, 10, 20, 30).unwrap().timestamp();
    for every in [Interval::Hours(1), Interval::Minutes(45), Interval::Days(1)] {
        NOW.store(start, Ordering::Relaxed);
        let mut scheduler: Scheduler<Utc, Clock> = Scheduler::with_tz_and_provider(Utc);
        let (ran, runs) = mpsc::channel();
        scheduler.every(every).run(move || ran.send(Clock::now(&Utc)).unwrap());
        for second in 0..86_400 {
            NOW.store(start + second, Ordering::Relaxed);
            scheduler.run_pending();
        }
        let first: Vec<_> = runs.try_iter().take(2).map(|at| at.format("%T").to_string()).collect();
        println!("{every:?}: {first:?}");
    }
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
Hours(1): ["11:00:00", "12:00:00"]
Minutes(45): ["10:30:00", "11:15:00"]
Days(1): ["00:00:00"]
END
