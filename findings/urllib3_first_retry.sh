#!/usr/bin/env bash
# urllib3 waits nothing before the first retry, and twice the factor before the second one.
#
# Guess: backoff_factor=1 waits 1, 2, 4 and 8 s.
# Seen: 0, 2, 4 and 8 s. The first retry follows at once, and no wait is as long as the factor.
# The greatest wait is 120 s by default, which cuts larger factors.
# Versions: urllib3 2.8.0. Date: 2026-11. Source: the formula in the documentation of Retry.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/pip" install -q urllib3==2.8.0
"$dir/bin/python" - > "$dir/out" << 'END'
import urllib3
from urllib3.exceptions import ProtocolError

print("urllib3", urllib3.__version__)
for factor in [1, 0.5, 40]:
    retry, waits = urllib3.Retry(total=5, backoff_factor=factor), []
    for _ in range(4):
        retry = retry.increment(method="GET", url="/", error=ProtocolError("closed"))
        waits.append(float(retry.get_backoff_time()))
    print(f"factor {factor}: {waits}")
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
urllib3 2.8.0
factor 1: [0.0, 2.0, 4.0, 8.0]
factor 0.5: [0.0, 1.0, 2.0, 4.0]
factor 40: [0.0, 80.0, 120.0, 120.0]
END
