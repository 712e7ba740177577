#!/usr/bin/env bash
# A one-time job of APScheduler whose date is two seconds past is dropped and never runs.
#
# Guess: a job that is already due runs at once, as a job that is half a second late does.
# Seen: a job that is late by more than misfire_grace_time, by default one second, is removed
# without a run. add_job returns a job as always, and only a warning in the log reports the loss. A
# scheduler that was down for two seconds thus loses its one-time jobs.
# Versions: APScheduler 3.11.3. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/pip" install -q APScheduler==3.11.3
"$dir/bin/python" - > "$dir/out" << 'END'
import datetime
import logging
import time
import apscheduler
from apscheduler.schedulers.background import BackgroundScheduler

print("APScheduler", apscheduler.__version__)
logging.getLogger("apscheduler").setLevel(logging.CRITICAL)
scheduler = BackgroundScheduler(timezone="UTC")
scheduler.start()
ran = []
for late in [0, 0.5, 2, 3600]:
    at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=late)
    scheduler.add_job(ran.append, "date", run_date=at, args=[late])
time.sleep(1)
print("ran:", sorted(ran), "left:", len(scheduler.get_jobs()))
scheduler.shutdown()
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
APScheduler 3.11.3
ran: [0, 0.5] left: 0
END
