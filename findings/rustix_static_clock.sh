#!/usr/bin/env bash
# rustix reads the clock by a system call in a static program, if it takes a feature for valgrind.
#
# Guess: with `use-libc-auxv`, rustix asks the C library for the address of the kernel's page, and
# reads the clock there without a system call. Linking the same program statically changes nothing.
# Seen: in the static program each of 1,000 readings is a system call, and in the dynamic one none
# is. rustix looks the function up by name at run time, and a static program has no names. It falls
# back without a word. The standard library's clock makes no system call in either.
# Versions: rustix 1.1.6, Rust 1.95, glibc 2.36. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
rustix = { version = "=1.1.6", features = ["time", "use-libc-auxv"] }
END
cat > "$dir/src/main.rs" << 'END'
use std::time::Instant;

use rustix::time::{clock_gettime, ClockId};

fn main() {
    let is_std = std::env::args().any(|arg| arg == "std");
    for _ in 0..1_000 {
        if is_std {
            let _now = Instant::now();
        } else {
            let _now = clock_gettime(ClockId::Monotonic);
        }
    }
}
END
target=$(rustc -vV | sed -n 's/^host: //p')
for flag in - +; do
    # With a target, build scripts and macros get no flags.
    RUSTFLAGS="-C target-feature=${flag}crt-static" cargo build -q --manifest-path "$dir/Cargo.toml" \
        --target "$target" --target-dir "$dir/target"
    for clock in rustix std; do
        strace -f -e trace=clock_gettime -o "$dir/trace" "$dir/target/$target/debug/finding" $clock
        calls=$(grep -c clock_gettime "$dir/trace" || true)
        echo "${flag}crt-static, $clock: at least 1,000 system calls: $([ "$calls" -ge 1000 ] && echo yes || echo no)"
    done
done > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
-crt-static, rustix: at least 1,000 system calls: no
-crt-static, std: at least 1,000 system calls: no
+crt-static, rustix: at least 1,000 system calls: yes
+crt-static, std: at least 1,000 system calls: no
END
