#!/usr/bin/env bash
# Timers of libev and libuv that are set after a callback has worked run at once.
#
# Guess: a timer of 50 ms runs 50 ms after the call that sets it, or later.
# Seen: both loops read the clock once a turn, and the delay counts from that reading. After a
# callback that worked for 100 ms, a timer of 50 ms is already over. libev runs it at once. libuv
# first waits for 50 ms if it has nothing else to do, and runs it at once if another handle is
# ready. ev_now_update and uv_update_time prevent it.
# Versions: libev 4.33, libuv 1.44.2 (Debian 12). Date: 2026-11. Source: the manuals of both.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
apt-get download -qq libev-dev libev4 libuv1-dev libuv1
for package in *.deb; do dpkg -x "$package" .; done
lib=$dir/usr/lib/$(uname -m)-linux-gnu
cat > clock.h << 'END'
#include <stdio.h>
#include <time.h>
static double begin;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}
static void work(double ms) { for (double end = now() + ms; now() < end;) {} }
static void report(const char *name) {
    printf("%s: 50 ms took less than 10 ms: %s\n", name, now() - begin < 10 ? "yes" : "no");
}
END
cat > ev.c << 'END'
#include <ev.h>
#include "clock.h"
static ev_timer first, second;
static void fired(EV_P_ ev_timer *timer, int events) { report("libev"); }
static void busy(EV_P_ ev_timer *timer, int events) {
    work(100);
    begin = now();
    ev_timer_init(&second, fired, 0.05, 0);
    ev_timer_start(EV_A_ &second);
}
int main(void) {
    printf("libev %d.%d\n", ev_version_major(), ev_version_minor());
    ev_timer_init(&first, busy, 0.001, 0);
    ev_timer_start(EV_DEFAULT_ &first);
    ev_run(EV_DEFAULT_ 0);
}
END
cat > uv.c << 'END'
#include <uv.h>
#include "clock.h"
static uv_timer_t first, second;
static uv_idle_t ready;
static void fired(uv_timer_t *timer) { report("libuv"); uv_idle_stop(&ready); }
static void nothing(uv_idle_t *idle) {}
static void busy(uv_timer_t *timer) {
    uv_idle_start(&ready, nothing);
    work(100);
    begin = now();
    uv_timer_start(&second, fired, 50, 0);
}
int main(void) {
    printf("libuv %s\n", uv_version_string());
    uv_timer_init(uv_default_loop(), &first);
    uv_timer_init(uv_default_loop(), &second);
    uv_idle_init(uv_default_loop(), &ready);
    uv_timer_start(&first, busy, 1, 0);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
END
for name in ev uv; do
    cc -w -Iusr/include "$name.c" -o "$name" -L"$lib" "-l$name"
    LD_LIBRARY_PATH=$lib "./$name" >> out
done
cat out
diff - out << 'END' && echo 'as recorded'
libev 4.33
libev: 50 ms took less than 10 ms: yes
libuv 1.44.2
libuv: 50 ms took less than 10 ms: yes
END
