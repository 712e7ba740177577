#!/usr/bin/env bash
# freezegun moves the monotonic clock back, and only under one of its two names.
#
# Guess: `move_to` an earlier day moves the wall clock back. The monotonic clock stands still or
# goes on, because its documentation says that it never goes back. All names of a clock agree.
# Seen: time.monotonic() goes back by the same day, and so does time.perf_counter(). Code that
# subtracts two readings gets a negative time. time.clock_gettime(CLOCK_MONOTONIC) is not faked.
# Versions: freezegun 1.5.5 on Python 3.11. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q freezegun==1.5.5
"$dir/venv/bin/python" > "$dir/out" << 'END'
import time
from freezegun import freeze_time

def clocks():
    return time.monotonic(), time.perf_counter(), time.clock_gettime(time.CLOCK_MONOTONIC)

with freeze_time("2026-01-02") as frozen:
    before = clocks()
    frozen.move_to("2026-01-01")
    for name, then, now in zip(["monotonic", "perf_counter", "clock_gettime"], before, clocks()):
        print(f"{name}: {round(now - then)} s")
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
monotonic: -86400 s
perf_counter: -86400 s
clock_gettime: 0 s
END
