//! Arrows inside timer-core: the wheel knows ticks and values only, a handle knows no wheel, and threads, locks and
//! atomics come through the facade `sync`, where loom can take their place.

use super::paths::Named;
use super::tree::{Fault, File, Rust, Tree};

const SRC: &str = "timer-core/src/";

/// Is `path` the module `name` of timer-core, or inside it?
fn within(path: &str, name: &str) -> bool {
    let Some(rest) = path.strip_prefix(SRC).and_then(|path| path.strip_prefix(name)) else {
        return false;
    };
    rest == ".rs" || rest.starts_with('/')
}

/// Everything named in a file, outside tests.
fn named(rust: &Rust) -> impl Iterator<Item = &Named> {
    rust.paths.iter().filter(|path| !rust.is_test(path.line))
}

/// The wheel names no other module, no thread, lock or clock.
pub(crate) fn wheel(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| within(&file.path, "wheel")) {
        for path in rust.paths.iter().filter(|path| leaves_wheel(file, rust, path)) {
            let what = format!("a wheel names `{}`; pass it what it needs as ticks and values", path.text());
            faults.push(Fault::new(&file.path, path.line, what));
        }
        for path in named(rust) {
            let std = ["std::sync", "std::thread", "std::time"].iter().any(|banned| path.begins_with(banned));
            let others = ["parking_lot", "tracing", "timer_executor", "loom"].iter().any(|name| path.enters(name));
            if std || others || enters_crossbeam(path) {
                let what =
                    format!("a wheel names `{}`; time is a tick, and whoever owns the wheel locks it", path.text());
                faults.push(Fault::new(&file.path, path.line, what));
            }
        }
    }
    faults
}

/// Does this path lead from inside the wheel to another module of the crate?
fn leaves_wheel(file: &File, rust: &Rust, path: &Named) -> bool {
    let segments = path.segments.iter().map(String::as_str).skip_while(|word| *word == "self");
    let segments: Vec<&str> = segments.collect();
    if segments.first() == Some(&"crate") {
        return segments.get(1).is_some_and(|module| *module != "wheel");
    }
    let inside = file.path.trim_start_matches(SRC).trim_end_matches(".rs").trim_end_matches("/mod");
    // `wheel` is one below the crate; the items of a test module are one further down.
    let depth = inside.split('/').count() + usize::from(rust.is_test(path.line));
    let up = segments.iter().take_while(|word| **word == "super").count();
    up >= depth && segments.get(up) != Some(&"wheel")
}

/// A caller's handle names no wheel.
pub(crate) fn handle(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| within(&file.path, "timeout")) {
        let is_wheel = |word: &String| word == "wheel" || word.contains("Wheel");
        for path in named(rust).filter(|path| path.segments.iter().any(is_wheel)) {
            let what =
                format!("a handle names `{}`; it reaches its entry through the shard, never the wheel", path.text());
            faults.push(Fault::new(&file.path, path.line, what));
        }
    }
    faults
}

/// Only the facade names what loom replaces.
pub(crate) fn facade(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    let ours = |file: &File| file.path.starts_with(SRC) && !within(&file.path, "sync");
    for (file, rust) in tree.rust().filter(|(file, _)| ours(file)) {
        for path in named(rust) {
            let std = path.begins_with("std::sync") || path.begins_with("std::thread");
            if std || path.enters("loom") || path.enters("parking_lot") || enters_crossbeam(path) {
                let what = format!("`{}` is named outside the facade; take it from `crate::sync`", path.text());
                faults.push(Fault::new(&file.path, path.line, what));
            }
        }
    }
    faults
}

fn enters_crossbeam(path: &Named) -> bool {
    path.segments[0].starts_with("crossbeam") && path.enters(&path.segments[0])
}

#[cfg(test)]
mod tests {
    use super::{SRC, facade, handle, wheel};
    use crate::tidy::tree::{Fault, Tree};

    fn count(rule: fn(&Tree) -> Vec<Fault>, file: &str, text: &str) -> usize {
        rule(&Tree::of(&[(&format!("{SRC}{file}"), text)])).len()
    }

    #[test]
    fn a_wheel_names_itself_only() {
        let wheel = |file: &str, text: &str| count(wheel, file, text);
        assert_eq!(wheel("wheel/level.rs", "use crate::wheel::slab::Slab;\nuse super::Key;\nuse std::mem;"), 0);
        assert_eq!(wheel("wheel/level.rs", "use crate::{wheel::Key, queue::Inbox};"), 1);
        assert_eq!(wheel("wheel/level.rs", "use super::super::clock::Clock;"), 1);
        assert_eq!(wheel("wheel/level.rs", "use super::super::wheel::Key;"), 0);
        assert_eq!(wheel("wheel.rs", "use super::clock::Clock;"), 1);
        assert_eq!(wheel("wheel/mod.rs", "#[cfg(test)]\nmod tests { use super::*; }"), 0);
        assert_eq!(wheel("wheel/mod.rs", "#[cfg(test)]\nmod tests { use super::super::worker; }"), 1);
        assert_eq!(wheel("worker.rs", "use crate::clock::Clock;"), 0);
    }

    #[test]
    fn a_wheel_names_no_thread_lock_or_clock() {
        let wheel = |text: &str| count(wheel, "wheel/hashed.rs", text);
        assert_eq!(wheel("use std::{sync::Arc, time::Duration, vec::Vec};"), 2);
        assert_eq!(wheel("fn f() { tracing::warn!(\"late\"); parking_lot::Mutex::new(1); }"), 2);
        assert_eq!(wheel("use timer_executor::Task;\nuse crossbeam_utils::CachePadded;\nuse core::time::Duration;"), 3);
        assert_eq!(wheel("//! No std::sync, no crate::clock.\nlet time = 1;"), 0);
        assert_eq!(wheel("#[cfg(test)]\nmod tests { use std::time::Instant; }"), 0);
    }

    #[test]
    fn a_handle_names_no_wheel() {
        let handle = |text: &str| count(handle, "timeout.rs", text);
        assert_eq!(handle("/// Leaves the wheel.\nfn cancel(&self) { self.shard.unlink(self.key) }"), 0);
        assert_eq!(handle("use crate::wheel::Key;"), 1);
        assert_eq!(handle("fn f(w: &HierarchicalWheel<u8>) {}"), 1);
        assert_eq!(handle("fn f(&self) { self.shard.wheel.remove(1); }"), 1);
        assert_eq!(handle("#[cfg(test)]\nmod tests { use crate::WheelKind; }"), 0);
    }

    #[test]
    fn only_the_facade_names_what_loom_replaces() {
        let text =
            "use std::sync::Arc;\nuse parking_lot::Mutex;\nfn f() { loom::model(|| ()); std::thread::yield_now(); }";
        assert_eq!(count(facade, "shard.rs", text), 4);
        assert_eq!(count(facade, "sync.rs", text), 0);
        assert_eq!(count(facade, "sync/loom.rs", text), 0);
        assert_eq!(count(facade, "synchro.rs", text), 4);
        assert_eq!(count(facade, "shard.rs", "use crate::sync::{Arc, loom};\n/// `std::sync`\nfn f() {}"), 0);
        assert_eq!(count(facade, "shard.rs", &format!("#[cfg(test)]\nmod tests {{\n{text}\n}}")), 0);
        assert_eq!(count(facade, "shard/tests.rs", text), 0);
        assert_eq!(count(facade, "shard.rs", "use crossbeam_queue::SegQueue;"), 1);
    }
}
