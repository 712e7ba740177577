#!/usr/bin/env bash
# APScheduler's from_crontab reads day 0 as Monday.
#
# Guess: `0 0 * * 0` is midnight on Sunday, as in every crontab. The function is named after it.
# Seen: it is Monday, 6 is Sunday, and 7 is an error. Names of days are right.
# Versions: APScheduler 3.11.3. Date: 2026-11. Source: a note in the function's documentation.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/pip" install -q APScheduler==3.11.3
"$dir/bin/python" - > "$dir/out" << 'END'
import datetime
import apscheduler
from apscheduler.triggers.cron import CronTrigger

print("APScheduler", apscheduler.__version__)
start = datetime.datetime(2026, 11, 1, 12, tzinfo=datetime.timezone.utc)
for day in ["0", "6", "7", "sun"]:
    try:
        trigger = CronTrigger.from_crontab(f"0 0 * * {day}", timezone="UTC")
        print(day, trigger.get_next_fire_time(None, start).strftime("%A"))
    except ValueError as error:
        print(day, type(error).__name__)
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
APScheduler 3.11.3
0 Monday
6 Sunday
7 ValueError
sun Sunday
END
