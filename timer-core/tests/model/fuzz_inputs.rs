//! The inputs of the fuzz targets that once found a fault, and a check that bytes lead to every
//! operation. Each file in `fuzz_inputs/TARGET` is such an input.

use crate::support::Rng;
use crate::{timer, wheel};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;

/// Returns every input that was kept for a target.
fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/model/fuzz_inputs").join(target);
    let inputs: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(!inputs.is_empty());
    inputs
}

#[test]
fn inputs_that_found_a_fault_find_none() {
    kept("wheel_hashed").iter().for_each(|input| wheel::bytes::Case::hashed(input).unwrap().run_hashed());
    kept("timer_virtual").iter().for_each(|input| timer::bytes::Case::new(input).unwrap().run());
}

/// Decodes random bytes. Returns the number of different operations.
fn count_ops<Op: Debug>(decode: impl Fn(&[u8]) -> Vec<Op>) -> usize {
    let decoded = (0..300).flat_map(|seed| {
        let mut input = [0; 500];
        Rng::with_seed(seed).fill(&mut input);
        decode(&input)
    });
    let name = |op| format!("{op:?}").chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
    decoded.map(name).collect::<BTreeSet<_>>().len()
}

#[test]
fn bytes_lead_to_every_operation() {
    assert_eq!(count_ops(|input| wheel::bytes::Case::hashed(input).unwrap().ops), 13);
    assert_eq!(count_ops(|input| timer::bytes::Case::new(input).unwrap().ops), 14);
}
