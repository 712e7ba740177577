#!/usr/bin/env bash
# An hourly recurrence rule yields one instant twice when summer time begins, and leaves out an
# hour when it ends.
#
# Guess: FREQ=HOURLY is each hour of real time, or the hour that does not exist is left out.
# Seen: the rule steps through the hours of the wall clock. In spring, 02:30 does not exist and
# becomes 03:30, which comes again as itself. In autumn, 02:30 happens twice and is yielded once.
# Two independent libraries agree. A timer that is armed for each instant fires twice at once.
# Versions: rrule 0.14.0 (Rust), python-dateutil 2.9.0.post0. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q python-dateutil==2.9.0.post0
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
rrule = "=0.14.0"
END
cat > "$dir/src/main.rs" << 'END'
fn main() {
    for start in ["20270328T013000", "20261025T013000"] {
        let text = format!("DTSTART;TZID=Europe/Berlin:{start}\nRRULE:FREQ=HOURLY;COUNT=4");
        let set: rrule::RRuleSet = text.parse().unwrap();
        let hours = set.all(9).dates.into_iter().map(|at| at.to_utc().format("%H:%M").to_string());
        println!("rrule {start}: {}", hours.collect::<Vec<_>>().join(" "));
    }
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
"$dir/venv/bin/python" - >> "$dir/out" << 'END'
from datetime import datetime, timezone
from zoneinfo import ZoneInfo
from dateutil.rrule import HOURLY, rrule

berlin = ZoneInfo("Europe/Berlin")
for start in [datetime(2027, 3, 28, 1, 30), datetime(2026, 10, 25, 1, 30)]:
    times = rrule(HOURLY, dtstart=start.replace(tzinfo=berlin), count=4)
    hours = [at.astimezone(timezone.utc).strftime("%H:%M") for at in times]
    print(f"dateutil {start:%Y%m%dT%H%M%S}:", *hours)
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
rrule 20270328T013000: 00:30 01:30 01:30 02:30
rrule 20261025T013000: 23:30 00:30 02:30 03:30
dateutil 20270328T013000: 00:30 01:30 01:30 02:30
dateutil 20261025T013000: 23:30 00:30 02:30 03:30
END
