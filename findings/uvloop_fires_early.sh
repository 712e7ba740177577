#!/usr/bin/env bash
# uvloop rounds a delay to the nearest millisecond, so a callback runs up to half a millisecond
# early.
#
# Guess: call_later(0.0014, f) runs f after 1.4 ms or later, as asyncio's own loop does.
# Seen: 0.4 ms is rounded to nothing and 1.4 ms to 1 ms, and nearly all calls are early. asyncio's
# own loop is never early.
# Versions: uvloop 0.23.0, Python 3.11. Date: 2026-11. Source: seen when ten timers were compared.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/pip" install -q uvloop==0.23.0
"$dir/bin/python" - > "$dir/out" << 'END'
import asyncio
import time
import uvloop

async def early(delay):
    """Counts the callbacks of 100 that run before their delay is over."""
    loop, count = asyncio.get_running_loop(), 0
    for _ in range(100):
        ran = loop.create_future()
        begin = time.perf_counter()
        loop.call_later(delay, lambda: ran.set_result(time.perf_counter()))
        count += await ran - begin < delay
    return count

async def both():
    return [await early(0.0004), await early(0.0014)]

print("uvloop", uvloop.__version__)
print("asyncio, early:", asyncio.run(both()))
print("uvloop, most are early:", [count > 50 for count in uvloop.run(both())])
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
uvloop 0.23.0
asyncio, early: [0, 0]
uvloop, most are early: [True, True]
END
