#!/usr/bin/env bash
# A daily job at 02:30 runs at 03:00 or 03:30, and once or twice, when the clock changes.
#
# Guess: libraries that take the same line and a time zone agree on the two days a year.
# Seen: when summer time begins, croner and croniter run it at 03:00, and cron-parser and
# APScheduler at 03:30. When it ends, croner and cron-parser run it once, and croniter and
# APScheduler twice. The crate cron 0.17.0 does not run it at all on the first day, and twice on the
# second.
# Versions: croner 11.0.1, cron-parser 5.10.6, croniter 7.0.0, APScheduler 3.11.3. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" croner@11.0.1 cron-parser@5.10.6
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q croniter==7.0.0 APScheduler==3.11.3
cat > "$dir/finding.cjs" << 'END'
const { Cron } = require("croner");
const { CronExpressionParser } = require("cron-parser");
const show = (instants, day) => instants
  .map((at) => at.toISOString()).filter((at) => at.startsWith(day)).map((at) => at.slice(11, 16)).join(" ");
for (const [day, start] of [["2027-03-28", "2027-03-27T12:00Z"], ["2026-10-25", "2026-10-24T12:00Z"]]) {
  const croner = new Cron("30 2 * * *", { timezone: "Europe/Berlin" }).nextRuns(3, new Date(start));
  console.log(`${day} croner: ${show(croner, day)} UTC`);
  const options = { currentDate: start, tz: "Europe/Berlin" };
  const parsed = CronExpressionParser.parse("30 2 * * *", options);
  console.log(`${day} cron-parser: ${show([1, 2, 3].map(() => parsed.next().toDate()), day)} UTC`);
}
END
(cd "$dir" && node finding.cjs) > "$dir/out"
"$dir/venv/bin/python" - >> "$dir/out" << 'END'
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo
from apscheduler.triggers.cron import CronTrigger
from croniter import croniter

berlin = ZoneInfo("Europe/Berlin")

def show(name, day, instants):
    all = [at.astimezone(timezone.utc).strftime("%F %H:%M") for at in instants]
    print(f"{day} {name}:", *[at[11:] for at in all if at.startswith(day)], "UTC")

def fire_times(now):
    trigger, last = CronTrigger.from_crontab("30 2 * * *", timezone=berlin), None
    for _ in range(3):
        last = trigger.get_next_fire_time(last, now)
        now = last.astimezone(timezone.utc) + timedelta(seconds=1)
        yield last

for day, start in [("2027-03-28", datetime(2027, 3, 27, 13)), ("2026-10-25", datetime(2026, 10, 24, 14))]:
    start = start.replace(tzinfo=berlin)
    steps = croniter("30 2 * * *", start)
    show("croniter", day, [steps.get_next(datetime) for _ in range(3)])
    show("APScheduler", day, fire_times(start.astimezone(timezone.utc)))
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
2027-03-28 croner: 01:00 UTC
2027-03-28 cron-parser: 01:30 UTC
2026-10-25 croner: 00:30 UTC
2026-10-25 cron-parser: 00:30 UTC
2027-03-28 croniter: 01:00 UTC
2027-03-28 APScheduler: 01:30 UTC
2026-10-25 croniter: 00:30 01:30 UTC
2026-10-25 APScheduler: 00:30 01:30 UTC
END
