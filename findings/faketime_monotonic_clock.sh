#!/usr/bin/env bash
# faketime turns the monotonic clock into the wall clock, even with an offset of zero.
#
# Guess: `faketime -f +1h` moves the wall clock, and the monotonic clock either moves by an hour as
# well or goes on as before. With `-f +0` nothing changes.
# Seen: the monotonic clock, the raw one and that of CLOCK_BOOTTIME show the faked wall clock, about
# 56 years instead of the time since the start of the machine. `--exclude-monotonic` leaves them
# alone. The kernel is not told, so a program that computes the end of a wait on this clock itself
# and passes it to the kernel asks for decades.
# Versions: libfaketime 0.9.10-2.1 of Debian 12. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
(cd "$dir" && apt-get -qq download libfaketime=0.9.10-2.1 2> /dev/null)
dpkg -x "$dir"/libfaketime_*.deb "$dir"
library=$(find "$dir" -name libfaketime.so.1)
cat > "$dir/clocks.py" << 'END'
import sys
import time

wall = time.time()
for name in ["MONOTONIC", "MONOTONIC_RAW", "BOOTTIME"]:
    clock = time.clock_gettime(getattr(time, f"CLOCK_{name}"))
    print(f"{sys.argv[1]}: {name} is the wall clock: {abs(clock - wall) < 1}")
END
for offset in +0 +1h; do
    LD_PRELOAD=$library FAKETIME=$offset python3 "$dir/clocks.py" $offset
done > "$dir/out"
LD_PRELOAD=$library FAKETIME=+1h FAKETIME_DONT_FAKE_MONOTONIC=1 python3 "$dir/clocks.py" excluded >> "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
+0: MONOTONIC is the wall clock: True
+0: MONOTONIC_RAW is the wall clock: True
+0: BOOTTIME is the wall clock: True
+1h: MONOTONIC is the wall clock: True
+1h: MONOTONIC_RAW is the wall clock: True
+1h: BOOTTIME is the wall clock: True
excluded: MONOTONIC is the wall clock: False
excluded: MONOTONIC_RAW is the wall clock: False
excluded: BOOTTIME is the wall clock: False
END
