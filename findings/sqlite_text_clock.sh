#!/usr/bin/env bash
# SQLite finds a timer due decades early if its deadline is computed in the comparison.
#
# Guess: `created + delay <= strftime('%s', 'now')` compares numbers, as `due <= strftime('%s',
# 'now')` does on an integer column.
# Seen: strftime gives text. A column turns it into a number, but an expression does not, and every
# number is less than every text. So the condition with the sum is always true. unixepoch() gives a
# number.
# Versions: SQLite 3.50.4 (apsw 3.50.4.0) and 3.40.1. Date: 2026-11. Source: the documentation of
# type affinity.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/pip" install -q apsw==3.50.4.0
"$dir/bin/python" - > "$dir/out" << 'END'
import apsw

print("SQLite", apsw.sqlite_lib_version())
database = apsw.Connection(":memory:")
database.execute("create table timer(created integer, delay integer, due integer)")
database.execute("insert into timer values(4102444800, 60, 4102444860)")  # in the year 2100
for due in ["due", "created + delay", "+due"]:
    for clock in ["strftime('%s', 'now')", "unixepoch()"]:
        count = database.execute(f"select count(*) from timer where {due} <= {clock}").get
        print(f"{due} <= {clock}: {count} due")
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
SQLite 3.50.4
due <= strftime('%s', 'now'): 0 due
due <= unixepoch(): 0 due
created + delay <= strftime('%s', 'now'): 1 due
created + delay <= unixepoch(): 0 due
+due <= strftime('%s', 'now'): 1 due
+due <= unixepoch(): 0 due
END
