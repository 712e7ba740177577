#!/usr/bin/env bash
# parse-duration reads 1:30 as a millisecond and 30 microseconds.
#
# Guess: 1:30 is a minute and a half, an hour and a half, or null, which other texts give.
# Seen: each number is a part of its own. A number without a unit counts milliseconds, or the unit
# that is smaller than that of the part before. Other characters between the parts are ignored, even
# a sign. A timeout that is configured as 1:30 ends after a millisecond, without an error.
# Versions: parse-duration 2.1.9, Node 20. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" parse-duration@2.1.9
cat > "$dir/finding.mjs" << 'END'
import parse from "parse-duration";
for (const text of ["1h30m", "1:30", "1h-30m", "2 hours, 3", "1M"]) {
  console.log(`${text}: ${parse(text)} ms`);
}
END
(cd "$dir" && node finding.mjs) > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
1h30m: 5400000 ms
1:30: 1.03 ms
1h-30m: 5400000 ms
2 hours, 3: 7380000 ms
1M: 60000 ms
END
