#!/usr/bin/env bash
# asyncio.timeout counts from its call, trio's move_on_after from the entry of its block.
#
# Guess: the limit of `async with limit:` counts from the entry in both, because the object does
# nothing before it is entered.
# Seen: a limit of 300 ms that is made 200 ms before it is entered leaves 100 ms in asyncio and in
# anyio, and 300 ms in trio. A limit that a constructor makes has run out before it is used.
# Versions: Python 3.11, anyio 4.16.0, trio 0.35.0. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/pip" install -q trio==0.35.0 anyio==4.16.0
"$dir/bin/python" - > "$dir/out" << 'END'
import asyncio
import time
import anyio
import trio

def rounded(begin):
    return f"{round((time.monotonic() - begin) * 10) * 100} ms"

async def with_asyncio():
    limit = asyncio.timeout(0.3)
    await asyncio.sleep(0.2)
    begin = time.monotonic()
    try:
        async with limit:
            await asyncio.sleep(5)
    except TimeoutError:
        print("asyncio", rounded(begin))

async def with_anyio():
    limit = anyio.move_on_after(0.3)
    await anyio.sleep(0.2)
    begin = time.monotonic()
    with limit:
        await anyio.sleep(5)
    print("anyio", rounded(begin))

async def with_trio():
    limit = trio.move_on_after(0.3)
    await trio.sleep(0.2)
    begin = time.monotonic()
    with limit:
        await trio.sleep(5)
    print("trio", rounded(begin))

asyncio.run(with_asyncio())
asyncio.run(with_anyio())
trio.run(with_trio)
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
asyncio 100 ms
anyio 100 ms
trio 300 ms
END
