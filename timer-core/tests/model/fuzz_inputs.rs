//! What the fuzz targets do, on a stable toolchain: bytes become cases, and the models check them.
//!
//! Each file in `fuzz_inputs/TARGET` is an input that has found something once.

use crate::{timer, wheel};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

const INPUTS: u64 = 300;

/// Inputs of any length up to `longest`. The generator is SplitMix64.
fn inputs(longest: u64) -> impl Iterator<Item = Vec<u8>> {
    let random = |seed: u64| {
        let z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..INPUTS).map(move |input| {
        let len = random(input + 1) % longest;
        (0..len).map(|at| random((input << 32) + at + 1) as u8).collect()
    })
}

/// Every input that was kept for a target.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/fuzz_inputs").join(target);
    let files = std::fs::read_dir(folder).into_iter().flatten();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

/// The names of the operations, to see that bytes lead to each.
fn names<'a>(ops: impl IntoIterator<Item = &'a (impl Debug + 'a)>) -> impl Iterator<Item = String> {
    ops.into_iter().map(|op| format!("{op:?}").chars().take_while(|c| c.is_alphanumeric()).collect())
}

#[test]
fn any_bytes_on_a_hashed_wheel() {
    let mut seen = BTreeSet::new();
    for input in inputs(1000).chain(kept("wheel_hashed")) {
        let case = wheel::bytes::Case::hashed(&input).unwrap();
        seen.extend(names(&case.ops));
        case.run_hashed();
    }
    assert_eq!(seen.len(), 12, "{seen:?}");
}

#[test]
fn any_bytes_on_a_hierarchical_wheel() {
    let mut seen = BTreeSet::new();
    for input in inputs(1000).chain(kept("wheel_hierarchical")) {
        let case = wheel::bytes::Case::hierarchical(&input).unwrap();
        seen.extend(names(&case.ops));
        case.run_hierarchical();
    }
    assert_eq!(seen.len(), 12, "{seen:?}");
}

#[test]
fn any_bytes_on_a_timer() {
    let mut seen = BTreeSet::new();
    for input in inputs(200).chain(kept("timer_virtual")) {
        let case = timer::bytes::Case::new(&input).unwrap();
        seen.extend(names(&case.ops));
        case.run();
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
}
