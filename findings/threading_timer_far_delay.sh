#!/usr/bin/env bash
# A threading.Timer with a delay that is too long starts, and then ends without a run.
#
# Guess: a delay of 317 years is refused by the constructor or by start(), or the timer waits.
# Seen: both calls return. The thread raises an OverflowError, which goes to standard error, and the
# timer is dead within a moment. The greatest delay is threading.TIMEOUT_MAX, which is 292 years.
# Versions: Python 3.11. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/python" - > "$dir/out" << 'END'
import threading

errors = []
threading.excepthook = lambda failed: errors.append(failed.exc_type.__name__)
for delay in [threading.TIMEOUT_MAX, 1e10]:
    errors.clear()
    timer = threading.Timer(delay, print)
    timer.daemon = True
    timer.start()
    timer.join(1)
    print(f"{delay / 365.25 / 86400:.0f} years: waits {timer.is_alive()}, in the thread {errors}")
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
292 years: waits True, in the thread []
317 years: waits False, in the thread ['OverflowError']
END
