#!/usr/bin/env bash
# pynmea2 gives the time of a leap second as a string.
#
# Guess: 23:59:60, which receivers send in a leap second, is an error of the parser or a time in the
# next minute.
# Seen: the sentence is parsed, but its timestamp is the text of the field instead of a
# datetime.time, and the property `datetime` raises a TypeError. A program that reads only the
# position notices nothing. A program that sets a clock gets an unexpected type once in years.
# Versions: pynmea2 1.19.0. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir"
"$dir/bin/pip" install -q pynmea2==1.19.0
"$dir/bin/python" - > "$dir/out" << 'END'
from functools import reduce
import pynmea2

print("pynmea2", pynmea2.__version__)
for time in ["235959.00", "235960.00", "000000.00"]:
    body = f"GPRMC,{time},A,4807.038,N,01131.000,E,000.0,000.0,311216,,"
    checksum = reduce(lambda sum, char: sum ^ ord(char), body, 0)
    message = pynmea2.parse(f"${body}*{checksum:02X}")
    print(time, type(message.timestamp).__name__, end=", ")
    try:
        print(message.datetime.isoformat())
    except TypeError as error:
        print("TypeError")
END
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
pynmea2 1.19.0
235959.00 time, 2016-12-31T23:59:59+00:00
235960.00 str, TypeError
000000.00 time, 2016-12-31T00:00:00+00:00
END
