//! The work of the fuzz targets on a stable toolchain. Bytes become cases, which the models check.
//!
//! Each file in `fuzz_inputs/TARGET` is an input that once found a fault.

use crate::support::Rng;
use crate::{timer, wheel};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

const INPUTS: u64 = 300;

/// Returns inputs of any length up to `longest`, each from its own seed.
fn inputs(longest: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..INPUTS).map(move |seed| {
        let mut random = Rng::with_seed(seed);
        let mut input = vec![0; random.usize(..longest)];
        random.fill(&mut input);
        input
    })
}

/// Returns every input that was kept for a target.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/fuzz_inputs").join(target);
    let files = std::fs::read_dir(folder).into_iter().flatten();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

/// Returns the names of the operations, so that a test can check that bytes lead to each of them.
fn names<'a>(ops: impl IntoIterator<Item = &'a (impl Debug + 'a)>) -> impl Iterator<Item = String> {
    ops.into_iter().map(|op| format!("{op:?}").chars().take_while(|c| c.is_alphanumeric()).collect())
}

#[test]
fn any_bytes_make_a_case_for_a_hashed_wheel() {
    let mut seen = BTreeSet::new();
    for input in inputs(1000).chain(kept("wheel_hashed")) {
        let case = wheel::bytes::Case::hashed(&input).unwrap();
        seen.extend(names(&case.ops));
        case.run_hashed();
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
}

#[test]
fn any_bytes_make_a_case_for_a_hierarchical_wheel() {
    let mut seen = BTreeSet::new();
    for input in inputs(1000).chain(kept("wheel_hierarchical")) {
        let case = wheel::bytes::Case::hierarchical(&input).unwrap();
        seen.extend(names(&case.ops));
        case.run_hierarchical();
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
}

#[test]
fn any_bytes_make_a_case_for_a_timer() {
    let mut seen = BTreeSet::new();
    for input in inputs(200).chain(kept("timer_virtual")) {
        let case = timer::bytes::Case::new(&input).unwrap();
        seen.extend(names(&case.ops));
        case.run();
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
}
