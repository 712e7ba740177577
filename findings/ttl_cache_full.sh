#!/usr/bin/env bash
# A full ttl_cache drops a living entry while it keeps an expired one.
#
# Guess: a cache that is made for expiring entries drops an expired entry first.
# Seen: it drops the entry that was inserted first, which lives for another minute. The entry that
# has expired keeps its place. `get` answers None for both.
# Versions: ttl_cache 0.5.1. Date: 2026-11.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/src"
cat > "$dir/Cargo.toml" << 'END'
[package]
name = "finding"
edition = "2021"

[dependencies]
ttl_cache = "=0.5.1"
END
cat > "$dir/src/main.rs" << 'END'
use std::thread::sleep;
use std::time::Duration;

use ttl_cache::TtlCache;

fn main() {
    let mut cache = TtlCache::new(2);
    cache.insert("lives", 1, Duration::from_secs(60));
    cache.insert("expired", 2, Duration::from_millis(10));
    sleep(Duration::from_millis(50));
    cache.insert("new", 3, Duration::from_secs(60));
    for key in ["lives", "expired", "new"] {
        println!("{key}: {:?}", cache.get(key));
    }
}
END
cargo run -q --manifest-path "$dir/Cargo.toml" > "$dir/out"
cat "$dir/out"
diff - "$dir/out" << 'END' && echo 'as recorded'
lives: None
expired: None
new: Some(3)
END
