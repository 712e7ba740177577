//! `cargo xtask tidy`: the architecture's rules, checked on the source text. Also a test, so `cargo test` enforces them.
//!
//! A rule is one function from the tree to its faults, with a good and a bad sample in its tests. The rules see the text
//! and not the types: they are made for rustfmt's layout and for people who mean well, not against cunning.

mod arrows;
mod files;
mod manifest;
mod modules;
mod ordering;
mod paths;
mod scan;
mod sleep;
mod test_code;
mod tree;
mod unsafety;

use self::tree::{Fault, Tree};
use crate::args::Args;
use crate::cargo::{Failure, root};

type Rule = fn(&Tree) -> Vec<Fault>;

const RULES: &[(&str, Rule)] = &[
    ("arrows between crates", arrows::crates),
    ("dependencies from the workspace", arrows::workspace),
    ("the wheel stands alone", modules::wheel),
    ("a handle knows no wheel", modules::handle),
    ("threads and locks by the facade", modules::facade),
    ("no unsafe code", unsafety::unsafe_code),
    ("every ordering has its reason", ordering::orderings),
    ("short files", files::length),
    ("no sleeping", sleep::sleeping),
    ("no unfinished marks", files::marks),
    ("no paths of one machine", files::machine),
    ("files that must exist", files::present),
];

pub(crate) fn command(args: Args) -> Result<(), Failure> {
    args.done()?;
    run()
}

/// Prints every fault; warnings do not fail.
pub(crate) fn run() -> Result<(), Failure> {
    let tree = Tree::read(&root()).map_err(|error| Failure::new(format!("cannot read the tree: {error}")))?;
    let mut faults = 0;
    for (rule, check) in RULES {
        for fault in check(&tree) {
            println!("{fault} [{rule}]");
            faults += usize::from(!fault.warning);
        }
    }
    println!("tidy: {} rules, {} files, {faults} faults", RULES.len(), tree.files.len());
    if faults == 0 { Ok(()) } else { Err(Failure::new(format!("{faults} faults of architecture, listed above"))) }
}

#[cfg(test)]
mod tests {
    use super::{RULES, Tree, root};

    #[test]
    fn the_tree_keeps_the_architecture() {
        let tree = Tree::read(&root()).unwrap();
        let faults = RULES.iter().flat_map(|(_, check)| check(&tree));
        let faults: Vec<String> = faults.filter(|fault| !fault.warning).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    }
}
