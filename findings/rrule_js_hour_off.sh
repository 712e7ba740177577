#!/usr/bin/env bash
# The npm package rrule is an hour off in the first hours of the days on which summer time begins
# and ends.
#
# Guess: with a TZID, the instants are right, or they are the local time marked as UTC, as the
# README warns.
# Seen: with the process in UTC, the instants are right except in the hours before the change of the
# clock. On the last Sunday of March, 01:30 in Berlin is 00:30 UTC, and the package says 23:30. In
# October it says 00:30 for 23:30. The offset is looked up at the local time as if it were UTC.
# Versions: rrule 2.8.1, Node 20. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" rrule@2.8.1
cat > "$dir/finding.cjs" << 'END'
const { rrulestr } = require("rrule");
for (const day of ["20270327", "20270328", "20270329", "20261024", "20261025", "20261026"]) {
  const rule = `DTSTART;TZID=Europe/Berlin:${day}T013000\nRRULE:FREQ=DAILY;COUNT=1`;
  console.log(day, "01:30 in Berlin is", rrulestr(rule).all()[0].toISOString().slice(0, 16));
}
END
TZ=UTC node "$dir/finding.cjs" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
20270327 01:30 in Berlin is 2027-03-27T00:30
20270328 01:30 in Berlin is 2027-03-27T23:30
20270329 01:30 in Berlin is 2027-03-28T23:30
20261024 01:30 in Berlin is 2026-10-23T23:30
20261025 01:30 in Berlin is 2026-10-25T00:30
20261026 01:30 in Berlin is 2026-10-26T00:30
END
