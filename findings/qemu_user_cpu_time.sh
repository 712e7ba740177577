#!/usr/bin/env bash
# A program under qemu-user that reads its CPU time in /proc sees none.
#
# Guess: /proc/self/stat is that of the emulator's process, so its CPU times are those of the
# program and of the emulation.
# Seen: qemu makes the file itself. The program has 0 ticks of CPU time in user and system mode and
# no thread, after a third of a second of work. `clock` and `getrusage` tell the truth.
# Versions: qemu-user-static 7.2+dfsg-7+deb12u18+b3 of Debian 12, which runs a program of the same
# machine. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir"
(cd "$dir" && apt-get -qq download qemu-user-static=1:7.2+dfsg-7+deb12u18+b3 2> /dev/null)
dpkg -x "$dir"/qemu-user-static_*.deb "$dir"
cat > "$dir/cpu.c" << 'END'
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void) {
    while (clock() < CLOCKS_PER_SEC / 3) {
    }
    char line[4096];
    fgets(line, sizeof line, fopen("/proc/self/stat", "r"));
    long user, system, threads;
    sscanf(strrchr(line, ')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %*d %*d %*d %*d %ld", &user,
           &system, &threads);
    printf("CPU time in /proc/self/stat: %s, threads: %ld\n", user + system > 0 ? "some" : "none", threads);
    return 0;
}
END
cc -O1 -static "$dir/cpu.c" -o "$dir/cpu" 2> /dev/null
("$dir/cpu" && "$dir/usr/bin/qemu-$(uname -m)-static" "$dir/cpu") > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
CPU time in /proc/self/stat: some, threads: 1
CPU time in /proc/self/stat: none, threads: 0
END
